"""Beats at fixed times: one that was missed is counted and left out, never made up for."""

import math
import time
from collections.abc import Callable


class Cadence:
    """The beats ``start, start + interval_s, start + 2 * interval_s, ...`` of a clock that nobody sets."""

    def __init__(self, interval_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._last = monotonic()

    def to_next(self) -> tuple[float, int]:
        """Go on to the next beat that is still to come: seconds until it, and how many were missed before it."""
        behind = self._monotonic() - self._last
        beats = max(math.ceil(behind / self._interval_s), 1)
        self._last += beats * self._interval_s
        return max(self._last - self._monotonic(), 0.0), beats - 1
