"""How receivers hear of the autopilot, and how its decisions are written down."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol

from lumctl.daemon.autopilot.conditions import Condition
from lumctl.daemon.autopilot.decide import Decision
from lumctl.inventory.folded_names import fold
from lumctl.inventory.policies import Policy


class Occasion(StrEnum):
    """Why receivers are told."""

    FOUND = "found"
    """By a policy that notifies."""
    PLANNED = "planned"
    ASKED = "approval-wanted"
    ESCALATED = "approval-overdue"
    APPLIED = "applied"
    FAILED = "failed"
    """Nothing is changed: what was tried was refused or taken back."""
    HALTED = "halted"
    HELD = "held"
    """Something would have been done, but a limit stands in the way."""
    BREAKER_OPENED = "breaker-opened"
    BREAKER_CLOSED = "breaker-closed"


ESCALATES = frozenset({Occasion.ESCALATED, Occasion.FAILED, Occasion.HALTED, Occasion.BREAKER_OPENED})
"""Of what the receiver is told as well that a policy names: nobody has answered, or it cannot be mended unasked."""


class Tell(Protocol):
    """Hands a message to the receivers: ``text`` is a line for people, ``data`` has ``rack`` and what else there is.

    ``data`` may name under ``hook`` the receiver that is told as well of what escalates.
    """

    def __call__(self, occasion: str, text: str, data: Mapping[str, Any], /) -> None:
        """Tell; must neither wait for a receiver nor raise."""


def silent(_occasion: str, _text: str, _data: Mapping[str, Any]) -> None:
    """For where there is no receiver."""


def condition_document(condition: Condition) -> dict[str, Any]:
    """One condition as data."""
    return {"name": condition.name, "holds": condition.holds, "told": condition.told, "until": condition.until}


def decision_document(decision: Decision, *, briefly: bool = False) -> dict[str, Any]:
    """A decision as data; ``briefly`` without the conditions that hold, as the journal keeps it."""
    trouble, finding = decision.trouble, decision.finding
    checked = [c for c in decision.conditions if not (briefly and c.holds)]
    return {
        "key": trouble.key,
        "kind": trouble.kind.value,
        "component": trouble.component,
        "rack": trouble.rack,
        "act": decision.act.value,
        "policy": decision.policy.name if decision.policy else None,
        "how": decision.policy.how.value if decision.policy else None,
        "reason": decision.reason,
        "because": decision.because,
        "finding": {
            "component": finding.component,
            "rule": finding.rule,
            "case": finding.case,
            "state": finding.state.value,
            "since": finding.since,
            "evidence": finding.evidence,
        },
        "accelerators": [a for accelerators in trouble.jobs.values() for a in accelerators],
        "conditions": [condition_document(condition) for condition in checked],
        "plan": decision.plan,
        "until": decision.until,
        "signature": list(decision.signature),
    }


def told_alike(decisions: Iterable[Decision]) -> Iterator[str]:
    """Decisions by a policy as lines for people: of a storm one line for each reason, not one for each component."""
    alike: dict[str, list[str]] = {}
    for decision in decisions:
        if decision.policy is not None:
            what = f"{decision.act} ({decision.policy.name}): {decision.because}"
            alike.setdefault(what, []).append(decision.trouble.component)
    for what, components in alike.items():
        yield f"{', '.join(fold(components))}: {what}"


def told_of(policy: Policy | None, decision: Decision, **more: Any) -> dict[str, Any]:
    """What goes along with a message about a decision."""
    hook = policy.escalation.hook if policy is not None else None
    return {"rack": decision.trouble.rack, "hook": hook, "decision": decision_document(decision, briefly=True), **more}
