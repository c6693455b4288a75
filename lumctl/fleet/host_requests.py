"""What a host is busy with: the requests that are under way, lane by lane, and which of them hang."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from lumctl.fleet.frames import Frame
from lumctl.fleet.probe_output import Verdict
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import ProbeOutcome, ProbeStatus


class Running(NamedTuple):
    """One request for one probe. Its time runs from when its lane was free for it."""

    probe: int
    request: int
    since: float
    began_at: float
    direct: bool = False
    """Whether its tool prints straight to us, its answer not compared with the one before."""


class HostRequests:
    """The requests of one host. Times are of the monotonic clock, ``..._at`` of the wall clock.

    The host's loop does one lane's requests in their order, so the first of each lane is the one that runs.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._lanes: dict[str, deque[Running]] = {probe.lane: deque() for probe in probes}
        self._overdue: dict[str, Running] = {}
        self._early: dict[tuple[int, int], Frame] = {}

    def busy(self, probe: int) -> bool:
        """Whether an answer of this probe is outstanding."""
        return any(running.probe == probe for running in self._lanes[self._probes[probe].lane])

    def blocked_by(self, probe: int) -> Running | None:
        """What hangs in the lane of a probe."""
        return self._overdue.get(self._probes[probe].lane)

    def can_be_direct(self, probe: int) -> bool:
        """Whether a tool of this probe's lane may print straight to us: those of two lanes at once would mix."""
        mine = self._probes[probe].lane
        return not any(running.direct for lane, all_ in self._lanes.items() if lane != mine for running in all_)

    def asked(self, probe: int, request: int, now: float, at: float, *, direct: bool = False) -> None:
        """A request went out."""
        self._lanes[self._probes[probe].lane].append(Running(probe, request, now, at, direct))

    def answered(self, probe: int, request: int, now: float, at: float) -> Running | None:
        """An answer arrived; return its request, ``None`` if it was not requested."""
        lane = self._probes[probe].lane
        running = self._lanes[lane]
        if not running or (running[0].probe, running[0].request) != (probe, request):
            return None
        done = running.popleft()
        self._overdue.pop(lane, None)
        if running:
            # Its turn begins now; what it waited for is no time of its own.
            running.appendleft(running.popleft()._replace(since=now, began_at=at))
        return done

    def came_early(self, frame: Frame) -> None:
        """Keep an answer that overtook one before it in its lane. Only by two different ways can they have come so."""
        lane = self._lanes[self._probes[frame.probe].lane]
        own = next((each for each in lane if (each.probe, each.request) == (frame.probe, frame.request)), None)
        if own is not None and (own.direct or lane[0].direct):
            self._early[frame.probe, frame.request] = frame

    def came_before(self, lane: str) -> Frame | None:
        """The answer, kept until now, to what has just become the first of a lane."""
        first = self.first_in(lane)
        return None if first is None else self._early.pop((first.probe, first.request), None)

    def expire(self, now: float) -> list[tuple[str, Running]]:
        """The lanes whose first request has just run out of time, with that request."""
        late = [
            (lane, running[0])
            for lane, running in self._lanes.items()
            if running and lane not in self._overdue and now >= self._ends(running[0])
        ]
        self._overdue.update(late)
        return late

    def next_deadline(self) -> float:
        """When the next request runs out of time."""
        waiting = (running[0] for lane, running in self._lanes.items() if running and lane not in self._overdue)
        return min(map(self._ends, waiting), default=float("inf"))

    def waiting_in(self, lane: str) -> Iterable[Running]:
        """The requests of a lane, the one that runs first."""
        return tuple(self._lanes[lane])

    def first_in(self, lane: str) -> Running | None:
        """The request of a lane that runs."""
        running = self._lanes[lane]
        return running[0] if running else None

    def clear(self) -> None:
        """The loop is gone, and with it all that it did."""
        for running in self._lanes.values():
            running.clear()
        self._overdue.clear()
        self._early.clear()

    def _ends(self, running: Running) -> float:
        return running.since + self._probes[running.probe].deadline_s


class Outcomes:
    """By the number of the probe: its index among the host's probes. ``now`` returns epoch seconds."""

    def __init__(self, probes: Sequence[Probe], now: Callable[[], float]) -> None:
        self._probes = probes
        self._now = now
        self._all = range(len(probes))
        self._found: dict[int, ProbeOutcome | None] = dict.fromkeys(self._all)

    def numbers(self, names: Collection[str] | None) -> Sequence[int]:
        """All probes, or those named by name or kind."""
        if names is None:
            return self._all
        return [n for n in self._all if self._probes[n].name in names or self._probes[n].kind in names]

    def known(self, number: int) -> bool:
        """Whether the probe has ended in any way since the host is read."""
        return self._found[number] is not None

    @property
    def complete(self) -> bool:
        """Whether every probe has ended in any way since the host is read."""
        return None not in self._found.values()

    def named(self, names: Collection[str] | None) -> dict[str, ProbeOutcome]:
        """What is known of some probes, by name."""
        return {self._probes[n].name: found for n in self.numbers(names) if (found := self._found[n]) is not None}

    def answered(self, number: int, verdict: Verdict, began_at: float, seconds: float) -> None:
        """An answer came, and was read."""
        status, detail = verdict
        self._found[number] = ProbeOutcome(self._probes[number].name, status, began_at, seconds, detail)

    def note(self, numbers: Iterable[int], status: ProbeStatus, detail: str) -> None:
        """Some probes were not even begun."""
        for number in numbers:
            self._found[number] = ProbeOutcome(self._probes[number].name, status, self._now(), 0.0, detail)

    def overdue(self, number: int, hanging: Running, now: float, *, again: bool) -> None:
        """A probe hangs (``now``: monotonic), or another one before it; ``again``: it was requested again meanwhile."""
        if number != hanging.probe:
            self.note((number,), ProbeStatus.TIMED_OUT, f"waits behind {self._probes[hanging.probe].name}, which hangs")
            return
        detail, at = f"no answer within {self._probes[number].deadline_s:g} s", hanging.began_at
        if again:
            since = datetime.fromtimestamp(hanging.began_at, UTC)
            detail, at = f"still hanging since {since:%Y-%m-%dT%H:%M:%SZ}", self._now()
        self.answered(number, (ProbeStatus.TIMED_OUT, detail), at, now - hanging.since)
