"""Retries with growing pauses."""

import math


class Retries:
    """When each failed thing is tried again, by its name."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._failed: dict[str, int] = {}
        self._at: dict[str, float] = {}

    def failed(self, name: str, now: float) -> int:
        """Record a failure; how many times it has failed in a row."""
        times = self._failed[name] = self._failed.get(name, 0) + 1
        self._at[name] = now + min(self._longest_s, self._first_s * 2.0 ** min(times - 1, 30))
        return times

    def over(self, name: str) -> None:
        """Record a success, or that it is not wanted any more."""
        self._failed.pop(name, None)
        self._at.pop(name, None)

    def waits(self, name: str, now: float) -> bool:
        """Whether its next attempt is not due yet."""
        return now < self._at.get(name, -math.inf)

    @property
    def next_at(self) -> float:
        """When the next attempt is due; infinity if nothing waits."""
        return min(self._at.values(), default=math.inf)

    def due(self, now: float) -> list[str]:
        """Take what is due now; it has no next attempt until it fails again."""
        names = [name for name, at in self._at.items() if at <= now]
        for name in names:
            del self._at[name]
        return names
