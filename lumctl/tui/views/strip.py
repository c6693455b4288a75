"""The strip below the headline: accelerators by state, spares left, jobs at risk, autopilot, daemon, last change."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from lumctl.health.states import HARMLESS, SEVERITY, State
from lumctl.tui.look.marks import QUIET_STYLE, STATE_STYLES, Marks, age
from lumctl.tui.look.truncation import cut_line
from lumctl.tui.views.job_risks import job_risks, unread_jobs
from lumctl.tui.views.jobs import jobs_of
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import SpareGroup, groups_of

_MOST_GROUPS = 6
"""If there are more groups of spares than this, only their sum is shown."""
_NAMED = 3
"""How many groups without a spare, and how many jobs at risk, are named; the others are counted."""
_AUTOPILOT = {"running": "may act"}
"""Words for states of an autopilot that do not speak for themselves."""
_GAP = "   "


def strip_parts(seen: RecordedLook, marks: Marks, now: float) -> Iterator[Text]:
    """The parts of the strip, each a text without a line break."""
    yield _accelerators(seen, marks)
    yield from _devices(seen, marks)
    yield _spares(seen)
    yield _jobs(seen)
    yield from _autopilot(seen)
    yield _daemon(seen)
    yield _last_change(seen, now)


def strip_lines(seen: RecordedLook, marks: Marks, now: float, width: int) -> list[Text]:
    """The strip in as few lines of this width as possible; a part is never split across lines."""
    lines: list[Text] = []
    for part in strip_parts(seen, marks, now):
        if lines and lines[-1].cell_len + len(_GAP) + part.cell_len <= width:
            lines[-1].append(_GAP).append_text(part)
        else:
            cut_line(part, width, marks)
            lines.append(part)
    return lines


def _labelled(label: str) -> Text:
    return Text(no_wrap=True, end="").append(f"{label} ", QUIET_STYLE)


def _accelerators(seen: RecordedLook, marks: Marks) -> Text:
    numbers = Counter(health.state for health in seen.observation.report.accelerators.values())
    text = _labelled("accelerators")
    for position, state in enumerate(sorted(numbers, key=SEVERITY.index, reverse=True)):
        quiet = state in HARMLESS
        glyph = "" if quiet else f"{marks.glyphs.get(state, '')}"
        # The separator is appended separately, so that it has the quiet style.
        text.append(", " if position else "", style=QUIET_STYLE)
        text.append(f"{glyph}{numbers[state]} {state}", style="" if quiet else STATE_STYLES[state])
    return text


def _devices(seen: RecordedLook, marks: Marks) -> Iterator[Text]:
    """The meshes, switches and other devices that are not ok; nothing if all are ok."""
    known = {name: h.state for name, h in seen.observation.report.devices.items()}
    wrong = {name: state for name, state in known.items() if state not in HARMLESS}
    if not wrong:
        return
    text = _labelled("devices")
    for position, (name, state) in enumerate(list(wrong.items())[:_MOST_GROUPS]):
        text.append(", " if position else "", style=QUIET_STYLE)
        text.append(f"{marks.glyphs.get(state, '')}{name} {state}", style=STATE_STYLES[state])
    if len(wrong) > _MOST_GROUPS:
        text.append(f" and {len(wrong) - _MOST_GROUPS} more", style=QUIET_STYLE)
    yield text


def _spares(seen: RecordedLook) -> Text:
    # A run under way has not yet placed its spare, but it is no longer left for another fault.
    taken = set(seen.moving.values())
    # One that was not read is not left either: nothing shows that it is usable.
    groups = [replace(g, free=tuple(s for s in g.free if s not in taken)) for g in groups_of(seen.observation)]
    text = _labelled("spares left")
    if not groups:
        return text.append("none in the inventory", style=STATE_STYLES[State.DEGRADED])
    if len(groups) > _MOST_GROUPS:
        return _sum_of_spares(text, groups)
    for position, group in enumerate(groups):
        text.append(", " if position else "", style=QUIET_STYLE)
        state = State.OK if group.free else State.UNKNOWN if group.is_unknown else State.DEGRADED
        count = "unknown" if group.is_unknown else len(group.free)
        text.append(f"{group.name} {count}", style="" if group.free else STATE_STYLES[state])
    return text


def _sum_of_spares(text: Text, groups: Sequence[SpareGroup]) -> Text:
    """The spares of all groups together, and the groups that have none or of which that is unknown."""
    unread = [group.name for group in groups if group.is_unknown]
    if len(unread) == len(groups):
        return text.append("unknown", style=STATE_STYLES[State.UNKNOWN])
    text.append(f"{sum(len(group.free) for group in groups)} in {len(groups)} groups")
    without = [group.name for group in groups if not group.free and not group.is_unknown]
    for word, names, state in (("none", without, State.DEGRADED), ("unknown", unread, State.UNKNOWN)):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            text.append(f", {word} in {', '.join(names[:_NAMED])}{more}", style=STATE_STYLES[state])
    return text


def _jobs(seen: RecordedLook) -> Text:
    """The jobs at risk, each with the reason; without any, the number of jobs."""
    text, jobs, unread = _labelled("jobs"), jobs_of(seen), unread_jobs(seen)
    risks = [risk for risk in job_risks(seen) if risk.job not in unread]
    if not jobs:
        return text.append("none")
    if not risks and not unread:
        return text.append(f"{len(jobs)} without risk (all ok, a spare fits each rank)")
    if risks:
        text.append("at risk: ", style=QUIET_STYLE)
    for position, risk in enumerate(risks[:_NAMED]):
        text.append(", " if position else "", style=QUIET_STYLE)
        text.append(risk.job, style=STATE_STYLES[risk.state]).append(f" ({risk.reasons})", style=QUIET_STYLE)
    if len(risks) > _NAMED:
        text.append(f" and {len(risks) - _NAMED} more", style=QUIET_STYLE)
    if unread:
        text.append(f"{', ' if risks else ''}{len(unread)} not read yet", style=STATE_STYLES[State.UNKNOWN])
    return text


def _autopilot(seen: RecordedLook) -> Iterator[Text]:
    states = {str(each["rack"]): _AUTOPILOT.get(each["state"], each["state"]) for each in seen.records.autopilots}
    if not states:
        return
    text = _labelled("autopilot")
    if len(set(states.values())) == 1:
        yield text.append(next(iter(states.values())))
        return
    numbers = Counter(states.values())
    yield text.append(", ".join(f"{count} {state}" for state, count in numbers.items()))


def _daemon(seen: RecordedLook) -> Text:
    if seen.daemon_trouble:
        return _labelled("daemon").append("died", STATE_STYLES[State.DEGRADED])
    words = {True: "watches", False: "none", None: "not read yet"}
    return _labelled("daemon").append(words[seen.records.watched])


def _last_change(seen: RecordedLook, now: float) -> Text:
    text = _labelled("last change")
    if seen.under_way:
        return text.append(f"{seen.under_way[0].id} under way", STATE_STYLES[State.DEGRADED])
    run = next((each for each in seen.records.runs if each.ended_at is not None), None)
    if run is None:
        return text.append("none")
    return text.append(f"{run.id} {run.state} {age(run.ended_at, now)} ago")
