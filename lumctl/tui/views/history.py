"""Readings over time: what the store keeps, joined with what the dashboard has itself seen since it was opened."""

import math
import threading
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from lumctl.health.observation import Observation
from lumctl.health.quantities import ACCELERATOR, TRANSPONDER, UNITS, Quantity, measured
from lumctl.store.packed_hours import Point
from lumctl.tui.threads.collector import one_line

RING_S = 900.0
"""How far back the dashboard itself remembers."""
STEP_S = 5.0
"""How far apart what it remembers is, at least."""


@dataclass(frozen=True, slots=True)
class Series:
    """One reading over time, oldest first."""

    name: str
    unit: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class History:
    """All readings of a component over time; ``trouble`` is why the store could not be read, in one line."""

    series: tuple[Series, ...] = ()
    trouble: str | None = None

    def of(self, name: str) -> tuple[Point, ...]:
        """The points of one reading."""
        return next((series.points for series in self.series if series.name == name), ())


Kept = Callable[[str, float], tuple[Series, ...]]
"""Reads a component's history from the store, so many seconds back; blocks, and may raise ``LumctlError``."""


class Ring:
    """What the newest looks have read of everything, as bare numbers. May be used from any thread."""

    def __init__(self, most_s: float = RING_S, step_s: float = STEP_S) -> None:
        self._step_s = step_s
        self._looks: deque[tuple[float, array[float]]] = deque(maxlen=int(most_s / step_s))
        self._places: dict[str, tuple[int, tuple[Quantity, ...]]] = {}
        self._digest = ""
        self._lock = threading.Lock()

    def add(self, look: Observation) -> None:
        """Keep the readings of an observation, unless the one before is too recent; stale readings are left out."""
        newest = self._looks[-1][0] if self._looks else -math.inf
        if newest <= look.at < newest + self._step_s:
            return
        with self._lock:
            if look.at < newest or look.inventory.digest != self._digest:  # another time, or another rack
                self._looks.clear()
                self._places = _places(look)
                self._digest = look.inventory.digest
        oldest = look.at - look.inventory.thresholds.stale_after_s
        width = max(len(ACCELERATOR), len(TRANSPONDER))
        numbers = array("f", [math.nan]) * (len(self._places) * width)
        for read in measured(look):
            if read.at < oldest or read.component not in self._places:
                continue
            start = self._places[read.component][0] * width
            for offset, quantity in enumerate(read.quantities):
                value = getattr(read.reading, quantity.field)
                if value is not None:
                    numbers[start + offset] = value
        with self._lock:
            self._looks.append((look.at, numbers))

    def series(self, component: str) -> dict[str, tuple[Point, ...]]:
        """What is remembered of a component, by the name of the reading."""
        with self._lock:
            looks, (place, quantities) = tuple(self._looks), self._places.get(component, (0, ()))
        start = place * max(len(ACCELERATOR), len(TRANSPONDER))
        found: dict[str, list[Point]] = {}
        for index, (at, numbers) in enumerate(looks):
            later = looks[index + 1][0] if index + 1 < len(looks) else at + self._step_s
            span_s = min(later - at, 12 * self._step_s)
            for offset, quantity in enumerate(quantities):
                value = numbers[start + offset]
                if not math.isnan(value):
                    found.setdefault(quantity.name, []).append(Point(at, value, value, value, span_s))
        return {name: tuple(points) for name, points in found.items()}


def joined(kept: Kept, ring: Ring, component: str, seconds: float) -> History:
    """The history of a component for the last seconds: the newest part in full detail, earlier parts as stored."""
    trouble = None
    try:
        stored = {series.name: series.points for series in kept(component, seconds)}
    except Exception as error:  # noqa: BLE001 - whatever the store has, what was seen is shown all the same
        stored, trouble = {}, one_line(error)
    own = ring.series(component)
    names = [name for name in UNITS if name in stored or name in own]
    return History(
        tuple(Series(name, UNITS[name], _joined(stored.get(name, ()), own.get(name, ()))) for name in names), trouble
    )


def nothing_kept(_component: str, _seconds: float) -> tuple[Series, ...]:
    """The history where no store is read."""
    return ()


def _joined(stored: tuple[Point, ...], own: tuple[Point, ...]) -> tuple[Point, ...]:
    if not own:
        return stored
    return (*(point for point in stored if point.at < own[0].at), *own)


def _places(look: Observation) -> dict[str, tuple[int, tuple[Quantity, ...]]]:
    inventory = look.inventory
    named = [(name, ACCELERATOR) for name in inventory.accelerators]
    named += [(name, TRANSPONDER) for name in inventory.transponders]
    return {name: (place, quantities) for place, (name, quantities) in enumerate(named)}
