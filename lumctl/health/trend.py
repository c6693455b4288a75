"""The history of one component: counters, events, start of a downtime. Only data that rules need is stored."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf, isfinite
from typing import Any

from lumctl.health.rulebook import Counter, rulebook

_LAP_SHARE = 1024
"""The smaller value of a counter is a wrap only if the counter grew by less than its range divided by this."""
_STEPS = 60
"""The number of steps of a window. All events of a step have one time, so they leave the window together."""


def growth(before: int, after: int, counter: Counter) -> int | None:
    """How much a counter grew; ``None`` if it restarted (reset, reloaded driver), so that the growth is unknown.

    A smaller value is a wrap only if the counter can wrap, and both values are close to the wrap.
    """
    if after >= before:
        return after - before
    lap = after + counter.greatest + 1 - before
    return None if counter.saturates or lap > counter.greatest // _LAP_SHARE else lap


class Tally:
    """How often an event occurred in the last ``window_s`` seconds. Bounded: times are stored in steps."""

    def __init__(self, window_s: float, steps: Iterable[Sequence[float]] = ()) -> None:
        self.window_s = window_s
        self._steps = [(float(at), int(events)) for at, events in steps][-_STEPS - 1 :]

    def add(self, at: float, events: int) -> None:
        """Record events at a time, which must not be earlier than the last recorded one."""
        if self._steps and at - self._steps[-1][0] < self.window_s / _STEPS:
            self._steps[-1] = (self._steps[-1][0], self._steps[-1][1] + events)
        else:
            self._steps = [*self._steps[-_STEPS:], (at, events)]

    def end(self, until: float) -> None:
        """Drop the events up to a time."""
        self._steps = [step for step in self._steps if step[0] > until]

    def total(self, now: float) -> int:
        """The events of the window that ends now. Events in the future (a clock set back) do not count."""
        return sum(events for at, events in self._steps if now - self.window_s < at <= now)

    def empty(self, now: float) -> bool:
        """Whether no recorded event can still count."""
        return not self._steps or self._steps[-1][0] <= now - self.window_s

    def document(self) -> list[Any]:
        """The steps as JSON values."""
        return [list(step) for step in self._steps]


_MOST_PARTS = 512
"""Limit on counters of one component: far more than any has, so that a host with invalid names uses little memory."""
_ENDLESS = Counter()


@cache
def windows_of(counter: str) -> Mapping[float, bool]:
    """The time spans (s) over which rules count a counter, and whether the result is a rate; empty if no rule does."""
    return rulebook().windows().get(counter, {})


@dataclass
class Trend:
    """One component. ``counters`` hold value and time of the last reading by ``(counter, part)``.

    ``part`` distinguishes counters of one kind: a port, an NVLink. ``worked`` are parts that were once seen to work.
    ``down_since`` is when it was first seen down. An accelerator is ``lost`` or ``failed`` from the observation that
    finds it so until it is back or its host is rebooted. ``quiet_until`` is the end of the last period in which
    nothing was counted because it was expected (work on the component, or a run that moved its light).
    """

    counters: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    tallies: dict[tuple[str, str, float], Tally] = field(default_factory=dict)
    worked: set[str] = field(default_factory=set)
    down_since: float | None = None
    lost: bool = False
    failed: bool = False
    quiet_until: float = -inf

    def read(self, counter: str, part: str, value: int | None, at: float) -> int:
        """Record a reading of a counter, and return how much it grew.

        The first reading, and the first after a restart, returns 0: it is only the base for later ones.
        """
        key = (counter, part)
        before = self.counters.get(key)
        if value is None or value < 0 or (before is None and len(self.counters) >= _MOST_PARTS):
            return 0
        # The same reading, seen at another observation.
        if before is not None and before[1] == at:
            return 0
        self.counters[key] = (value, at)
        # If the clock was set back, or after a long gap, it is unknown when the counter grew.
        if before is None or value == before[0] or not 0 < at - before[1] <= rulebook().forgets_after_s:
            return 0
        grown = growth(before[0], value, rulebook().counters.get(counter, _ENDLESS)) or 0
        if grown:
            self.happened(counter, part, at, grown, over_s=at - before[1])
        return grown

    def is_new(self, name: str, value: int, at: float) -> bool:
        """Whether a value differs from the last one; the value is remembered."""
        before = self.counters.get((name, ""))
        self.counters[name, ""] = (value, at)
        return before is None or before[0] != value

    def happened(self, counter: str, part: str, at: float, events: int = 1, *, over_s: float = 0.0) -> None:
        """Record events of the last ``over_s`` seconds; if that exceeds a rate's window, count only a share."""
        for window_s, is_rate in windows_of(counter).items():
            share = window_s / over_s if is_rate and over_s > window_s else 1.0
            # Rounded down: a rate must not come out higher than it was.
            counted = int(events * share)
            if counted:
                self.tallies.setdefault((counter, part, window_s), Tally(window_s)).add(at, counted)

    def events(self, counter: str, window_s: float, now: float) -> dict[str, int]:
        """Events of the window by part; parts without any event are omitted."""
        counted = {
            part: tally.total(now)
            for (name, part, window), tally in self.tallies.items()
            if name == counter and window == window_s
        }
        return {part: events for part, events in counted.items() if events}

    def saturated(self) -> Iterator[tuple[str, str]]:
        """The counters that have reached their maximum and cannot grow any more, each with its part."""
        kinds = rulebook().counters
        for (counter, part), (value, _) in self.counters.items():
            kind = kinds.get(counter, _ENDLESS)
            if kind.saturates and value == kind.greatest:
                yield counter, part

    def counts(self, counter: str) -> bool:
        """Whether a counter was read at all."""
        return any(name == counter for name, _ in self.counters)

    def end(self, counters: Collection[str], until: float) -> None:
        """Drop the counts of these counters up to a time."""
        for (counter, _, _), tally in self.tallies.items():
            if counter in counters:
                tally.end(until)

    def begin_again(self) -> None:
        """Forget counter values, and that it is down, lost or failed: its host was booted, so its counters restart."""
        self.counters.clear()
        self.down_since = None
        self.lost = self.failed = False

    def rest(self, now: float) -> None:
        """Forget all counts: present events are expected and do not count."""
        self.begin_again()
        self.tallies.clear()
        self.worked.clear()
        self.quiet_until = now

    def forget(self, now: float) -> None:
        """Drop events that no rule can count any longer."""
        self.tallies = {key: tally for key, tally in self.tallies.items() if not tally.empty(now)}

    def document(self) -> dict[str, Any]:
        """As JSON values; empty if there is nothing to remember."""
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
    """Read the output of :meth:`Trend.document`.

    Raises:
        TypeError, ValueError, KeyError: the value was not written by it.
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
            # Rules of another edition may count over other time spans.
            if float(window_s) in windows_of(str(counter))
        },
        worked={str(part) for part in document.get("worked", ())[:_MOST_PARTS]},
        down_since=None if down_since is None else float(down_since),
        lost=bool(document.get("lost", False)),
        failed=bool(document.get("failed", False)),
        quiet_until=float(document.get("quiet_until", -inf)),
    )
