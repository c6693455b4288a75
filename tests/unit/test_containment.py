"""What a plug-in may do wrong, and what whoever called it sees of that."""

# ruff: noqa: T201 - printing is what is tested

import os
import sys
import threading
from concurrent.futures import Future
from contextvars import ContextVar

import pytest

from lumctl.containment import Culprit, LateError, MisbehavedError, contained
from lumctl.errors import RefusedError

CULPRIT = Culprit("driver", "acme", "acme-lumctl 1.2")
asked_by: ContextVar[str] = ContextVar("asked_by", default="nobody")


def call(what, within_s=10.0):
    return contained(CULPRIT, "read_states of m1", what, within_s)


def raises(error):
    def raise_it():
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("by zero"), "raised ZeroDivisionError: by zero"),
        (SystemExit(3), "raised SystemExit: 3"),
        (KeyboardInterrupt(), "raised KeyboardInterrupt"),
        (TimeoutError("of its own"), "raised TimeoutError: of its own"),
        (ValueError("two\nlines \x1b[2J"), "raised ValueError: two lines \\x1b[2J"),
    ],
)
def test_whatever_it_raises_is_named_with_the_plugin_and_the_call(error, said):
    with pytest.raises(MisbehavedError) as caught:
        call(raises(error))
    assert caught.value.message == f"driver 'acme' of acme-lumctl 1.2: read_states of m1 {said}"


def test_a_domain_error_is_its_answer():
    with pytest.raises(RefusedError, match=r"^no$"):
        call(raises(RefusedError("no")))


@pytest.mark.parametrize(
    ("end", "name"),
    [
        (lambda: os._exit(0), "_exit"),
        (lambda: os.abort(), "abort"),  # noqa: PLW0108 - looked up when it is called
        (lambda: os.execv("/bin/true", ["true"]), "execv"),  # noqa: S606 - it is not started
        (lambda: os.execve("/bin/true", ["true"], {}), "execve"),  # noqa: S606
    ],
)
def test_it_does_not_end_the_process(end, name):
    with pytest.raises(MisbehavedError, match=f"read_states of m1 called os.{name}, which ends the process"):
        call(end)


def test_a_child_that_it_forks_may_end():
    def fork():
        child = os.fork()
        if child == 0:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert call(fork) == 7


def test_what_it_says_in_an_error_is_kept_to_a_line():
    with pytest.raises(RefusedError) as refused:
        call(raises(RefusedError("no\n" * 50_000, hint="do " * 50_000)))
    with pytest.raises(MisbehavedError) as misbehaved:
        call(raises(ValueError("x" * 200_000)))
    assert refused.value.message == str(refused.value)
    for text in (refused.value.message, refused.value.hint, misbehaved.value.what):
        assert len(text) <= len("raised ") + 500
        assert text.endswith("…")
        assert "\n" not in text


def test_a_domain_error_without_a_text_is_named():
    class SpeechlessError(RefusedError):
        @property
        def message(self):
            raise RuntimeError("no text")

        @message.setter
        def message(self, text):
            pass

    with pytest.raises(MisbehavedError, match="raised SpeechlessError"):
        call(raises(SpeechlessError("no")))


def test_a_call_that_does_not_come_back_is_left_behind():
    goes_on = threading.Event()
    with pytest.raises(LateError, match="read_states of m1 has not returned within") as caught:
        call(goes_on.wait, within_s=0.05)
    assert not caught.value.late.done()
    goes_on.set()
    assert caught.value.late.result(10) is True


def test_ctrl_c_as_a_call_ends_is_not_the_plugins(monkeypatch):
    class Interrupted(Future):
        def result(self, timeout=None):
            super().result(timeout)
            raise KeyboardInterrupt

    monkeypatch.setattr("lumctl.workers.Future", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        call(lambda: "an answer")


def test_it_is_asked_in_the_context_of_who_asks():
    token = asked_by.set("a change")
    try:
        assert call(asked_by.get) == "a change"
    finally:
        asked_by.reset(token)


def test_what_it_prints_is_dropped_and_nothing_else(capsys):
    printing, printed = threading.Event(), threading.Event()

    def prints():
        print("\x1b[2J{")
        sys.stderr.write("trouble\n")
        sys.stdout.buffer.write(b"raw")
        printing.set()
        return printed.wait(10)

    def beside():
        printing.wait(10)
        print("ours")
        printed.set()

    thread = threading.Thread(target=beside)
    thread.start()
    assert call(prints) is True
    thread.join()
    print("and ours")
    assert capsys.readouterr() == ("ours\nand ours\n", "")
