"""The ledger of a rack's spares: the state of each, who uses it, since when, and by which run.

Nothing here is stored: each state follows from the assignment, the runs and their journal, and what was read just now.
So the ledger cannot disagree with them, not even after a crash.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lumctl.health.observation import Observation, place_of
from lumctl.health.replaced_faults import ReplacedFault
from lumctl.health.states import State
from lumctl.inventory.model import Accelerator, Role
from lumctl.inventory.sharing import Preemption
from lumctl.inventory.wiring import initial_assignment
from lumctl.spares.placements import RankMove


class SpareState(StrEnum):
    """The state of an accelerator of a pool, in the order in which lists show them."""

    FREE = "free"
    BURNING_IN = "burning-in"
    """As free, but it ranks behind others because it has not run for long."""
    RESERVED = "reserved"
    MOVING = "moving"
    """A run that has not ended moves a rank to it or from it."""
    TAKEN = "taken"
    REPAIRED = "repaired"
    """A swap took it out of its job. It is ok again, and its rank can return."""
    IN_REPAIR = "in-repair"
    """A swap took it out of its job, and it is not ok yet."""
    IN_MAINTENANCE = "in-maintenance"
    UNFIT = "unfit"
    """It is ok, but one of its lanes or an accelerator that it is tied to is not."""
    DEGRADED = "degraded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_A_SPARE = "not-a-spare"


USABLE = frozenset({SpareState.FREE, SpareState.BURNING_IN})
"""The states in which a swap of any job may take a spare without its name."""
SWAPPED_OUT = frozenset({SpareState.REPAIRED, SpareState.IN_REPAIR})
"""The states in which another accelerator runs the rank that the inventory places on it."""
OUT = tuple(SpareState)[tuple(SpareState).index(SpareState.REPAIRED) : -1]
"""The states in which no swap can take a spare, although no job uses it."""
_BY_HEALTH = {
    State.DEGRADED: SpareState.DEGRADED,
    State.FAILED: SpareState.FAILED,
    State.UNKNOWN: SpareState.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """An accelerator of a pool and its state. ``place`` is the job and rank that run on it.

    ``home`` is the rank that the inventory places on it, ``taken_by`` the accelerator on which that rank runs instead.
    ``unproven`` are the faults because of which that was done, and of which no reading shows that they are gone.
    ``move`` is how it came into its state, if the journal has that; ``interrupted`` if the run of the move has no
    engine any more. ``filler`` is the filler job that runs on it. ``reasons`` say why it cannot be used, ``until`` is
    when it is burned in or its maintenance ends.
    """

    accelerator: Accelerator
    state: SpareState
    place: tuple[str, int] | None = None
    home: tuple[str, int] | None = None
    taken_by: str | None = None
    move: RankMove | None = None
    interrupted: bool = False
    reasons: tuple[str, ...] = ()
    unproven: tuple[ReplacedFault, ...] = ()
    until: float | None = None
    filler: str | None = None


def ledger_entry(
    seen: Observation,
    accelerator: str,
    *,
    unfit: Sequence[str],
    fresh_until: float | None = None,
    moves: Sequence[RankMove] = (),
) -> LedgerEntry:
    """The state of one accelerator. ``unfit`` are the reasons why it is not fit for use, read just now.

    ``fresh_until`` is when it is burned in, if that is still to come. ``moves`` are those of
    :func:`~lumctl.spares.placements.rank_moves` that concern it.
    """
    each = seen.inventory.accelerators[accelerator]
    place, home = seen.place_of(accelerator), place_of(initial_assignment(seen.inventory), accelerator)
    taken_by = None if home is None or home == place else _runs_on(seen, *home)
    filler = seen.filler_on(accelerator)
    entry = LedgerEntry(
        accelerator=each,
        state=SpareState.MOVING,
        place=place,
        home=home,
        taken_by=taken_by,
        reasons=tuple(unfit),
        unproven=() if taken_by is None else seen.unproven(accelerator),
        filler=None if filler is None else filler.name,
    )
    concerning = [move for move in moves if accelerator in {move.before, move.after}]
    if open_moves := [move for move in concerning if move.is_open]:
        move = open_moves[-1]
        return replace(entry, move=move, interrupted=move.run in seen.unfinished)
    state = _state(seen, entry, is_fresh=fresh_until is not None)
    if place is not None:
        entry = replace(entry, move=_last(concerning, place, after=accelerator))
    elif state in SWAPPED_OUT and home is not None:
        entry = replace(entry, move=_last(concerning, home, before=accelerator))
    if state in {SpareState.BURNING_IN, SpareState.RESERVED}:
        entry = replace(entry, until=fresh_until)
    elif state in {*SWAPPED_OUT, SpareState.IN_MAINTENANCE}:
        work = seen.report.accelerators[accelerator].maintenance
        ends = [window.ends for window in seen.windows if window.open_at(seen.at) and window.told == work]
        entry = replace(entry, until=max(ends, default=None))
    return replace(entry, state=state)


def _state(seen: Observation, entry: LedgerEntry, *, is_fresh: bool) -> SpareState:
    """The state of an accelerator that no open run moves."""
    each = entry.accelerator
    role, health = seen.role_of(each.id), seen.report.accelerators[each.id]
    # The first line that applies decides.
    rules = (
        (entry.place is not None and each.role is Role.SPARE, SpareState.TAKEN),
        (entry.home is not None and role is Role.DISABLED, _repair_state(entry)),
        (role is not Role.SPARE, SpareState.NOT_A_SPARE),
        (health.maintenance is not None, SpareState.IN_MAINTENANCE),
        (health.state in _BY_HEALTH, _BY_HEALTH.get(health.state, SpareState.UNKNOWN)),
        (entry.filler is not None and seen.inventory.sharing.preemption is Preemption.NEVER, SpareState.TAKEN),
        (bool(entry.reasons), SpareState.UNFIT),
        (each.reserved or each.reserved_for is not None, SpareState.RESERVED),
        (is_fresh, SpareState.BURNING_IN),
    )
    return next((state for applies, state in rules if applies), SpareState.FREE)


def _repair_state(entry: LedgerEntry) -> SpareState:
    return SpareState.IN_REPAIR if entry.reasons or entry.unproven else SpareState.REPAIRED


def _runs_on(seen: Observation, job: str, rank: int) -> str | None:
    ranks = seen.assignment.get(job, ())
    return ranks[rank] if rank < len(ranks) else None


def _last(
    moves: Sequence[RankMove], place: tuple[str, int], *, before: str | None = None, after: str | None = None
) -> RankMove | None:
    """The newest move of a rank from or to an accelerator."""
    found = (m for m in reversed(moves) if (m.job, m.rank) == place and (before or after) in {m.before, m.after})
    newest = next(found, None)
    # If the newest move went the other way, the journal does not explain the present place.
    fits = newest is not None and (newest.before == before if before else newest.after == after)
    return newest if fits else None
