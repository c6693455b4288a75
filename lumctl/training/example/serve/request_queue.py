"""Requests that wait for the ranks: taken in by threads of the HTTP server, worked on a token a turn."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_WAITING = 64
MOST_TOGETHER = 8
"""Sequences of one turn; the rest wait."""


class BusyError(Exception):
    """Not now: too many wait, or the ranks are being replaced for longer than we let anyone wait."""


@dataclass(eq=False)
class Request:
    """One sequence on its way."""

    tokens: list[int]
    wanted: int
    """Tokens that are still to come."""
    made: list[int] = field(default_factory=list)


class RequestQueue:
    """A request is answered whole or refused. What the ranks lose with a turn is nothing: its tokens are here.

    Args:
        patience_s: how long requests wait for ranks that finish no turn.
        now: the time in seconds.
    """

    def __init__(self, *, patience_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._now = now
        self._changed = threading.Condition()
        self._waiting: list[Request] = []
        self._turn_at = now()
        self._closed = False
        self.turns = 0

    def ask(self, tokens: list[int], wanted: int) -> list[int]:
        """Wait until all tokens are made; the tokens.

        Raises:
            BusyError: it is not served now.
        """
        request = Request(tokens, wanted)
        with self._changed:
            if self._closed or len(self._waiting) >= MOST_WAITING:
                raise BusyError("too many requests wait" if not self._closed else "this rank serves no more")
            self._waiting.append(request)
            self._changed.notify_all()
            asked_at = self._now()
            while request.wanted:
                left = self._patience_s - (self._now() - max(asked_at, self._turn_at))
                if self._closed or left <= 0:
                    self._waiting.remove(request)
                    raise BusyError("the ranks that compute are being replaced")
                self._changed.wait(left)
        return request.made

    def batch(self, *, wait_s: float) -> list[Request]:
        """What to work on in this turn; waits a moment for the first."""
        with self._changed:
            if not self._waiting:
                self._changed.wait(wait_s)
            return self._waiting[:MOST_TOGETHER]

    def finish(self, batch: list[Request], made: list[int]) -> None:
        """A turn is done; each sequence of the batch has got one token more."""
        with self._changed:
            self._turn_at = self._now()
            self.turns += 1
            for request, token in zip(batch, made, strict=True):
                request.made.append(token)
                request.wanted -= 1
            # One that gave up meanwhile is in the batch and here no more.
            self._waiting = [request for request in self._waiting if request.wanted]
            self._changed.notify_all()

    @property
    def silent_s(self) -> float:
        """Seconds since the last turn."""
        return self._now() - self._turn_at

    @property
    def well(self) -> bool:
        """Whether turns are being done."""
        return self.silent_s <= self._patience_s

    def close(self) -> None:
        """Refuse all that wait and all that come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
