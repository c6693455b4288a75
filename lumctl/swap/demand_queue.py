"""The demands that wait for spares of a rack, what its sharing policy gives them, and what it keeps from a swap."""

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumctl.context import Observation
from lumctl.errors import RefusedError
from lumctl.health.states import State
from lumctl.inventory.model import Accelerator, Role, classes_of
from lumctl.inventory.sharing import SpareHosts
from lumctl.inventory.wiring import networks_of
from lumctl.printable import counted, is_or_are
from lumctl.spares.decision import SpareDecision, decide
from lumctl.spares.fitness import kept_by_filler, unfit_reasons
from lumctl.spares.sharing import Demand, FreeSpare, Reserve, SharingQuestion
from lumctl.store import QueuedDemand, Store
from lumctl.swap.constraints import HOSTS_IN_WORDS
from lumctl.swap.groups import on_fitting_hosts, serves_all, with_tied
from lumctl.swap.ranking import FailedRank
from lumctl.swap.spare_pool import spare_objections
from lumctl.time_text import ago_text

THIS_SWAP = "this swap"
"""The id of the demand of a swap that is planned now and does not wait in the queue."""
_SHOWN = 3
"""How many spares that cannot serve a demand are named with their reasons."""


@dataclass(frozen=True)
class QueueEntry:
    """A queued demand now: why it is ``needless``, or the spares it is ``given``, or why it waits.

    ``obstacle`` is why no swap can use the spares that it is given.
    """

    demand: QueuedDemand
    needless: str | None = None
    given: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    obstacle: str = ""

    command: str | None = None
    """The command that ends the wait; ``None`` while there is none."""

    @property
    def words(self) -> str:
        """What it waits for, or why it need not wait."""
        if self.needless is not None:
            return f"needs no spare: {self.needless}"
        if self.obstacle:
            return f"{', '.join(self.given)} {is_or_are(len(self.given))} kept for it; {self.obstacle}"
        if self.given:
            return f"{', '.join(self.given)} can replace {'them' if self.given[1:] else 'it'} now"
        return f"waits: {'; '.join(self.reasons)}"


@dataclass(frozen=True)
class _Asked:
    """The question to the sharing policy of one rack, before and after the reserve, and the answer."""

    seen: Observation
    before: SharingQuestion
    after: SharingQuestion
    decision: SpareDecision
    failures: Mapping[str, Sequence[FailedRank]]


def kept_spares(store: Store, seen: Observation, rack: str, failures: Sequence[FailedRank]) -> dict[str, str]:
    """The spares that a swap of these failures may not take, each with the reason.

    It takes its turn with the demands in the queue: since the time at which it was queued, or since now.

    Raises:
        StoreError: the store of the rack cannot be read.
    """
    waiting = store.demands.waiting()
    if not failures or not (waiting or seen.inventory.sharing.reserve):
        return {}
    wanted = {failure.accelerator for failure in failures}
    mine = [each for each in waiting if wanted & set(each.accelerators)]
    others = [each for each in waiting if each not in mine]
    # With the name of its demand: chance, and demands of the same time, are then decided as the queue shows it.
    name, asked_at = (mine[0].id, mine[0].asked_at) if mine else (THIS_SWAP, seen.at)
    asked = _ask(seen, rack, others, (name, asked_at, failures))
    return dict([*_given_to_others(asked, others), *_held_back(asked, name)])


Obstacle = Callable[[Sequence[str]], str]
"""Why no swap of some accelerators can be applied now; empty if one can."""


def queue_entries(
    waiting: Sequence[QueuedDemand], seen: Observation, rack: str, obstacle: Obstacle = lambda _failed: ""
) -> tuple[list[QueueEntry], SpareDecision]:
    """What the sharing policy of a rack decides now about the demands that wait there, oldest first.

    ``obstacle`` is asked about the accelerators of each demand that is given spares.
    """
    asked = _ask(seen, rack, waiting)
    entries = []
    for each in waiting:
        needless, given = why_needless(seen, each), asked.decision.given.get(each.id, ())
        reasons = () if needless or given else tuple(_why_waiting(asked, each))
        hindered = obstacle(ill_accelerators(seen, each)) if given else ""
        command = _command(seen, each, can_end=needless is not None, served=bool(given) and not hindered)
        entries.append(QueueEntry(each, needless, given, reasons, hindered, command))
    return entries, asked.decision


def ill_accelerators(seen: Observation, demand: QueuedDemand) -> tuple[str, ...]:
    """The accelerators to replace for a demand: a plan refuses those that are ok, and adds those that are tied."""
    return tuple(rank.accelerator for rank in _ranks(seen, demand) if not _is_well(seen, rank.accelerator))


def _command(seen: Observation, demand: QueuedDemand, *, can_end: bool, served: bool) -> str | None:
    target = "" if seen.target == "rack" else f" --target {seen.target}"
    if can_end:
        rack = f" --rack {demand.rack}" if len(seen.inventory.racks) > 1 else ""
        return f"lumctl spare queue cancel {demand.id}{rack}{target}"
    ill = ",".join(ill_accelerators(seen, demand))
    return f"lumctl swap plan {demand.job} --failed {ill}{target}" if served else None


def queue_demands(
    store: Store, seen: Observation, rack: str, failed: Sequence[str], *, why: str, who: str
) -> tuple[QueuedDemand, ...]:
    """Queue a demand for each job that runs on these accelerators, and on those that are tied to them.

    Raises:
        RefusedError: waiting is of no use to one of them, or another demand waits for a part of it; nothing was queued.
        StoreError: the store of the rack cannot be written.
    """
    by_job = _failed_by_job(seen, failed)
    if (in_vain := vain_wait(store, seen, rack, failed)) is not None:
        raise in_vain
    wanted = {job: tuple(each.accelerator for each in failures) for job, failures in by_job.items()}
    return store.demands.ask(rack, wanted, why=why, who=who, at=seen.at)


def vain_wait(store: Store, seen: Observation, rack: str, failed: Sequence[str]) -> RefusedError | None:
    """The refusal if it is of no use that a job waits for spares for these accelerators, and those tied to them."""
    for job, failures in _failed_by_job(seen, failed).items():
        if (reason := _why_in_vain(store.demands.waiting(), seen, rack, failures)) is not None:
            return RefusedError(
                f"{job} was not queued, because it would wait in vain: {reason}",
                hint="restart it elsewhere, repair what failed, or mark more accelerators with `role: spare`",
            )
    return None


def _failed_by_job(seen: Observation, failed: Sequence[str]) -> dict[str, list[FailedRank]]:
    by_job: dict[str, list[FailedRank]] = {}
    for name in with_tied(seen.inventory, seen.assignment, failed):
        if (place := seen.place_of(name)) is not None:
            by_job.setdefault(place[0], []).append(FailedRank(*place, name))
    return by_job


def _why_in_vain(
    waiting: Sequence[QueuedDemand], seen: Observation, rack: str, failures: Sequence[FailedRank]
) -> str | None:
    if all(_is_well(seen, each.accelerator) for each in failures):
        return f"{', '.join(each.accelerator for each in failures)} can work: replace it when a spare is free"
    if (reason := never(seen, failures)) is not None:
        return reason
    wanted = {each.accelerator for each in failures}
    others = [each for each in waiting if not wanted & set(each.accelerators)]
    given = _ask(seen, rack, others, (THIS_SWAP, seen.at, failures)).decision.given.get(THIS_SWAP)
    if given is None:
        return None
    return (
        f"{', '.join(given)} {'are' if given[1:] else 'is'} free, but no plan can use {'them' if given[1:] else 'it'}"
    )


def why_needless(seen: Observation, asked: QueuedDemand) -> str | None:
    """Why a queued demand needs no spare any more; ``None`` if it does."""
    if asked.job not in seen.assignment:
        return f"job {asked.job} no longer exists"
    ranks = _ranks(seen, asked)
    if not ranks:
        return f"{asked.job} does not run on {', '.join(asked.accelerators)} any more"
    if all(_is_well(seen, rank.accelerator, since=asked.asked_at) for rank in ranks):
        return f"{', '.join(rank.accelerator for rank in ranks)} {'are' if ranks[1:] else 'is'} ok again"
    return None


def _is_well(seen: Observation, accelerator: str, since: float = 0.0) -> bool:
    """Whether an accelerator and all its lanes are ok, read after a time (seconds since the epoch)."""
    lanes = [seen.report.links[lane.id] for lane in seen.inventory.transponders_of(accelerator)]
    every = [seen.report.accelerators[accelerator], *lanes]
    return all(each.state is State.OK and each.read_at is not None and each.read_at > since for each in every)


def never(seen: Observation, failures: Sequence[FailedRank]) -> str | None:
    """Why the whole pool can never serve some failures together; ``None`` if it can once enough of it is free."""
    rack = seen.inventory.accelerators[failures[0].accelerator].rack
    classes, pool = _spare_classes(seen), _pool(seen, rack)
    reserve, held = seen.inventory.sharing.reserve, set[str]()
    for name, count in reserve.items():
        held.update([spare.id for spare in pool if classes[spare.id] == name][:count])
    usable = []
    for failure in failures:
        could = [spare.id for spare in pool if _could_replace(seen, failure, spare)]
        # Of a class that it can do without, the reserve is not for an accelerator.
        does_without = len({classes[spare] for spare in could}) > 1
        usable.append([spare for spare in could if not (does_without and spare in held)])
    if serves_all(on_fitting_hosts(seen.inventory, failures[0].job, usable)):
        return None
    able = len({spare for row in usable for spare in row})
    hosts = seen.inventory.jobs[failures[0].job].constraints.hosts
    together = "" if hosts is SpareHosts.ANY or able < len(failures) else f" on {HOSTS_IN_WORDS[hosts]}"
    return f"rack {rack} has {counted(able, 'spares')} that could ever serve it, and it needs {len(failures)}{together}"


def _ask(
    seen: Observation,
    rack: str,
    waiting: Sequence[QueuedDemand],
    swap: tuple[str, float, Sequence[FailedRank]] | None = None,
) -> _Asked:
    """Ask the policy about the queue, and about a ``swap`` that is planned: its name, its time, and its ranks."""
    failures: dict[str, Sequence[FailedRank]] = {}
    for each in waiting:
        if why_needless(seen, each) is None:
            ranks = _ranks(seen, each)
            ill = {rank.accelerator for rank in ranks if not _is_well(seen, rank.accelerator)}
            tied = with_tied(seen.inventory, seen.assignment, sorted(ill))
            if ill:
                failures[each.id] = [rank for rank in ranks if rank.accelerator in tied]
    asked_at = {each.id: each.asked_at for each in waiting}
    if swap is not None:
        asked_at[swap[0]], failures[swap[0]] = swap[1:]
    gone = {failure.accelerator for found in failures.values() for failure in found}
    spares = _free_spares(seen, rack)
    order = sorted(failures, key=lambda name: (asked_at[name], name))
    demands = tuple(_demand(seen, name, asked_at[name], failures[name], spares, gone) for name in order)
    # The same demands and spares are always answered alike, so that what was told is what is done.
    seed = zlib.crc32(" ".join([*order, *spares]).encode())
    before = SharingQuestion(seen.at, demands, spares, seen.inventory.sharing.ageing_s, seed)
    after = Reserve(seen.inventory.sharing.reserve).applied(before)
    return _Asked(seen, before, after, decide(seen.inventory.sharing.policy, after), failures)


def _ranks(seen: Observation, asked: QueuedDemand) -> list[FailedRank]:
    """The ranks that a queued demand is about, as far as its job still runs on their accelerators."""
    places = {name: seen.place_of(name) for name in asked.accelerators}
    return [FailedRank(*place, name) for name, place in places.items() if place is not None and place[0] == asked.job]


def _could_replace(seen: Observation, failure: FailedRank, spare: Accelerator) -> bool:
    """Whether a spare could replace an accelerator if it were free and ok: by what the inventory says of the two."""
    old = seen.inventory.accelerators[failure.accelerator]
    return (
        spare.model == old.model
        and spare.memory_gib >= old.memory_gib
        and spare.reserved_for in {None, failure.job}
        and networks_of(seen.inventory, spare.id) == networks_of(seen.inventory, old.id)
    )


def _pool(seen: Observation, rack: str) -> list[Accelerator]:
    """The spares of a rack that a swap may take without their names, in use or not."""
    every = seen.inventory.accelerators.values()
    return [each for each in every if each.rack == rack and each.role is Role.SPARE and not each.reserved]


def _spare_classes(seen: Observation) -> dict[str, str]:
    """The class of each accelerator; one that is reserved for a job is a class of its own."""
    accelerators = seen.inventory.accelerators
    kept = {name: each.reserved_for for name, each in accelerators.items() if each.reserved_for is not None}
    named = classes_of(accelerators)
    return {name: f"{of}, reserved for {kept[name]}" if name in kept else of for name, of in named.items()}


def _free_spares(seen: Observation, rack: str) -> dict[str, FreeSpare]:
    """The spares of a rack that no job uses and that are fit for use."""
    classes, found = _spare_classes(seen), {}
    members = [a for a in seen.inventory.accelerators.values() if a.rack == rack and a.role is not Role.DISABLED]
    for each in _pool(seen, rack):
        usable = not any(unfit_reasons(seen, each.id)) and kept_by_filler(seen, each.id) is None
        if usable and seen.role_of(each.id) is Role.SPARE:
            able = sum(other.model == each.model and other.memory_gib <= each.memory_gib for other in members)
            found[each.id] = FreeSpare(each.id, classes[each.id], able)
    return found


def _demand(
    seen: Observation,
    name: str,
    asked_at: float,
    failures: Sequence[FailedRank],
    spares: Collection[str],
    gone: Collection[str],
) -> Demand:
    classes, rack = _spare_classes(seen), seen.inventory.accelerators[failures[0].accelerator].rack
    usable = [
        [spare for spare in spares if next(spare_objections(seen, failure, spare, gone), None) is None]
        for failure in failures
    ]
    return Demand(
        id=name,
        job=failures[0].job,
        asked_at=asked_at,
        usable=tuple(on_fitting_hosts(seen.inventory, failures[0].job, usable)),
        able=tuple(
            frozenset(classes[a.id] for a in _pool(seen, rack) if _could_replace(seen, each, a)) for each in failures
        ),
        weight=seen.inventory.sharing.weights.get(failures[0].job, 1.0),
    )


def _given_to_others(asked: _Asked, others: Sequence[QueuedDemand]) -> Iterator[tuple[str, str]]:
    """The spares that the policy gives to demands in the queue, each with the reason why a swap may not take it."""
    for each in others:
        since = ago_text(each.asked_at, asked.seen.at)
        for spare in asked.decision.given.get(each.id, ()):
            whose = f"is kept for {each.job}, which asked for it {since}"
            by = f"({each.id}, sharing policy {asked.decision.policy})"
            yield spare, f"{whose} {by}: --spare {spare} uses it nevertheless"


def _held_back(asked: _Asked, name: str) -> Iterator[tuple[str, str]]:
    """The spares that the reserve keeps from the swap that is planned now, each with the reason."""
    mine = [next(each for each in question.demands if each.id == name) for question in (asked.before, asked.after)]
    before, after = ({spare for row in each.usable for spare in row} for each in mine)
    for spare in before - after:
        of = asked.before.spares[spare].accelerator_class
        held = asked.seen.inventory.sharing.reserve[of]
        why = f"{held} of {of} are held back for jobs that can use nothing else (sharing: reserve)"
        yield spare, f"is in reserve, because {why}: --spare {spare} uses it nevertheless"


def _why_waiting(asked: _Asked, demand: QueuedDemand) -> Iterator[str]:
    """Why the policy gives a demand nothing now."""
    failures = asked.failures.get(demand.id, ())
    if not failures:
        yield "its accelerators are ok, but were read before it was queued"
        return
    if (reason := never(asked.seen, failures)) is not None:
        yield f"it waits in vain: {reason}"
        return
    mine = next(each for each in asked.after.demands if each.id == demand.id)
    taken = {spare: name for name, spares in asked.decision.given.items() for spare in spares}
    able = {spare for row in mine.usable for spare in row}
    for spare in sorted(able & taken.keys()):
        yield f"{spare} goes to {taken[spare]} first (sharing policy {asked.decision.policy})"
    if able - taken.keys():
        able_now = ", ".join(sorted(able - taken.keys()))
        one = f"the sharing policy does not give it {able_now} now"
        yield f"it needs {mine.size} at once, of which {able_now} can be used now" if mine.size > 1 else one
    gone = {failure.accelerator for found in asked.failures.values() for failure in found}
    rack, role_of = asked.seen.inventory.accelerators[failures[0].accelerator].rack, asked.seen.role_of
    idle = [each.id for each in _pool(asked.seen, rack) if role_of(each.id) is Role.SPARE]
    refused = [spare for spare in idle if spare not in able]
    for spare in refused[:_SHOWN]:
        objection = next(spare_objections(asked.seen, failures[0], spare, gone), "is in reserve")
        yield f"{spare} {objection}"
    if len(refused) > _SHOWN:
        yield f"{len(refused) - _SHOWN} more cannot be used"
    if not idle:
        yield "no spare is free"
