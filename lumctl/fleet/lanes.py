"""What a host is busy with: the requests that are under way, lane by lane, and which of them hang."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lumctl.fleet.frames import Frame
from lumctl.fleet.probes import Probe


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
        """An answer came: the request that it is of, ``None`` if nobody asked."""
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
