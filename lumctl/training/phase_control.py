"""Decides when the light of a job changes from one phase to another: a pure state machine without I/O.

A *rail* here is what changes together: devices, and the ranks whose circuits pass them in some phase. Rails change
independently. The ranks that a phase's circuits on a rail connect, in most phases two, are a *group*: they may use the
light once it is lit and all of them need it. It stays until the last rank that may use it wants another phase. Then it
changes to a phase that all members of some group want. Without a confirmation of all devices nobody may use anything.

A rank may want a phase *ahead*, before it needs it: that begins the change, but lets nobody use the light. So a wrong
guess costs a change, and never keeps others waiting for a rank that needs another phase first. If all ranks wait, and
no group for one phase, the oldest need is followed: a rank may have left a phase before all was received.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from lumctl.training.protocol import NO_PHASE


@dataclass(frozen=True, slots=True)
class Rail:
    """Devices that change together, and for each phase the pairs of ranks that its circuits on them connect."""

    devices: tuple[str, ...]
    pairs: Mapping[str, frozenset[tuple[int, int]]]

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks that one of its phases connects."""
        return frozenset(rank for pairs in self.pairs.values() for pair in pairs for rank in pair)

    def groups(self, phase: str) -> tuple[frozenset[int], ...]:
        """The ranks that the circuits of a phase connect, each in one group."""
        found: list[frozenset[int]] = []
        for pair in self.pairs[phase]:
            joined = [each for each in found if not each.isdisjoint(pair)]
            found = [each for each in found if each not in joined] + [frozenset(pair).union(*joined)]
        return tuple(found)


class RankPath(NamedTuple):
    """A circuit of a phase: the two ranks that it connects, and the devices that it passes."""

    phase: str
    ranks: tuple[int, int]
    devices: tuple[str, ...]


def rails_of(paths: Sequence[RankPath]) -> tuple[Rail, ...]:
    """The rails of a job: circuits that share a device or a rank in any phase belong to one."""
    groups: list[tuple[set[str], set[int], list[RankPath]]] = []
    for path in paths:
        joined = [each for each in groups if each[0] & set(path.devices) or each[1] & set(path.ranks)]
        groups = [each for each in groups if each not in joined]
        devices = set(path.devices).union(*(each[0] for each in joined))
        ranks = set(path.ranks).union(*(each[1] for each in joined))
        groups.append((devices, ranks, [*(found for each in joined for found in each[2]), path]))
    return tuple(_rail(devices, found) for devices, _, found in groups)


def _rail(devices: set[str], paths: Sequence[RankPath]) -> Rail:
    phases = dict.fromkeys(path.phase for path in paths)
    pairs = {phase: frozenset(path.ranks for path in paths if path.phase == phase) for phase in phases}
    return Rail(tuple(sorted(devices)), pairs)


@dataclass(frozen=True, slots=True)
class RankRequest:
    """A request of a rank for a phase, with the number that the rank gave it; ``ahead``: it does not need it yet."""

    rank: int
    phase: str
    number: int
    ahead: bool = False


class ProofManner(Enum):
    """How the light of a rail is proved while a job uses it."""

    BESIDE = "beside"
    """Beside the traffic of ranks."""
    ALONE = "alone"
    """While no rank may use the light: transmitters blink."""


@dataclass(slots=True)
class RailLight:
    """The light of one rail, who may use it, and who waits."""

    rail: Rail
    lit: str | None = None
    """The phase that has light; ``None`` while it changes, and while the states of a device are not certain."""
    changing_to: str | None = None
    holders: set[int] = field(default_factory=set)
    """The ranks that may use the light."""
    waiting: dict[int, RankRequest] = field(default_factory=dict)
    """The newest request of each rank that waits, the oldest first."""
    newest: dict[int, int] = field(default_factory=dict)
    """The number of each rank's newest request."""
    dark: dict[int, str] = field(default_factory=dict)
    """Why the newest request of a rank could not be granted."""
    idle: set[int] = field(default_factory=set)
    """The ranks that need no light until their next request."""
    proof: ProofManner | None = None
    """How the light is being proved; it does not change meanwhile."""
    changes: int = 0
    """The number of changes begun; the answer to an older one is void."""
    groups: Mapping[str, tuple[frozenset[int], ...]] = field(init=False)
    """By phase, the ranks that must need it together."""

    def __post_init__(self) -> None:
        self.groups = {phase: self.rail.groups(phase) for phase in self.rail.pairs}

    def clear(self) -> None:
        """Forget all ranks."""
        for each in (self.holders, self.waiting, self.newest, self.dark, self.idle):
            each.clear()

    def granted(self) -> list[RankRequest]:
        """The requests that can be granted now; they no longer wait."""
        found = [each for group in self.groups.get(self.lit or "", ()) for each in self._needs_of(group)]
        found = found or [each for each in self._last_resort() if each.phase == self.lit]
        for request in found:
            del self.waiting[request.rank]
            self.holders.add(request.rank)
        return found

    def next_phase(self) -> str | None:
        """The phase to change to, if nobody uses the light: one that a whole group needs, or wants, in this order."""
        phases = dict.fromkeys(each.phase for each in self.waiting.values())
        counts = {phase: (self._whole(phase, ahead=False), self._whole(phase, ahead=True)) for phase in phases}
        best = max(counts, key=lambda phase: counts[phase], default=None)
        if best is None or any(counts[best]):
            return best
        return next((each.phase for each in self._last_resort()), None)

    def _needs_of(self, group: frozenset[int]) -> list[RankRequest]:
        """The needs of a group's members for the phase that has light, if no member lacks."""
        needs = [each for each in self.waiting.values() if each.rank in group and self._is_need(each, self.lit)]
        return needs if group <= self.holders.union(each.rank for each in needs) else []

    def _whole(self, phase: str, *, ahead: bool) -> int:
        """How many groups want a phase with all their members; not ``ahead``: need it."""
        wanting = {r for r, each in self.waiting.items() if each.phase == phase and (ahead or not each.ahead)}
        return sum(group <= wanting for group in self.groups[phase])

    def _last_resort(self) -> list[RankRequest]:
        """The oldest need, if all ranks wait, and no group whole."""
        needs = [each for each in self.waiting.values() if not each.ahead]
        all_wait = self.rail.ranks <= {each.rank for each in needs} | self.idle
        is_stuck = all_wait and not any(self._whole(phase, ahead=False) for phase in self.groups)
        return needs[:1] if is_stuck else []

    @staticmethod
    def _is_need(request: RankRequest, phase: str | None) -> bool:
        return request.phase == phase and not request.ahead


class PhaseControl:
    """The light of all rails of a job, under the requests of its ranks.

    ``change(rail, phase, number)`` begins to give the devices of a rail the light of a phase; its result comes back by
    :meth:`confirmed` or :meth:`failed`. ``lit(request)`` lets a rank use the phase that it wanted, ``dark(request,
    why)`` tells it that the phase cannot be lit. None of them may call back at once.
    """

    def __init__(
        self,
        rails: Iterable[Rail],
        *,
        change: Callable[[int, str, int], None],
        lit: Callable[[RankRequest], None],
        dark: Callable[[RankRequest, str], None],
    ) -> None:
        self.rails = tuple(RailLight(rail) for rail in rails)
        self._of_rank = {rank: at for at, light in enumerate(self.rails) for rank in light.rail.ranks}
        self._change, self._lit, self._dark = change, lit, dark

    def rail_of(self, rank: int) -> int | None:
        """The rail that gives a rank its light; ``None`` if no phase does."""
        return self._of_rank.get(rank)

    def begin(self, *, lit: str | None = None) -> None:
        """Begin a new group of ranks: nobody holds or wants anything. ``lit`` is the phase known to have light."""
        for light in self.rails:
            light.clear()
            if lit is not None and light.changing_to is None:
                light.lit = lit

    def wants(self, request: RankRequest) -> str | None:
        """Take a request; return why it is refused, or ``None``.

        A rank that wants a phase, or ``NO_PHASE``, has left the one that it held. A repeated or older request changes
        nothing.
        """
        at = self._of_rank.get(request.rank)
        if at is None or request.phase not in {NO_PHASE, *self.rails[at].rail.pairs}:
            return f"no circuit of rank {request.rank} belongs to a phase {request.phase}"
        light = self.rails[at]
        newest = light.newest.get(request.rank, 0)
        if request.number <= newest:
            if request.number == newest and request.rank in light.holders:
                self._lit(request)  # its answer may be lost
            elif request.number == newest and request.rank in light.dark:
                self._dark(request, light.dark[request.rank])
            return None
        light.newest[request.rank] = request.number
        light.dark.pop(request.rank, None)
        if request.phase == NO_PHASE:
            self.leaves(request.rank)
            return None
        light.holders.discard(request.rank)
        light.idle.discard(request.rank)
        light.waiting.pop(request.rank, None)  # the newest request stands last
        light.waiting[request.rank] = request
        self._go_on(at)
        return None

    def leaves(self, rank: int) -> None:
        """Note that a rank uses no light until it asks again."""
        if (at := self._of_rank.get(rank)) is not None:
            self.rails[at].holders.discard(rank)
            self.rails[at].waiting.pop(rank, None)
            self.rails[at].idle.add(rank)
            self._go_on(at)

    def confirmed(self, rail: int, number: int, proof: ProofManner | None = None) -> None:
        """All devices of a rail have confirmed the change with this number; ``proof``: a proof begins with it."""
        light = self.rails[rail]
        if number == light.changes and light.changing_to is not None:
            light.lit, light.changing_to, light.proof = light.changing_to, None, proof
            self._go_on(rail)

    def begin_proof(self, rail: int) -> None:
        """Keep the light of a rail, which ranks may use, until :meth:`end_proof`."""
        self.rails[rail].proof = ProofManner.BESIDE

    def end_proof(self, rail: int) -> None:
        """Go on after a proof of the light of a rail."""
        self.rails[rail].proof = None
        self._go_on(rail)

    def failed(self, rail: int, number: int, why: str) -> None:
        """A change failed for good: those who wait for its phase are told, and which phase has light is not certain."""
        light = self.rails[rail]
        if number != light.changes or light.changing_to is None:
            return
        phase, light.changing_to = light.changing_to, None
        for request in [each for each in light.waiting.values() if each.phase == phase]:
            del light.waiting[request.rank]
            light.dark[request.rank] = why
            self._dark(request, why)
        self._go_on(rail)

    def _go_on(self, at: int) -> None:
        light = self.rails[at]
        if light.changing_to is not None or light.proof is ProofManner.ALONE:
            return
        for request in light.granted():
            self._lit(request)
        if light.holders or light.proof is not None or (phase := light.next_phase()) in {None, light.lit}:
            return
        light.lit, light.changing_to = None, phase
        light.changes += 1
        self._change(at, phase, light.changes)
