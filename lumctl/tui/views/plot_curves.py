"""What a plot shows: a curve for each chosen reading of each chosen component, and the incidents of that time; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumctl.daemon.notifications.message import cases_of
from lumctl.health.observation import Observation
from lumctl.health.quantities import QUANTITIES, UNITS
from lumctl.health.states import State, is_fault
from lumctl.store.packed_hours import Point
from lumctl.tui.views.history import History
from lumctl.tui.views.readings import Limit, Reading, readings_of, scaled, shown
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.timeline import BEFORE_S
from lumctl.tui.widgets.gauges import share_of

MOST_CURVES = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot: its label, its value now in words, its points (oldest first), and the limits next to it."""

    label: str
    now: str
    points: tuple[Point, ...]
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class PlotEvent:
    """Something that began at a time (seconds since the epoch), in words."""

    at: float
    text: str
    state: State


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves that share an axis in one unit; in percent, each is a share of its own scale."""

    unit: str
    curves: tuple[Curve, ...]
    omitted: int = 0


def curves_of(
    observation: Observation | None,
    histories: Mapping[str, History],
    components: Sequence[str],
    names: Sequence[str],
    since: float,
) -> Curves:
    """The curves of some readings of some components since a time (seconds since the epoch)."""
    now = {
        (component, reading.name): reading
        for component in components
        for reading in (readings_of(observation, component) if observation is not None else ())
    }
    chosen = [(component, name) for component in components for name in names]
    points = {key: _since(histories.get(key[0], History()).of(key[1]), since) for key in chosen}
    # Only those that have something to show count against the most: idle names take no curve from others.
    present = [key for key in chosen if points[key] or key in now]
    units = {UNITS[name] for name in names}
    in_shares = len(units) > 1
    unit = "%" if in_shares else units.pop()
    highs = (point.high for key in present for point in points[key])
    divisor, written = scaled(unit, max(highs, default=0.0))
    found = []
    for component, name in present[:MOST_CURVES]:
        reading = now.get((component, name))
        label = component if len(names) == 1 else name if len(components) == 1 else f"{component} {name}"
        drawn, limits = points[component, name], reading.limits if reading is not None else ()
        if in_shares:
            drawn, limits = _in_shares(drawn, name, reading), ()
        elif divisor != 1:
            drawn, limits = _over(drawn, divisor), tuple(Limit(each.words, each.value / divisor) for each in limits)
        value = shown(reading.value, UNITS[name]) if reading is not None else "unknown"
        found.append(Curve(label, value, drawn, limits))
    return Curves(written, tuple(found), max(len(present) - MOST_CURVES, 0))


def _since(points: Iterable[Point], since: float) -> tuple[Point, ...]:
    return tuple(point for point in points if point.at + point.span_s > since)


def _over(points: Sequence[Point], divisor: float) -> tuple[Point, ...]:
    return tuple(Point(p.at, p.low / divisor, p.mean / divisor, p.high / divisor, p.span_s) for p in points)


def _in_shares(points: Sequence[Point], name: str, reading: Reading | None) -> tuple[Point, ...]:
    """Points in percent of the scale of their quantity, or of their own maximum if the scale has none."""
    quantity = QUANTITIES[name]
    high = quantity.high if quantity.high is not None else reading.high if reading is not None else None
    if high is None:
        high = max((point.high for point in points), default=1.0)

    def percent(value: float) -> float:
        return 100.0 * share_of(value, quantity.low, high)

    return tuple(Point(p.at, percent(p.low), percent(p.mean), percent(p.high), p.span_s) for p in points)


def events_of(seen: RecordedLook, components: Sequence[str], since: float) -> tuple[PlotEvent, ...]:
    """The incidents of components, of their hosts and lanes, since a time: those still present, and recorded faults."""
    names = {name for component in components for name in _around(seen.observation, component)}
    cases = [case for case in cases_of(seen.observation.report).values() if names & {case.component, *case.members}]
    lasting = [PlotEvent(case.since, case.summary, case.state) for case in cases]
    # An incident that lasts is in the log too, shortly before its beginning and since: it is shown once.
    begun = {name: case.since - BEFORE_S for case in cases for name in (case.component, *case.members)}
    recorded = [
        PlotEvent(line.at, line.text, line.state)
        for line in seen.records.log
        if line.component in names
        and line.state is not None
        and is_fault(line.state)
        and line.at < begun.get(line.component, float("inf"))
    ]
    found = (event for event in (*lasting, *recorded) if event.at >= since)
    return tuple(sorted(found, key=lambda event: event.at))


def _around(observation: Observation, component: str) -> Iterator[str]:
    inventory = observation.inventory
    yield component
    if (lane := inventory.transponders.get(component)) is not None:
        yield lane.host
    if (accelerator := inventory.accelerators.get(component)) is not None:
        yield accelerator.host
        yield from (each.id for each in inventory.transponders_of(component))


def siblings_of(observation: Observation, component: str) -> tuple[str, ...]:
    """The accelerators of the same host, or the lanes of the same accelerator, itself first."""
    inventory = observation.inventory
    found: tuple[str, ...] = ()
    if (accelerator := inventory.accelerators.get(component)) is not None:
        found = tuple(each.id for each in inventory.accelerators_of(accelerator.host))
    elif (lane := inventory.transponders.get(component)) is not None:
        found = tuple(each.id for each in inventory.transponders_of(lane.accelerator))
    return (component, *(name for name in found if name != component))
