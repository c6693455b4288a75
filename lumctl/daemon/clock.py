"""The clock that dates readings and the one that nobody sets, and how to see that the first was set."""

import time
from collections.abc import Callable

SET_S = 5.0
"""What parts the two from one beat to the next once somebody has set the clock: drift and NTP never do."""


class Clock:
    """Both clocks. ``now`` is in seconds since the epoch; ``monotonic`` only ever goes on."""

    def __init__(self, now: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.monotonic = monotonic
        self._ahead = now() - monotonic()

    def set_by(self) -> float | None:
        """By how many seconds the clock was set since this was last asked; ``None`` if it was not."""
        ahead = self.now() - self.monotonic()
        by, self._ahead = ahead - self._ahead, ahead
        return by if abs(by) >= SET_S else None
