"""Transitions that a store had no room for: kept in memory, as far as that goes, until it has."""

import time
from collections import deque
from collections.abc import Callable, Sequence

from lumctl.health.transitions import Transition

MOST_KEPT = 10_000
PAUSE_S = 5.0
"""Between two attempts to write into a store that refused: one that is locked holds up a beat each time."""

Write = Callable[[str, Sequence[Transition]], None]


class History:
    """Writes transitions into the store of their rack, in order. Used by one thread."""

    def __init__(self, write: Write, *, most: int = MOST_KEPT, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.write = write
        self.dropped = 0
        """The oldest ones, for which memory had no room any more."""
        self.failures = 0
        self._monotonic = monotonic
        self._waiting: deque[tuple[str, Transition]] = deque(maxlen=most)
        self._not_before = 0.0

    @property
    def waiting(self) -> int:
        """How many are not written yet."""
        return len(self._waiting)

    def add(self, rack: str, change: Transition) -> None:
        """Take a transition that the store of its rack did not take."""
        self.dropped += len(self._waiting) == self._waiting.maxlen
        self._waiting.append((rack, change))

    def flush(self) -> bool:
        """Write what waits, one store at a time; whether there was anything to write and all of it was written.

        Raises:
            Exception: what a store said; what it did not take stays here, and it is left alone for a while.
        """
        if not self._waiting or self._monotonic() < self._not_before:
            return False
        refused: Exception | None = None
        for rack in dict.fromkeys(rack for rack, _ in self._waiting):
            changes = [change for where, change in self._waiting if where == rack]
            try:
                self.write(rack, changes)
            except Exception as error:  # noqa: BLE001 - whatever it was, the others are written and nothing is lost
                refused = error
                self.failures += 1
                continue
            self._waiting = deque(((r, c) for r, c in self._waiting if r != rack), maxlen=self._waiting.maxlen)
        if refused is not None:
            self._not_before = self._monotonic() + PAUSE_S
            raise refused
        return True
