"""What happened to one component over time: counters, events and since when it is down. Never more than rules ask."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf, isfinite
from typing import Any

from lumctl.health.rulebook import Counter, rulebook

_LAP_SHARE = 1024
"""A counter that went past its greatest value has come at most this part of its range further."""
_STEPS = 60
"""The number of steps of a window: events in the step that leaves the window are not distinguished."""


def growth(before: int, after: int, counter: Counter) -> int | None:
    """How much a counter grew; ``None`` if it restarted (reset, reloaded driver), which shows nothing.

    A smaller value is a wrap only if the counter can wrap, and both values are close to the wrap.
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
        """The events of the window that ends now. Events in the future (a clock set back) do not count."""
        return sum(events for at, events in self._steps if now - self.window_s < at <= now)

    def empty(self, now: float) -> bool:
        """Whether none of it can count any longer."""
        return not self._steps or self._steps[-1][0] <= now - self.window_s

    def document(self) -> list[Any]:
        """The steps as JSON values."""
        return [list(step) for step in self._steps]


_MOST_PARTS = 512
"""Counters of one component that are kept: far more than any has, so that a host that makes up names stays small."""
_ENDLESS = Counter()


@cache
def windows_of(counter: str) -> Mapping[float, bool]:
    """The times (s) over which rules count a counter, with whether that is a rate; empty where no rule asks."""
    return rulebook().windows().get(counter, {})


@dataclass
class Trend:
    """One component. ``counters`` hold value and time of the last reading by ``(counter, part)``.

    ``part`` distinguishes counters of one kind: a port, an NVLink. ``worked`` are parts that were once seen to work.
    ``down_since`` is when it was first seen down. An accelerator is ``lost`` or ``failed`` from that observation
    until it is back, or its host is rebooted. ``quiet_until`` is the end of the last time in which nothing was
    counted because of work on it.
    """

    counters: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    tallies: dict[tuple[str, str, float], Tally] = field(default_factory=dict)
    worked: set[str] = field(default_factory=set)
    down_since: float | None = None
    lost: bool = False
    failed: bool = False
    quiet_until: float = -inf

    def read(self, counter: str, part: str, value: int | None, at: float) -> int:
        """Take a reading of a counter, and return how much it grew.

        The first one, and the first after a restart, only serves as the base for later ones.
        """
        key = (counter, part)
        before = self.counters.get(key)
        if value is None or value < 0 or (before is None and len(self.counters) >= _MOST_PARTS):
            return 0
        if before is not None and before[1] == at:
            return 0
        self.counters[key] = (value, at)
        # After a clock that was set back, or a long gap, the time between is unknown.
        if before is None or value == before[0] or not 0 < at - before[1] <= rulebook().forgets_after_s:
            return 0
        grown = growth(before[0], value, rulebook().counters.get(counter, _ENDLESS)) or 0
        if grown:
            self.happened(counter, part, at, grown, over_s=at - before[1])
        return grown

    def is_new(self, name: str, value: int, at: float) -> bool:
        """Whether a value is another than the last time; it is remembered."""
        before = self.counters.get((name, ""))
        self.counters[name, ""] = (value, at)
        return before is None or before[0] != value

    def happened(self, counter: str, part: str, at: float, events: int = 1, *, over_s: float = 0.0) -> None:
        """Note events that came in the last ``over_s`` seconds; a rate gets its share of what came over longer."""
        for window_s, is_rate in windows_of(counter).items():
            share = window_s / over_s if is_rate and over_s > window_s else 1.0
            counted = int(events * share)
            if counted:
                self.tallies.setdefault((counter, part, window_s), Tally(window_s)).add(at, counted)

    def events(self, counter: str, window_s: float, now: float) -> dict[str, int]:
        """Events of the window by part; parts without any are left out."""
        counted = {
            part: tally.total(now)
            for (name, part, window), tally in self.tallies.items()
            if name == counter and window == window_s
        }
        return {part: events for part, events in counted.items() if events}

    def saturated(self) -> Iterator[tuple[str, str]]:
        """Counters that have reached their maximum and cannot grow any more, with their parts."""
        kinds = rulebook().counters
        for (counter, part), (value, _) in self.counters.items():
            kind = kinds.get(counter, _ENDLESS)
            if kind.saturates and value == kind.greatest:
                yield counter, part

    def counts(self, counter: str) -> bool:
        """Whether a counter was read at all."""
        return any(name == counter for name, _ in self.counters)

    def begin_again(self) -> None:
        """Whatever is read next is only compared with: the host was booted."""
        self.counters.clear()
        self.down_since = None
        self.lost = self.failed = False

    def rest(self, now: float) -> None:
        """Nothing of what happens now counts: it is expected."""
        self.begin_again()
        self.tallies.clear()
        self.worked.clear()
        self.quiet_until = now

    def forget(self, now: float) -> None:
        """Drop what no rule can count any longer."""
        self.tallies = {key: tally for key, tally in self.tallies.items() if not tally.empty(now)}

    def document(self) -> dict[str, Any]:
        """As JSON values; empty where there is nothing to remember."""
        written: dict[str, Any] = {}
        if self.counters:
            written["counters"] = [[*key, *reading] for key, reading in self.counters.items()]
        if self.tallies:
            written["events"] = [[*key, tally.document()] for key, tally in self.tallies.items()]
        if self.worked:
            written["worked"] = sorted(self.worked)
        if self.down_since is not None:
            written["down_since"] = self.down_since
        if self.lost:
            written["lost"] = True
        if self.failed:
            written["failed"] = True
        if isfinite(self.quiet_until):
            written["quiet_until"] = self.quiet_until
        return written


def trend_from(document: Mapping[str, Any]) -> Trend:
    """Read what :meth:`Trend.document` wrote.

    Raises:
        TypeError, ValueError, KeyError: it did not write this.
    """
    down_since = document.get("down_since")
    return Trend(
        counters={
            (str(counter), str(part)): (int(value), float(at))
            for counter, part, value, at in document.get("counters", ())[:_MOST_PARTS]
        },
        tallies={
            (str(counter), str(part), float(window_s)): Tally(float(window_s), steps)
            for counter, part, window_s, steps in document.get("events", ())[:_MOST_PARTS]
            # Rules of another edition may count over other times.
            if float(window_s) in windows_of(str(counter))
        },
        worked={str(part) for part in document.get("worked", ())[:_MOST_PARTS]},
        down_since=None if down_since is None else float(down_since),
        lost=bool(document.get("lost", False)),
        failed=bool(document.get("failed", False)),
        quiet_until=float(document.get("quiet_until", -inf)),
    )
