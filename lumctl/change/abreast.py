"""Calls that run at the same time, and are all waited for, whatever comes between."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

T = TypeVar("T")


class Abreast(Generic[T]):
    """Runs calls side by side, in threads; a single one runs in the caller's own, where a signal ends it at once."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._begun: list[Future[T]] = []

    def run(self, calls: Sequence[Callable[[], T]], *, most: int) -> list[T]:
        """What each call gives, in their order, once all have ended; at most so many at a time.

        Who is interrupted meanwhile has to :meth:`rest` before it does anything that must not go on beside them.
        """
        if len(calls) == 1:
            return [calls[0]()]
        self._pool = ThreadPoolExecutor(max_workers=min(len(calls), most), thread_name_prefix="step")
        for call in calls:
            self._begun.append(self._pool.submit(call))
        wait(self._begun)
        return self.rest()

    def rest(self) -> list[T]:
        """Wait for the calls that have begun, and begin no other; what they gave, which may be nothing."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        begun, self._begun, self._pool = self._begun, [], None
        return [call.result() for call in begun if not call.cancelled()]
