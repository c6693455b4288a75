"""``lumctl job stragglers``: which rank of a job is late, by how much, why, and what to do."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli import straggler_text
from lumctl.cli.collective_check import read_limited
from lumctl.cli.invocation import Invocation
from lumctl.cli.job_state import ASK_WITHIN_S, asked, find_job, nobody, placed_jobs
from lumctl.cli.output import OutputFormat
from lumctl.cli.straggler_text import Places
from lumctl.cli.times import beginning
from lumctl.cli.verbs import aimed, verb
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.job_run import StragglerSchedule

if TYPE_CHECKING:
    from lumctl.context import Observation
    from lumctl.health.states import Finding
    from lumctl.training.collective_record import RecordedCollectives
    from lumctl.training.stragglers import GroupLateness, LateRankAction

WARM_UP = 1
"""Steps at the start of a log that do not count."""


def register(app: typer.Typer) -> None:
    """Add ``stragglers`` to the commands of ``job``."""
    verb(app, "stragglers", pages=True)(stragglers)


def stragglers(
    cx: Invocation,
    job: Annotated[str | None, typer.Argument(metavar="JOB", help="The job's name; --log needs none.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only steps since then: 10m, 18:00; default: all.")
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", help="Times from a log instead; - is stdin.")
    ] = None,
    use_schedule: Annotated[
        bool, typer.Option("--use-schedule", help="Let the ranks work around the late one, if that is faster.")
    ] = False,
    stop_schedule: Annotated[bool, typer.Option("--stop-schedule", help="Let the ranks use no schedule.")] = False,
) -> None:
    """Say which rank of a job is late for collectives, by how much, why as far as health knows, and what to do.

    The ranks of ``lumctl job run`` record when they enter and leave the collectives of each training step, and report
    that with the step; see lumctl-job(7) for which collectives. The newest steps are kept, at most 2,048. A rank is
    named only if it is late by more than chance, now or over all steps, and by at least 1 % of a step. The rack is then
    read once, for the cause.

    The gap is how long all others wait for the rank: the median of all steps, and the 90th percentile. The clocks of
    hosts need not agree: the collectives tell how far they are apart, and by how much that may be wrong.

    The advice is nothing, to look at the host, to swap the accelerator (where health advises a spare for it), or to use
    a schedule for a late rank (``lumctl collective plan``), if that is faster even at the lower end of its interval and
    the collectives are all-reduces. Its costs are fitted to the job's own all-reduces, where they have several sizes.

    --use-schedule lets ``job.average`` use that schedule from one of the next steps on, unless the inventory forbids it
    (``straggler_schedule: off``); ``lumctl job status`` shows when it does. A new group, after a failure or a swap,
    begins without one. With ``straggler_schedule: on`` the job decides by itself.

    FILE is a log as for ``lumctl collective advise``; its first step does not count. ``-o name`` prints the late
    accelerators, or the late rank of a log without a job.
    """
    if use_schedule or stop_schedule:
        if job is None or log is not None or since is not None or use_schedule is stop_schedule:
            raise UsageError("--use-schedule and --stop-schedule are each for a running job, and alone")
        _order(cx, job, _rank_to_work_around(cx, job) if use_schedule else None)
        return
    groups, accelerators = _of_job(cx, job, since) if log is None else _of_log(cx, job, since, log)
    judged = _judged(cx, job, groups, accelerators)
    if cx.out.structured:
        documents = [straggler_text.document(cx, *each, accelerators) for each in judged]
        cx.out.document("stragglers", {"target": str(cx.target), "job": job, "groups": documents})
    elif cx.out.format is OutputFormat.NAME:
        late = [group.ranks[group.named] for group in groups if group.named is not None]
        cx.out.names(list(dict.fromkeys(accelerators[rank][0] or str(rank) for rank in late)))
    else:
        for at, (group, act, command, causes) in enumerate(judged):
            if at:
                cx.out.text()
            for line in straggler_text.lines(group, accelerators, act, command, causes):
                cx.out.text(cx.out.wrapped(aimed(cx, line), "  "))
            straggler_text.print_ranks(cx, group, accelerators)


def _of_job(cx: Invocation, job: str | None, since: str | None) -> "tuple[list[GroupLateness], Places]":
    from lumctl.collectives.arrivals import FEWEST_STEPS
    from lumctl.training.stragglers import lateness_of

    if job is None:
        raise UsageError("whose ranks?", hint="name a job of lumctl job list, or give --log FILE")
    inventory, _ = placed_jobs(cx)
    find_job(inventory, job).run_settings()
    begins = None if since is None else beginning(since, time.time())
    if (found := recorded_of(cx, job)) is None:
        raise RefusedError(
            f"nobody has recorded the collectives of job {job} on this machine",
            hint=f"lumctl job run {job} records them, or give --log FILE",
        )
    places = [(name, inventory.accelerators[name].host) for name in found.accelerators]
    steps = [step for step in found.steps if begins is None or step.at >= begins]
    groups = lateness_of(steps, found.clocks)
    if not groups:
        of = f"{len(steps)} of {len(found.steps)}" if since is not None else str(len(steps))
        when = f" are since {since}" if since is not None else ""
        raise RefusedError(
            f"who is late in job {job} is unknown: {of} recorded training steps{when}, {FEWEST_STEPS} are needed",
            hint="leave out --since"
            if len(found.steps) > len(steps)
            else "those of NCCL, for example, are not recorded: see lumctl-job(7)",
        )
    return groups, places


def recorded_of(cx: Invocation, job: str) -> "RecordedCollectives | None":
    """The record of a job's collectives, that its coordinator has or has left; ``None`` if there is none."""
    from lumctl.context.job_files import COORDINATOR, job_folder
    from lumctl.training.collective_record import RecordedCollectives
    from lumctl.training.job_control import ask
    from lumctl.training.job_folder import saved_collectives

    folder = job_folder(cx.inventory.path, str(cx.target), job)
    told = ask(folder / COORDINATOR, "collectives", timeout_s=ASK_WITHIN_S) or saved_collectives(folder)
    return RecordedCollectives.read(told)


def _of_log(cx: Invocation, job: str | None, since: str | None, log: str) -> "tuple[list[GroupLateness], Places]":
    from lumctl.collectives.measured_files import read_arrivals
    from lumctl.training.collective_record import WORLD
    from lumctl.training.stragglers import group_lateness

    if since is not None:
        raise UsageError("--since is for the record of a job: a log has no times of day")
    content = read_limited(log)
    try:
        steps = sorted(read_arrivals(content), key=lambda step: step.step)[WARM_UP:]
        ranks = len(steps[0].entered_s) if steps else 0
        group = group_lateness(WORLD, tuple(range(ranks)), steps, {})
    except UsageError as error:
        raise UsageError(f"{log}: {error.message}", hint=error.hint) from None
    if job is None:
        return [group], [(None, None)] * ranks
    inventory, assignment = placed_jobs(cx)
    find_job(inventory, job)
    placed = assignment[job]
    if len(placed) != ranks:
        raise UsageError(f"{log} has {ranks} ranks, but job {job} has {len(placed)}")
    return [group], [(name, inventory.accelerators[name].host) for name in placed]


Judged = tuple["GroupLateness", "LateRankAction", str, Sequence["Finding"]]
"""A group, what to do about its late rank, the command for that (perhaps none), and the causes that health knows."""


def _order(cx: Invocation, job: str, rank: int | None) -> None:
    """Have the ranks of a running job use a schedule for a late rank, or none."""
    from lumctl.context.job_files import COORDINATOR, job_folder
    from lumctl.training.job_control import ask

    find_job(cx.inventory, job).run_settings()
    folder = job_folder(cx.inventory.path, str(cx.target), job)
    if ask(folder / COORDINATOR, "schedule", timeout_s=ASK_WITHIN_S, rank=rank) is None:
        raise nobody(cx, job)
    what = "no schedule" if rank is None else f"a schedule that works around rank {rank}, from one of the next steps on"
    cx.out.narrate(f"job {job} was told to use {what}")


def _rank_to_work_around(cx: Invocation, job: str) -> int:
    """The late rank for which a schedule is faster than ring."""
    from lumctl.training.collective_record import WORLD

    for group in _of_job(cx, job, None)[0]:
        if group.group == WORLD and group.named is not None and group.schedule is not None:
            if group.schedule.recommended:
                return group.named
            raise RefusedError(
                f"a schedule for rank {group.named} of job {job} is not faster than ring",
                hint=f"see the arithmetic: lumctl job stragglers {job}",
            )
    raise RefusedError(f"no rank of job {job} is late by more than chance", hint=f"see: lumctl job stragglers {job}")


def _judged(cx: Invocation, job: str | None, groups: "Sequence[GroupLateness]", places: Places) -> list[Judged]:
    """What to do about each group. The rack is read only if a rank of a job is late."""
    from lumctl.context import Context

    late = {places[group.ranks[group.named]][0] for group in groups if group.named is not None} - {None}
    seen = None
    told = None if job is None or not late else asked(cx, job, ASK_WITHIN_S)
    if late:
        with Context(cx.inventory, cx.target) as context:
            seen = context.observe()
    return [advised(cx, job, group, places, seen, told) for group in groups]


def advised(
    cx: Invocation,
    job: str | None,
    group: "GroupLateness",
    places: Places,
    seen: "Observation | None",
    told: "Mapping[str, Any] | None",
) -> Judged:
    """What to do about a group; ``told`` is what the job's coordinator says, ``seen`` what was read of the rack."""
    from lumctl.training.collective_record import WORLD
    from lumctl.training.stragglers import LateRankAction, act_of, causes_of

    name = None if group.named is None else places[group.ranks[group.named]][0]
    causes: Sequence[Finding] = ()
    command = ""
    if seen is None or name is None:
        act = act_of(group, (), replaced=False)
    else:
        causes = causes_of(seen, name)
        remedy = next((each for each in seen.remedies if name in each.replace), None)
        act = act_of(group, causes, replaced=remedy is not None)
        command = f"lumctl health explain {name}"
        if act is LateRankAction.SWAP and remedy is not None:
            command = remedy.command
    if act is LateRankAction.SCHEDULE and group.named is not None:
        command = f"lumctl collective plan {len(group.ranks)} --straggler {group.named}"
        if group.group == WORLD and _may_be_ordered(cx, job, told):
            command = f"lumctl job stragglers {job} --use-schedule"
    if told is not None and group.group == WORLD and told.get("scheduled_for") == group.named is not None:
        act, command = LateRankAction.WORKED_AROUND, f"lumctl job stragglers {job} --stop-schedule"
    return group, act, command, causes


def _may_be_ordered(cx: Invocation, job: str | None, told: "Mapping[str, Any] | None") -> bool:
    """Whether an operator may have a job use a schedule; ``told`` is what its coordinator says."""
    if job is None or told is None or told["state"] != "running":
        return False
    return cx.inventory.jobs[job].run_settings().straggler_schedule is StragglerSchedule.ASK
