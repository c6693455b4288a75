"""The timeline of an incident: fault, detection, plan, each step, proof, and the job's next training step; pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from lumctl.daemon.notifications.message import Case
from lumctl.health.states import State
from lumctl.store import StoredRun
from lumctl.tui.look.marks import QUIET_STYLE, STATE_STYLES, Marks, clock
from lumctl.tui.views.incidents import case_of
from lumctl.tui.views.records import RecordedLook

BEFORE_S = 120.0
"""Changes of health up to this long before the incident belong to it."""
_OFFSET, _BAR = 10, 24


@dataclass(frozen=True, slots=True)
class TimelineMoment:
    """An event: its time (seconds since the epoch), its text, and its state."""

    at: float
    text: str
    state: State = State.OK


def moments_of(seen: RecordedLook, key: str) -> tuple[TimelineMoment, ...]:
    """All known events of an incident in order of time; ``key`` is ``KIND:COMPONENT``. The incident may be over."""
    case, component = case_of(seen, key), key.partition(":")[2]
    names = _touched(seen, case, component)
    runs = [run for run in seen.records.runs if _replaced(run) & names]
    since = case.since if case is not None else min((run.started_at for run in runs), default=seen.observation.at)
    if runs:
        since = min(since, *(run.started_at for run in runs))
    found = [*_health(seen, names, since), *_asked(seen, names)]
    if case is not None:
        found.append(TimelineMoment(case.since, f"detected: {case.summary}", case.state))
    for run in runs:
        found += _of_run(seen, run)
        found += _next_steps(seen, run)
    # A line of the log that names both a component and its run was found twice.
    return tuple(sorted(dict.fromkeys(found), key=lambda moment: moment.at))


def _touched(seen: RecordedLook, case: Case | None, component: str) -> frozenset[str]:
    """The cause, and the accelerators that a swap for the incident would replace."""
    inventory = seen.observation.inventory
    names = {component}
    if component in inventory.hosts:
        names |= {each.id for each in inventory.accelerators_of(component)}
    if (lane := inventory.transponders.get(component)) is not None:
        names.add(lane.accelerator)
    if case is not None:
        for remedy in seen.observation.remedies:
            names |= set(remedy.replace) if remedy.key == case.key else set()
    return frozenset(names)


def _replaced(run: StoredRun) -> set[str]:
    return {str(each["failed"]) for each in run.plan.get("replacements", ()) if "failed" in each}


def _health(seen: RecordedLook, names: frozenset[str], since: float) -> Iterator[TimelineMoment]:
    """Changes of health of these components, beginning shortly before the incident."""
    for line in seen.records.log:
        if line.component in names and line.at >= since - BEFORE_S:
            yield TimelineMoment(line.at, line.text, line.state or State.OK)


def _asked(seen: RecordedLook, names: frozenset[str]) -> Iterator[TimelineMoment]:
    for autopilot in seen.records.autopilots:
        for decision in autopilot["decisions"]:
            if str(decision.get("key", "")).partition(":")[2] in names:
                policy = decision.get("policy")
                said = f"the autopilot decided: {decision.get('act')}" + (f" by {policy}" if policy else "")
                yield TimelineMoment(float(decision["at"]), f"{said}, {decision.get('because')}")


def _of_run(seen: RecordedLook, run: StoredRun) -> Iterator[TimelineMoment]:
    """The events of a run: its plan, then its lines in the log, or only its start and end if there are none."""
    if (made := run.plan.get("created_at")) is not None:
        yield TimelineMoment(float(made), f"planned: {run.title}")
    known = [line for line in seen.records.log if line.run == run.id and line.rack == run.rack]
    for line in known:
        yield TimelineMoment(line.at, line.text, line.state or State.OK)
    if not known:
        yield TimelineMoment(run.started_at, f"{run.id} begins: {run.title}")
        if run.ended_at is not None:
            yield TimelineMoment(
                run.ended_at, f"{run.id} ends: {run.state}", State.OK if run.state == "done" else State.FAILED
            )


def _next_steps(seen: RecordedLook, run: StoredRun) -> Iterator[TimelineMoment]:
    """The first training step after a run, as the job's coordinator reports it."""
    for each in seen.records.working:
        for recovery in each.document["recoveries"] if each.document is not None else ():
            seconds = recovery.get("failure_to_step_s")
            if recovery.get("run") == run.id and seconds is not None:
                yield TimelineMoment(float(recovery["at"]) + seconds, f"{each.job} does its next training step")


def timeline_lines(seen: RecordedLook, key: str, marks: Marks) -> Iterator[Text]:
    """A line for each event: its time of day, the time since the first event, and a bar for that time."""
    moments = moments_of(seen, key)
    if not moments:
        yield Text("nothing is recorded about it", style=QUIET_STYLE)
        return
    first, last = moments[0].at, moments[-1].at
    for moment in moments:
        share = (moment.at - first) / (last - first) if last > first else 0.0
        filled = round(share * (_BAR - 1))
        dash, point = ("-", "o") if marks.ascii_only else ("─", "●")
        text = Text().append(f"{clock(moment.at, seen.observation.at):<11} ", QUIET_STYLE)
        text.append(f"{_offset(moment.at - first):>{_OFFSET}}  ")
        text.append(dash * filled, style=QUIET_STYLE)
        text.append(f"{point:<{_BAR - filled}} ", style=STATE_STYLES[moment.state])
        yield text.append(moment.text, style="" if moment.state is State.OK else STATE_STYLES[moment.state])
    if not any("training step" in moment.text for moment in moments):
        yield Text(
            "no later training step is known: lumctl does not run the job, or the job has not done one",
            style=QUIET_STYLE,
        )


def _offset(seconds: float) -> str:
    if seconds < 100:  # noqa: PLR2004 - hundredths, as of steps, below a minute and a half
        return f"+{seconds:.2f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02}:{rest:02}" if hours else f"+{minutes}:{rest:02} min"
