"""Jobs and the links that they need, from the document to the model."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from math import prod

from lumctl.errors import UsageError
from lumctl.inventory.document import Document
from lumctl.inventory.entry import Entry
from lumctl.inventory.folded_names import FoldError, expand_numbers, fold
from lumctl.inventory.job_entries import (
    FillerEntry,
    JobControlEntry,
    JobEntry,
    JobRunEntry,
    OtherHookEntry,
    PairsEntry,
    RingEntry,
    SpareConstraintsEntry,
    TorusEntry,
)
from lumctl.inventory.job_kinds import read_settings
from lumctl.inventory.job_run import PAUSED_WITHIN_S, WORKERS, JobHook, JobRun
from lumctl.inventory.model import DeviceKind, Inventory, Job, PairLinks, RingLinks, Role, TorusLinks
from lumctl.inventory.problems import Mark, Problems
from lumctl.inventory.scope import Scope
from lumctl.inventory.sharing import SpareConstraints
from lumctl.inventory.wiring import Circuit, Direction, job_circuits, job_links, join_of

_SMALLEST_RING = 2

Links = RingLinks | PairLinks | TorusLinks


def resolve_jobs(document: Document, scope: Scope) -> dict[str, JobEntry]:
    """Fill ``scope.jobs``; return the entries of the jobs whose lanes can be judged."""
    sound: dict[str, JobEntry] = {}
    for entry in document.jobs:
        ranks, usable = _ranks(entry, scope, Role.ACTIVE)
        links = [_links(item, len(ranks), scope) for item in entry.links] if ranks else []
        if not scope.define("job", entry.name, entry.mark("name")):
            continue
        hook, run = resolve_control(entry, scope)
        job = Job(
            entry.name,
            _rack(entry, ranks, scope),
            tuple(ranks),
            tuple(item for item in links if item),
            hook,
            entry.needs_no_pause,
            run,
            constraints=_constraints(entry.spares),
        )
        scope.jobs[job.name] = job
        # Where a lane was cut out as invalid, the job would only repeat that error.
        in_doubt = any(rank not in scope.accelerators or rank in scope.doubts.lanes for rank in ranks)
        if usable and not in_doubt and all(links) and not entry.cut("links"):
            sound[job.name] = entry
    return sound


def resolve_fillers(document: Document, scope: Scope) -> None:
    """Fill ``scope.fillers``: jobs without links, on spares."""
    for entry in document.fillers:
        ranks, _ = _ranks(entry, scope, Role.SPARE)
        if scope.define("filler job", entry.name, entry.mark("name")):
            hook = _hook(entry, scope)
            scope.fillers[entry.name] = Job(entry.name, _rack(entry, ranks, scope), tuple(ranks), (), hook)


def _constraints(entry: SpareConstraintsEntry | None) -> SpareConstraints:
    if entry is None:
        return SpareConstraints()
    versions = {"driver": tuple(entry.driver or ()), "firmware": tuple(entry.firmware or ())}
    return SpareConstraints(
        **versions, most_loss_db=entry.most_loss_db, free_memory_gib=entry.free_memory_gib, hosts=entry.hosts
    )


def _rack(entry: JobEntry | FillerEntry, ranks: Iterable[str], scope: Scope) -> str:
    """The one rack of some ranks. An accelerator whose rack is not known has an empty one; that is reported already."""
    racks = {scope.accelerators[rank].rack for rank in ranks if rank in scope.accelerators} - {""}
    if len(racks) > 1:
        scope.problems.add(entry.mark("ranks"), f"found ranks in racks {', '.join(sorted(racks))}, expected one rack")
    return min(racks, default="")


def resolve_control(entry: JobControlEntry, scope: Scope) -> tuple[JobHook | None, JobRun | None]:
    """How a job is paused and resumed, and how it is run."""
    return _hook(entry, scope), None if entry.run is None else _run(entry.run)


def _hook(entry: JobControlEntry | FillerEntry, scope: Scope) -> JobHook | None:
    hook = entry.hook
    if isinstance(entry, JobControlEntry) and entry.run is not None:
        if hook is not None:
            scope.problems.add(
                entry.mark("hook"), "found both hook and run, expected one: the program that runs a job also pauses it"
            )
        return JobHook(timeout_s=PAUSED_WITHIN_S, on_sim=True, kind=WORKERS)
    if hook is None:
        return None
    if isinstance(hook, OtherHookEntry):
        settings = read_settings(entry, hook, scope)
        if settings is None:
            return None
        return JobHook(timeout_s=settings.timeout_s, on_sim=settings.on_sim, kind=settings.kind, settings=settings)
    pause, resume = (
        _command(hook, key, written, scope) for key, written in (("pause", hook.pause), ("resume", hook.resume))
    )
    status = _command(hook, "status", hook.status, scope) if hook.status else None
    return JobHook(pause, resume, status, hook.timeout_s, hook.on_sim)


def _run(run: JobRunEntry) -> JobRun:
    return JobRun(
        command=tuple(run.command),
        folder=run.folder,
        environment=dict(run.environment),
        agent=tuple(run.agent),
        heartbeat_s=run.heartbeat_s,
        stall_s=run.stall_s,
        start_s=run.start_s,
        silence_s=run.silence_s,
        exit_s=run.exit_s,
        standby=run.standby,
        without_spare=run.without_spare,
        restarts=run.restarts,
        straggler_schedule=run.straggler_schedule,
    )


def _command(entry: Entry, key: str, written: list[str], scope: Scope) -> tuple[str, ...]:
    """A program with its arguments. A program with a slash is a file, relative to the inventory's folder."""
    program, *arguments = written
    if "/" in program:
        program = str(scope.path(program, entry.mark(key, 0, len(written))))
    return (program, *arguments)


def _ranks(entry: JobEntry | FillerEntry, scope: Scope, role: Role) -> tuple[list[str], bool]:
    """The accelerators in rank order, and whether the job can run on them."""
    written = [entry.ranks] if isinstance(entry.ranks, str) else entry.ranks
    ranks: list[str] = []
    usable = True
    for item, text in enumerate(written):
        mark = entry.mark("ranks", item, len(written))
        names = scope.expand(text, mark)
        if names is None:
            return [], False
        for name in names:
            usable &= _check_rank(entry.name, len(ranks), name, mark, scope, role)
            ranks.append(name)
    return ranks, usable


def _check_rank(job: str, rank: int, name: str, mark: Mark, scope: Scope, role: Role) -> bool:
    accelerator = scope.refer("accelerator", name, scope.accelerators, mark)
    if accelerator is None:
        return False
    if accelerator.role is not role:
        wanted = "an active one" if role is Role.ACTIVE else "a spare"
        scope.once("role", mark, f"rank {rank} runs on {name}, which is {accelerator.role}, expected {wanted}")
    return scope.take(f"accelerator {name}", f"rank {rank} of {job}", mark)


def _links(entry: RingEntry | PairsEntry | TorusEntry, count: int, scope: Scope) -> Links | None:
    if isinstance(entry, PairsEntry):
        return _pairs(entry, count, scope)
    ranks = _rank_numbers(entry, entry.ranks, count, scope)
    if ranks is None or not scope.spend(len(ranks)):
        return None
    if isinstance(entry, TorusEntry):
        if prod(entry.shape) != len(ranks):
            shape = " x ".join(str(extent) for extent in entry.shape)
            message = f"found a torus of {shape} = {prod(entry.shape)} for {len(ranks)} ranks"
            scope.problems.add(entry.mark("shape"), f"{message}, expected the same number")
            return None
        return TorusLinks(ranks, tuple(entry.shape))
    if len(ranks) < _SMALLEST_RING:
        scope.problems.add(entry.mark("ranks"), f"found a ring of {len(ranks)} rank, expected {_SMALLEST_RING} or more")
        return None
    return RingLinks(ranks)


def _rank_numbers(entry: Entry, written: str | list[int] | None, count: int, scope: Scope) -> tuple[int, ...] | None:
    if entry.cut("ranks"):
        return None
    if written is None:
        return tuple(range(count))
    try:
        numbers = expand_numbers(written) if isinstance(written, str) else written
    except FoldError as error:
        scope.problems.add(entry.mark("ranks"), str(error))
        return None
    twice = [number for number, times in Counter(numbers).items() if times > 1]
    if twice:
        scope.problems.add(entry.mark("ranks"), f"rank {twice[0]} is listed twice")
    in_range = [_in_range(rank, count, entry.mark("ranks", at, len(numbers)), scope) for at, rank in enumerate(numbers)]
    return tuple(numbers) if all(in_range) and not twice else None


def _pairs(entry: PairsEntry, count: int, scope: Scope) -> PairLinks | None:
    good = True
    for at, (a, b) in enumerate(entry.pairs):
        mark = entry.mark("pairs", at, len(entry.pairs))
        good &= _in_range(max(a, b), count, mark, scope)
        if a == b:
            scope.problems.add(mark, f"found a link of rank {a} to itself, expected two ranks")
            good = False
    return PairLinks(tuple((a, b) for a, b in entry.pairs)) if good else None


def _in_range(rank: int, count: int, mark: Mark, scope: Scope) -> bool:
    if rank < count:
        return True
    scope.once("rank", mark, f"found rank {rank}, expected 0 to {count - 1}")
    return False


def check_lanes(inventory: Inventory, entries: dict[str, JobEntry], problems: Problems) -> None:
    """Check that each link of each job has its lanes, of one kind and connected by fibres, and shares no port."""
    for name, entry in entries.items():
        job = inventory.jobs[name]
        try:
            circuits = job_circuits(inventory, job, job.ranks)
        except UsageError as error:
            problems.add(_first_bad(inventory, job, entry), error.message)
            continue
        users: dict[tuple[str, int], str] = {}
        links: set[str] = set()
        for circuit in circuits:
            if circuit.id in links:
                problems.add(entry.mark("links"), f"link {circuit.id} occurs twice, expected each link once")
                continue
            links.add(circuit.id)
            for end in (circuit.a, circuit.b):
                other = users.setdefault((end.device, end.port), circuit.id)
                if other != circuit.id:
                    what = f"links {other} and {circuit.id} both need port {end.port} of {end.device}"
                    problems.add(entry.mark("links"), f"{what}, expected a lane for each")
        _check_joins(inventory, circuits, entry, problems)
        if job.run is not None:
            _require_joined(inventory, job, entry, problems)


def _check_joins(inventory: Inventory, circuits: Iterable[Circuit], entry: JobEntry, problems: Problems) -> None:
    """Check that each switch can join the ports of the circuits that lie in it; one problem for each switch."""
    told: set[str] = set()
    for circuit in circuits:
        device = inventory.devices[circuit.a.device]
        if device.kind is DeviceKind.SWITCH and circuit.a.device == circuit.b.device and device.id not in told:
            try:
                join_of(device, circuit.ports, reciprocal=circuit.direction is Direction.DUPLEX)
            except UsageError as error:
                told.add(device.id)
                problems.add(entry.mark("links"), f"link {circuit.id}: {error.message}", error.hint)


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


def _first_bad(inventory: Inventory, job: Job, entry: JobEntry) -> Mark:
    """The place of the first group of links that is impossible."""
    # Pairs take the lanes that earlier groups left, so the groups are tried together, one more each time.
    for at in range(len(job.links)):
        try:
            job_circuits(inventory, replace(job, links=job.links[: at + 1]), job.ranks)
        except UsageError:
            return entry.links[at].at
    return entry.mark("links")
