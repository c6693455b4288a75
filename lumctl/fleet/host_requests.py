"""The requests that are under way on a host, how its probes ended last, and which of them return something new."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from lumctl.fleet.frames import Frame, FrameMark
from lumctl.fleet.probe_output import Verdict
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import ProbeOutcome, ProbeStatus


class Running(NamedTuple):
    """One request for one probe. Its time limit starts when its lane has no earlier request."""

    probe: int
    request: int
    since: float
    began_at: float
    direct: bool = False
    """Whether its tool prints directly to us, so that its answer is not compared with the previous one."""


class HostRequests:
    """The requests of one host. Times are of the monotonic clock; names that end in ``_at`` are of the wall clock.

    The host's loop serves the requests of a lane in their order, so the first request of each lane is the running one.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self._lanes: dict[str, deque[Running]] = {probe.lane: deque() for probe in probes}
        self._overdue: dict[str, Running] = {}
        self._early: dict[tuple[int, int], Frame] = {}

    def busy(self, probe: int) -> bool:
        """Whether a request for this probe is in progress."""
        return any(running.probe == probe for running in self._lanes[self._probes[probe].lane])

    def blocked_by(self, probe: int) -> Running | None:
        """The request that hangs in the lane of a probe; ``None`` if none hangs."""
        return self._overdue.get(self._probes[probe].lane)

    def can_be_direct(self, probe: int) -> bool:
        """Whether a tool of this probe's lane may print straight to us. Only one lane may: output of two would mix."""
        mine = self._probes[probe].lane
        return not any(running.direct for lane, all_ in self._lanes.items() if lane != mine for running in all_)

    def asked(self, probe: int, request: int, now: float, at: float, *, direct: bool = False) -> None:
        """Note that a request went out."""
        self._lanes[self._probes[probe].lane].append(Running(probe, request, now, at, direct))

    def answered(self, probe: int, request: int, now: float, at: float) -> Running | None:
        """Note that an answer arrived; return its request, ``None`` if it does not answer its lane's running one."""
        lane = self._probes[probe].lane
        running = self._lanes[lane]
        if not running or (running[0].probe, running[0].request) != (probe, request):
            return None
        done = running.popleft()
        self._overdue.pop(lane, None)
        if running:
            # The next request's turn begins now; the time that it waited does not count.
            running.appendleft(running.popleft()._replace(since=now, began_at=at))
        return done

    def came_early(self, frame: Frame) -> None:
        """Keep an answer that overtook an earlier one of its lane: one of the two came directly, the other did not."""
        lane = self._lanes[self._probes[frame.probe].lane]
        own = next((each for each in lane if (each.probe, each.request) == (frame.probe, frame.request)), None)
        # On one stream a lane's answers come in order; any other order is nonsense, and the answer is dropped.
        if own is not None and (own.direct or lane[0].direct):
            self._early[frame.probe, frame.request] = frame

    def came_before(self, lane: str) -> Frame | None:
        """The kept answer to the request that has just become the first of a lane; ``None`` if there is none."""
        first = self.first_in(lane)
        return None if first is None else self._early.pop((first.probe, first.request), None)

    def expire(self, now: float) -> list[tuple[str, Running]]:
        """The lanes whose running request has run out of time since the last call, with that request."""
        late = [
            (lane, running[0])
            for lane, running in self._lanes.items()
            if running and lane not in self._overdue and now >= self._ends(running[0])
        ]
        self._overdue.update(late)
        return late

    def next_deadline(self) -> float:
        """When the next request runs out of time; infinite if none does."""
        waiting = (running[0] for lane, running in self._lanes.items() if running and lane not in self._overdue)
        return min(map(self._ends, waiting), default=float("inf"))

    def waiting_in(self, lane: str) -> Iterable[Running]:
        """The requests of a lane, that is, probes that run one after the other; the first one is running."""
        return tuple(self._lanes[lane])

    def first_in(self, lane: str) -> Running | None:
        """The running request of a lane."""
        running = self._lanes[lane]
        return running[0] if running else None

    def clear(self) -> None:
        """Forget all requests, because the loop has ended."""
        for running in self._lanes.values():
            running.clear()
        self._overdue.clear()
        self._early.clear()

    def _ends(self, running: Running) -> float:
        return running.since + self._probes[running.probe].deadline_s


class Outcomes:
    """How each probe of a host ended last. A probe's number is its index among the host's probes.

    ``now`` returns epoch seconds.
    """

    def __init__(self, probes: Sequence[Probe], now: Callable[[], float]) -> None:
        self._probes = probes
        self._now = now
        self._all = range(len(probes))
        self._found: dict[int, ProbeOutcome | None] = dict.fromkeys(self._all)

    def numbers(self, names: Collection[str] | None) -> Sequence[int]:
        """The numbers of probes given by name or kind; ``None``: all."""
        if names is None:
            return self._all
        return [n for n in self._all if self._probes[n].name in names or self._probes[n].kind in names]

    def known(self, number: int) -> bool:
        """Whether the probe has ended at least once, with any result."""
        return self._found[number] is not None

    @property
    def complete(self) -> bool:
        """Whether every probe has ended at least once, with any result."""
        return None not in self._found.values()

    def named(self, names: Collection[str] | None) -> dict[str, ProbeOutcome]:
        """The outcomes of some probes that have ended, by the probe's full name."""
        return {self._probes[n].name: found for n in self.numbers(names) if (found := self._found[n]) is not None}

    def answered(self, number: int, verdict: Verdict, began_at: float, seconds: float) -> None:
        """Note the verdict on an answer that was read."""
        status, detail = verdict
        self._found[number] = ProbeOutcome(self._probes[number].name, status, began_at, seconds, detail)

    def note(self, numbers: Iterable[int], status: ProbeStatus, detail: str) -> None:
        """Note why some probes were not run."""
        for number in numbers:
            self._found[number] = ProbeOutcome(self._probes[number].name, status, self._now(), 0.0, detail)

    def overdue(self, number: int, hanging: Running, now: float, *, again: bool) -> None:
        """Note that a probe hangs, or waits behind one that hangs. ``again``: it was requested again meanwhile.

        ``now`` is of the monotonic clock.
        """
        if number != hanging.probe:
            self.note((number,), ProbeStatus.TIMED_OUT, f"waits behind {self._probes[hanging.probe].name}, which hangs")
            return
        detail, at = f"no answer within {self._probes[number].deadline_s:g} s", hanging.began_at
        if again:
            since = datetime.fromtimestamp(hanging.began_at, UTC)
            detail, at = f"still hanging since {since:%Y-%m-%dT%H:%M:%SZ}", self._now()
        self.answered(number, (ProbeStatus.TIMED_OUT, detail), at, now - hanging.since)


_NEW_IN_A_ROW = 3
"""After this many new answers in a row, the next one is expected to be new as well."""

_SAMPLED_BYTES = 1024


class Habits:
    """Whether the last answers of each probe were new.

    The host compares each answer with the previous one. For a probe whose answers are new each time this is wasted
    work, so its answers are sent uncompared, and only a sample of their bytes is compared here. The result is a guess
    whether the next answer will be new; no reading depends on it.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._whole_only = {number for number, probe in enumerate(probes) if not probe.may_be_direct}
        self.barred = False
        """Whether a tool's direct output could be mixed up with another tool's output."""
        self._new: dict[int, int] = {}
        self._samples: dict[int, int] = {}

    def restless(self, number: int) -> bool:
        """Whether the next answer is best sent directly, without a comparison on the host."""
        return self._new.get(number, 0) >= _NEW_IN_A_ROW and number not in self._whole_only and not self.barred

    def heard(self, frame: Frame, *, direct: bool) -> None:
        """Note an answer; ``direct`` means that the host did not compare it with the one before."""
        number = frame.probe
        if frame.mark is FrameMark.LOST and direct:
            # The lane's shell is gone, but perhaps not the tool. Its late output would come before another's answer.
            self.barred = True
        if frame.mark is not FrameMark.WHOLE:
            self._new[number] = 0
            return
        known = self._samples.get(number) if direct else None
        if direct:
            self._samples[number] = hash(frame.body[:: len(frame.body) // _SAMPLED_BYTES + 1])
        else:
            self._samples.pop(number, None)
        self._new[number] = 0 if direct and known == self._samples[number] else self._new.get(number, 0) + 1

    def forget(self) -> None:
        """Forget all answers, because a new loop answers from now on."""
        self.barred = False
        self._new.clear()
        self._samples.clear()
