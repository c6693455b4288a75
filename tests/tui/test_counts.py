"""How many of something, in words."""

import pytest

from lumctl.printable import counted, stay
from lumctl.tui.panes import PANES


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 incidents"), (1, "1 incident"), (2, "2 incidents")], ids=["none", "one", "two"]
)
def test_one_is_not_many(number, told):
    assert counted(number, "incidents") == told


def test_what_is_not_formed_by_a_letter_is_given():
    assert stay(1, "others on it", "other on it") == "1 other on it stays as it is"
    assert stay(2, "others on it", "other on it") == "2 others on it stay as they are"


def test_one_row_of_each_pane_is_called_by_its_name():
    assert [pane.count(1) for pane in PANES] == [
        "1 rack, mesh or host",
        "1 accelerator",
        "1 circuit",
        "1 finding",
        "1 incident",
        "1 run",
        "1 runbook",
        "1 policy or decision",
        "1 job",
        "1 line",
    ]
