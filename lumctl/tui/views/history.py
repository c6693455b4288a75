"""Readings over time: stored readings, joined with those that the dashboard itself has read."""

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
"""The time span of the readings that the dashboard keeps in memory."""
STEP_S = 5.0
"""The least time between two readings that the dashboard keeps."""


@dataclass(frozen=True, slots=True)
class Series:
    """One reading over time, oldest first."""

    name: str
    unit: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class History:
    """All readings of a component over time; if the store could not be read, ``trouble`` is the reason in one line."""

    series: tuple[Series, ...] = ()
    trouble: str | None = None

    def of(self, name: str) -> tuple[Point, ...]:
        """The points of one reading."""
        return next((series.points for series in self.series if series.name == name), ())


Kept = Callable[[str, float], tuple[Series, ...]]
"""Reads a component's history for so many seconds from the store; blocks, and may raise ``LumctlError``."""


class Ring:
    """The readings of the newest observations of all components, as arrays of numbers; thread-safe."""

    def __init__(self, most_s: float = RING_S, step_s: float = STEP_S) -> None:
        self._step_s = step_s
        self._looks: deque[tuple[float, array[float]]] = deque(maxlen=int(most_s / step_s))
        self._places: dict[str, tuple[int, tuple[Quantity, ...]]] = {}
        self._digest = ""
        self._lock = threading.Lock()

    def add(self, look: Observation) -> None:
        """Store the readings of an observation, unless the previous one is too recent; stale readings are omitted."""
        # Without the lock: only the thread that reads the rack adds.
        newest = self._looks[-1][0] if self._looks else -math.inf
        if newest <= look.at < newest + self._step_s:
            return
        with self._lock:
            if look.at < newest or look.inventory.digest != self._digest:  # clock set back, or another inventory
                self._looks.clear()
                self._places = _places(look)
                self._digest = look.inventory.digest
        oldest = look.at - look.inventory.thresholds.stale_after_s
        width = max(len(ACCELERATOR), len(TRANSPONDER))
        # Each component has the same number of places, so that its number alone says where its readings begin.
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
        """The points of a component, by the name of the reading."""
        with self._lock:
            looks, (place, quantities) = tuple(self._looks), self._places.get(component, (0, ()))
        start = place * max(len(ACCELERATOR), len(TRANSPONDER))
        found: dict[str, list[Point]] = {}
        for index, (at, numbers) in enumerate(looks):
            later = looks[index + 1][0] if index + 1 < len(looks) else at + self._step_s
            # A reading stands until the next one, but a longer pause than a minute stays a gap.
            span_s = min(later - at, 12 * self._step_s)
            for offset, quantity in enumerate(quantities):
                value = numbers[start + offset]
                if not math.isnan(value):
                    found.setdefault(quantity.name, []).append(Point(at, value, value, value, span_s))
        return {name: tuple(points) for name, points in found.items()}


def joined(kept: Kept, ring: Ring, component: str, seconds: float) -> History:
    """The history of a component for the last ``seconds``: the newest part from the ring, earlier parts as stored."""
    trouble = None
    try:
        stored = {series.name: series.points for series in kept(component, seconds)}
    except Exception as error:  # noqa: BLE001 - without the store, the dashboard's own readings are still shown
        stored, trouble = {}, one_line(error)
    own = ring.series(component)
    names = [name for name in UNITS if name in stored or name in own]
    return History(
        tuple(Series(name, UNITS[name], _joined(stored.get(name, ()), own.get(name, ()))) for name in names), trouble
    )


def nothing_kept(_component: str, _seconds: float) -> tuple[Series, ...]:
    """The stored history of a dashboard without a store: empty."""
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
