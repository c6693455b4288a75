"""Calls into code that may raise anything, return anything, or never return."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")
_QUOTED = 160
"""How many characters of an error's text are quoted."""


class CallFailedError(Exception):
    """The call raised, or gave something that cannot be understood."""


class CallHangsError(Exception):
    """The call did not return in time; whatever it was to do may yet happen."""


class StillHangingError(Exception):
    """A call from before has not returned: nothing was called."""


class PatientCalls:
    """Runs each call in a thread of its own and gives up waiting for it in time.

    A thread cannot be ended from outside. One whose call hangs is left behind, and until it returns no other call is
    made: two at once might get in each other's way.
    """

    def __init__(self) -> None:
        self._hanging: threading.Thread | None = None

    def run(self, call: Callable[[], T], timeout_s: float) -> T:
        """What the call returns.

        Raises:
            CallFailedError: it raised.
            CallHangsError: it did not return in time, and is left behind.
            StillHangingError: one that was left behind has not returned yet.
        """
        if self._hanging is not None and self._hanging.is_alive():
            raise StillHangingError
        results: SimpleQueue[tuple[bool, T | str]] = SimpleQueue()
        thread = threading.Thread(target=_run, args=(call, results), name="smartlight object", daemon=True)
        # Whatever ends the wait, be it Ctrl-C, the call continues.
        self._hanging = thread
        thread.start()
        try:
            returned, result = results.get(timeout=max(timeout_s, 0.0))
        except Empty:
            raise CallHangsError from None
        thread.join()
        if not returned:
            raise CallFailedError(result)
        return result  # type: ignore[return-value]  # what was returned is what the call gives


def _run(call: Callable[[], T], results: SimpleQueue[tuple[bool, T | str]]) -> None:
    try:
        results.put((True, call()))
    except BaseException as error:  # noqa: BLE001 - foreign code: also what it means to end a program with ends here
        results.put((False, _said(error)))


def _said(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - an error that cannot even be printed
        text = ""
    name = type(error).__name__
    line = "".join(c if c.isprintable() else "?" for c in text)
    return f"{name}: {line[:_QUOTED]}" if line else name
