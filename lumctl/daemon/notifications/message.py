"""The messages that receivers get: notifications of cases (beginning, change, end), and autopilot messages."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lumctl.health.states import (
    DEFAULT_GRAVITY,
    HARMLESS,
    SEVERITY,
    Finding,
    Health,
    HealthReport,
    State,
    gravest_first,
    kind_and_id,
)
from lumctl.printable import printable_values

EARLY_WARNINGS = frozenset({"host.missed"})
"""Early-warning rules; most of their findings are harmless."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case to notify. ``key`` is the incident's key, or ``KIND:ID`` if there is no incident.

    ``silent``: the case is acknowledged or in maintenance.
    """

    key: str
    component: str
    rule: str
    state: State
    since: float
    members: tuple[str, ...]
    summary: str
    findings: tuple[Finding, ...]
    silent: bool
    gravity: int = DEFAULT_GRAVITY

    @property
    def out_of_service(self) -> bool:
        """Whether the case is silent because of maintenance, not because all findings are acknowledged."""
        return self.silent and any(finding.acknowledged is None for finding in self.findings)


def cases_of(report: HealthReport) -> dict[str, Case]:
    """The cases of a report, worst first: incidents, and components with serious findings outside of incidents."""
    grouped: dict[str | None, list[tuple[Health, Finding]]] = {incident.id: [] for incident in report.incidents}
    alone: dict[tuple[str, str], list[tuple[Health, Finding]]] = {}
    for health in report.with_findings:
        for finding in health.findings:
            if finding.incident in grouped:
                grouped[finding.incident].append((health, finding))
            elif finding.state not in HARMLESS and finding.rule not in EARLY_WARNINGS:
                alone.setdefault(kind_and_id(health), []).append((health, finding))
    cases = [
        Case(
            incident.id,
            incident.cause,
            incident.rule,
            incident.state,
            incident.since,
            incident.members,
            incident.summary,
            gravest_first(finding for _, finding in grouped[incident.id]),
            silent=_silent(grouped[incident.id]),
            gravity=incident.gravity,
        )
        for incident in report.incidents
        if incident.state not in HARMLESS and incident.rule not in EARLY_WARNINGS
    ]
    cases += [_own(*place, pairs) for place, pairs in alone.items()]
    return {case.key: case for case in gravest_first(cases)}


def states_of(report: HealthReport) -> dict[str, State]:
    """The worst state for each name; a host and its only accelerator may share a name."""
    states: dict[str, State] = {}
    for health in _components(report):
        known = states.get(health.id, health.state)
        states[health.id] = max(known, health.state, key=SEVERITY.index)
    return states


def _own(kind: str, component: str, pairs: list[tuple[Health, Finding]]) -> Case:
    key = f"{kind}:{component}"
    findings = gravest_first(finding for _, finding in pairs)
    worst = findings[0]
    since = min(finding.since for finding in findings)
    summary = f"{component}: {worst.evidence}"
    silent = _silent(pairs)
    return Case(key, component, worst.rule, worst.state, since, (component,), summary, findings, silent, worst.gravity)


def _silent(pairs: list[tuple[Health, Finding]]) -> bool:
    """Whether every finding is acknowledged or belongs to a component that is out of service."""
    return bool(pairs) and all(f.acknowledged is not None or h.state is State.DISABLED for h, f in pairs)


def _components(report: HealthReport) -> Iterator[Health]:
    groups: Iterable[Mapping[str, Health]] = report.groups().values()
    for group in groups:
        yield from group.values()


SCHEMA = "lumctl/notification/v1"
# An incident of a whole rack has thousands, and many receivers limit the size of a message.
MOST_FINDINGS, MOST_MEMBERS = 20, 200


class CaseOccasion(StrEnum):
    """Why receivers are notified of a case."""

    OPENED = "opened"
    WORSENED = "worsened"
    REMINDER = "reminder"
    RESOLVED = "resolved"


class AutopilotOccasion(StrEnum):
    """Why receivers are notified about the autopilot, or the queue of spares."""

    FOUND = "found"
    """A policy with ``how: notify`` matched."""
    PLANNED = "planned"
    ASKED = "approval-wanted"
    ESCALATED = "approval-overdue"
    APPLIED = "applied"
    FAILED = "failed"
    """Nothing was changed: the attempt was refused or rolled back."""
    HALTED = "halted"
    HELD = "held"
    """A policy would have acted, but a limit prevents it."""
    BREAKER_OPENED = "breaker-opened"
    BREAKER_CLOSED = "breaker-closed"
    SPARE = "spare-free"
    """A demand in the queue can be served now."""
    SPARES_LOW = "spares-low"
    """At most one spare of a class is left."""


ESCALATES = frozenset(
    {AutopilotOccasion.ESCALATED, AutopilotOccasion.FAILED, AutopilotOccasion.HALTED, AutopilotOccasion.BREAKER_OPENED}
)
"""Messages that also go to the receiver in the policy: no operator answered, or one is needed."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One message about one case. ``opened_at`` distinguishes the case from an earlier one of the same name."""

    occasion: CaseOccasion
    case: Case
    before: State
    after: State
    at: float
    opened_at: float
    target: str
    rack: str

    @property
    def id(self) -> str:
        """The notification's id. The repetition of a notification has the same id, so that a receiver can ignore it."""
        said = f"{self.case.key}@{self.opened_at:.3f}:{self.occasion}:{self.after}"
        # Without its time, a second reminder would look like a repetition of the first.
        return f"{said}:{self.at:.0f}" if self.occasion is CaseOccasion.REMINDER else said


def document_of(notification: Notification) -> dict[str, Any]:
    """The document that is sent. Fields may be added, never renamed; times are seconds since the epoch."""
    case = notification.case
    return {
        "schema": SCHEMA,
        "id": notification.id,
        "occasion": notification.occasion.value,
        "text": text_of(notification),
        "incident": case.key,
        "component": case.component,
        "rule": case.rule,
        "state_before": notification.before.value,
        "state_after": notification.after.value,
        "since": case.since,
        "at": notification.at,
        "target": notification.target,
        "rack": notification.rack,
        "summary": case.summary,
        "advice": next((finding.advice for finding in case.findings), None),
        "findings": [_finding_document(finding) for finding in case.findings[:MOST_FINDINGS]],
        "members": list(case.members[:MOST_MEMBERS]),
        "member_count": len(case.members),
    }


def text_of(notification: Notification) -> str:
    """One line of text for people; chat rooms and pagers show it unchanged."""
    where = f"{notification.rack} ({notification.target})"
    said = "resolved" if notification.occasion is CaseOccasion.RESOLVED else notification.after.value
    still = "still " if notification.occasion is CaseOccasion.REMINDER else ""
    return f"{where}: {still}{said}: {notification.case.summary}"


def _finding_document(finding: Finding) -> dict[str, Any]:
    return {
        "component": finding.component,
        "rule": finding.rule,
        "case": finding.case,
        "state": finding.state.value,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "since": finding.since,
        "acknowledged": finding.acknowledged,
    }


@dataclass(frozen=True, slots=True)
class Message:
    """A message to receivers. A repetition has the same id; ``about`` is set for a message about a case."""

    id: str
    document: Mapping[str, Any] = field(repr=False)
    about: Notification | None = None

    @property
    def body(self) -> bytes:
        """The document as JSON."""
        return json.dumps(self.document, ensure_ascii=False).encode()


def case_message(notification: Notification) -> Message:
    """The message of a notification."""
    return Message(notification.id, printable_values(document_of(notification)), notification)


def autopilot_message(occasion: str, text: str, data: Mapping[str, Any], *, target: str, at: float) -> Message:
    """A message of the autopilot; ``data`` has details, and ``rack`` if the message concerns one rack."""
    rack = str(data.get("rack", ""))
    name = f"autopilot:{rack}:{occasion}:{at:.3f}"
    told = {"schema": SCHEMA, "id": name, "occasion": occasion, "text": text, "at": at, "target": target, "rack": rack}
    return Message(name, printable_values({**told, "autopilot": dict(data)}))
