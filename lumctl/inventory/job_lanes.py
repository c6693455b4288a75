"""Check that jobs have the lanes that their links need, and that each phase of a job is a matching on its devices."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lumctl.errors import UsageError
from lumctl.inventory.folded_names import fold
from lumctl.inventory.job_entries import JobEntry, LinksEntry
from lumctl.inventory.model import DeviceKind, Inventory, Job
from lumctl.inventory.problems import Mark, Problems
from lumctl.inventory.wiring import Circuit, Direction, job_circuits, job_links, join_of


@dataclass(frozen=True, slots=True)
class _LinksAtOnce:
    """Links that a job needs at the same time: all of it, or those of one phase. ``phase`` begins a message."""

    job: Job
    entries: Sequence[LinksEntry]
    at: Mark
    phase: str = ""


def _links_at_once(job: Job, entry: JobEntry) -> Iterator[_LinksAtOnce]:
    if not job.phases:
        yield _LinksAtOnce(job, entry.links, entry.mark("links"))
    for phase in job.phases:
        at = entry.item_mark("phases", phase.name)
        yield _LinksAtOnce(job.in_phase(phase), entry.phases[phase.name], at, f"phase {phase.name}: ")


def check_lanes(inventory: Inventory, entries: dict[str, JobEntry], problems: Problems) -> None:
    """Check that each link of each job has its lanes, of one kind and connected by fibres.

    Links that are needed at the same time may share no port.
    """
    for name, entry in entries.items():
        job = inventory.jobs[name]
        known = [_check_matching(inventory, links, problems) for links in _links_at_once(job, entry)]
        # In a job with phases the group of all ranks uses the hosts' network: its collectives belong to no phase.
        if job.run is not None and not job.phases and all(known):
            _require_joined(inventory, job, entry, problems)


def _check_matching(inventory: Inventory, links: _LinksAtOnce, problems: Problems) -> bool:
    """Whether the circuits of some links are known."""
    try:
        circuits = job_circuits(inventory, links.job, links.job.ranks)
    except UsageError as error:
        problems.add(_first_bad(inventory, links), f"{links.phase}{error.message}")
        return False
    users: dict[tuple[str, int], str] = {}
    known: set[str] = set()
    for circuit in circuits:
        if circuit.id in known:
            problems.add(links.at, f"{links.phase}link {circuit.id} occurs twice, expected each link once")
            continue
        known.add(circuit.id)
        for end in (circuit.a, circuit.b):
            other = users.setdefault((end.device, end.port), circuit.id)
            if other != circuit.id:
                what = f"links {other} and {circuit.id} both need port {end.port} of {end.device}"
                problems.add(links.at, f"{links.phase}{what}, expected a lane for each")
    _check_joins(inventory, circuits, links, problems)
    return True


def _check_joins(inventory: Inventory, circuits: Iterable[Circuit], links: _LinksAtOnce, problems: Problems) -> None:
    """Check that each switch can join the ports of the circuits that lie in it; one problem for each switch."""
    told: set[str] = set()
    for circuit in circuits:
        device = inventory.devices[circuit.a.device]
        if device.kind is DeviceKind.SWITCH and circuit.a.device == circuit.b.device and device.id not in told:
            try:
                join_of(device, circuit.ports, reciprocal=circuit.direction is Direction.DUPLEX)
            except UsageError as error:
                told.add(device.id)
                problems.add(links.at, f"{links.phase}link {circuit.id}: {error.message}", error.hint)


def _require_joined(inventory: Inventory, job: Job, entry: JobEntry, problems: Problems) -> None:
    """Check that links and shared hosts connect all linked ranks: lumctl makes one process group of them all."""
    group_of = list(range(len(job.ranks)))

    def join(a: int, b: int) -> None:
        of, instead = group_of[a], group_of[b]
        group_of[:] = [instead if group == of else group for group in group_of]

    on_host: dict[str, int] = {}
    linked = {rank for link in job_links(job) for rank in (link.a_rank, link.b_rank)}
    for link in job_links(job):
        join(link.a_rank, link.b_rank)
    for rank in sorted(linked):
        join(rank, on_host.setdefault(inventory.accelerators[job.ranks[rank]].host, rank))
    groups = [[rank for rank in sorted(linked) if group_of[rank] == group] for group in dict.fromkeys(group_of)]
    apart = sorted(group for group in groups if group)
    if len(apart) > 1:
        first, second = (", ".join(fold([str(rank) for rank in group])) for group in apart[:2])
        problems.add(
            entry.mark("links"),
            f"no path of links connects ranks {first} and ranks {second} of job {job.name}, expected a path between "
            "all ranks",
            "add a link between them, such as {kind: pairs, pairs: [["
            f"{apart[0][0]}, {apart[1][0]}]]}}, or make two jobs of them",
        )


def _first_bad(inventory: Inventory, links: _LinksAtOnce) -> Mark:
    """The place of the first group of links that is impossible."""
    # Pairs take the lanes that earlier groups left, so the groups are tried together, one more each time.
    for at in range(len(links.job.links)):
        try:
            job_circuits(inventory, replace(links.job, links=links.job.links[: at + 1]), links.job.ranks)
        except UsageError:
            return links.entries[at].at
    return links.at
