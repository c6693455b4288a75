"""What a receiver is told: one document for the beginning, the worsening and the end of a case."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lumctl.daemon.cases import Case
from lumctl.health.states import Finding, State

SCHEMA = "lumctl/notification/v1"
MOST_FINDINGS, MOST_MEMBERS = 20, 200


class Occasion(StrEnum):
    """Why a receiver is told."""

    OPENED = "opened"
    WORSENED = "worsened"
    REMINDER = "reminder"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Notification:
    """One message about one case. ``opened_at`` tells this case from an earlier one of the same name."""

    occasion: Occasion
    case: Case
    before: State
    after: State
    at: float
    opened_at: float
    target: str
    rack: str

    @property
    def id(self) -> str:
        """The same for the same news, so that a receiver can tell what it has been told before."""
        said = f"{self.case.key}@{self.opened_at:.3f}:{self.occasion}:{self.after}"
        return f"{said}:{self.at:.0f}" if self.occasion is Occasion.REMINDER else said


def document_of(notification: Notification) -> dict[str, Any]:
    """The notification as it is posted. Fields may be added, never renamed; times are seconds since the epoch."""
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
    """One line for people: chat rooms and pagers show it as it stands."""
    where = f"{notification.rack} ({notification.target})"
    said = "resolved" if notification.occasion is Occasion.RESOLVED else notification.after.value
    still = "still " if notification.occasion is Occasion.REMINDER else ""
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
