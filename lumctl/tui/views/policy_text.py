"""An autopilot, its policies and its decisions as a person reads them; pure, from what ``autopilot status`` prints."""

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
"""How the state of an autopilot looks; ``halted`` has stopped itself and asks for a person."""
MEANINGS: Mapping[str, str] = {
    "running": "it does what its policies allow",
    "ready": "nothing stops it, but no daemon answers here: one elsewhere would act",
    "off": "there are no policies: nothing is ever done unasked",
    "stopped": "somebody has stopped it: nothing is done unasked",
    "halted": "it has stopped itself: it does not know how a run of its own ended",
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
        text.append("\nTo begin with policies: lumctl-inventory(5).\n", style=QUIET_STYLE)
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
    _decisions(text, "decided by it, newest first", mine, now)
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
        text.append("  nothing is wrong with it any more\n")
    for each in same:
        fact(text, "by policy", str(each.get("policy") or "none"))
        _decided(text, each, "would do")
        _conditions(text, each.get("conditions") or (), marks, now, nothing="no policy speaks of it")
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
    """Each condition: whether it holds, its name, what was there and what it wants, and until when that is so."""
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
    """A policy's present state: its breaker, and the used part of its limits."""
    text.append(f"\npolicy {told['policy']}: {told['how']}\n", style=HEADING_STYLE)
    if told["breaker"]:
        state = State.DEGRADED if told["breaker"] == "open" else State.OK
        text.append(f"  {'breaker':<{_LABEL}} ", style=QUIET_STYLE)
        text.append(f"{marks.glyphs.get(state, '')} {told['breaker']}", style=STATE_STYLES[state])
        since = f" for {duration(now - told['breaker_since'])}" if told["breaker_since"] else ""
        text.append(f"{since}{': ' if told['breaker_why'] else ''}{told['breaker_why'] or ''}\n")
    for word in ("hour", "day"):
        used, most = told[f"swaps_{word}"], told[f"most_{word}"]
        full = " (no more for now)" if used >= most else ""
        fact(text, f"swaps this {word}", f"{used} of {most}{full}")


def _waiting(text: Text, waiting: Sequence[Mapping[str, Any]], marks: Marks, now: float) -> None:
    if waiting:
        text.append("\nwaits for approval\n", style=HEADING_STYLE)
    for asked in waiting:
        state = State.DEGRADED
        text.append(f"  {marks.glyphs.get(state, '')} {asked['plan']}", style=STATE_STYLES[state])
        text.append(f": {asked['title']}\n")
        fact(text, "  asked", f"{_ago(asked['asked_at'], now)} by {asked['made_by'] or 'nobody known'}")
        fact(text, "  lapses in", duration(asked["expires_at"] - now))
    if waiting:
        text.append("  Its own line among the policies (8) opens it: there y approves it and n rejects it.\n")


def _decisions(text: Text, heading: str, decisions: Sequence[Mapping[str, Any]], now: float) -> None:
    text.append(f"\n{heading}\n", style=HEADING_STYLE)
    if not decisions:
        text.append("  none within a week\n", style=QUIET_STYLE)
    for decision in reversed(decisions):
        fact(text, _ago(decision["at"], now), f"{decision.get('component', decision['key'])}: {decision.get('act')}")
        fact(text, "", str(decision.get("because", "")))


def _written(policy: Policy) -> Iterator[tuple[str, str]]:
    """A policy as the inventory has it."""
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
    yield "fault", f"must stand for {policy.stands_s:g} s, and be {policy.oldest_s:g} s old at most"
    yield "after a change", f"waits {policy.cool_down_s:g} s"
    yield (
        "at most",
        f"{limits.accelerator_week} of an accelerator a week, {limits.rack_hour} an hour, {limits.rack_day} a day",
    )
    yield (
        "breaker opens",
        f"where over {breaker.share:.0%} of a rack, {breaker.least} at least, fail within {breaker.window_s:g} s",
    )
    yield "breaker closes", f"once nothing more has failed for {breaker.quiet_s:g} s"
    if policy.how is How.APPROVE or approval.by_hand:
        who = "by another than who made the plan" if approval.by_another else "by anybody"
        yield "approval", f"{who}, within {duration(approval.expires_s)}"


def _ago(at: float | None, now: float) -> str:
    return "never" if at is None else f"{duration(now - at)} ago"
