"""Parameters: named at the top, used as ${name}, and nothing else is touched."""

import pytest

from lumctl.errors import UsageError
from lumctl.runbook.intents import Intends, IntentRunbook
from lumctl.runbook.parameters import given_values, valued
from lumctl.runbook.yaml_text import read

TEXT = """\
schema: lumctl/runbook/v1
title: replace ${failed}
parameters:
  rack: {what: the rack, default: r1}
  failed: {what: the accelerator}
  sure: {what: even where it is well, default: true}
rack: ${rack}
intents:
- {do: swap, failed: "${failed}", even_if_healthy: "${sure}"}
"""


def test_a_value_takes_the_place_of_its_name_and_keeps_its_kind():
    book = read(TEXT, "x", {"failed": "r2-gpu3", "rack": "r2"})
    assert isinstance(book, IntentRunbook)
    assert (book.title, book.rack) == ("replace r2-gpu3", "r2")
    assert book.intents[0].do is Intends.SWAP
    assert (book.intents[0].words("failed"), book.intents[0].flag("even_if_healthy")) == (["r2-gpu3"], True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "needs a value for failed .the accelerator."),
        ({"failed": "a", "fialed": "b"}, "has no parameter 'fialed'"),
    ],
)
def test_a_value_that_is_missing_or_nobody_asked_for_is_named(given, says):
    with pytest.raises(UsageError, match=says):
        read(TEXT, "x", given)


def test_a_place_that_is_no_parameter_is_named():
    with pytest.raises(UsageError, match=r"uses .*faild.*not one of its parameters") as error:
        read(TEXT.replace('failed: "${failed}"', 'failed: "${faild}"'), "x", {"failed": "a"})
    assert error.value.hint == "did you mean failed?"


def test_what_was_recorded_and_what_has_no_parameters_stays_as_it_is():
    document = {"title": "costs ${5}", "steps": [{"outcome": {"text": "${a}"}, "data": {"n": "${a}"}}]}
    assert valued(document, {}, "x") == document
    filled = valued({**document, "title": "t", "parameters": {"a": {"default": 3}}}, {}, "x")
    assert filled["steps"] == [{"outcome": {"text": "${a}"}, "data": {"n": 3}}]


def test_values_are_typed_once_each():
    assert given_values(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    for words in (["a"], ["=b"], ["a=1", "a=2"]):
        with pytest.raises(UsageError):
            given_values(words)
