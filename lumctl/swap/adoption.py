"""Find where the jobs run by the light, and plan to record that placement for the rack."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.change.live_paths import hear
from lumctl.change.plan import ADOPT, Do, Plan, Start, Step
from lumctl.context import Context
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import FabricStates
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of, job_circuits, job_links, lanes_in_order, orders_in

Ranks = Mapping[int, str]
"""Rank -> accelerator, for the known ranks."""


@dataclass(frozen=True)
class ShownJob:
    """Where one job runs according to the light, and how certain that is."""

    ranks: tuple[str, ...]
    """The placement that explains most of the light at its receivers, and differs least from the record."""
    circuits: tuple[Circuit, ...]
    """Its circuits under that placement whose every receiver hears the intended transmitter."""
    unseen: tuple[int, ...]
    """The ranks whose accelerator no light shows."""
    rivals: tuple[tuple[str, ...], ...] = ()
    """Other placements that explain as much and differ as little."""
    explained: int = 0
    """How many receivers hear the transmitters that this placement requires."""
    explained_as_recorded: int = 0
    """How many receivers hear the transmitters that the recorded placement requires."""

    @property
    def is_determined(self) -> bool:
        """Whether the light shows where each rank runs, and leaves no other choice."""
        return not self.unseen and not self.rivals


@dataclass(frozen=True)
class Shown:
    """Where the jobs of a rack run by the light; ``placed`` is their recorded placement."""

    placed: Assignment
    jobs: Mapping[str, ShownJob] = field(default_factory=dict)

    @property
    def elsewhere(self) -> dict[str, tuple[str, ...]]:
        """The jobs that the light shows, beyond doubt, on other accelerators than the record."""
        return {
            job: shown.ranks
            for job, shown in self.jobs.items()
            if shown.is_determined and shown.explained > shown.explained_as_recorded
        }


def shown_by(
    inventory: Inventory,
    rack: str,
    heard: Mapping[str, str],
    placed: Assignment,
    *,
    given: Assignment | None = None,
) -> Shown:
    """Where the jobs of a rack run by what receivers hear (receiver -> transmitter); ``given`` placements are known."""
    known = given or {}
    found: dict[str, ShownJob] = {}
    sound = [c for c in circuits_of(inventory, placed) if all(heard.get(r) == t for r, t in c.receivers)]
    lanes = inventory.transponders
    settled = {lanes[end.transponder].accelerator for circuit in sound for end in (circuit.a, circuit.b)}
    for job in inventory.jobs.values():
        if job.rack != rack:
            continue
        others = [*(known[other] for other in known if other != job.name), *(each.ranks for each in found.values())]
        taken = {accelerator for ranks in others for accelerator in ranks}
        search = _Search(inventory, job, heard, placed, taken=taken, settled=settled)
        found[job.name] = search.told(tuple(known[job.name])) if job.name in known else search.best()
    return Shown(placed, found)


def plan_adopt(context: Context, rack: str, *, given: Assignment | None = None) -> Plan:
    """Plan to record the placement that the light shows. It moves no light; the light is proved again.

    ``given`` are placements of jobs that an operator states because the light alone does not determine them. Device
    states that the record does not explain become uncertain: the next ``fabric apply`` writes them again.

    Raises:
        UsageError: a given placement does not fit the inventory.
        RefusedError: the light does not determine where a job runs, or contradicts a given placement.
    """
    inventory, stored = context.inventory, context.store(rack).fabric.assignment()
    for job, ranks in (given or {}).items():
        _require_fits(inventory, rack, job, ranks)
    placed = context.assignment(sound=False)
    devices = [device.id for device in inventory.light_devices if device.rack == rack]
    heard = hear(context, devices)
    shown = shown_by(inventory, rack, heard, placed, given=given)
    _require_determined(shown, heard, given or {}, rack, context.target)
    after = {job: each.ranks for job, each in shown.jobs.items()}
    proved = [circuit for each in shown.jobs.values() for circuit in each.circuits]
    doubted = [device for device in devices if not _explains(context, device, proved)]
    moved = {job: ranks for job, ranks in after.items() if stored.get(job) != ranks}
    fresh = [device for device in doubted if context.store(rack).fabric.last_written_by(device) is None or moved]
    changes = {job: placed[job] for job in moved}
    steps = _steps(proved, changes, moved, fresh) if moved or fresh else ()
    return Plan(
        kind=ADOPT,
        title=f"adopt where the light shows {', '.join(after)}",
        rack=rack,
        target=context.target,
        created_at=context.now(),
        inventory_digest=inventory.digest,
        start=Start({job: placed[job] for job in after}),
        steps=steps,
        warnings=tuple(
            f"the state of {device} stays uncertain until the next lumctl fabric apply, which writes it, or reads it"
            for device in fresh
        ),
        why=tuple(_differences(inventory, shown, stored, given or {})),
    ).sealed()


def _steps(
    proved: Iterable[Circuit], before: Assignment, after: Assignment, doubted: Collection[str]
) -> tuple[Step, ...]:
    names = [circuit.id for circuit in proved]
    verify = Step(
        "1",
        Do.VERIFY,
        f"verify that {len(names)} circuits work as the light showed them",
        {"circuits": names, "kept": []},
        verification="each receiver hears the intended transmitter",
        undo="nothing was done",
    )
    data: dict[str, Any] = {
        "assignment": {job: list(ranks) for job, ranks in after.items()},
        "before": {job: list(ranks) for job, ranks in before.items()},
        "doubted": list(doubted),
    }
    what = f"where {', '.join(after)} {'runs' if len(after) == 1 else 'run'}" if after else "that the jobs run there"
    assign = Step("2", Do.ASSIGN, f"record {what}", data, undo="record the previous placement")
    return (verify, assign) if names else (assign,)


def _require_fits(inventory: Inventory, rack: str, job: str, ranks: tuple[str, ...]) -> None:
    if job not in inventory.jobs or inventory.jobs[job].rack != rack:
        names = ", ".join(each.name for each in inventory.jobs.values() if each.rack == rack)
        raise UsageError(f"rack {rack} has no job {job!r}", hint=f"it has {names}")
    wanted = len(inventory.jobs[job].ranks)
    strange = [
        name for name in ranks if name not in inventory.accelerators or inventory.accelerators[name].rack != rack
    ]
    if strange:
        raise UsageError(f"rack {rack} has no accelerator {strange[0]!r}", hint="see: lumctl status -o wide")
    if len(ranks) != wanted or len(set(ranks)) != wanted:
        raise UsageError(f"{job} has {wanted} ranks: give {wanted} different accelerators, in the order of the ranks")


def _require_determined(shown: Shown, heard: Mapping[str, str], given: Assignment, rack: str, target: str) -> None:
    for job, each in shown.jobs.items():
        place = f"lumctl store adopt {rack} --place {job}={','.join(each.ranks)} --target {target}"
        if job in given:
            if each.rivals:
                raise RefusedError(
                    f"the light contradicts the placement given for {job}: it shows {', '.join(each.rivals[0])}",
                    hint=f"adopt what the light shows: lumctl store adopt {rack} --target {target}",
                )
            continue
        if each.unseen:
            ranks = ", ".join(f"rank {rank}" for rank in each.unseen)
            raise RefusedError(
                f"the light does not show where {ranks} of {job} runs: no receiver there hears a lane that would show "
                "it" + ("" if heard else "; no receiver of the rack hears any transmitter"),
                hint=f"turn on its transmitters, or give its placement: {place}",
            )
        if each.rivals:
            others = "; or ".join(", ".join(ranks) for ranks in each.rivals[:2])
            raise RefusedError(
                f"the light fits several placements of {job}: {', '.join(each.ranks)}; or {others}",
                hint=f"say which: {place}",
            )


def _explains(context: Context, device: str, proved: Iterable[Circuit]) -> bool:
    """Whether the recorded states of a device make the circuits that the light shows."""
    cells = context.known_fabric(context.inventory.devices[device].rack)
    states = FabricStates(context.inventory, cells)
    here = [circuit for circuit in proved if device in circuit.devices]
    return bool(cells[device]) and all(states.path_of(circuit) is not None for circuit in here)


def _differences(inventory: Inventory, shown: Shown, stored: Assignment, given: Assignment) -> Iterator[str]:
    """The differences from the record, rank by rank, with the light that shows them; and the jobs without any."""
    for job, each in shown.jobs.items():
        said = "the record" if job in stored else "the inventory (there is no record)"
        for rank, (was, now) in enumerate(zip(shown.placed[job], each.ranks, strict=True)):
            if was == now:
                continue
            by = "as you say" if job in given else "by the light"
            mine = {lane.id for lane in inventory.transponders_of(now)}
            light = [f"{r} hears {t}" for c in each.circuits for r, t in c.receivers if {r, t} & mine]
            yield f"{job} rank {rank}: {was} by {said} -> {now} {by}{': ' if light else ''}{'; '.join(light[:2])}"
        if each.ranks == shown.placed[job]:
            yield f"{job} runs as {said} says: {len(each.circuits)} of its circuits were heard"


class _Search:
    """Looks for the placement of one job that explains what its receivers hear.

    Ranks that links join are placed together; ranks of different rings or lists of pairs are independent.
    """

    def __init__(
        self,
        inventory: Inventory,
        job: Job,
        heard: Mapping[str, str],
        placed: Assignment,
        *,
        taken: Collection[str],
        settled: Collection[str],
    ) -> None:
        self._inventory, self._job, self._heard = inventory, job, heard
        self._placed, self._orders = placed[job.name], orders_in(placed)
        here = [a.id for a in inventory.accelerators.values() if a.rack == job.rack and a.id not in set(taken)]
        self._lanes = {a: [lane.id for lane in lanes_in_order(inventory, a, self._orders)] for a in here}
        self._at = {lane: (a, number) for a, lanes in self._lanes.items() for number, lane in enumerate(lanes)}
        self._settled = settled
        self._links = job_links(job)
        # Light in one direction is evidence enough that two lanes are joined.
        self._partners: dict[str, set[str]] = {}
        for receiver, transmitter in heard.items():
            self._partners.setdefault(receiver, set()).add(transmitter)
            self._partners.setdefault(transmitter, set()).add(receiver)

    def best(self) -> ShownJob:
        """The placement that explains most, and differs least from the record."""
        ranks, rivals = list(self._placed), list[Ranks]()
        for joined in self._joined_ranks():
            ranked = self._ranked(joined)
            for rank, accelerator in ranked[0].items() if ranked else ():
                ranks[rank] = accelerator
            rivals += [other for other in ranked[1:] if self._worth(other) == self._worth(ranked[0])]
            for accelerator in ranked[0].values() if ranked else ():
                # What these ranks take is not offered to the ranks that no link joins to them.
                self._lanes.pop(accelerator, None)
        others = tuple(tuple(other.get(rank, a) for rank, a in enumerate(ranks)) for other in rivals)
        return self._shown(tuple(ranks), others)

    def told(self, ranks: tuple[str, ...]) -> ShownJob:
        """The placement that an operator states; its rival is the placement that explains more, if there is one."""
        best = self.best()
        return self._shown(ranks, (best.ranks,) if best.explained > self._explained(ranks) else ())

    def _shown(self, ranks: tuple[str, ...], rivals: tuple[tuple[str, ...], ...]) -> ShownJob:
        circuits = self._circuits(ranks)
        heard = [c for c in circuits if all(self._heard.get(r) == t for r, t in c.receivers)]
        lanes = {lane for c in circuits for pair in c.receivers if self._heard.get(pair[0]) == pair[1] for lane in pair}
        owners = {self._inventory.transponders[lane].accelerator for lane in lanes}
        linked = {rank for joined in self._joined_ranks() for rank in joined}
        unseen = tuple(rank for rank, a in enumerate(ranks) if rank in linked and a not in owners)
        explained, recorded = self._explained(ranks), self._explained(tuple(self._placed))
        return ShownJob(ranks, tuple(heard), unseen, rivals, explained, recorded)

    def _explained(self, ranks: tuple[str, ...]) -> int:
        """How many receivers of the job hear their intended transmitters under this placement."""
        return sum(self._heard.get(r) == t for c in self._circuits(ranks) for r, t in c.receivers)

    def _circuits(self, ranks: tuple[str, ...]) -> tuple[Circuit, ...]:
        try:
            return job_circuits(self._inventory, self._job, ranks, self._orders)
        except UsageError:  # an accelerator with too few lanes, or at another device
            return ()

    def _joined_ranks(self) -> list[list[int]]:
        """Groups of ranks that links join, directly or through other ranks."""
        joined: list[set[int]] = []
        for link in self._links:
            ends = {link.a_rank, link.b_rank}
            touched = [some for some in joined if some & ends]
            joined = [some for some in joined if not some & ends] + [ends.union(*touched)]
        return [sorted(some) for some in joined]

    def _ranked(self, joined: list[int]) -> list[Ranks]:
        """Placements of connected ranks, best first: those found by following the light, and the recorded one."""
        recorded = {rank: self._placed[rank] for rank in joined}
        stayed = [(rank, a) for rank, a in recorded.items() if a in self._lanes]
        # Begin at the ranks' recorded places: from a rank that has not moved, the light leads to all others. This finds
        # every placement in which some rank has not moved.
        ranked = self._reached_from(joined, stayed)
        # Each link has a receiver at both ends.
        receivers = 2 * sum(link.a_rank in recorded for link in self._links)
        if not ranked or -self._worth(ranked[0])[0] < receivers:
            # An accelerator whose lanes other ranks are heard to use, as recorded, belongs to those ranks.
            free = [a for a in self._lanes if a not in self._settled or a in recorded.values()]
            ranked = self._reached_from(joined, [(rank, a) for rank in joined for a in free])
        return ranked

    def _reached_from(self, joined: list[int], seeds: Iterable[tuple[int, str]]) -> list[Ranks]:
        recorded = {rank: self._placed[rank] for rank in joined}
        found = [recorded] if all(a in self._lanes for a in recorded.values()) else []
        grown: list[dict[int, str]] = []
        for rank, accelerator in seeds if self._heard else ():
            if any(ranks[rank] == accelerator for ranks in grown):
                continue
            ranks = self._completed(joined, self._grown({rank: accelerator}))
            grown += [ranks] if len(ranks) == len(joined) else []
        found += [ranks for ranks in grown if ranks not in found]
        return sorted(found, key=lambda ranks: (*self._worth(ranks), sorted(ranks.items())))

    def _worth(self, ranks: Ranks) -> tuple[int, int]:
        """The sort key of a placement; less is better.

        It is minus the number of receivers that hear their intended transmitter, then the number of ranks that run
        elsewhere than recorded.
        """
        explained = 0
        for link in self._links:
            if link.a_rank in ranks:
                a, b = self._lane(ranks[link.a_rank], link.a_lane), self._lane(ranks[link.b_rank], link.b_lane)
                explained += (self._heard.get(a) == b) + (self._heard.get(b) == a) if a and b else 0
        return -explained, sum(self._placed[rank] != accelerator for rank, accelerator in ranks.items())

    def _lane(self, accelerator: str, number: int) -> str:
        lanes = self._lanes.get(accelerator, [])
        return lanes[number] if number < len(lanes) else ""

    def _grown(self, known: Ranks) -> dict[int, str]:
        """The known ranks, and the ranks that are found from them by following the light along the job's links."""
        found = dict(known)
        ahead = list(known)
        while ahead:
            rank = ahead.pop()
            for link in self._links:
                if rank not in {link.a_rank, link.b_rank}:
                    continue
                lane, other, wanted = (
                    (link.a_lane, link.b_rank, link.b_lane)
                    if rank == link.a_rank
                    else (link.b_lane, link.a_rank, link.a_lane)
                )
                reached = self._reached(found[rank], lane, wanted)
                if other not in found and reached is not None and reached not in found.values():
                    found[other] = reached
                    ahead.append(other)
        return found

    def _reached(self, accelerator: str, lane: int, wanted: int) -> str | None:
        """The accelerator whose lane number ``wanted`` is connected by light to this lane, if there is exactly one."""
        partners = self._partners.get(self._lane(accelerator, lane), set())
        at = [self._at[partner] for partner in partners if partner in self._at]
        reached = {a for a, number in at if number == wanted and a in self._lanes}
        return reached.pop() if len(reached) == 1 else None

    def _completed(self, joined: list[int], known: Ranks) -> dict[int, str]:
        """Add the ranks that no light connects, at their recorded places; ranks with any light come first."""
        found = dict(known)
        left = [rank for rank in joined if rank not in found]
        left.sort(key=lambda rank: not any(lane in self._partners for lane in self._lanes.get(self._placed[rank], ())))
        for rank in left:
            accelerator = self._placed[rank]
            if rank not in found and accelerator in self._lanes and accelerator not in found.values():
                found = self._grown({**found, rank: accelerator})
        return found
