"""Text of devices, escaped."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color

from lumctl.printable import printable, printable_json, printable_values
from lumctl.tui.app import ESCAPED

OBEYED = "\x1b]52;c;aGk=\x07", "\x9b31m", "\u202e", "\u200b", "\x7f", "\r", "\udc80", "\U000e0041"


@pytest.mark.parametrize("hostile", OBEYED)
def test_what_a_terminal_obeys_is_shown_as_its_escape(hostile):
    safe = printable(f"a{hostile}é\n", lines=True)
    assert safe.startswith("a\\")
    assert safe.endswith("é\n")
    assert safe[:-1].isprintable()
    assert printable("a\nb") == "a\\nb"


@given(st.text())
def test_a_json_document_keeps_its_values(text):
    document = printable_json(json.dumps({"said": text}, ensure_ascii=False))
    assert json.loads(document) == {"said": text}
    assert printable(document, lines=True) == document


def test_texts_within_lists_and_mappings():
    assert printable_values({"a": ["\x1b", 1, None], "b": {"c": "\r"}}) == {"a": ["\\x1b", 1, None], "b": {"c": "\\r"}}


@given(st.text(alphabet=st.sampled_from(["a", "│", "é", "漢", *"".join(OBEYED[:6])])))
def test_a_line_of_the_dashboard_keeps_its_width(text):
    (shown,) = ESCAPED.apply([Segment(text)], Color(0, 0, 0))
    assert printable(shown.text) == shown.text
    assert cell_len(shown.text) == cell_len(text)
