"""An autopilot, its policies and its decisions as text, from the documents of ``autopilot status``; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from lumctl.daemon.autopilot.policy import hours_text
from lumctl.health.states import State
from lumctl.inventory.policies import How, Policy
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, duration

STATES: Mapping[str, State] = {
    "running": State.OK,
    "ready": State.OK,
    "off": State.DISABLED,
    "stopped": State.DEGRADED,
    "halted": State.FAILED,
}
"""The health state that represents an autopilot's state. ``halted``: it stopped itself and needs an operator."""
MEANINGS: Mapping[str, str] = {
    "running": "it does what its policies allow",
    "ready": "it is not stopped, but no daemon answers here: a daemon elsewhere would act",
    "off": "there are no policies: nothing is ever done automatically",
    "stopped": "it was stopped by an operator: nothing is done automatically",
    "halted": "it has stopped itself: it does not know how one of its runs ended",
}
_LABEL = 16


def autopilot_text(autopilot: Mapping[str, Any], marks: Marks, now: float) -> Text:
    """A rack's autopilot: its state and the reason, each policy, waiting plans, and the last decisions."""
    text, state = Text(), str(autopilot["state"])
    shown = STATES.get(state, State.UNKNOWN)
    text.append(f"autopilot of {autopilot['rack']}\n", style=HEADING_STYLE)
    text.append(f"{marks.glyphs.get(shown, '')} {state}", style=STATE_STYLES[shown])
    text.append(f": {MEANINGS.get(state, '')}\n")
    if autopilot.get("why"):
        fact(text, "why", str(autopilot["why"]))
    fact(text, "decided last", _ago(autopilot.get("last_decided_at"), now))
    for told in autopilot["policies"]:
        _standing(text, told, marks, now)
    _waiting(text, autopilot["waiting"], marks, now)
    _decisions(text, "decisions, newest first", autopilot["decisions"], now)
    if state == "off":
        text.append("\nFor example policies: lumctl-inventory(5).\n", style=QUIET_STYLE)
    return text


def policy_text(autopilot: Mapping[str, Any], policy: Policy, marks: Marks, now: float) -> Text:
    """One policy: its scope, its actions, its limits, its breaker, and its decisions."""
    text = Text()
    text.append(f"policy {policy.name} in {autopilot['rack']}\n", style=HEADING_STYLE)
    for label, value in _written(policy):
        fact(text, label, value)
    for told in autopilot["policies"]:
        if told["policy"] == policy.name:
            _standing(text, told, marks, now)
    _waiting(text, [asked for asked in autopilot["waiting"] if asked["policy"] == policy.name], marks, now)
    mine = [decision for decision in autopilot["decisions"] if decision.get("policy") == policy.name]
    _decisions(text, "its decisions, newest first", mine, now)
    return text


def decision_text(
    decision: Mapping[str, Any], again: Sequence[Mapping[str, Any]] | None, trouble: str, marks: Marks, now: float
) -> Text:
    """One decision with its conditions; ``again`` is the decision that would be made now, ``None`` while unknown.

    ``trouble`` is why it is unknown.
    """
    text, finding = Text(), decision.get("finding") or {}
    text.append(f"{decision.get('component', decision['key'])}\n", style=HEADING_STYLE)
    fact(text, "decided", f"{_ago(decision.get('at'), now)}, by policy {decision.get('policy') or 'none'}")
    _decided(text, decision)
    if finding:
        fact(text, "finding", f"{finding['rule']} ({finding['state']}), since {_ago(finding.get('since'), now)}")
        fact(text, "evidence", str(finding["evidence"]))
    if decision.get("accelerators"):
        fact(text, "would replace", ", ".join(decision["accelerators"]))
    text.append("\nconditions that did not hold then\n", style=HEADING_STYLE)
    _conditions(text, decision.get("conditions") or (), marks, now, nothing="every condition held")
    text.append("\nas it would be decided now (nothing is done)\n", style=HEADING_STYLE)
    if again is None:
        text.append(f"  {trouble or 'being read'}\n", style=QUIET_STYLE)
        return text
    same = [each for each in again if each["key"] == decision["key"]]
    if not same:
        text.append("  it has no fault any more\n")
    for each in same:
        fact(text, "by policy", str(each.get("policy") or "none"))
        _decided(text, each, "would do")
        _conditions(text, each.get("conditions") or (), marks, now, nothing="no policy applies to it")
    return text


def fact(text: Text, label: str, value: str) -> None:
    """One line of label and value."""
    text.append(f"  {label:<{_LABEL}} ", style=QUIET_STYLE)
    text.append(f"{value}\n")


def _decided(text: Text, decision: Mapping[str, Any], label: str = "did") -> None:
    fact(text, label, f"{decision.get('act', '')}: {decision.get('because', '')}")
    if decision.get("plan"):
        fact(text, "plan", str(decision["plan"]))


def _conditions(text: Text, conditions: Iterable[Mapping[str, Any]], marks: Marks, now: float, *, nothing: str) -> None:
    """Append a line for each condition: whether it holds, its name, what was found, and when that may change."""
    found = list(conditions)
    if not found:
        text.append(f"  {nothing}\n", style=QUIET_STYLE)
    for each in found:
        state = State.OK if each["holds"] else State.FAILED
        text.append(f"  {marks.glyphs.get(state, '')} {'yes' if each['holds'] else 'NO':<4}", style=STATE_STYLES[state])
        text.append(f"{each['name']:<{_LABEL}} ", style="bold")
        until = each.get("until")
        text.append(each["told"] + (f"; may change in {duration(until - now)}" if until and until > now else "") + "\n")


def _standing(text: Text, told: Mapping[str, Any], marks: Marks, now: float) -> None:
    """Append a policy's present state: its breaker, and the used part of its limits."""
    text.append(f"\npolicy {told['policy']}: {told['how']}\n", style=HEADING_STYLE)
    if told["breaker"]:
        state = State.DEGRADED if told["breaker"] == "open" else State.OK
        text.append(f"  {'breaker':<{_LABEL}} ", style=QUIET_STYLE)
        text.append(f"{marks.glyphs.get(state, '')} {told['breaker']}", style=STATE_STYLES[state])
        since = f" for {duration(now - told['breaker_since'])}" if told["breaker_since"] else ""
        text.append(f"{since}{': ' if told['breaker_why'] else ''}{told['breaker_why'] or ''}\n")
    for word in ("hour", "day"):
        used, most = told[f"swaps_{word}"], told[f"most_{word}"]
        full = " (limit reached for now)" if used >= most else ""
        fact(text, f"swaps this {word}", f"{used} of {most}{full}")


def _waiting(text: Text, waiting: Sequence[Mapping[str, Any]], marks: Marks, now: float) -> None:
    if waiting:
        text.append("\nwaits for approval\n", style=HEADING_STYLE)
    for asked in waiting:
        state = State.DEGRADED
        text.append(f"  {marks.glyphs.get(state, '')} {asked['plan']}", style=STATE_STYLES[state])
        text.append(f": {asked['title']}\n")
        fact(text, "  asked", f"{_ago(asked['asked_at'], now)} by {asked['made_by'] or 'unknown'}")
        fact(text, "  lapses in", duration(asked["expires_at"] - now))
    if waiting:
        text.append("  Open it from its own line among the policies (8): there y approves it and n rejects it.\n")


def _decisions(text: Text, heading: str, decisions: Sequence[Mapping[str, Any]], now: float) -> None:
    text.append(f"\n{heading}\n", style=HEADING_STYLE)
    if not decisions:
        text.append("  none within a week\n", style=QUIET_STYLE)
    for decision in reversed(decisions):  # the document has the oldest first
        fact(text, _ago(decision["at"], now), f"{decision.get('component', decision['key'])}: {decision.get('act')}")
        fact(text, "", str(decision.get("because", "")))


def _written(policy: Policy) -> Iterator[tuple[str, str]]:
    """The settings of a policy in the inventory, as labels and values."""
    meant, limits, breaker, approval = policy.matching, policy.limits, policy.breaker, policy.approval
    yield "how", str(policy.how)
    yield "rules", ", ".join(meant.rules)
    yield "of", f"{', '.join(meant.kinds)} that are {', '.join(meant.states)}"
    for label, names in (("components", meant.components), ("jobs", meant.jobs), ("quiet", policy.quiet)):
        if names:
            yield label, ", ".join(names)
    yield "hours", hours_text(policy)
    if policy.how is How.NOTIFY:
        return
    yield "fault", f"must last {policy.stands_s:g} s, and be at most {policy.oldest_s:g} s old"
    yield "after a change", f"waits {policy.cool_down_s:g} s"
    yield (
        "at most",
        f"{limits.accelerator_week} per accelerator and week, {limits.rack_hour} per hour, {limits.rack_day} per day",
    )
    yield (
        "breaker opens",
        f"if over {breaker.share:.0%} of a rack, and at least {breaker.least}, fail within {breaker.window_s:g} s",
    )
    yield "breaker closes", f"once nothing more has failed for {breaker.quiet_s:g} s"
    if policy.how is How.APPROVE or approval.by_hand:
        who = "by someone who did not make the plan" if approval.by_another else "by anybody"
        yield "approval", f"{who}, within {duration(approval.expires_s)}"


def _ago(at: float | None, now: float) -> str:
    return "never" if at is None else f"{duration(now - at)} ago"
