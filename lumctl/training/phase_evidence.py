"""What is known of the light that a job changes between its phases: which steps are proven, and what must be proved.

A device that confirms a change may still lie. Two things show that each receiver hears the transmitter that it should:
a proof by marks or by blinking, as after any change of a run, and traffic: what a rank receives of a peer over the one
circuit that joins both. A training step is *proven* once each phase that it used on each rail has such evidence of that
step or of a later moment. Until then it is provisional.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lumctl.training.phase_control import Rail
from lumctl.training.phase_pairs import Pair
from lumctl.training.phase_traffic import Traffic

PROVED_EVERY_S = 0.4
"""The time in which a phase that has light is proved again. To find a receiver that hears another transmitter takes
half a second more at most, so that such light is used for no longer than a second. A receiver that hears nothing is
looked at until the inventory's ``light_deadline_s``: a host may only be slow."""
LONGEST_PAUSE_S = 30.0
"""The longest pause between proofs that are not possible."""
MOST_GRANTS = 256
"""The most requests of a rank whose light is remembered."""
MOST_STEPS = 256
"""The most provisional steps that are remembered; evidence for the newest covers older ones."""

RailPhase = tuple[int, str]
"""A rail, by its number, and a phase."""


@dataclass(slots=True)
class _Step:
    """The reports of ranks on a step: by rail and change, then by rank and peer. ``began`` has the time of a change."""

    reported: set[int] = field(default_factory=set)
    rows: dict[tuple[int, int], dict[tuple[int, int | None], Traffic]] = field(default_factory=dict)
    unknown: set[RailPhase] = field(default_factory=set)


@dataclass(slots=True)
class _Provisional:
    """A step that is done at a time, and what has no evidence yet."""

    done: int
    at: float
    lacks: set[RailPhase]


@dataclass(slots=True)
class _Lit:
    """A phase that has light on a rail since a time."""

    phase: str
    since: float


class PhaseEvidence:
    """The evidence for the light of one group of ranks. Times are in seconds of one clock.

    ``single`` has, for each phase, the pairs of ranks that exactly one circuit joins. The group begins after ``done``
    steps. ``shown`` says when each phase was last shown to have its light; what it lacks, never.
    """

    def __init__(
        self, rails: Sequence[Rail], single: Mapping[str, frozenset[Pair]], done: int, shown: Mapping[str, float]
    ) -> None:
        self.proven = self._completed = done
        """The number of steps that are proven; all steps before count as proven too."""
        self.by_traffic = self.by_proof = 0
        """How often traffic, and a proof, has shown that a phase has its light on a rail."""
        self._rails, self._single = rails, single
        self._ranks = frozenset[int]().union(*(rail.ranks for rail in rails))
        self._rail_of = {rank: at for at, rail in enumerate(rails) for rank in rail.ranks}
        self._proved_at = {
            (at, phase): shown.get(phase, -math.inf) for at, rail in enumerate(rails) for phase in rail.pairs
        }
        self._silent: set[RailPhase] = set()
        """What traffic did not prove in the last step."""
        self._pauses: dict[int, tuple[float, float]] = {}
        """By rail, when a proof was last not possible, and after how long it is tried again."""
        self._lit: dict[int, _Lit] = {}
        self._changes: OrderedDict[tuple[int, int], _Lit] = OrderedDict()
        self._grants: dict[int, OrderedDict[int, tuple[int, int]]] = {}
        self._steps: dict[int, _Step] = {}
        self._provisional: deque[_Provisional] = deque()

    @property
    def provisional(self) -> int:
        """The number of steps that are done and not proven."""
        return len(self._provisional)

    @property
    def shown(self) -> dict[str, float]:
        """By phase, the time at which it was last shown to have its light, on the rail where that is longest ago.

        What was never shown is omitted.
        """
        times: dict[str, float] = {}
        for (_, phase), at in self._proved_at.items():
            times[phase] = min(at, times.get(phase, at))
        return {phase: at for phase, at in times.items() if at > -math.inf}

    def doubt(self, proven: int, proved: Collection[str], now: float) -> None:
        """Note that of the steps before this group only so many are proven, but for the phases ``proved`` since."""
        doubts = {at for at in self._proved_at if at[1] not in proved}
        if proven < self.proven and doubts:
            self._provisional.append(_Provisional(self.proven, now, doubts))
            self.proven = proven

    def lit(self, rail: int, phase: str, change: int, now: float) -> None:
        """Note that a phase has light on a rail, since the change with this number."""
        self._lit[rail] = self._changes[rail, change] = _Lit(phase, now)
        while len(self._changes) > MOST_GRANTS * len(self._rails):
            self._changes.popitem(last=False)

    def dark(self, rail: int) -> None:
        """Note that the light of a rail changes."""
        self._lit.pop(rail, None)

    def granted(self, rank: int, number: int, change: int) -> None:
        """Note that a rank may use the light of a change, for its request with this number."""
        of_rank = self._grants.setdefault(rank, OrderedDict())
        of_rank[number] = self._rail_of[rank], change
        if len(of_rank) > MOST_GRANTS:
            of_rank.popitem(last=False)

    def due_at(self, rail: int) -> float:
        """When the light of a rail must be proved; infinity if it has none.

        Traffic proves most phases while they are used: these are proved only if they have light for longer.
        """
        if (lit := self._lit.get(rail)) is None:
            return math.inf
        tried, pause_s = self._pauses.get(rail, (-math.inf, 0.0))
        last = self._proved_at[rail, lit.phase]
        at = max(lit.since, last + PROVED_EVERY_S)
        if (rail, lit.phase) not in self._silent:
            at = max(lit.since, last) + PROVED_EVERY_S
        return max(at, tried + pause_s)

    def proved(self, rail: int, phase: str, began: float) -> None:
        """A proof that began at a time has shown that a phase has its light on a rail."""
        self.by_proof += 1
        self._pauses.pop(rail, None)
        self._proved_at[rail, phase] = max(self._proved_at[rail, phase], began)
        for each in self._provisional:
            if each.at <= began:
                each.lacks.discard((rail, phase))
        self._advance()

    def not_proved(self, rail: int, now: float) -> None:
        """A proof was not possible now: it is tried again later, after twice the pause of the time before."""
        _, pause_s = self._pauses.get(rail, (now, PROVED_EVERY_S / 2))
        self._pauses[rail] = now, min(2 * pause_s, LONGEST_PAUSE_S)

    def is_wrong(self, rail: int) -> None:
        """The light of a rail is not that of its phase: nothing is believed of the rail any more."""
        for phase in self._rails[rail].pairs:
            self._proved_at[rail, phase] = -math.inf

    def stepped(self, rank: int, done: int, rows: Iterable[Sequence[Any]], now: float) -> None:
        """Take the report of a rank that has done so many steps.

        Raises:
            TypeError, ValueError: it is malformed.
        """
        if rank not in self._ranks or done <= self.proven:
            return
        step = self._steps.setdefault(done, _Step())
        for traffic in map(Traffic.of, rows):
            found = self._granted(rank, traffic.number)
            if found is None or found not in self._changes:
                at = self._rail_of[rank]
                step.unknown |= {(at, phase) for phase in self._rails[at].pairs}
            else:
                step.rows.setdefault(found, {})[rank, traffic.peer] = traffic
        step.reported.add(rank)
        if step.reported == self._ranks:
            self._complete(done, step, now)

    def _granted(self, rank: int, number: int) -> tuple[int, int] | None:
        """The rail, and the number of the change whose light a request was granted."""
        of_rank = self._grants.get(rank)
        return None if of_rank is None else of_rank.get(number)

    def _complete(self, done: int, step: _Step, now: float) -> None:
        """Judge a step that all ranks have reported."""
        self._steps = {at: each for at, each in self._steps.items() if at > done}
        used, lacks = set(step.unknown), set(step.unknown)
        since, heard = dict[RailPhase, float](), dict[RailPhase, set[tuple[int, int]]]()
        for (rail, change), rows in step.rows.items():
            lit = self._changes[rail, change]
            at = rail, lit.phase
            used.add(at)
            since[at] = max(lit.since, since.get(at, -math.inf))
            for rank, peer in rows:
                if peer is not None and self._is_heard(lit.phase, rank, peer, rows):
                    heard.setdefault(at, set()).add((rank, peer))
                else:
                    lacks.add(at)
        for at in used - lacks:
            if heard[at] >= self._both_ways(at):  # else other circuits of the phase may be wrong
                self.by_traffic += 1
                self._proved_at[at] = max(self._proved_at[at], since[at])
                for each in self._provisional:
                    each.lacks.discard(at)
        if done > self._completed + 1:  # reports of the steps between were lost
            lacks |= self._proved_at.keys()
        self._completed = done
        self._silent = (self._silent - used) | lacks
        if len(self._provisional) == MOST_STEPS:
            lacks |= self._provisional.popleft().lacks
        self._provisional.append(_Provisional(done, now, lacks))
        self._advance()

    def _both_ways(self, at: RailPhase) -> set[tuple[int, int]]:
        """Who must have heard whom, for all circuits of a phase on a rail."""
        pairs = self._rails[at[0]].pairs[at[1]]
        return {way for one, other in pairs for way in ((one, other), (other, one))}

    def _is_heard(self, phase: str, rank: int, peer: int, rows: Mapping[tuple[int, int | None], Traffic]) -> bool:
        if (min(rank, peer), max(rank, peer)) not in self._single.get(phase, ()):
            return False
        return rows[rank, peer].heard(rows.get((peer, rank)))

    def _advance(self) -> None:
        while self._provisional and not self._provisional[0].lacks:
            self.proven = self._provisional.popleft().done
