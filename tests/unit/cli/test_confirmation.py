"""The question before a change, on a terminal."""

import os
import sys

import pytest

from lumctl.cli.invocation import Invocation
from lumctl.errors import RefusedError


class Operator:
    """Standard error of a terminal, whose operator answers as soon as the question is asked."""

    def __init__(self, terminal, answer):
        self._terminal, self._answer = terminal, answer

    def isatty(self):
        return True

    def write(self, text):
        if "[y/N]" in text:
            os.write(self._terminal, self._answer)

    def flush(self):
        pass


@pytest.mark.parametrize(("typed_before", "answer", "agreed"), [(b"", b"y\n", True), (b"y\n", b"n\n", False)])
def test_what_was_typed_before_the_question_is_no_answer(monkeypatch, typed_before, answer, agreed):
    terminal, inside = os.openpty()
    with os.fdopen(inside, encoding="ascii") as stdin:
        os.write(terminal, typed_before)
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", Operator(terminal, answer))
        try:
            Invocation.compose({}, {}).confirm("Apply it", yes=False)
        except RefusedError:
            assert not agreed
        else:
            assert agreed
    os.close(terminal)


def test_a_command_that_is_narrated_has_the_options_of_its_own(capsys):
    cx = Invocation.compose({"inventory": "my rack.yaml"}, {"target": "sim"})
    cx.out.narrate("apply it: lumctl swap apply plan-1 --target sim")
    assert capsys.readouterr().err == "apply it: lumctl -i 'my rack.yaml' swap apply plan-1 --target sim\n"
