"""Rank spares by a list of criteria. The first criterion in which two spares differ decides; less is better in each."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, time

from lumctl.context import Observation
from lumctl.health.states import State, is_fault
from lumctl.health.transitions import Transition
from lumctl.inventory.model import Accelerator, Inventory, Role
from lumctl.spares.fitness import kept_by_filler, unfit_group, unfit_reasons
from lumctl.store import Store
from lumctl.swap.constraints import constraint_objections
from lumctl.swap.groups import is_broken_up
from lumctl.swap.light_paths import LightPaths
from lumctl.swap.silent_parts import silent_devices

LATELY_S = 7 * 86_400.0
"""How far back trouble counts against a spare."""
BURN_IN_S = 24 * 3600.0
"""How long an accelerator that was failed or out of service must run again before it ranks like others."""


@dataclass(frozen=True, slots=True)
class AcceleratorRecord:
    """The recent faults of an accelerator and its lanes. Times are seconds since the epoch.

    ``faults`` is how often the accelerator or a lane recently became degraded or failed, ``last_fault_at`` when one
    last did. ``back_at`` is when the accelerator last returned from a failure or to service. ``burned_in_at`` comes
    from the inventory; earlier faults do not count.
    """

    faults: int = 0
    last_fault_at: float | None = None
    back_at: float | None = None
    burned_in_at: float | None = None

    def fresh_until(self, now: float) -> float | None:
        """Until when the accelerator ranks behind others because it has not run for long; ``None`` if it does not."""
        if self.burned_in_at is not None and self.burned_in_at > now:
            return self.burned_in_at
        settled_at = None if self.back_at is None else self.back_at + BURN_IN_S
        return settled_at if settled_at is not None and settled_at > now else None


Records = Mapping[str, AcceleratorRecord]
UNKNOWN = AcceleratorRecord()


def records_of(store: Store, inventory: Inventory, accelerators: Iterable[Accelerator], now: float) -> Records:
    """The record of each of these accelerators, by id, from the stored history."""
    burned_in = {a.id: _burned_in_at(a) for a in accelerators}
    found = {name: AcceleratorRecord(burned_in_at=at) for name, at in burned_in.items()}
    of_lane = {lane.id: name for name in burned_in for lane in inventory.transponders_of(name)}
    for row in store.health.transitions(since=now - LATELY_S):
        kind_of = {"accelerator": row.component, "link": of_lane.get(row.component, "")}
        name = kind_of.get(row.kind, "")
        if name in found and row.at <= now and row.at >= (burned_in[name] or 0.0):
            found[name] = _added(found[name], row)
    return found


def _added(record: AcceleratorRecord, row: Transition) -> AcceleratorRecord:
    # From degraded to failed is still the same fault.
    if is_fault(row.after) and not (row.before is not None and is_fault(row.before)):
        return replace(record, faults=record.faults + 1, last_fault_at=row.at)
    if row.kind == "accelerator" and row.after is State.OK and row.before in {State.FAILED, State.DISABLED}:
        return replace(record, back_at=row.at)
    return record


def _burned_in_at(accelerator: Accelerator) -> float | None:
    day = accelerator.burned_in
    return None if day is None else datetime.combine(day, time(), UTC).timestamp()


_DIGITS = 48
"""Bits of one criterion in a cost: enough for the sum of that criterion over all failures, without overflow."""
_DEAREST = 1 << 40
_NOT_KNOWN = 1e6


@dataclass(frozen=True, slots=True)
class Score:
    """The criteria of one spare, in the order in which they decide."""

    silent: int
    """How many devices that are written for it do not answer now: until they do, it cannot be used."""
    reserved: int
    """0 if it is reserved for this job, 2 if it is reserved otherwise and the operator named it, otherwise 1."""
    memory_gib: float
    """How much more memory it has than the failed accelerator: a larger one is left for a job that needs it."""
    lanes: int
    """How many of its lanes are not ok now."""
    tied: int
    """1 if it is tied to other spares and would leave them to replace an accelerator that is not tied."""
    filler: int
    """1 if a filler job runs on it, which would have to stop."""
    faults: int
    """How often it or a lane of it became degraded or failed in the last seven days."""
    fresh: int
    """1 while it burns in, or has been back from a failure or from maintenance for less than a day."""
    moves: int
    """How many present circuits must be moved for it."""
    thin: int
    """How many new circuits would arrive less than ``rx_margin_db`` above what their receivers need."""
    loss_db: float
    """The highest loss of a new circuit."""
    pucs: int
    """PUCs that the new circuits pass."""
    cells: int
    """Cells that are written."""
    order: int
    """Its place in the inventory."""

    def parts(self) -> dict[str, float]:
        """The criteria by name, as plans write them."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def cost(self) -> int:
        """One number with the first criterion in its highest digits; sums of costs compare in the same way."""
        cost = 0
        for part in self.parts().values():
            # Thousandths: losses and memory are rounded to three decimals.
            cost = (cost << _DIGITS) + min(round(part * 1000), _DEAREST)
        return cost

    def decided_by(self, other: "Score") -> str | None:
        """The first criterion in which two scores differ, or ``None``."""
        mine, others = self.parts(), other.parts()
        return next((name for name in mine if round(mine[name] * 1000) != round(others[name] * 1000)), None)


def score(
    seen: Observation,
    job: str,
    failed: Accelerator,
    spare: Accelerator,
    record: AcceleratorRecord,
    paths: LightPaths | None,
) -> Score:
    """Score a spare. Without ``paths``, its light is unknown before the whole choice is routed."""
    lanes = [seen.report.links[lane.id].state for lane in seen.inventory.transponders_of(spare.id)]
    margin = seen.inventory.thresholds.rx_margin_db
    written = [device for device, cells in paths.writes.items() if cells] if paths else []
    return Score(
        silent=len(silent_devices(seen, written)),
        reserved=0 if spare.reserved_for == job else 2 if spare.reserved or spare.reserved_for else 1,
        memory_gib=round(spare.memory_gib - failed.memory_gib, 3),
        lanes=sum(state is not State.OK for state in lanes),
        tied=int(is_broken_up(seen.inventory, failed.id, spare.id)),
        filler=int(seen.filler_on(spare.id) is not None),
        faults=record.faults,
        fresh=int(record.fresh_until(seen.at) is not None),
        moves=len(paths.moved) if paths else 0,
        thin=sum(c.margin_db is not None and c.margin_db < margin for c in paths.add) if paths else 0,
        loss_db=round(paths.worst_loss_db, 3) if paths else _NOT_KNOWN,
        pucs=paths.total_pucs if paths else 0,
        cells=paths.changed_pucs if paths else 0,
        order=list(seen.inventory.accelerators).index(spare.id),
    )


_Words = Callable[[Score, Score], str]
_WORDS: Mapping[str, _Words] = {
    "silent": lambda _worse, _better: "a device that is written for it does not answer now",
    "reserved": lambda worse, _: "it is reserved" if worse.reserved > 1 else "the other is reserved for this job",
    "memory_gib": lambda worse, better: (
        f"it has {worse.memory_gib - better.memory_gib:g} GiB more than the other, which is enough: larger "
        "accelerators are left for jobs that need them"
    ),
    "lanes": lambda worse, better: f"{_are(worse.lanes, 'lane')} not ok now, against {better.lanes} of the other",
    "tied": lambda _worse, _better: "it is tied to other spares, which are left for jobs that need them together",
    "filler": lambda _worse, _better: "a filler job runs on it, which would have to stop",
    "faults": lambda worse, better: (
        f"it was degraded or failed {_times(worse.faults)} in the last {LATELY_S / 86_400:.0f} days, "
        f"the other {_times(better.faults)}"
    ),
    "fresh": lambda _worse, _better: "it has not run for long since it was repaired",
    "moves": lambda worse, better: f"circuits moved to make room: {worse.moves} for it, {better.moves} for the other",
    "thin": lambda worse, better: (
        f"{_are(worse.thin, 'new circuit')} below the required margin, against {better.thin} for the other"
    ),
    "loss_db": lambda worse, better: (
        f"its worst new circuit loses {worse.loss_db:.2f} dB, that of the other {better.loss_db:.2f} dB"
        if worse.loss_db < _NOT_KNOWN
        else "no route was found for it alone"
    ),
    "pucs": lambda worse, better: f"its new circuits pass {worse.pucs} PUCs, those of the other {better.pucs}",
    "cells": lambda worse, better: f"{worse.cells} cells are written for it, {better.cells} for the other",
    "order": lambda _worse, _better: "they are equal in everything else, but it comes later in the inventory",
}


def why_behind(worse: Score, better: Score) -> str:
    """Why one spare ranks behind another, in words."""
    decided = worse.decided_by(better)
    return "they are alike" if decided is None else _WORDS[decided](worse, better)


def _are(count: int, noun: str) -> str:
    return f"{count} {noun} is" if count == 1 else f"{count} {noun}s are"


def _times(count: int) -> str:
    return "never" if count == 0 else "once" if count == 1 else f"{count} times"


@dataclass(frozen=True, slots=True)
class FailedRank:
    """An accelerator to replace, and the rank that runs on it."""

    job: str
    rank: int
    accelerator: str


def objections(
    seen: Observation,
    failure: FailedRank,
    spare: str,
    *,
    named: bool = False,
    avoid: Collection[str] = (),
    gone: Collection[str] = (),
) -> Iterator[str]:
    """Why a spare cannot be used in any choice. ``named``: the operator requires it.

    ``avoid`` are lanes that no circuit may use, ``gone`` the accelerators that are replaced.
    """
    failed = failure.accelerator
    old, new = seen.inventory.accelerators[failed], seen.inventory.accelerators[spare]
    place, role = seen.place_of(spare), seen.role_of(spare)
    if place is not None:
        yield f"runs rank {place[1]} of {place[0]}"
    if role is not Role.SPARE:
        yield f"is {role}, not a spare"
    if new.rack != old.rack:
        yield f"is in rack {new.rack}, not {old.rack}"
    if new.model != old.model or new.memory_gib < old.memory_gib:
        yield f"is {new.model} with {new.memory_gib:g} GiB, but {failed} is {old.model} with {old.memory_gib:g} GiB"
    yield from () if named else _kept_for_others(seen, failure, new)
    yield from unfit_reasons(seen, spare)
    yield from constraint_objections(seen, failure.job, failed, spare)
    if (tie := unfit_group(seen, spare, gone)) is not None:
        yield tie
    for lane in seen.inventory.transponders_of(spare):
        if lane.id in avoid:
            yield f"its lane {lane.id} must be avoided"


def _kept_for_others(seen: Observation, failure: FailedRank, spare: Accelerator) -> Iterator[str]:
    """Why only an operator who names a spare may use it."""
    nevertheless = f"--spare {spare.id} uses it nevertheless"
    if spare.reserved_for not in {None, failure.job}:
        yield f"is reserved for {spare.reserved_for}: {nevertheless}"
    if spare.reserved:
        yield f"is reserved: {nevertheless}"
    if (filler := kept_by_filler(seen, spare.id)) is not None:
        yield f"{filler}: {nevertheless}"
