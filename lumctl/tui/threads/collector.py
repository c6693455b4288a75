"""Reads the rack repeatedly in a thread of its own, and posts the observations."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from textual.message import Message

from lumctl.errors import LumctlError
from lumctl.tui.views.records import RecordedLook


@dataclass
class ReadingBegan(Message):
    """A reading of the rack is in progress."""


@dataclass
class Observed(Message):
    """A reading succeeded."""

    seen: RecordedLook


@dataclass
class ObserveFailed(Message):
    """A reading failed as a whole; ``text`` is the reason in one line."""

    text: str


class Collector:
    """Reads every ``interval_s`` seconds, counted from the end of the last reading, or at once on request.

    The thread is a daemon: an operator who quits must not wait for a host that hangs, and a reading changes nothing.
    """

    def __init__(self, look: Callable[[], RecordedLook], interval_s: float, post: Callable[[Message], object]) -> None:
        self._look = look
        self._interval_s = interval_s
        self._post = post
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._may_read = threading.Event()
        self._may_read.set()
        self._thread = threading.Thread(target=self._run, name="lumctl-collector", daemon=True)

    def start(self) -> None:
        """Begin with the first reading."""
        self._thread.start()

    def refresh(self) -> None:
        """Read again now, or as soon as the reading in progress has ended."""
        self._wake.set()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside, no reading begins; afterwards one begins at once."""
        self._may_read.clear()
        try:
            yield
        finally:
            self._may_read.set()
            self.refresh()

    def stop(self) -> None:
        """Stop reading; a reading in progress ends by itself."""
        # First, because the two others wake the thread, which then looks at this one.
        self._stopped.set()
        self._may_read.set()
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            # Before the reading: a request during it asks for what changed meanwhile, so another one follows at once.
            self._wake.clear()
            self._post(ReadingBegan())
            self._post(self._read())
            self._pause()
            self._may_read.wait()

    def _pause(self) -> None:
        try:
            self._wake.wait(self._interval_s)
        except Exception as error:  # noqa: BLE001 - an interval too long for the clock: read on request only
            self._post(ObserveFailed(one_line(error)))
            self._wake.wait()

    def _read(self) -> Message:
        try:
            return Observed(self._look())
        except Exception as error:  # noqa: BLE001 - a bug in one reading must not take the operator's screen away
            return ObserveFailed(one_line(error))


def one_line(error: Exception) -> str:
    """An error as the dashboard shows it: what happened and, if known, what to do."""
    if isinstance(error, LumctlError):
        return f"{error.message} (hint: {error.hint})" if error.hint else error.message
    return f"unexpected {type(error).__name__}: {error}; this is a bug"
