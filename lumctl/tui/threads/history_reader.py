"""Asks for the history of a component in a thread of its own; the answer comes as a message."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message

from lumctl.tui.views.history import History


@dataclass
class HistoryRead(Message):
    """A component's history, so many seconds back."""

    seconds: float
    history: History


class HistoryAsker:
    """One question at a time: the newest of those that are asked meanwhile is put when the answer is there.

    ``take`` is called from another thread. That thread is a daemon: a database that hangs must not hold the terminal.
    """

    def __init__(self, read: Callable[[float], History], take: Callable[[Message], object]) -> None:
        self._read = read
        self._take = take
        self._lock = threading.Lock()
        self._wanted: float | None = None
        self._busy = False

    def ask(self, seconds: float) -> None:
        """Read the history, so many seconds back."""
        with self._lock:
            self._wanted = seconds
            if self._busy:
                return
            self._busy = True
        threading.Thread(target=self._run, name="lumctl-history", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                seconds, self._wanted = self._wanted, None
                if seconds is None:
                    self._busy = False
                    return
            self._take(HistoryRead(seconds, self._read(seconds)))
