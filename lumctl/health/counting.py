"""Counters of hardware: how much one has grown between two readings, and how often something happened lately."""

from collections.abc import Iterable, Sequence
from typing import Any

from lumctl.health.rulebook import Counter

_LAP_SHARE = 1024
"""A counter that went past its greatest value has come at most this part of its range further."""
_STEPS = 60
"""Into how many steps a window is divided: what is in the step that just leaves it is not told apart."""


def growth(before: int, after: int, counter: Counter) -> int | None:
    """By how much a counter grew; ``None`` where it began again (reset, reloaded driver), which says nothing.

    A smaller value is a wrap only where the counter can wrap, and where little is missing on both sides of it.
    """
    if after >= before:
        return after - before
    lap = after + counter.greatest + 1 - before
    return None if counter.saturates or lap > counter.greatest // _LAP_SHARE else lap


class Tally:
    """How often something happened in the last ``window_s`` seconds. Bounded: times are kept in steps."""

    def __init__(self, window_s: float, steps: Iterable[Sequence[float]] = ()) -> None:
        self.window_s = window_s
        self._steps = [(float(at), int(events)) for at, events in steps][-_STEPS - 1 :]

    def add(self, at: float, events: int) -> None:
        """Note events at a time, which is not before those noted already."""
        if self._steps and at - self._steps[-1][0] < self.window_s / _STEPS:
            self._steps[-1] = (self._steps[-1][0], self._steps[-1][1] + events)
        else:
            self._steps = [*self._steps[-_STEPS:], (at, events)]

    def total(self, now: float) -> int:
        """The events of the window that ends now. What lies in the future (a clock set back) does not count."""
        return sum(events for at, events in self._steps if now - self.window_s < at <= now)

    def empty(self, now: float) -> bool:
        """Whether nothing of it can count any more."""
        return not self._steps or self._steps[-1][0] <= now - self.window_s

    def document(self) -> list[Any]:
        """The steps as JSON values."""
        return [list(step) for step in self._steps]
