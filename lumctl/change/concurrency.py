"""Calls that run at the same time; all are waited for, even if one of them fails."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Generic, TypeVar

from lumctl.workers import Workers

T = TypeVar("T")

MOST_AT_A_HOST, MOST_AT_ONCE = 8, 32
"""sshd lets ten commands run over one connection (MaxSessions); the loop that reads a host's probes is one of them."""

_WORKERS = Workers("abreast")
"""Threads that are kept: beside a dozen busy ones, a new thread may take longer to begin than a host to answer."""


class Concurrent(Generic[T]):
    """Runs calls side by side, in threads; a single one runs in the caller's own, where a signal ends it at once."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], T], Future[T]]] = deque()
        self._given: list[Future[T]] = []

    def run(self, calls: Sequence[Callable[[], T]], *, most: int) -> list[T]:
        """What each call gives, in their order, once all have ended; at most so many at a time.

        Who is interrupted meanwhile has to :meth:`rest` before it does anything that must not go on beside them.

        Raises:
            Exception: what the first of those that failed raised.
        """
        if len(calls) == 1:
            return [calls[0]()]
        given: list[Future[T]] = [Future() for _ in calls]
        self._waiting.extend(zip(calls, given, strict=True))
        self._given = given
        for _ in range(min(len(calls), most)):
            _WORKERS.submit(self._take_turns)
        wait(given)
        return self.rest()

    def rest(self) -> list[T]:
        """Wait for the calls that have begun, and begin no other; what they gave, which may be nothing."""
        # What nobody has taken yet never begins. All else is waited for by its own end, not by a note of its thread:
        # an interrupt may come between the start of that and the note.
        with suppress(IndexError):
            while True:
                self._waiting.popleft()[1].cancel()
        given = [each for each in self._given if not each.cancelled()]
        self._given = []
        wait(given)
        return [each.result() for each in given]

    def _take_turns(self) -> None:
        while True:
            try:
                call, given = self._waiting.popleft()
            except IndexError:
                return
            try:
                given.set_result(call())
            except BaseException as failure:  # noqa: BLE001 - it is raised where its result is asked for
                given.set_exception(failure)


def all_of(calls: Sequence[Callable[[], T]], *, most: int) -> list[T]:
    """What calls that only read give, made side by side; the first that failed is told of once all have ended.

    So it is where this is interrupted: no other call begins, and those under way are waited for.
    """
    if not calls:
        return []
    calls_now = Concurrent[T]()
    try:
        return calls_now.run(calls, most=most)
    except BaseException:
        with suppress(Exception):  # what comes of them matters to nobody now
            calls_now.rest()
        raise
