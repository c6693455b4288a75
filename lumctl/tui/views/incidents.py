"""The dashboard's text of an incident: its members, the advice, and the consequences of an acknowledgement."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

from lumctl.daemon.notifications.message import Case, cases_of
from lumctl.health.observation import Observation
from lumctl.health.remedy import Remedy
from lumctl.health.states import CircuitHealth, Finding, Health, State
from lumctl.printable import counted, ranks_text
from lumctl.tui.look.marks import HEADING_STYLE, STATE_STYLES, Marks, duration
from lumctl.tui.views.detail_text import add_fact, add_finding
from lumctl.tui.views.details import acknowledgement_lines
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import checked_obstacle, swap_obstacle

if TYPE_CHECKING:
    from lumctl.tui.panes.rows import Row

_LABEL_WIDTH = 14
_FIND_OUT = {
    "no-session": "ping it, or open its console through its BMC (s cannot work without SSH); ",
    "no-exporter": "ping it, or open a shell on it (s) or its console through its BMC; ",
}
"""How to find out whether a host that does not answer is down, by the case of its finding."""
_NAMED = 3
"""The maximum number of accelerators that a line names; it counts the others."""


def case_of(seen: RecordedLook, key: str) -> Case | None:
    """An incident by its key; ``None`` once it has ended."""
    return cases_of(seen.observation.report).get(key)


def members_of(seen: RecordedLook, case: Case) -> list[Health]:
    """The health of the cause and all members; a name may belong to two components of different kinds."""
    groups, wanted = seen.observation.report.groups().values(), {case.component, *case.members}
    return [health for group in groups for health in group.values() if health.id in wanted]


def remedy_of(seen: RecordedLook, case: Case) -> Remedy | None:
    """The repair of an incident; ``None`` if there is none."""
    return next((remedy for remedy in seen.observation.remedies if remedy.key == case.key), None)


def accelerators_of(seen: RecordedLook, case: Case) -> tuple[str, ...]:
    """The accelerators whose replacement repairs an incident; empty if there are none or it is uncertain which."""
    remedy = remedy_of(seen, case)
    if remedy is not None and remedy.replace and (remedy.certain or len(remedy.replace) == 1):
        return remedy.replace
    return (case.component,) if case.component in seen.observation.inventory.accelerators else ()


def condition_of(case: Case) -> str:
    """When to replace accelerators, in words before the advice; empty if their fault is certain.

    A host that does not answer may have lost only its management network.
    """
    return "if really down, " if case.rule == "host.unreachable" else ""


def before_a_swap(case: Case) -> str:
    """What to find out before a swap, in words before the advice; empty if the fault is certain."""
    condition = condition_of(case)
    told = (each.case for each in case.findings if each.rule == case.rule and each.component == case.component)
    return f"{_FIND_OUT.get(next(told, ''), '')}{condition}" if condition else ""


def put_spares(accelerators: Sequence[str]) -> str:
    """What a swap of these accelerators does, in words."""
    what = "a spare" if len(accelerators) == 1 else "spares"
    return f"replace {named(accelerators)} by {what}"


def instead_of_swap(obstacle: str, remedy: Remedy | None) -> str:
    """Why no swap can be applied now, and the manual repair, in words."""
    if remedy is not None and not remedy.replace and remedy.words:
        return remedy.words  # it says that no spare is left
    return "; ".join(filter(None, (obstacle, remedy.without_swap if remedy is not None else "")))


def named(accelerators: Iterable[str]) -> str:
    """The names of accelerators; if there are many, the first names and the number of others."""
    names = list(accelerators)
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def replaced_now(seen: RecordedLook, accelerators: Sequence[str]) -> str:
    """That runs in progress replace all of these accelerators, in words; empty if they do not."""
    if not accelerators or not set(accelerators) <= set(seen.moving):
        return ""
    return f"{seen.under_way[0].id} replaces {named(accelerators)} now"


def no_accelerator(seen: RecordedLook, case: Case) -> str:
    """Why no swap is planned for an incident as a whole, and what to do instead."""
    if (remedy := remedy_of(seen, case)) is not None and remedy.words:
        return remedy.words
    count = sum(member in seen.observation.inventory.accelerators for member in case.members)
    if count:
        which = "it" if count == 1 else "one of them"
        return f"{case.component} affects {counted(count, 'accelerators')}: open {which} (enter), then press p"
    return f"no accelerator causes the fault of {case.component}: see the advice next to the finding"


def to_acknowledge(seen: RecordedLook, case: Case) -> tuple[str, ...]:
    """The members with faults that are not acknowledged."""
    return tuple(dict.fromkeys(f.component for f in _faults(seen, case) if f.acknowledged is None))


def consequences(seen: RecordedLook, case: Case) -> str:
    """The question that asks to acknowledge an incident, with the consequences."""
    # As ``to_acknowledge`` selects them, so that the question counts what the answer covers.
    faults = [finding for finding in _faults(seen, case) if finding.acknowledged is None]
    if len(faults) == 1:
        return (
            f"Acknowledge 1 finding of {case.component}? It stays in the lists, with your name and what you type; "
            "until it clears or becomes worse, lumctl check does not count it and no one is notified of it."
        )
    return (
        f"Acknowledge {len(faults)} findings of {case.component}? They stay in the lists, with your name and what you "
        "type; until they clear or become worse, lumctl check does not count them and no one is notified of them."
    )


def _faults(seen: RecordedLook, case: Case) -> Iterator[Finding]:
    return (f for health in members_of(seen, case) for f in health.findings if f.state is not State.OK)


def head_text(seen: RecordedLook, case: Case | None, marks: Marks, now: float) -> Text:
    """The text above the members: the cause, its duration, acknowledgements, and what to do."""
    if case is None:
        return Text("it has ended: it has no findings any more\n", style=STATE_STYLES[State.OK])
    text = Text()
    text.append(marks.state(case.state), style=STATE_STYLES[case.state])
    text.append(f"  {case.summary}\n", style="bold" if case.state is State.FAILED else "")
    _line(text, "cause", f"{case.component} ({case.rule}), for {duration(now - case.since)}")
    known = list(dict.fromkeys(f.acknowledged for f in case.findings if f.acknowledged))
    known += list(dict.fromkeys(f"in maintenance: {h.maintenance}" for h in members_of(seen, case) if h.maintenance))
    unknown = "no one has noted it" + (", and it is out of service" if case.out_of_service else " yet")
    _line(text, "known", "; ".join(known) or unknown)
    for said in acknowledgement_lines(seen.observation, {case.component, *case.members}):
        _line(text, "acknowledged", said)
    accelerators, remedy = accelerators_of(seen, case), remedy_of(seen, case)
    place = seen.observation.place_of(accelerators[0]) if accelerators else None
    if run := replaced_now(seen, accelerators):
        _line(text, "what to do", f"wait for the end of the run: {run}")
    elif place is not None and not seen.forbidden and (obstacle := swap_obstacle(seen, accelerators)):
        freed_by = seen.freed_by.get(remedy.key, "") if remedy is not None else ""
        obstacle = checked_obstacle(seen, accelerators) or obstacle  # with what to do about it
        both = filter(None, (instead_of_swap(obstacle, remedy), freed_by))
        _line(text, "what to do", seen.aimed("; ".join(both)))
    elif place is not None and not seen.forbidden:
        where = f" ({place[0]} rank {place[1]})" if len(accelerators) == 1 else ""
        first = f"{remedy.by_hand}; if that does not help: " if remedy is not None and remedy.hand_first else ""
        first = first or before_a_swap(case)
        _line(text, "what to do", f"{first}{put_spares(accelerators)}{where}: press p")
    elif remedy is not None and remedy.words:
        _line(text, "what to do", seen.aimed(remedy.words))
    elif case.findings:
        _line(text, "what to do", seen.aimed(case.findings[0].advice))
    if remedy is not None and remedy.drain:
        ranks = ranks_text(place for name in remedy.on_it if (place := seen.observation.place_of(name)))
        how = "" if seen.forbidden else ": d on its line in the table of the racks (t) plans to move them"
        _line(text, "to drain", f"{ranks} run{'s' if len(remedy.on_it) == 1 else ''} on {remedy.drain}{how}")
    return text


def more_text(seen: RecordedLook, case: Case | None, row: "Row | None", marks: Marks, now: float) -> Text:
    """The text below the members: all findings of the member under the cursor, with evidence and advice."""
    if case is None or row is None:
        return Text()
    text = Text()
    text.append(f"findings of {row.component}\n", style=HEADING_STYLE)
    found = [
        f for health in members_of(seen, case) if f"{kind_of(health)}:{health.id}" == row.key for f in health.findings
    ]
    for finding in found:
        add_finding(text, replace(finding, advice=seen.aimed(finding.advice)), marks, now, _LABEL_WIDTH)
    if not found:
        text.append("  none of its own: the cause affects it\n")
    return text


def kind_of(health: Health) -> str:
    """The kind of a component, such as ``circuit``."""
    return "circuit" if isinstance(health, CircuitHealth) else health.kind


def _line(text: Text, label: str, value: str) -> None:
    add_fact(text, label, value, _LABEL_WIDTH)


class NewIncidents:
    """Finds the incidents that are new since the last observation, for the bell.

    Incidents that existed before the first display, or that are acknowledged, are not new.
    """

    def __init__(self) -> None:
        self._known: frozenset[str] | None = None

    def begun(self, observation: Observation) -> tuple[str, ...]:
        """The keys of the incidents that have begun since the last call."""
        loud = frozenset(key for key, case in cases_of(observation.report).items() if not case.silent)
        # Until every host has answered once, what is found was there before.
        new = () if self._known is None else tuple(sorted(loud - self._known))
        self._known = None if self._known is None and observation.awaited else loud
        return new
