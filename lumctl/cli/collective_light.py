"""The light of a job's ranks, for the schedule of a collective."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.job_state import find_job
from lumctl.errors import UsageError
from lumctl.inventory.wiring import Direction, job_circuits

if TYPE_CHECKING:
    from lumctl.collectives import Schedule
    from lumctl.collectives.light import RankPair, RoundsInLight

JobLightOption = Annotated[
    str | None,
    typer.Option("--job", metavar="JOB", help="Also which rounds the light of this job's ranks carries at once."),
]


@dataclass(frozen=True, slots=True)
class JobLight:
    """The light of a group of a job's ranks, numbered from 0 within the group.

    ``lit`` are the pairs (sender, receiver) that circuits of the job join. ``lanes`` is the most lanes of one rank, and
    ``settling_s`` the shortest settling time of their devices in seconds.
    """

    job: str
    ranks: tuple[int, ...]
    lit: "frozenset[RankPair]"
    lanes: int
    settling_s: float

    def rounds(self, schedule: "Schedule") -> "RoundsInLight":
        """The rounds of a schedule on this light."""
        from lumctl.collectives.light import rounds_in_light

        return rounds_in_light(schedule, self.lit, self.lanes, self.settling_s)

    def lines(self, schedule: "Schedule", ring_s: float | None = None) -> list[str]:
        """What this light means for a schedule, for people. ``ring_s``: the time of a ring all-reduce, if known."""
        from lumctl.collectives import ring
        from lumctl.quantity_text import seconds_text

        found, of_ring = self.rounds(schedule), self.rounds(ring(len(self.ranks)))
        said = [f"the light of {self.job} carries {found.carried} of {len(found.without_light)} rounds at once"]
        if found.changes:
            said[0] += "; what it does not carry needs another network"
            said.append(
                f"light for every round needs at least {found.changes} changes in each all-reduce, which take "
                f"{seconds_text(found.change_s)} ({seconds_text(self.settling_s)} each)"
            )
        if found.changes and not of_ring.changes:
            said.append("a ring all-reduce needs no change")
        if ring_s is not None and found.change_s >= ring_s:
            said.append(f"do not change light for rounds: ring takes {seconds_text(ring_s)} in all")
        return said

    def document(self, schedule: "Schedule") -> dict[str, Any]:
        """The same for JSON. A round that is carried has an empty list."""
        found = self.rounds(schedule)
        return {
            "job": self.job,
            "ranks": list(self.ranks),
            "without_light": [[list(pair) for pair in pairs] for pairs in found.without_light],
            "carried": found.carried,
            "changes": found.changes,
            "change_s": found.change_s,
        }


def light_of_job(cx: Invocation, job: str, ranks: int) -> JobLight:
    """The light of the first group of ``ranks`` ranks that the job's circuits join, as the inventory places them.

    Raises:
        UsageError: there is no such job, or no such group.
    """
    inventory = cx.inventory
    found = find_job(inventory, job)
    rank_of = {accelerator: rank for rank, accelerator in enumerate(found.ranks)}
    pairs: set[tuple[int, int]] = set()
    for circuit in job_circuits(inventory, found, found.ranks):
        a, b = (rank_of[inventory.transponders[end.transponder].accelerator] for end in (circuit.a, circuit.b))
        pairs |= {(a, b), (b, a)} if circuit.direction is Direction.DUPLEX else {(a, b)}
    groups = _groups(len(found.ranks), pairs)
    group = next((each for each in groups if len(each) == ranks), None)
    if group is None:
        sizes = sorted({len(each) for each in groups})
        raise UsageError(
            f"no {ranks} ranks of {job} are joined by light",
            hint=f"its groups that light joins have {', '.join(map(str, sizes))} ranks",
        )
    number = {rank: at for at, rank in enumerate(group)}
    lanes = [inventory.transponders_of(found.ranks[rank]) for rank in group]
    return JobLight(
        job,
        group,
        frozenset((number[a], number[b]) for a, b in pairs if a in number),
        max(map(len, lanes)),
        min(inventory.devices[each.lane.device].settle_ms for rank in lanes for each in rank) / 1000,
    )


def _groups(count: int, pairs: "set[RankPair]") -> list[tuple[int, ...]]:
    """The ranks that pairs join, directly or through others, in the order of their first ranks."""
    first: dict[int, int] = {rank: rank for rank in range(count)}
    for a, b in pairs:
        old, new = sorted((first[a], first[b]), reverse=True)
        first = {rank: new if known == old else known for rank, known in first.items()}
    return [tuple(rank for rank in range(count) if first[rank] == each) for each in sorted(set(first.values()))]
