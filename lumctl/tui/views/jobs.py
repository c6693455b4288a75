"""The dashboard's text of a job: its state, its standby processes, and its recoveries."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from lumctl.health.states import State, worst
from lumctl.inventory.wiring import is_order
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
"""The appearance of a job's states; other states have none."""


def jobs_of(seen: RecordedLook) -> tuple[str, ...]:
    """The jobs that have ranks somewhere; the store keeps the order of lanes beside them."""
    return tuple(job for job in seen.observation.assignment if not is_order(job))


def told_of(seen: RecordedLook, job: str) -> Told | None:
    """The report of a job's coordinator; ``None`` if lumctl does not run it, or there is no answer."""
    return next((each.document for each in seen.records.working if each.job == job), None)


def state_of(seen: RecordedLook, job: str) -> State:
    """The worst state among the accelerators of a job's ranks."""
    ranks, known = seen.observation.assignment.get(job, ()), seen.observation.report.accelerators
    return worst(tuple(known[rank].state for rank in ranks if rank in known))


def pace(told: Told) -> str:
    """How far a job is and how fast: steps, loss, steps per second."""
    parts = [f"step {told['done']}"]
    if told.get("loss") is not None:
        parts.append(f"loss {told['loss']:.6g}")
    if told.get("rate_steps_per_s") is not None and told["state"] == "running":
        parts.append(f"{told['rate_steps_per_s']:.3g} steps/s")
    return ", ".join(parts)


def head_text(seen: RecordedLook, job: str, marks: Marks) -> Text:
    """Above the ranks: the health of the accelerators, and what the job does."""
    observation, told = seen.observation, told_of(seen, job)
    ranks = observation.assignment.get(job)
    if ranks is None:
        return Text(f"no rank of {job} is placed anywhere\n", style=QUIET_STYLE)
    state = state_of(seen, job)
    text = Text()
    text.append(marks.state(state), style=STATE_STYLES[state])
    hosts = {
        observation.inventory.accelerators[rank].host for rank in ranks if rank in observation.inventory.accelerators
    }
    text.append(f"  {counted(len(ranks), 'ranks')} on {counted(len(hosts), 'hosts')}\n")
    if told is None:
        run = observation.inventory.jobs[job].run if job in observation.inventory.jobs else None
        said = (
            f"lumctl job run {job} is not at work here"
            if run
            else "lumctl does not run it: nothing is known of its steps"
        )
        text.append(f"  {said}\n", style=QUIET_STYLE)
        return text
    text.append(f"  {told['state']}", style=STATE_STYLES.get(GOES.get(told["state"], State.UNKNOWN), ""))
    text.append(f"  {pace(told)}, generation {told['generation']}\n")
    if told.get("why"):
        text.append(f"  {told['why']}\n", style=STATE_STYLES[State.DEGRADED])
    ready = [f"{each['accelerator']}" for each in told["ready"]]
    text.append(f"  ready to take a rank over: {', '.join(ready) or 'nobody'}\n", style=QUIET_STYLE)
    return text


def recoveries_text(told: Told | None, now: float, marks: Marks) -> Text:
    """Every recovery, the newest first and with its moments on an axis of time."""
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
    """One line for each moment in the order of time; the axis is logarithmic, as in ``demo recover``."""
    known = sorted((seconds, name) for name, seconds in moments.items() if seconds is not None)
    if not known:
        return
    scale = scale_for(known[-1][0])
    for seconds, name in known:
        filled = max(1, round(_BAR * scale.share(seconds)))
        bar = ("#" if marks.ascii_only else "━") * filled
        text.append(f"    {TITLES.get(name, name):<28} {in_words(seconds):>8}  ")
        text.append(f"{bar}\n", style=STATE_STYLES[State.OK])
