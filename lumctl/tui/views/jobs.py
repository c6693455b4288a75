"""The dashboard's text of a job: its state, its standby processes, and its recoveries."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from lumctl.health.observation import job_members, rolled_up
from lumctl.health.states import HARMLESS, SEVERITY, State
from lumctl.inventory.slice_records import is_job
from lumctl.printable import counted
from lumctl.training.timeline import TITLES, in_words, scale_for
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, clock
from lumctl.tui.views.records import RecordedLook

Told = Mapping[str, Any]
"""The report of a job's coordinator: the document of ``job status``."""

_BAR = 24
GOES: Mapping[str, State] = {
    "running": State.OK,
    "finishing": State.OK,
    "recovering": State.DEGRADED,
    "paused": State.DEGRADED,
    "left": State.FAILED,
}
"""The health state that represents a job's state; other job states have none."""


def jobs_of(seen: RecordedLook) -> tuple[str, ...]:
    """The jobs of the assignment, without its other records."""
    return tuple(job for job in seen.observation.assignment if is_job(job))


def told_of(seen: RecordedLook, job: str) -> Told | None:
    """The report of a job's coordinator; ``None`` if lumctl does not run the job or the coordinator does not answer."""
    return next((each.document for each in seen.records.working if each.job == job), None)


def state_of(seen: RecordedLook, job: str) -> State:
    """The worst state of the components on which a job runs and of its coordinator's report."""
    told = told_of(seen, job)
    reported = (GOES[told["state"]],) if told and told["state"] in GOES else ()
    return rolled_up((*(health.state for health in job_members(seen.observation, job)), *reported))


def why_of(seen: RecordedLook, job: str) -> str:
    """Why a job is not ok: its coordinator's reason, else its worst component; empty if it is ok."""
    told, observation = told_of(seen, job), seen.observation
    if told and told.get("why"):
        return str(told["why"])
    ill = [health for health in job_members(observation, job) if health.state not in HARMLESS]
    if not ill:
        return ""
    # At equal severity, prefer components with findings to those that were not read, and ranks to circuits.
    named = max(ill, key=lambda health: (SEVERITY.index(health.state), bool(health.findings)))
    place = observation.place_of(named.id)
    where = f"rank {place[1]} {named.id}" if place else named.id
    why = named.findings[0].evidence if named.findings else f"is {named.state}"
    others = sum(health.state is named.state for health in ill) - 1
    return f"{where}: {why}" + (f", and {others} more {named.state}" if others else "")


def pace(told: Told) -> str:
    """The progress and speed of a job: steps, loss, steps per second."""
    parts = [f"step {told['done']}"]
    if told.get("loss") is not None:
        parts.append(f"loss {told['loss']:.6g}")
    if told.get("rate_steps_per_s") is not None and told["state"] == "running":
        parts.append(f"{told['rate_steps_per_s']:.3g} steps/s")
    return ", ".join(parts)


def head_text(seen: RecordedLook, job: str, marks: Marks) -> Text:
    """The text above the ranks: the health of the accelerators, and the job's state."""
    observation, told = seen.observation, told_of(seen, job)
    ranks = observation.assignment.get(job)
    if ranks is None:
        return Text(f"no rank of {job} is placed on an accelerator\n", style=QUIET_STYLE)
    state = state_of(seen, job)
    text = Text()
    text.append(marks.state(state), style=STATE_STYLES[state])
    hosts = {
        observation.inventory.accelerators[rank].host for rank in ranks if rank in observation.inventory.accelerators
    }
    text.append(f"  {counted(len(ranks), 'ranks')} on {counted(len(hosts), 'hosts')}\n")
    if why := why_of(seen, job):
        text.append(f"  {why}\n", style=STATE_STYLES[state])
    if told is None:
        run = observation.inventory.jobs[job].run if job in observation.inventory.jobs else None
        said = f"no lumctl job run {job} is running here" if run else "lumctl does not run it: its steps are unknown"
        text.append(f"  {said}\n", style=QUIET_STYLE)
        return text
    text.append(f"  {told['state']}", style=STATE_STYLES.get(GOES.get(told["state"], State.UNKNOWN), ""))
    text.append(f"  {pace(told)}, generation {told['generation']}\n")
    ready = [f"{each['accelerator']}" for each in told["ready"]]
    text.append(f"  ready to replace a rank: {', '.join(ready) or 'none'}\n", style=QUIET_STYLE)
    return text


def recoveries_text(told: Told | None, now: float, marks: Marks) -> Text:
    """All recoveries, newest first; the newest one with its moments on a time axis."""
    text = Text()
    if told is None or not told["recoveries"]:
        return text
    text.append("recoveries\n", style=HEADING_STYLE)
    for number, recovery in enumerate(reversed(told["recoveries"])):
        under_way = number == 0 and told["state"] == "recovering"
        _recovery(text, recovery, now, under_way=under_way)
        if number == 0:
            _moments(text, recovery["marks"], marks)
    return text


def _recovery(text: Text, recovery: Told, now: float, *, under_way: bool) -> None:
    ways = [f"{failed} replaced by {spare}" for failed, spare in recovery["replaced_by"].items()]
    ways += [f"continued without rank {rank}" for rank in recovery["without"]]
    step = recovery["failure_to_step_s"]
    ended = "under way" if under_way else "no step followed" if step is None else f"next step after {in_words(step)}"
    how = ", ".join(ways) or ("in place" if step is not None else ", ".join(recovery["failed"]))
    text.append(f"  {clock(recovery['at'], now)}  {recovery['cause']}: {how}; ")
    text.append(ended, style=STATE_STYLES[State.OK if step is not None else State.DEGRADED])
    text.append(f"  {recovery['run']}\n" if recovery.get("run") else "\n", style=QUIET_STYLE)


def _moments(text: Text, moments: Mapping[str, float | None], marks: Marks) -> None:
    """Append one line for each moment in order of time; the axis is logarithmic, as in ``demo recover``."""
    known = sorted((seconds, name) for name, seconds in moments.items() if seconds is not None)
    if not known:
        return
    scale = scale_for(known[-1][0])
    for seconds, name in known:
        filled = max(1, round(_BAR * scale.share(seconds)))
        bar = ("#" if marks.ascii_only else "━") * filled
        text.append(f"    {TITLES.get(name, name):<28} {in_words(seconds):>8}  ")
        text.append(f"{bar}\n", style=STATE_STYLES[State.OK])
