"""What the autopilot does about each fault, and why. Pure functions: a decision can be repeated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Protocol

from lumctl.daemon.autopilot.faults import ComponentFault, faults_of
from lumctl.daemon.autopilot.memory import DAY_S, HOUR_S, WEEK_S, Ask, AskState, AutopilotMemory, Event
from lumctl.daemon.autopilot.policy import BreakerState, Onsets, closes_at, hours_text, open_now
from lumctl.health.observation import Observation
from lumctl.health.states import Finding
from lumctl.inventory.policies import How, Policy, PolicySubject
from lumctl.jobs import by_hand

NEVER = frozenset(
    {
        ("gpu.xid", "unknown"),
        ("gpu.xid", "contact-support"),
        ("gpu.xid", "no-action-given"),
        ("gpu.recovery-action", "unknown"),
    }
)
"""Findings whose meaning is not known: they never lead to an action, whatever a policy says."""


@dataclass(frozen=True, slots=True)
class PolicyCondition:
    """One condition, in words that an operator can check.

    ``until`` is when it may change by itself (seconds since the epoch).
    """

    name: str
    holds: bool
    text: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class PolicyMatch:
    """A fault, its finding that a policy matched, and all that the policy's conditions depend on."""

    fault: ComponentFault
    finding: Finding
    policy: Policy
    memory: AutopilotMemory
    onsets: Onsets
    unfinished: tuple[str, ...]
    now: float
    ask: Ask | None = None
    by_hand: tuple[str, ...] = ()
    """The jobs that only an operator can stop before their light moves."""

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The accelerators that would be replaced."""
        return tuple(a for accelerators in self.fault.jobs.values() for a in accelerators)


def conditions(case: PolicyMatch) -> Iterator[PolicyCondition]:
    """Every condition of a policy that matched, including those after one that does not hold."""
    yield _attended(case)
    yield _quiet(case)
    yield _itself(case)
    yield _stands(case)
    if case.policy.how is How.NOTIFY:
        yield _young(case)
        return
    yield _known(case)
    yield _works(case)
    if case.policy.how in {How.APPROVE, How.APPLY}:
        yield _can_be_paused(case)
    yield _switch(case)
    yield _halt(case)
    yield _hours(case)
    if case.ask is None or case.ask.state is AskState.SPENT:
        yield _young(case)  # an operator who approves sees how old it is
    yield _breaker(case)
    yield _not_stale(case)
    yield _cooled_down(case)
    yield _finished(case)
    yield from _limits(case)


def _attended(case: PolicyMatch) -> PolicyCondition:
    if case.fault.out_of_service is not None:
        return PolicyCondition("attended", holds=False, text=case.fault.out_of_service)
    if case.finding.acknowledged is not None:
        return PolicyCondition("attended", holds=False, text=f"acknowledged {case.finding.acknowledged}")
    return PolicyCondition("attended", holds=True, text="nobody is at work on it or has acknowledged it")


def _quiet(case: PolicyMatch) -> PolicyCondition:
    names = (case.fault.component, *case.accelerators)
    for pattern in case.policy.quiet:
        for name in names:
            if fnmatchcase(name, pattern):
                return PolicyCondition("quiet", holds=False, text=f"{name} is on the quiet list ({pattern})")
    return PolicyCondition("quiet", holds=True, text="not on the quiet list")


def _itself(case: PolicyMatch) -> PolicyCondition:
    incident = case.fault.incident
    if incident is None:
        return PolicyCondition("cause", holds=True, text="it is itself the cause")
    return PolicyCondition("cause", holds=False, text=f"part of {incident}: the cause is not this {case.fault.kind}")


def _stands(case: PolicyMatch) -> PolicyCondition:
    stood_s = max(case.now - case.finding.since, 0.0)
    needs = case.policy.stands_s
    until = case.finding.since + needs
    text = f"has stood for {stood_s:.1f} s, needs {needs:g} s"
    return PolicyCondition("stands", stood_s >= needs, text, None if stood_s >= needs else until)


def _young(case: PolicyMatch) -> PolicyCondition:
    age_s = max(case.now - case.finding.since, 0.0)
    most = case.policy.oldest_s
    until = case.finding.since + most
    text = f"is {age_s:.0f} s old, at most {most:g} s"
    return PolicyCondition("age", age_s <= most, text, until if age_s <= most else None)


def _known(case: PolicyMatch) -> PolicyCondition:
    if (case.finding.rule, case.finding.case) in NEVER:
        return PolicyCondition(
            "known", holds=False, text=f"{case.finding.rule} ({case.finding.case}) warns and never acts"
        )
    return PolicyCondition("known", holds=True, text="its meaning is known")


def _works(case: PolicyMatch) -> PolicyCondition:
    if not case.fault.jobs:
        what = "works in no job, or is not known to be what fails"
        if case.fault.kind is PolicySubject.HOST:
            what = "nothing that works in a job is on it"
        elif case.fault.kind in {PolicySubject.CIRCUIT, PolicySubject.DEVICE}:
            what = "no accelerator is known to be its cause"
        return PolicyCondition("works", holds=False, text=what)
    text = "; ".join(f"{', '.join(accelerators)} in {job}" for job, accelerators in case.fault.jobs.items())
    return PolicyCondition("works", holds=True, text=text)


def _can_be_paused(case: PolicyMatch) -> PolicyCondition:
    if not case.by_hand:
        return PolicyCondition("pause", holds=True, text="each job is paused by its hook, or needs no pause")
    text = f"only a person can stop {', '.join(case.by_hand)} before its light moves: give it a hook"
    return PolicyCondition("pause", holds=False, text=f"{text}, or needs_no_pause: true")


def _switch(case: PolicyMatch) -> PolicyCondition:
    stopped = case.memory.stopped
    return PolicyCondition("switch", stopped is None, "the autopilot runs" if stopped is None else f"stopped {stopped}")


def _halt(case: PolicyMatch) -> PolicyCondition:
    why = case.memory.halted
    return PolicyCondition("halt", why is None, "no run of its own is in doubt" if why is None else f"halted: {why}")


def _hours(case: PolicyMatch) -> PolicyCondition:
    is_open, until = open_now(case.policy, case.now)
    if not case.policy.hours:
        return PolicyCondition("hours", is_open, "at any time", until)
    return PolicyCondition("hours", is_open, f"{'within' if is_open else 'outside'} {hours_text(case.policy)}", until)


def breaker_of(case: PolicyMatch) -> BreakerState:
    """The breaker of the policy in the rack."""
    return case.memory.breakers.get(case.policy.name, BreakerState())


def _breaker(case: PolicyMatch) -> PolicyCondition:
    state = breaker_of(case)
    if state.open_since is None:
        return PolicyCondition("breaker", holds=True, text="the breaker is closed")
    return PolicyCondition("breaker", holds=False, text=state.why, until=closes_at(case.policy.breaker, case.onsets))


def _not_stale(case: PolicyMatch) -> PolicyCondition:
    closed_at = breaker_of(case).closed_at
    if case.finding.since > closed_at:
        text = "it began after the breaker last closed" if closed_at else "it is news"
        return PolicyCondition("news", holds=True, text=text)
    return PolicyCondition("news", holds=False, text="it began before the breaker closed, and is left to people")


def _cooled_down(case: PolicyMatch) -> PolicyCondition:
    needs, last = case.policy.cool_down_s, case.memory.last_change
    if last is None or case.now - last >= needs:
        return PolicyCondition("cool-down", holds=True, text=f"no change of the rack within {needs:g} s")
    text = f"the rack was changed {max(case.now - last, 0.0):.0f} s ago, needs {needs:g} s"
    return PolicyCondition("cool-down", holds=False, text=text, until=last + needs)


def _finished(case: PolicyMatch) -> PolicyCondition:
    if not case.unfinished:
        return PolicyCondition("finished", holds=True, text="no run was cut or left half done")
    return PolicyCondition("finished", holds=False, text=f"{', '.join(case.unfinished)} was cut or left half done")


def _limits(case: PolicyMatch) -> Iterator[PolicyCondition]:
    limits, memory, now = case.policy.limits, case.memory, case.now
    rows = (
        ("accelerator-week", limits.accelerator_week, WEEK_S, case.accelerators, "of it within a week"),
        ("rack-hour", limits.rack_hour, HOUR_S, None, f"in {case.fault.rack} within an hour"),
        ("rack-day", limits.rack_day, DAY_S, None, f"in {case.fault.rack} within a day"),
    )
    for name, most, window_s, accelerators, what in rows:
        tried = memory.tried(since=now - window_s, accelerators=accelerators)
        # The attempt that must leave the window before another is allowed.
        frees = tried[len(tried) - most].at + window_s if most and len(tried) >= most else None
        yield PolicyCondition(name, len(tried) < most, f"{len(tried)} of {most} swaps {what}", frees)


class _Made(Protocol):
    def __call__(self, act: "Response", reason: str, because: str, plan: str | None = None) -> "Decision": ...


class Response(StrEnum):
    """What is done about a fault."""

    NOTHING = "nothing"
    WAIT = "wait"
    """A plan was made and waits for approval."""
    NOTIFY = "notify"
    PLAN = "plan"
    ASK = "ask"
    APPLY = "apply"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done about one fault. ``policy`` is the one that decided, ``None`` if none matched.

    ``reason`` names what decided: a condition that does not hold, or what was done before. ``plan`` is one that was
    made for it.
    """

    at: float
    fault: ComponentFault
    finding: Finding
    act: Response
    policy: Policy | None
    reason: str
    because: str
    conditions: tuple[PolicyCondition, ...] = ()
    plan: str | None = None

    @property
    def signature(self) -> tuple[str, ...]:
        """What distinguishes it from the decision before; numbers in its reasons do not."""
        plan = self.plan or ""
        return (self.act, self.policy.name if self.policy else "", self.finding.rule, self.reason, plan)

    @property
    def until(self) -> float | None:
        """When it may change although nothing happens."""
        return min((c.until for c in self.conditions if c.until is not None and c.until > self.at), default=None)


def decide(
    policies: Sequence[Policy], look: Observation, rack: str, memory: AutopilotMemory, onsets: Onsets, *, now: float
) -> tuple[Decision, ...]:
    """One decision for each fault of a rack, including those to do nothing."""
    return tuple(
        decide_one(policies, fault, look, memory, onsets, now=now) for fault in faults_of(look) if fault.rack == rack
    )


def decide_one(
    policies: Sequence[Policy],
    fault: ComponentFault,
    look: Observation,
    memory: AutopilotMemory,
    onsets: Onsets,
    *,
    now: float,
) -> Decision:
    """The decision about one fault: the first policy that matches one of its findings decides."""
    for policy in policies:
        finding = next((finding for finding in fault.findings if matches(policy, fault, finding)), None)
        if finding is None:
            continue
        ask = _ask_of(fault, finding, policy, memory)
        alone = by_hand(look.inventory, look.target, fault.jobs)
        case = PolicyMatch(fault, finding, policy, memory, onsets, look.unfinished, now, ask, alone)
        return _decided(case, tuple(conditions(case)))
    worst = fault.findings[0]
    because = f"no policy speaks of {worst.rule} ({worst.state}) for {fault.kind}s"
    return Decision(now, fault, worst, Response.NOTHING, None, "no-policy", because)


def matches(policy: Policy, fault: ComponentFault, finding: Finding) -> bool:
    """Whether a policy matches a finding."""
    meant = policy.matching
    words = (finding.rule, f"{finding.rule}/{finding.case}")
    return (
        fault.kind in meant.kinds
        and finding.state in meant.states
        and any(fnmatchcase(word, pattern) for pattern in meant.rules for word in words)
        and _among(meant.components, (fault.component,))
        and _among(meant.racks, (fault.rack,))
        and _among(meant.jobs, tuple(fault.jobs))
    )


def _among(patterns: Sequence[str], names: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _ask_of(fault: ComponentFault, finding: Finding, policy: Policy, memory: AutopilotMemory) -> Ask | None:
    """The request for approval that was made for this finding, if any."""
    done = memory.handled.get(fault.key)
    if policy.how is not How.APPROVE or done is None or done.plan is None or finding.since > done.at:
        return None
    return memory.asks.get(done.plan)


def _decided(  # noqa: PLR0911 - one for each thing that may come of it
    case: PolicyMatch, checked: tuple[PolicyCondition, ...]
) -> Decision:
    def made(act: Response, reason: str, because: str, plan: str | None = None) -> Decision:
        return Decision(case.now, case.fault, case.finding, act, case.policy, reason, because, checked, plan)

    missing = [condition for condition in checked if not condition.holds]
    if missing:
        plan = case.ask.plan if case.ask and case.ask.state is AskState.ASKED else None
        return made(Response.NOTHING, missing[0].name, "; ".join(condition.text for condition in missing), plan)
    done = case.memory.handled.get(case.fault.key)
    before = done if done is not None and case.finding.since <= done.at and done.policy == case.policy.name else None
    saw = f"{case.finding.rule}: {case.finding.evidence}"
    match case.policy.how:
        case How.NOTIFY if before is not None:
            return made(Response.NOTHING, "told", "it was told")
        case How.NOTIFY:
            return made(Response.NOTIFY, "news", saw)
        case How.PLAN if before is not None and before.event is Event.PLANNED:
            return made(Response.NOTHING, "planned", f"{before.plan} was made for it", before.plan)
        case How.PLAN:
            return made(Response.PLAN, "news", saw)
        case How.APPROVE:
            return _by_approval(case, made, saw)
        case How.APPLY:
            return made(Response.APPLY, "allowed", saw)


def _by_approval(case: PolicyMatch, made: _Made, saw: str) -> Decision:
    ask = case.ask
    if ask is None or ask.state is AskState.SPENT:
        return made(Response.ASK, "news", saw)
    if ask.state is AskState.REJECTED:
        said = f": {ask.comment}" if ask.comment else ""
        return made(Response.NOTHING, "rejected", f"{ask.plan} was rejected by {ask.by}{said}", ask.plan)
    if case.now >= ask.expires_at:
        return made(Response.NOTHING, "expired", f"nobody approved {ask.plan} in time", ask.plan)
    if ask.state is AskState.APPROVED:
        return made(Response.APPLY, "approved", f"{ask.plan} was approved by {ask.by}; {saw}", ask.plan)
    return made(Response.WAIT, "approval", f"{ask.plan} waits for approval", ask.plan)


def decision_document(decision: Decision, *, briefly: bool = False) -> dict[str, Any]:
    """A decision as data; ``briefly``: without the conditions that hold, as in the journal."""
    fault, finding = decision.fault, decision.finding
    checked = [c for c in decision.conditions if not (briefly and c.holds)]
    return {
        "key": fault.key,
        "kind": fault.kind.value,
        "component": fault.component,
        "rack": fault.rack,
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
        "accelerators": [a for accelerators in fault.jobs.values() for a in accelerators],
        "conditions": [{"name": c.name, "holds": c.holds, "told": c.text, "until": c.until} for c in checked],
        "plan": decision.plan,
        "until": decision.until,
        "signature": list(decision.signature),
    }
