"""What a host is busy with: the requests that are under way, lane by lane, and which of them hang."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lumctl.fleet.probes import Probe


@dataclass(frozen=True, slots=True)
class Running:
    """One request for one probe. Its time runs from when its lane was free for it."""

    probe: int
    request: int
    since: float
    began_at: float


class Lanes:
    """The requests of one host. Times are of the monotonic clock, ``..._at`` of the wall clock.

    The host's loop does one lane's requests in their order, so the first of each lane is the one that runs.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._lanes: dict[str, deque[Running]] = {probe.lane: deque() for probe in probes}
        self._overdue: dict[str, Running] = {}

    def busy(self, probe: int) -> bool:
        """Whether an answer of this probe is outstanding."""
        return any(running.probe == probe for running in self._lanes[self._probes[probe].lane])

    def blocked_by(self, probe: int) -> Running | None:
        """What hangs in the lane of a probe."""
        return self._overdue.get(self._probes[probe].lane)

    def asked(self, probe: int, request: int, now: float, at: float) -> None:
        """A request went out."""
        self._lanes[self._probes[probe].lane].append(Running(probe, request, now, at))

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
            first = running.popleft()
            running.appendleft(Running(first.probe, first.request, now, at))
        return done

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

    def _ends(self, running: Running) -> float:
        return running.since + self._probes[running.probe].deadline_s
