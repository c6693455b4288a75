"""The spares of each rack and class now: the state of each, the ranks that need one, and those it could replace."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from lumctl.context import Context, Observation
from lumctl.health.observation import current_role, places
from lumctl.health.remedy import Remedy
from lumctl.health.states import State
from lumctl.inventory.model import Accelerator, Role
from lumctl.inventory.sharing import SpareHosts
from lumctl.inventory.wiring import devices_of, initial_assignment, networks_of
from lumctl.spares.fitness import kept_by_filler, unfit_group, unfit_reasons
from lumctl.spares.ledger import SWAPPED_OUT, LedgerEntry, SpareState, ledger_entry
from lumctl.spares.placements import RankMove, rank_moves
from lumctl.spares.pools import members_by_pool
from lumctl.swap.constraints import constraints_of
from lumctl.swap.groups import largest
from lumctl.swap.ranking import UNKNOWN, FailedRank, objections, records_of
from lumctl.swap.silent_parts import silent_devices


@dataclass(frozen=True, slots=True)
class SpareNeed:
    """A rank whose accelerator has failed; ``served`` if a spare is left for it after those before it."""

    failed: FailedRank
    served: bool


@dataclass(frozen=True, slots=True)
class PoolLedger:
    """The spares of one class in one rack, and the accelerators of the class that swaps took out of their jobs.

    ``ranks`` is how many accelerators of the class run a rank, ``needs`` those of them that have failed.
    """

    rack: str
    accelerator_class: str
    entries: tuple[LedgerEntry, ...]
    ranks: int
    needs: tuple[SpareNeed, ...]


@dataclass(frozen=True, slots=True)
class RanksToReplace:
    """Ranks of one job that a spare can replace now, or cannot for these reasons."""

    job: str
    ranks: tuple[int, ...]
    reasons: tuple[str, ...]


def pool_ledgers(
    context: Context, seen: Observation, *, racks: Collection[str], wanted: str | None = None
) -> list[PoolLedger]:
    """The ledger of each class in these racks; ``wanted`` selects classes by a part of their names.

    Raises:
        UsageError: no class is called so.
        StoreError: the store of a rack cannot be read.
    """
    pools = {key: members for key, members in members_by_pool(seen.inventory, wanted).items() if key[0] in racks}
    placed, homes = places(seen.assignment), places(initial_assignment(seen.inventory))
    listed: dict[str, list[str]] = {rack: [] for rack, _ in pools}
    for (rack, _), members in pools.items():
        listed[rack] += [a.id for a in members if a.role is Role.SPARE or (a.id in homes and a.id not in placed)]
    entries = {rack: ledger_entries(context, seen, rack, names)[0] for rack, names in listed.items()}
    needs = {rack: list(_needs(seen, rack, found)) for rack, found in entries.items()}
    ledgers = []
    for (rack, name), members in pools.items():
        own = {each.id for each in members}
        found = [entry for entry in entries[rack] if entry.accelerator.id in own]
        ledgers.append(
            PoolLedger(
                rack,
                name,
                tuple(sorted(found, key=lambda entry: list(SpareState).index(entry.state))),
                len(own & placed.keys()),
                tuple(need for need in needs[rack] if need.failed.accelerator in own),
            )
        )
    return ledgers


def ledger_entries(
    context: Context, seen: Observation, rack: str, names: Collection[str]
) -> tuple[list[LedgerEntry], list[RankMove]]:
    """The ledger's entry of each of some accelerators of a rack, and the moves of ranks that concern them."""
    store, inventory = context.store(rack), seen.inventory
    moves = rank_moves(store, names)
    records = records_of(store, inventory, [inventory.accelerators[name] for name in names], seen.at)
    entries = []
    for name in names:
        fresh_until = records.get(name, UNKNOWN).fresh_until(seen.at)
        entries.append(ledger_entry(seen, name, unfit=_unfit(seen, name), fresh_until=fresh_until, moves=moves))
    return entries, moves


def _unfit(seen: Observation, name: str) -> list[str]:
    return [*unfit_reasons(seen, name), *filter(None, [unfit_group(seen, name, ()), kept_by_filler(seen, name)])]


def swapped_out(seen: Observation) -> list[LedgerEntry]:
    """The accelerators that swaps took out of their jobs, without the runs that did so: no store is read.

    Empty while a run is unfinished: it may have moved them, and must be finished first.
    """
    if seen.unfinished:
        return []
    placed, homes = places(seen.assignment), places(initial_assignment(seen.inventory))
    entries = [ledger_entry(seen, name, unfit=_unfit(seen, name)) for name in homes if name not in placed]
    return [entry for entry in entries if entry.state in SWAPPED_OUT]


def ranks_to_replace(seen: Observation, spare: str) -> tuple[RanksToReplace, ...]:
    """The ranks in a spare's rack that it could replace now, and those that it could not, with the reasons.

    Only a plan finds out whether light can be routed to the spare.
    """
    rack, tied = seen.inventory.accelerators[spare].rack, {each.id for each in seen.inventory.tied_to(spare)}
    known: dict[tuple[object, ...], tuple[str, ...]] = {}
    found: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for name, (job, rank) in places(seen.assignment).items():
        each = seen.inventory.accelerators[name]
        if each.rack != rack or name == spare:
            continue
        # Only these properties matter, so equal accelerators are checked once.
        networks, apart = networks_of(seen.inventory, name), _apart_from(seen, job, each)
        key = (job, each.model, each.memory_gib, name in tied, networks, apart)
        if key not in known:
            known[key] = tuple(spare_objections(seen, FailedRank(job, rank, name), spare, {name}))
        found.setdefault((job, known[key]), []).append(rank)
    return tuple(RanksToReplace(job, tuple(sorted(ranks)), reasons) for (job, reasons), ranks in found.items())


@dataclass(frozen=True, slots=True)
class RanksAtRisk:
    """Ranks of one job whose next failure perhaps no swap could help now.

    ``silent`` is a device that does not answer and that a swap may have to write. Without one no spare fits;
    ``unread``: one that was not read may.
    """

    job: str
    ranks: tuple[int, ...]
    silent: str = ""
    unread: bool = False


def ranks_at_risk(seen: Observation, *, kept: Collection[str] = ()) -> tuple[RanksAtRisk, ...]:
    """The ranks whose next failure perhaps no swap could help now, by job and reason.

    Spares in ``kept`` are promised to others. A rank is not at risk if one spare fits it, although several ranks may
    share that spare. Only a plan finds out whether light can be routed to a spare, and which devices are written: here
    those count at which a rank or its spare is connected, and those that its circuits pass.
    """
    silent = {each.component for each in silent_devices(seen, seen.report.devices)}
    passed = _devices_passed(seen) if silent else {}
    spares = [
        name
        for name, each in seen.inventory.accelerators.items()
        if each.role is Role.SPARE and seen.role_of(name) is Role.SPARE and name not in kept
    ]
    networks = {name: networks_of(seen.inventory, name) for name in spares}
    known: dict[tuple[object, ...], RanksAtRisk | None] = {}
    found: dict[RanksAtRisk, list[int]] = {}
    for name, (job, rank) in seen.places().items():
        each, devices = seen.inventory.accelerators[name], devices_of(seen.inventory, name)
        devices |= passed.get(name, frozenset())
        # Only these properties matter, so equal accelerators are checked once.
        key = (job, each.rack, each.model, each.memory_gib, each.tied, devices, _apart_from(seen, job, each))
        if key not in known:
            reached = networks_of(seen.inventory, name)
            near = [s for s in spares if networks[s] == reached and seen.inventory.accelerators[s].rack == each.rack]
            known[key] = _without_help(seen, FailedRank(job, rank, name), near, silent, devices)
        if (risk := known[key]) is not None:
            found.setdefault(risk, []).append(rank)
    return tuple(replace(risk, ranks=tuple(sorted(ranks))) for risk, ranks in found.items())


def _apart_from(seen: Observation, job: str, accelerator: Accelerator) -> str:
    """The host that matters for spares of an accelerator's rank, if they must be on another one; else empty."""
    return accelerator.host if constraints_of(seen.inventory, job).hosts is SpareHosts.DIFFERENT else ""


def _without_help(
    seen: Observation, failure: FailedRank, spares: Iterable[str], silent: Collection[str], devices: frozenset[str]
) -> RanksAtRisk | None:
    """Why none of these spares could replace an accelerator on these devices now; ``None`` if one could."""
    unanswered, unread = "", False
    for spare in spares:
        reasons = set(objections(seen, failure, spare, gone={failure.accelerator}))
        out = (devices | devices_of(seen.inventory, spare)).intersection(silent)
        if not (reasons or out):
            return None
        if not reasons:
            unanswered = min(out)
        elif seen.report.accelerators[spare].state is State.UNKNOWN:
            unread = unread or not reasons - set(unfit_reasons(seen, spare))
    return RanksAtRisk(failure.job, (), unanswered, unread and not unanswered)


def _devices_passed(seen: Observation) -> dict[str, frozenset[str]]:
    """The devices that the circuits of each accelerator pass."""
    found: dict[str, set[str]] = {}
    for circuit in seen.circuits:
        for end in (circuit.a, circuit.b):
            found.setdefault(seen.inventory.transponders[end.transponder].accelerator, set()).update(
                seen.devices_of(circuit)
            )
    return {name: frozenset(devices) for name, devices in found.items()}


def _needs(seen: Observation, rack: str, entries: Iterable[LedgerEntry]) -> Iterator[SpareNeed]:
    """The ranks of a rack that need a spare now; as many as possible are served."""
    moving = {entry.accelerator.id for entry in entries if entry.state is SpareState.MOVING}
    moving |= {name for entry in entries if entry.move and entry.move.is_open for name in _ends(entry.move)}
    replaced = dict.fromkeys(name for name in certainly_lost(seen) if name not in moving)
    failures = [
        FailedRank(*place, name)
        for name in replaced
        if seen.inventory.accelerators[name].rack == rack and (place := seen.place_of(name)) is not None
    ]
    spares = [
        name
        for name, each in seen.inventory.accelerators.items()
        if each.rack == rack
        and name not in moving
        and current_role(seen.inventory, seen.assignment, name) is Role.SPARE
    ]
    costs = [[None if any(spare_objections(seen, f, spare, replaced)) else 0 for spare in spares] for f in failures]
    served = largest(costs)
    for row, failure in enumerate(failures):
        yield SpareNeed(failure, row in served)


def certainly_lost(seen: Observation) -> Iterator[str]:
    """The accelerators that have certainly failed, alone, with their host, or with the transmitter of a lane.

    The ``replace`` of remedies is not enough: it is empty if there are too few spares.
    """
    for remedy in seen.remedies:
        yield from lost_by(seen, remedy)


def lost_by(seen: Observation, remedy: Remedy) -> Iterator[str]:
    """The accelerators that have certainly failed with the cause of a remedy."""
    if remedy.state is not State.FAILED or not remedy.certain or remedy.hand_first:
        return
    yield from remedy.replace
    if remedy.kind == "accelerator":
        yield remedy.cause
    elif remedy.kind == "link" and remedy.cause in seen.inventory.transponders:
        yield seen.inventory.transponders[remedy.cause].accelerator
    elif remedy.kind == "host" and seen.report.hosts[remedy.cause].state is State.FAILED:
        yield from (each.id for each in seen.inventory.accelerators_of(remedy.cause))


def _ends(move: RankMove) -> list[str]:
    return [name for name in (move.before, move.after) if name is not None]


def spare_objections(seen: Observation, failure: FailedRank, spare: str, gone: Collection[str]) -> Iterator[str]:
    """Why a spare cannot replace an accelerator now; whether its light can be routed, only a plan finds out."""
    yield from objections(seen, failure, spare, gone=gone)
    if networks_of(seen.inventory, spare) != networks_of(seen.inventory, failure.accelerator):
        yield f"no fibre joins its devices to those of {failure.accelerator}"
