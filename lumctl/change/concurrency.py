"""Run calls at the same time and wait for all of them, even if one fails."""

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
"""Threads are reused: next to a dozen busy threads, a new one may take longer to start than a host takes to answer."""


class Concurrent(Generic[T]):
    """Runs calls in threads. A single call runs in the caller's thread, where a signal ends it at once."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], T], Future[T]]] = deque()
        self._given: list[Future[T]] = []

    def run(self, calls: Sequence[Callable[[], T]], *, most: int) -> list[T]:
        """The results in the order of the calls, once all have ended; at most ``most`` run at a time.

        An interrupted caller must call :meth:`rest` before it does anything that must not run at the same time as these
        calls.

        Raises:
            Exception: what the first failed call raised.
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
        """Wait for the calls that have begun and cancel the others; return the results, if any."""
        # Calls that no thread has taken are cancelled. The others are awaited through their futures. A flag set by the
        # thread would not do: an interrupt may come between the start of the call and the setting of the flag.
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
    """The results of calls that only read, made at the same time; the first failure is raised once all have ended.

    After an interrupt no further call starts, and calls that have begun are awaited.
    """
    if not calls:
        return []
    calls_now = Concurrent[T]()
    try:
        return calls_now.run(calls, most=most)
    except BaseException:
        with suppress(Exception):  # their results are no longer needed
            calls_now.rest()
        raise
