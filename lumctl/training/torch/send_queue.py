"""A worker's messages to its agent: sent at once or as soon as it reads, and repeated to its successor."""

import select
import threading
from collections.abc import Callable
from typing import Any

from lumctl.training.wire import Message, MessageLine

_ENDS_WITH = {
    "joined": ("broken", "held", "loaded", "unloaded"),
    "held": ("loaded", "unloaded"),
    "loaded": ("unloaded",),
    "unloaded": ("loaded",),
}
"""What is not true any more once something else is said."""


class SendQueue:
    """Sends messages from any thread, and never waits for an agent that does not read.

    To such an agent the newest of each kind is said when it reads again: no more of it could matter. ``behind`` is
    called, by whoever spoke, when there is something to :meth:`catch_up` with.
    """

    def __init__(self, done: Callable[[], int], behind: Callable[[], None]) -> None:
        self._done, self._behind = done, behind
        self._newest: dict[str, Message] = {}
        self._late: dict[str, Message] = {}
        self._line: MessageLine | None = None
        self._lock = threading.RLock()

    @property
    def late(self) -> bool:
        """Whether messages are unsent."""
        return bool(self._late)

    def say(self, word: str, **what: Any) -> None:
        """Send a message; if the agent is gone, the next one gets it."""
        message = {"say": word, **what}
        with self._lock:
            for outlived in (word, *_ENDS_WITH.get(word, ())):
                self._newest.pop(outlived, None)
            self._newest[word] = message
            if self._line is None:
                return
            self._late.pop(word, None)
            if self._late or not _takes(self._line):
                self._late[word] = message
                self._behind()
            else:
                self._send(message)

    def beat(self) -> None:
        """Send a heartbeat, unless earlier messages are still unread."""
        with self._lock:
            if self._line is not None and not self._late and _takes(self._line):
                self._send({"say": "beat", "done": self._done()})

    def catch_up(self) -> None:
        """Send late messages, as far as the agent reads now."""
        with self._lock:
            while self._late and self._line is not None and _takes(self._line):
                self._send(self._late.pop(next(iter(self._late))))

    def to(self, line: MessageLine) -> None:
        """Send to this agent from now on, beginning with all that still holds.

        Raises:
            OSError: it does not listen.
        """
        with self._lock:
            if "ready" in self._newest:
                self._newest["ready"]["done"] = self._done()
            for message in self._newest.values():
                line.send(message)
            self._line = line
            self._late.clear()

    def over(self) -> None:
        """The agent is gone."""
        with self._lock:
            self._line = None
            self._late.clear()

    def finish(self) -> None:
        """Say what is late, if the agent reads it in time, and nothing after that."""
        with self._lock:
            while self._late and self._line is not None:
                self._send(self._late.pop(next(iter(self._late))))
            self._line = None

    def _send(self, message: Message) -> None:
        line = self._line
        if line is not None:
            try:
                line.send(message)
            except OSError:
                self._line = None  # the thread that listens finds it broken too
                line.close()


def _takes(line: MessageLine) -> bool:
    """Whether a message can be sent without waiting."""
    poll = select.poll()
    try:
        poll.register(line.fileno(), select.POLLOUT)
    except (OSError, ValueError):
        return True  # it is closed: sending tells
    return bool(poll.poll(0))
