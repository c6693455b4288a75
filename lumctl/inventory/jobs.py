"""Jobs and the links that they need, from the document to the model."""

from collections import Counter
from collections.abc import Iterable
from math import prod

from lumctl.inventory.document import Document
from lumctl.inventory.entry import Entry
from lumctl.inventory.folded_names import FoldError, expand_numbers
from lumctl.inventory.job_entries import (
    FillerEntry,
    JobControlEntry,
    JobEntry,
    JobRunEntry,
    LinksEntry,
    OtherHookEntry,
    PairsEntry,
    SpareConstraintsEntry,
    TorusEntry,
)
from lumctl.inventory.job_kinds import read_settings
from lumctl.inventory.job_run import PAUSED_WITHIN_S, WORKERS, JobHook, JobRun
from lumctl.inventory.model import Job, JobPhase, PairLinks, RingLinks, Role, TorusLinks
from lumctl.inventory.problems import Mark
from lumctl.inventory.scope import Scope
from lumctl.inventory.sharing import SpareConstraints

_SMALLEST_RING = 2

Links = RingLinks | PairLinks | TorusLinks


def resolve_jobs(document: Document, scope: Scope) -> dict[str, JobEntry]:
    """Fill ``scope.jobs``; return the entries of the jobs whose lanes can be judged."""
    sound: dict[str, JobEntry] = {}
    for entry in document.jobs:
        ranks, usable = _ranks(entry, scope, Role.ACTIVE)
        links = _all_links(entry.links, len(ranks), scope)
        phases = {name: _all_links(items, len(ranks), scope) for name, items in entry.phases.items()}
        order = _order(entry, scope)
        if not scope.define("job", entry.name, entry.mark("name")):
            continue
        hook, run = resolve_control(entry, scope)
        job = Job(
            entry.name,
            _rack(entry, ranks, scope),
            tuple(ranks),
            _resolved(phases[order[0]] if order else links),
            hook,
            entry.needs_no_pause,
            run,
            constraints=_constraints(entry.spares),
            phases=tuple(JobPhase(name, _resolved(items)) for name, items in phases.items()),
            order=order,
        )
        scope.jobs[job.name] = job
        # Where a lane was cut out as invalid, the job would only repeat that error.
        in_doubt = any(rank not in scope.accelerators or rank in scope.doubts.lanes for rank in ranks)
        whole = all(map(all, (links, *phases.values()))) and bool(order) is bool(phases)
        if usable and not in_doubt and whole and not entry.cut("links", "phases", "order"):
            sound[job.name] = entry
    return sound


def _all_links(entries: Iterable[LinksEntry], count: int, scope: Scope) -> list[Links | None]:
    return [_links(entry, count, scope) for entry in entries] if count else []


def _resolved(links: Iterable[Links | None]) -> tuple[Links, ...]:
    return tuple(each for each in links if each)


def _order(entry: JobEntry, scope: Scope) -> tuple[str, ...]:
    """The phases of a training step in order; empty for a job without phases, or if the order is invalid."""
    if entry.cut("phases", "order"):
        return ()
    if not entry.phases:
        if entry.order:
            scope.problems.add(entry.mark("order"), "found an order without phases, expected 'phases'")
        return ()
    if entry.links:
        message = "found both links and phases, expected one: each phase has its own links"
        scope.problems.add(entry.mark("phases"), message)
        return ()
    marks = [entry.mark("order", at, len(entry.order)) for at in range(len(entry.order))]
    known = [scope.refer("phase", name, entry.phases, mark) for name, mark in zip(entry.order, marks, strict=True)]
    named = [scope.is_name(name, entry.item_mark("phases", name)) for name in entry.phases]
    unused = [name for name in entry.phases if entry.order and name not in entry.order]
    for name in unused if all(known) else ():
        scope.problems.add(entry.item_mark("phases", name), f"phase {name!r} does not occur in 'order'")
    return tuple(entry.order or entry.phases) if all(known) and all(named) and not unused else ()


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


def _links(entry: LinksEntry, count: int, scope: Scope) -> Links | None:
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
