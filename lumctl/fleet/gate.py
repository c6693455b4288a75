"""How many hosts are connected to at a time: a few, so that neither we nor a jump host are flooded."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Lets ``most`` pass at a time; one that has been inside for ``patience_s`` no longer counts.

    A connection takes some tens of milliseconds where all is well. One that takes a second waits for a host that
    hangs, and costs nothing: it must not keep the others out.
    """

    def __init__(self, most: int = 16, patience_s: float = 1.0) -> None:
        self._most = most
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._inside: dict[int, float] = {}
        self._visits = 0

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Wait for a free place, and hold it."""
        with self._changed:
            while (wait_s := self._until_free()) > 0:
                self._changed.wait(wait_s)
            self._visits += 1
            visit = self._visits
            self._inside[visit] = time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                del self._inside[visit]
                self._changed.notify()

    def _until_free(self) -> float:
        """Seconds until a place is free if none is released; 0 if there is one."""
        now = time.monotonic()
        fresh = sorted(since for since in self._inside.values() if now - since < self._patience_s)
        if len(fresh) < self._most:
            return 0.0
        return max(fresh[len(fresh) - self._most] + self._patience_s - now, 0.001)
