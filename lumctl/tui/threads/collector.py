"""Reads the rack again and again in a thread of its own, and posts what it finds."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message

from lumctl.errors import LumctlError
from lumctl.tui.views.records import RecordedLook


@dataclass
class ReadingBegan(Message):
    """A reading of the rack is under way."""


@dataclass
class Observed(Message):
    """A reading ended well."""

    seen: RecordedLook


@dataclass
class ObserveFailed(Message):
    """A reading failed as a whole; ``text`` is the reason in one line."""

    text: str


class Collector:
    """Looks every ``interval_s`` seconds, counted from the end of the last reading, or at once on request.

    The thread is a daemon: an operator who quits must not wait for a host that hangs, and a reading changes nothing.
    """

    def __init__(self, look: Callable[[], RecordedLook], interval_s: float, post: Callable[[Message], object]) -> None:
        self._look = look
        self._interval_s = interval_s
        self._post = post
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lumctl-collector", daemon=True)

    def start(self) -> None:
        """Begin with the first reading."""
        self._thread.start()

    def refresh(self) -> None:
        """Read again now, or as soon as the reading under way has ended."""
        self._wake.set()

    def stop(self) -> None:
        """Stop reading; a reading in progress ends by itself."""
        self._stopped.set()
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wake.clear()
            self._post(ReadingBegan())
            self._post(self._read())
            self._pause()

    def _pause(self) -> None:
        try:
            self._wake.wait(self._interval_s)
        except Exception as error:  # noqa: BLE001 - an interval that no clock knows: read on request only
            self._post(ObserveFailed(one_line(error)))
            self._wake.wait()

    def _read(self) -> Message:
        try:
            return Observed(self._look())
        except LumctlError as error:
            return ObserveFailed(one_line(error))
        except Exception as error:  # noqa: BLE001 - a bug in one reading must not take the operator's screen away
            return ObserveFailed(one_line(error))


def one_line(error: Exception) -> str:
    """An error as the dashboard shows it: what happened and, where there is one, what to do."""
    if isinstance(error, LumctlError):
        return f"{error.message} (hint: {error.hint})" if error.hint else error.message
    return f"unexpected {type(error).__name__}: {error}; this is a bug"
