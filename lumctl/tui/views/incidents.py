"""The dashboard's text of an incident: its members, the advice, and the meaning of its acknowledgement."""

from collections.abc import Iterator

from rich.text import Text

from lumctl.daemon.notifications.message import Case, cases_of
from lumctl.health.remedy import Remedy
from lumctl.health.states import CircuitHealth, ComponentHealth, Finding, State
from lumctl.printable import counted
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, duration
from lumctl.tui.panes.rows import Row
from lumctl.tui.views.details import acknowledgement_lines
from lumctl.tui.views.records import RecordedLook

Health = ComponentHealth | CircuitHealth
_LABEL_WIDTH = 14


def case_of(seen: RecordedLook, key: str) -> Case | None:
    """An incident by its key; ``None`` once it is over."""
    return cases_of(seen.observation.report).get(key)


def members_of(seen: RecordedLook, case: Case) -> list[Health]:
    """The health of everything that an incident affects, by importance; one name may belong to two components."""
    groups, wanted = seen.observation.report.groups().values(), {case.component, *case.members}
    return [health for group in groups for health in group.values() if health.id in wanted]


def remedy_of(seen: RecordedLook, case: Case) -> Remedy | None:
    """What repairs an incident; ``None`` where nothing need be done."""
    return next((remedy for remedy in seen.observation.remedies if remedy.key == case.key), None)


def accelerator_of(seen: RecordedLook, case: Case) -> str | None:
    """The one accelerator whose replacement repairs an incident; ``None`` if there is none, or several."""
    remedy = remedy_of(seen, case)
    if remedy is not None and len(remedy.replace) == 1:
        return remedy.replace[0]
    return case.component if case.component in seen.observation.inventory.accelerators else None


def no_accelerator(seen: RecordedLook, case: Case) -> str:
    """Why no swap is planned for an incident as a whole, and what to do instead."""
    if (remedy := remedy_of(seen, case)) is not None and remedy.words:
        return remedy.words
    count = sum(member in seen.observation.inventory.accelerators for member in case.members)
    if count:
        which = "it" if count == 1 else "one of them"
        return f"{case.component} touches {counted(count, 'accelerators')}: open {which} (enter), then press p"
    return f"no accelerator is the cause of {case.component}'s trouble: what to do stands beside the finding"


def to_acknowledge(seen: RecordedLook, case: Case) -> tuple[str, ...]:
    """The members with faults that are not acknowledged."""
    return tuple(dict.fromkeys(f.component for f in _faults(seen, case) if f.acknowledged is None))


def consequences(seen: RecordedLook, case: Case) -> str:
    """What follows from acknowledging an incident, before a person does it."""
    faults = [finding for finding in _faults(seen, case) if finding.acknowledged is None]
    if len(faults) == 1:
        return (
            f"Say that 1 finding of {case.component} is known? It stays in the lists, with your name and what you "
            "type; until it clears or becomes worse, lumctl check does not count it and nobody is called for it."
        )
    return (
        f"Say that {len(faults)} findings of {case.component} are known? They stay in the lists, with your name and "
        "what you type; until they clear or become worse, lumctl check does not count them and nobody is called for "
        "them."
    )


def _faults(seen: RecordedLook, case: Case) -> Iterator[Finding]:
    return (f for health in members_of(seen, case) for f in health.findings if f.state is not State.OK)


def head_text(seen: RecordedLook, case: Case | None, marks: Marks, now: float) -> Text:
    """Above the members: the cause, since when, who knows of it, and what to do."""
    if case is None:
        return Text("it is over: nothing is found of it any more\n", style=STATE_STYLES[State.OK])
    text = Text()
    text.append(marks.state(case.state), style=STATE_STYLES[case.state])
    text.append(f"  {case.summary}\n", style="bold" if case.state is State.FAILED else "")
    _line(text, "cause", f"{case.component} ({case.rule}), for {duration(now - case.since)}")
    known = list(dict.fromkeys(f.acknowledged for f in case.findings if f.acknowledged))
    known += list(dict.fromkeys(f"in maintenance: {h.maintenance}" for h in members_of(seen, case) if h.maintenance))
    unknown = "to nobody, and it is out of service" if case.out_of_service else "to nobody yet"
    _line(text, "known", "; ".join(known) or unknown)
    for said in acknowledgement_lines(seen.observation, {case.component, *case.members}):
        _line(text, "acknowledged", said)
    accelerator = accelerator_of(seen, case)
    if accelerator is not None and not seen.forbidden and (place := seen.observation.place_of(accelerator)) is not None:
        _line(text, "what to do", f"put a spare in the place of {accelerator} ({place[0]} rank {place[1]}): press p")
    elif (remedy := remedy_of(seen, case)) is not None and remedy.words:
        _line(text, "what to do", remedy.words)
    elif case.findings:
        _line(text, "what to do", case.findings[0].advice)
    return text


def more_text(seen: RecordedLook, case: Case | None, row: Row | None, marks: Marks, now: float) -> Text:
    """Below the members: every finding of the one under the cursor, with evidence and advice."""
    if case is None or row is None:
        return Text()
    text = Text()
    text.append(f"findings of {row.component}\n", style=HEADING_STYLE)
    found = [
        f for health in members_of(seen, case) if f"{kind_of(health)}:{health.id}" == row.key for f in health.findings
    ]
    for finding in found:
        text.append(marks.state(finding.state), style=STATE_STYLES[finding.state])
        text.append(f"  {finding.rule}", style="bold")
        text.append(f"  for {duration(now - finding.since)}\n", style=QUIET_STYLE)
        _line(text, "evidence", finding.evidence)
        _line(text, "what to do", finding.advice)
        if finding.acknowledged:
            _line(text, "acknowledged", finding.acknowledged)
    if not found:
        text.append("  none of its own: it is touched by the cause\n")
    return text


def kind_of(health: Health) -> str:
    """What a component is, in a word."""
    return "circuit" if isinstance(health, CircuitHealth) else health.kind


def _line(text: Text, label: str, value: str) -> None:
    text.append(f"  {label:<{_LABEL_WIDTH}}", style=QUIET_STYLE)
    text.append(f" {value}\n")
