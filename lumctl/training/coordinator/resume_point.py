"""Choose the step that a job resumes from after a failure, and where each worker finds the state of that step.

Pure functions: what the workers reported goes in, what they have to load comes out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

REPLICATED, UNIQUE = "replicated", "unique"
"""How a job's state lies: the same with every rank, or each rank its own."""


@dataclass(frozen=True, slots=True)
class HeldState:
    """What a parked worker has: its state after ``done`` steps, states of its own kept from before, and of others.

    ``rank`` is the one it had, ``None`` for a worker that was ready only.
    """

    worker: str
    rank: int | None
    done: int
    own: frozenset[int] = frozenset()
    of: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def has(self, rank: int, done: int) -> bool:
        """Whether it can hand over the state of a rank after so many steps."""
        if rank == self.rank and (done == self.done or done in self.own):
            return True
        return done in self.of.get(rank, ())


@dataclass(frozen=True, slots=True)
class StateLoad:
    """What a worker has to load: of which rank, from which other worker; ``None``: from what it has kept itself."""

    worker: str
    rank: int
    source: str | None


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The number of steps that count as done, and what has to be loaded before the next."""

    done: int
    loads: tuple[StateLoad, ...]


def choose(layout: str, held: Sequence[HeldState], seats: Mapping[int, str]) -> ResumePoint | None:
    """The newest step that all can go on from; ``None`` if no memory holds it whole any more.

    ``held`` are all who live, those among them too that will have no rank; ``seats`` says who gets which rank.
    """
    members = [one for one in held if one.rank is not None]
    if layout == REPLICATED:
        return _replicated(members, seats)
    for done in sorted({d for one in held for d in _kept(one)}, reverse=True):
        loads = _unique(done, held, seats)
        if loads is not None:
            return ResumePoint(done, loads)
    return None


def _replicated(members: Sequence[HeldState], seats: Mapping[int, str]) -> ResumePoint | None:
    """Whoever has done most is right: a step is done only when all have given their share of its gradient."""
    if not members:
        return None
    best = max(members, key=lambda one: one.done)
    level = {one.worker for one in members if one.done == best.done}
    behind = ((rank, worker) for rank, worker in sorted(seats.items()) if worker not in level)
    return ResumePoint(best.done, tuple(StateLoad(worker, rank, best.worker) for rank, worker in behind))


def _unique(done: int, held: Sequence[HeldState], seats: Mapping[int, str]) -> tuple[StateLoad, ...] | None:
    """What has to be loaded for all to stand after so many steps; ``None`` if somebody's state is nowhere."""
    loads = []
    for rank, worker in sorted(seats.items()):
        if any((one.worker, one.rank, one.done) == (worker, rank, done) for one in held):
            continue
        holders = [one.worker for one in held if one.has(rank, done)]
        if not holders:
            return None
        loads.append(StateLoad(worker, rank, None if worker in holders else holders[0]))
    return tuple(loads)


def _kept(one: HeldState) -> set[int]:
    return {one.done, *one.own, *(done for of in one.of.values() for done in of)}
