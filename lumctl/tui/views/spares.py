"""Spares: those that are left, the accelerators that each can replace, and the jobs that wait for one; pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rich.text import Text

from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import devices_of, networks_of
from lumctl.printable import counted, number_ranges
from lumctl.spares.fitness import spares_by_pool, unfit_reasons, why_not_free
from lumctl.spares.ledger_text import advice
from lumctl.swap.demand_queue import queue_entries
from lumctl.swap.fillers import filler_documents
from lumctl.swap.ranking import FailedRank, objections
from lumctl.swap.spare_pool import ranks_to_replace, swapped_out
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, age
from lumctl.tui.views.records import RecordedLook

Rails = tuple[str, ...]
"""The devices to which an accelerator's lanes are connected."""


@dataclass(frozen=True, slots=True)
class SpareGroup:
    """The spares of one rail, or of one model if all spares are on the same rails.

    ``free`` can be used by any job now; ``unfit`` run no rank but are not free, each with the reason, and of these
    ``unread`` are unknown: nothing shows whether they are usable. ``used`` run a rank.
    """

    name: str
    free: tuple[str, ...]
    unfit: tuple[tuple[str, str], ...]
    used: tuple[str, ...]
    unread: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether none is known to be free, but one that was not read may be."""
        return not self.free and bool(self.unread)


@dataclass(frozen=True, slots=True)
class Users:
    """The accelerators of a job that a spare can replace, by their ranks in ascending order."""

    job: str
    ranks: tuple[int, ...]


def rails_of(observation: Observation, accelerator: str) -> Rails:
    """The devices to which an accelerator's lanes are connected, in order of name."""
    return tuple(sorted(devices_of(observation.inventory, accelerator)))


def fitting(seen: RecordedLook, failed: Sequence[str]) -> list[tuple[str, ...]]:
    """For each of some accelerators the spares that could replace it now, without those that the queue gives others."""
    kept = kept_for_others(seen, failed)
    return [tuple(s for s in _able(seen.observation, each) if s not in kept) for each in failed]


def swap_obstacle(seen: RecordedLook, failed: Sequence[str]) -> str:
    """Why no swap of these accelerators together can be applied now, in words; empty if one can."""
    group = frozenset(failed)
    if group in seen.swap_checks:
        refused = seen.swap_checks[group]
        return refused.message if refused is not None else ""
    return "" if all(fitting(seen, failed)) else f"no spare fits {'it' if len(failed) == 1 else 'them'}"


def checked_obstacle(seen: RecordedLook, failed: Sequence[str]) -> str:
    """Why the swap of these accelerators that was planned cannot be applied now, and what to do; else empty."""
    refused = seen.swap_checks.get(frozenset(failed))
    return "" if refused is None else "; ".join(filter(None, (refused.message, refused.hint)))


def kept_for_others(seen: RecordedLook, failed: Sequence[str]) -> set[str]:
    """The spares that the sharing policy gives to demands of the queue that are about other accelerators."""
    kept = set[str]()
    for rack in {each.rack for each in seen.records.waiting}:
        waiting = [each for each in seen.records.waiting if each.rack == rack]
        for entry in queue_entries(waiting, seen.observation, rack)[0]:
            if not set(entry.demand.accelerators) & set(failed):
                kept.update(entry.given)
    return kept


def _able(observation: Observation, failed: str) -> tuple[str, ...]:
    """The spares that can replace an accelerator now, in the order of the inventory: on its rails, or joined to them.

    Only a plan shows whether light can be routed to them.
    """
    place = observation.place_of(failed)
    if place is None:
        return ()
    rank, networks = FailedRank(place[0], place[1], failed), networks_of(observation.inventory, failed)
    return tuple(
        spare
        for spare in _spares(observation)
        if networks_of(observation.inventory, spare) == networks
        and not any(objections(observation, rank, spare, gone={failed}))
    )


def _spares(observation: Observation) -> list[str]:
    """The spares of the inventory, including those that run a rank now."""
    return [each.id for each in observation.inventory.accelerators.values() if each.role is Role.SPARE]


def groups_of(observation: Observation) -> tuple[SpareGroup, ...]:
    """All spares by rail, in the order of the inventory; by model if all spares are on the same rails."""
    inventory, placed = observation.inventory, observation.places()
    spares = _spares(observation)
    rails = {spare: rails_of(observation, spare) for spare in spares}
    by_rail = len(set(rails.values())) > 1
    groups: dict[str, list[str]] = {}
    for spare in spares:
        name = ", ".join(rails[spare]) if by_rail else inventory.accelerators[spare].model
        groups.setdefault(name or "no rail", []).append(spare)
    found = []
    for name, members in groups.items():
        left = [spare for spare in members if spare not in placed]
        why = {spare: why_not_free(observation, inventory.accelerators[spare]) for spare in left}
        unfit = tuple((spare, reason) for spare, reason in why.items() if reason is not None)
        found.append(
            SpareGroup(
                name,
                free=tuple(spare for spare, reason in why.items() if reason is None),
                unfit=unfit,
                used=tuple(spare for spare in members if spare in placed),
                unread=tuple(s for s in why if observation.report.accelerators[s].state is State.UNKNOWN),
            )
        )
    return tuple(found)


def users_of(observation: Observation, spare: str) -> tuple[Users, ...]:
    """The ranks that a spare can replace, by job: those on its rails or joined to them.

    The spare's own state is ignored.
    """
    # Faults of the spare itself are shown next to it; here only what keeps it from a rank counts.
    unfit, found = set(unfit_reasons(observation, spare)), dict[str, list[int]]()
    for each in ranks_to_replace(observation, spare):
        if not set(each.reasons) - unfit:
            found.setdefault(each.job, []).extend(each.ranks)
    return tuple(Users(job, tuple(sorted(ranks))) for job, ranks in found.items())


def spare_lines(observation: Observation, marks: Marks, aimed: Callable[[str], str] = str) -> Iterator[Text]:
    """Lines for each group: its spares, their states, and the ranks that each can replace; ``aimed`` as of a look."""
    groups = groups_of(observation)
    if not groups:
        yield Text("the inventory has no spare: nothing can replace an accelerator", style=STATE_STYLES[State.DEGRADED])
    placed = observation.places()
    for group in groups:
        head = Text().append(f"{group.name}: ", HEADING_STYLE)
        style = "" if group.free else STATE_STYLES[State.DEGRADED]
        unusable = len(group.unfit) - len(group.unread)
        unfit = f", {unusable} not usable" if unusable else ""
        unread = f", {len(group.unread)} not read" if group.unread else ""
        head.append(f"{len(group.free)} free{unfit}{unread}, {len(group.used)} used", style=style)
        yield head
        why = dict(group.unfit)
        for spare in (*group.free, *why, *group.used):
            yield _spare_line(observation, spare, why.get(spare, ""), placed.get(spare), marks)
        shared = {users for spare in group.free for users in users_of(observation, spare)}
        ranks = sum(len(users.ranks) for users in shared)
        if group.free:
            yield Text(f"  {counted(ranks, 'ranks')} share {counted(len(group.free), 'spares')}", style=QUIET_STYLE)
        yield Text()
    for filler in filler_documents(observation, observation.inventory.racks):
        if not filler["running"]:
            then = f": {aimed(filler['command'])}" if filler["command"] else ""
            yield Text(f"filler job {filler['name']} {filler['words']}{then}")


def waiting_lines(seen: RecordedLook) -> Iterator[Text]:
    """A line for each demand that waits in the queue, what it waits for, and the key or command that ends the wait."""
    for rack in seen.observation.inventory.racks:
        waiting = [each for each in seen.records.waiting if each.rack == rack]
        if not waiting:
            continue
        yield Text("waiting for spares", style=HEADING_STYLE)
        for entry in queue_entries(waiting, seen.observation, rack, partial(checked_obstacle, seen))[0]:
            demand = entry.demand
            text = Text(f"  {demand.id} {demand.job} ")
            text.append(f"for {', '.join(demand.accelerators)}, ")
            text.append(f"{age(demand.asked_at, seen.observation.at)}: ", style=QUIET_STYLE)
            text.append(seen.aimed(entry.words), style="" if entry.command else STATE_STYLES[State.DEGRADED])
            yield text
            if entry.command:
                yield Text(f"    {seen.aimed(entry.command)}", style=QUIET_STYLE)
        yield Text()


def ways_back(seen: RecordedLook) -> list[tuple[str, str]]:
    """What to do about accelerators that swaps took out of their jobs, each with the command that returns its ranks."""
    found = advice(swapped_out(seen.observation), seen.observation.target, seen.return_checks)
    return [(seen.aimed(said), seen.aimed(command)) for said, command in found]


def way_back_lines(seen: RecordedLook) -> Iterator[Text]:
    """:func:`ways_back` under a heading; nothing if no rank runs on a spare."""
    if found := ways_back(seen):
        yield Text("ranks on spares", style=HEADING_STYLE)
        for said, command in found:
            yield Text(f"  {said}{':' if command else ''}")
            if command:
                yield Text(f"    {command}", style=QUIET_STYLE)
        yield Text()


def forecast_lines(seen: RecordedLook) -> Iterator[Text]:
    """A line for each pool whose store has a history: how long its free spares last."""
    pools = spares_by_pool(seen.observation)
    foreseen = [(key, pools[key], forecast) for key, forecast in seen.records.forecasts.items() if key in pools]
    for (rack, name), pool, forecast in foreseen:
        yield Text(f"{rack}, {name}: {forecast.words(len(pool.free), seen.observation.at)}", style=QUIET_STYLE)
    if foreseen:
        yield Text()


def _spare_line(observation: Observation, spare: str, why: str, place: tuple[str, int] | None, marks: Marks) -> Text:
    health = observation.report.accelerators.get(spare)
    state = health.state if health is not None else State.UNKNOWN
    text = Text("  ")
    text.append(f"{marks.state(state):<11}", style=STATE_STYLES[state])
    text.append(f" {spare:<14} ")
    if place is not None:
        text.append(f"runs {place[0]} rank {place[1]}", style=QUIET_STYLE)
        return text
    if why:
        text.append(f"{why}; ", style=STATE_STYLES[State.DEGRADED])
    elif (filler := observation.filler_on(spare)) is not None:
        text.append(f"runs filler job {filler.name}, which gives it up; ", style=QUIET_STYLE)
    users = users_of(observation, spare)
    said = (f"{each.job} {'rank' if len(each.ranks) == 1 else 'ranks'} {number_ranges(each.ranks)}" for each in users)
    text.append(f"can replace {'; '.join(said)}" if users else "can replace no rank")
    return text
