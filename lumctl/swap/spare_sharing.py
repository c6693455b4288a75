"""The demands that wait for spares of a rack, what its sharing policy gives them, and what it keeps from a swap."""

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumctl.context import Observation
from lumctl.errors import RefusedError
from lumctl.inventory.model import Accelerator, Role
from lumctl.inventory.sharing import classes_of
from lumctl.printable import counted
from lumctl.spares.decision import Decision, decide
from lumctl.spares.sharing import Demand, FreeSpare, Question, Reserve
from lumctl.store import QueuedDemand, Store
from lumctl.swap.groups import largest
from lumctl.swap.ranking import FailedRank
from lumctl.swap.spare_pool import networks_of, spare_objections
from lumctl.time_text import ago_text

MINE = "this swap"
"""The id of the demand of a swap that is planned now and does not wait in the queue."""
_SHOWN = 3
"""How many spares that cannot serve a demand are named with their reasons."""


@dataclass(frozen=True)
class QueueEntry:
    """A queued demand now: why it is ``needless``, or the spares it is ``given``, or why it waits."""

    demand: QueuedDemand
    needless: str | None = None
    given: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What it waits for, or why it need not wait."""
        if self.needless is not None:
            return f"needs no spare: {self.needless}"
        if self.given:
            return f"{', '.join(self.given)} can replace {'them' if self.given[1:] else 'it'} now"
        return f"waits: {'; '.join(self.reasons)}"

    @property
    def command(self) -> str | None:
        """The command that ends the wait; ``None`` while there is none."""
        if self.needless is not None:
            return f"lumctl spare queue cancel {self.demand.id}"
        failed = ",".join(self.demand.accelerators)
        return f"lumctl swap plan {self.demand.job} --failed {failed}" if self.given else None


@dataclass(frozen=True)
class _Asked:
    """The question to the sharing policy of one rack, before and after the reserve, and the answer."""

    seen: Observation
    before: Question
    after: Question
    decision: Decision
    failures: Mapping[str, Sequence[FailedRank]]


def kept_spares(store: Store, seen: Observation, rack: str, failures: Sequence[FailedRank]) -> dict[str, str]:
    """The spares that a swap of these failures may not take, each with the reason.

    It takes its turn with the demands in the queue: since the time at which it was queued, or since now.

    Raises:
        StoreError: the store of the rack cannot be read.
    """
    waiting = store.demands.waiting()
    if not waiting and not seen.inventory.sharing.reserve:
        return {}
    wanted = {failure.accelerator for failure in failures}
    others = [each for each in waiting if not wanted & set(each.accelerators)]
    queued_at = min((each.asked_at for each in waiting if wanted & set(each.accelerators)), default=seen.at)
    asked = _ask(seen, rack, others, (failures, queued_at))
    return dict([*_given_to_others(asked, others), *_held_back(asked)])


def queue_entries(waiting: Sequence[QueuedDemand], seen: Observation, rack: str) -> tuple[list[QueueEntry], Decision]:
    """What the sharing policy of a rack decides now about the demands that wait there, oldest first."""
    asked = _ask(seen, rack, waiting)
    entries = []
    for each in waiting:
        needless, given = why_needless(seen, each), asked.decision.given.get(each.id, ())
        reasons = () if needless or given else tuple(_why_waiting(asked, each))
        entries.append(QueueEntry(each, needless, given, reasons))
    return entries, asked.decision


def queue_demands(
    store: Store, seen: Observation, rack: str, failed: Sequence[str], *, why: str, who: str
) -> list[QueuedDemand]:
    """Queue a demand for each job that runs on these accelerators.

    Raises:
        RefusedError: the pool can never serve one of them, or another demand waits for a part of it.
        StoreError: the store of the rack cannot be written.
    """
    by_job: dict[str, list[FailedRank]] = {}
    for name in failed:
        if (place := seen.place_of(name)) is not None:
            by_job.setdefault(place[0], []).append(FailedRank(*place, name))
    for job, failures in by_job.items():
        if (reason := never(seen, failures)) is not None:
            raise RefusedError(
                f"{job} was not queued, because it would wait in vain: {reason}",
                hint="restart it elsewhere, repair what failed, or mark more accelerators with `role: spare`",
            )
    return [
        store.demands.ask(rack, job, tuple(each.accelerator for each in failures), why=why, who=who, at=seen.at)
        for job, failures in by_job.items()
    ]


def why_needless(seen: Observation, asked: QueuedDemand) -> str | None:
    """Why a queued demand needs no spare any more; ``None`` if it does."""
    if asked.job not in seen.assignment:
        return f"job {asked.job} no longer exists"
    ranks = _ranks(seen, asked)
    if not ranks:
        return f"{asked.job} does not run on {', '.join(asked.accelerators)} any more"
    # Tied accelerators fail together: one that is still in trouble keeps all of them.
    if not any(seen.in_trouble(rank.accelerator) for rank in ranks):
        one = len(ranks) == 1
        return f"{', '.join(rank.accelerator for rank in ranks)} {'is' if one else 'are'} ok again"
    return None


def never(seen: Observation, failures: Sequence[FailedRank]) -> str | None:
    """Why the whole pool can never serve some failures together; ``None`` if it can once enough of it is free."""
    rack = seen.inventory.accelerators[failures[0].accelerator].rack
    spares = [a for a in seen.inventory.accelerators.values() if a.rack == rack and a.role is Role.SPARE]
    costs = [[0 if _could_replace(seen, failure, spare) else None for spare in spares] for failure in failures]
    if len(largest(costs)) == len(failures):
        return None
    able = sum(any(row[column] == 0 for row in costs) for column in range(len(spares)))
    return f"rack {rack} has {counted(able, 'spares')} that could ever serve it, and it needs {len(failures)}"


def _ask(
    seen: Observation,
    rack: str,
    waiting: Sequence[QueuedDemand],
    mine: tuple[Sequence[FailedRank], float] | None = None,
) -> _Asked:
    failures: dict[str, Sequence[FailedRank]] = {
        each.id: _ranks(seen, each) for each in waiting if why_needless(seen, each) is None
    }
    asked_at = {each.id: each.asked_at for each in waiting}
    if mine is not None:
        failures[MINE], asked_at[MINE] = mine
    gone = {failure.accelerator for found in failures.values() for failure in found}
    spares = _free_spares(seen, rack)
    order = sorted(failures, key=lambda name: asked_at[name])
    demands = tuple(_demand(seen, name, asked_at[name], failures[name], spares, gone) for name in order)
    # The same demands and spares are always answered alike, so that what was told is what is done.
    seed = zlib.crc32(" ".join([*order, *spares]).encode())
    before = Question(seen.at, demands, spares, seen.inventory.sharing.ageing_s, seed)
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
        and not spare.reserved
        and spare.reserved_for in {None, failure.job}
        and networks_of(seen.inventory, spare.id) == networks_of(seen.inventory, old.id)
    )


def _free_spares(seen: Observation, rack: str) -> dict[str, FreeSpare]:
    """The spares of a rack that no job uses, whatever their health."""
    accelerators = seen.inventory.accelerators
    classes = classes_of(accelerators)
    members = [each for each in accelerators.values() if each.rack == rack and each.role is not Role.DISABLED]
    found = {}
    for each in members:
        if seen.role_of(each.id) is Role.SPARE:
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
    classes, accelerators = classes_of(seen.inventory.accelerators), seen.inventory.accelerators
    rack = accelerators[failures[0].accelerator].rack
    pool = [each for each in accelerators.values() if each.rack == rack and each.role is Role.SPARE]
    return Demand(
        id=name,
        job=failures[0].job,
        asked_at=asked_at,
        usable=tuple(
            tuple(spare for spare in spares if next(spare_objections(seen, failure, spare, gone), None) is None)
            for failure in failures
        ),
        classes=frozenset(classes[a.id] for a in pool if any(_could_replace(seen, each, a) for each in failures)),
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


def _held_back(asked: _Asked) -> Iterator[tuple[str, str]]:
    """The spares that the reserve keeps from the swap that is planned now, each with the reason."""
    mine = [next(each for each in question.demands if each.id == MINE) for question in (asked.before, asked.after)]
    before, after = ({spare for row in each.usable for spare in row} for each in mine)
    for spare in before - after:
        name = asked.before.spares[spare].accelerator_class
        held = asked.seen.inventory.sharing.reserve[name]
        why = f"{held} of {name} are held back for jobs that can use nothing else (sharing: reserve)"
        yield spare, f"is in reserve, because {why}: --spare {spare} uses it nevertheless"


def _why_waiting(asked: _Asked, demand: QueuedDemand) -> Iterator[str]:
    """Why the policy gives a demand nothing now."""
    failures = asked.failures.get(demand.id, ())
    if not failures:
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
        yield f"it needs {mine.size} at once, of which {', '.join(sorted(able - taken.keys()))} can be used now"
    gone = {failure.accelerator for found in asked.failures.values() for failure in found}
    refused = [spare for spare in asked.before.spares if spare not in able]
    for spare in refused[:_SHOWN]:
        objection = next(spare_objections(asked.seen, failures[0], spare, gone), "is in reserve")
        yield f"{spare} {objection}"
    if len(refused) > _SHOWN:
        yield f"{len(refused) - _SHOWN} more cannot be used"
    if not asked.before.spares:
        yield "no spare is free"
