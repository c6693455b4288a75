"""Decisions: what the autopilot does about each fault, and why. Pure functions, so a decision can be repeated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Protocol

from lumctl.daemon.autopilot.faults import ComponentFault, faults_of
from lumctl.daemon.autopilot.memory import DAY_S, HOUR_S, WEEK_S, Ask, AskState, AutopilotMemory, Event
from lumctl.daemon.autopilot.policy import ONLY_BY_NAME, BreakerState, Onsets, closes_at, hours_text, open_now
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
"""Findings of unknown meaning; they never lead to an action, even if a policy matches them."""


@dataclass(frozen=True, slots=True)
class PolicyCondition:
    """One condition, in words that an operator can check.

    ``until`` is when the condition may change by itself (seconds since the epoch).
    """

    name: str
    holds: bool
    text: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class PolicyMatch:
    """A fault, the finding that a policy matched, and all data on which the policy's conditions depend."""

    fault: ComponentFault
    finding: Finding
    policy: Policy
    memory: AutopilotMemory
    onsets: Onsets
    unfinished: tuple[str, ...]
    now: float
    ask: Ask | None = None
    by_hand: tuple[str, ...] = ()
    """The jobs that only an operator can stop before their circuits change."""

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The accelerators that a swap would replace."""
        return tuple(a for accelerators in self.fault.jobs.values() for a in accelerators)


def conditions(case: PolicyMatch) -> Iterator[PolicyCondition]:
    """All conditions of a policy that matched, including those after a condition that does not hold."""
    # In the order that matters to an operator: the first that does not hold becomes the reason.
    yield _attended(case)
    yield _quiet(case)
    yield _itself(case)
    yield _stands(case)
    if case.policy.how is How.NOTIFY:
        yield _young(case)
        return
    yield _known(case)
    yield _works(case)
    # A plan alone moves no light, so no job has to pause for it.
    if case.policy.how in {How.APPROVE, How.APPLY}:
        yield _can_be_paused(case)
    yield _switch(case)
    yield _halt(case)
    yield _hours(case)
    if case.ask is None or case.ask.state is AskState.SPENT:
        yield _young(case)  # an operator who approves sees how old the fault is
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
    return PolicyCondition("attended", holds=True, text="no run is changing it and no one has acknowledged it")


def _quiet(case: PolicyMatch) -> PolicyCondition:
    names = (case.fault.component, *case.accelerators)
    for pattern in case.policy.quiet:
        for name in names:
            if fnmatchcase(name, pattern):
                return PolicyCondition(
                    "quiet", holds=False, text=f"{name} is on the list of components to leave alone ({pattern})"
                )
    return PolicyCondition("quiet", holds=True, text="not on the list of components to leave alone")


def _itself(case: PolicyMatch) -> PolicyCondition:
    incident = case.fault.incident
    if incident is None:
        return PolicyCondition("cause", holds=True, text="it is itself the cause")
    return PolicyCondition("cause", holds=False, text=f"part of {incident}: this {case.fault.kind} is not the cause")


def _stands(case: PolicyMatch) -> PolicyCondition:
    stood_s = max(case.now - case.finding.since, 0.0)
    needs = case.policy.stands_s
    until = case.finding.since + needs
    text = f"has lasted {stood_s:.1f} s, must last {needs:g} s"
    return PolicyCondition("stands", stood_s >= needs, text, None if stood_s >= needs else until)


def _young(case: PolicyMatch) -> PolicyCondition:
    if case.accelerators and case.memory.queued.issuperset(case.accelerators):
        return PolicyCondition("age", holds=True, text="waits in the queue for a spare, so it may be old")
    age_s = max(case.now - case.finding.since, 0.0)
    most = case.policy.oldest_s
    until = case.finding.since + most
    text = f"is {age_s:.0f} s old, at most {most:g} s"
    return PolicyCondition("age", age_s <= most, text, until if age_s <= most else None)


def _known(case: PolicyMatch) -> PolicyCondition:
    if (case.finding.rule, case.finding.case) in NEVER:
        return PolicyCondition(
            "known",
            holds=False,
            text=f"{case.finding.rule} ({case.finding.case}) only warns and never triggers an action",
        )
    return PolicyCondition("known", holds=True, text="the fault behind the finding is known")


def _works(case: PolicyMatch) -> PolicyCondition:
    if not case.fault.jobs:
        what = "runs no job, or may not be the failing component"
        if case.fault.kind is PolicySubject.HOST:
            what = "no accelerator on it is used by a job"
        elif case.fault.kind in {PolicySubject.CIRCUIT, PolicySubject.DEVICE}:
            what = "no accelerator is known to cause it"
        return PolicyCondition("works", holds=False, text=what)
    text = "; ".join(f"{', '.join(accelerators)} in {job}" for job, accelerators in case.fault.jobs.items())
    return PolicyCondition("works", holds=True, text=text)


def _can_be_paused(case: PolicyMatch) -> PolicyCondition:
    if not case.by_hand:
        return PolicyCondition("pause", holds=True, text="each job is paused by its hook, or needs no pause")
    text = f"only an operator can stop {', '.join(case.by_hand)} before its light paths change: give it a hook"
    return PolicyCondition("pause", holds=False, text=f"{text}, or needs_no_pause: true")


def _switch(case: PolicyMatch) -> PolicyCondition:
    stopped = case.memory.stopped
    return PolicyCondition("switch", stopped is None, "the autopilot runs" if stopped is None else f"stopped {stopped}")


def _halt(case: PolicyMatch) -> PolicyCondition:
    why = case.memory.halted
    return PolicyCondition(
        "halt", why is None, "no run of the autopilot has an unknown result" if why is None else f"halted: {why}"
    )


def _hours(case: PolicyMatch) -> PolicyCondition:
    is_open, until = open_now(case.policy, case.now)
    if not case.policy.hours:
        return PolicyCondition("hours", is_open, "at any time", until)
    return PolicyCondition("hours", is_open, f"{'within' if is_open else 'outside'} {hours_text(case.policy)}", until)


def breaker_of(case: PolicyMatch) -> BreakerState:
    """The breaker of the matched policy in the fault's rack."""
    return case.memory.breakers.get(case.policy.name, BreakerState())


def _breaker(case: PolicyMatch) -> PolicyCondition:
    state = breaker_of(case)
    if state.open_since is None:
        return PolicyCondition("breaker", holds=True, text="the circuit breaker is closed")
    return PolicyCondition("breaker", holds=False, text=state.why, until=closes_at(case.policy.breaker, case.onsets))


def _not_stale(case: PolicyMatch) -> PolicyCondition:
    closed_at = breaker_of(case).closed_at
    if case.finding.since > closed_at:
        text = "the fault began after the circuit breaker last closed" if closed_at else "it is news"
        return PolicyCondition("news", holds=True, text=text)
    return PolicyCondition(
        "news", holds=False, text="the fault began before the circuit breaker closed, and is left to operators"
    )


def _cooled_down(case: PolicyMatch) -> PolicyCondition:
    needs, last = case.policy.cool_down_s, case.memory.last_change
    if last is None or case.now - last >= needs:
        return PolicyCondition("cool-down", holds=True, text=f"no change of the rack within {needs:g} s")
    text = f"the rack was changed {max(case.now - last, 0.0):.0f} s ago, but {needs:g} s must pass"
    return PolicyCondition("cool-down", holds=False, text=text, until=last + needs)


def _finished(case: PolicyMatch) -> PolicyCondition:
    if not case.unfinished:
        return PolicyCondition("finished", holds=True, text="no run was interrupted or left half done")
    return PolicyCondition(
        "finished", holds=False, text=f"{', '.join(case.unfinished)} was interrupted or left half done"
    )


def _limits(case: PolicyMatch) -> Iterator[PolicyCondition]:
    limits, memory, now = case.policy.limits, case.memory, case.now
    rows = (
        ("accelerator-week", limits.accelerator_week, WEEK_S, case.accelerators, "of it within a week"),
        ("rack-hour", limits.rack_hour, HOUR_S, None, f"in {case.fault.rack} within an hour"),
        ("rack-day", limits.rack_day, DAY_S, None, f"in {case.fault.rack} within a day"),
    )
    for name, most, window_s, accelerators, what in rows:
        tried = memory.tried(since=now - window_s, accelerators=accelerators)
        # Another attempt is allowed when this one has left the window.
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
    """What is done about one fault. ``policy`` is the policy that decided; ``None`` if no policy matched.

    ``reason`` names what decided: a condition that does not hold, or an earlier action. ``plan`` is a plan that was
    already made for the fault.
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
        """The key that distinguishes this decision from the previous one; numbers in the reasons do not count."""
        plan = self.plan or ""
        return (self.act, self.policy.name if self.policy else "", self.finding.rule, self.reason, plan)

    @property
    def until(self) -> float | None:
        """When the decision may change although nothing happens."""
        return min((c.until for c in self.conditions if c.until is not None and c.until > self.at), default=None)


def decide(
    policies: Sequence[Policy], look: Observation, rack: str, memory: AutopilotMemory, onsets: Onsets, *, now: float
) -> tuple[Decision, ...]:
    """One decision for each fault of a rack, including decisions to do nothing."""
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
    because = f"no policy applies to {worst.rule} ({worst.state}) for {fault.kind}s"
    return Decision(now, fault, worst, Response.NOTHING, None, "no-policy", because)


def matches(policy: Policy, fault: ComponentFault, finding: Finding) -> bool:
    """Whether a policy matches a finding."""
    meant = policy.matching
    words = (finding.rule, f"{finding.rule}/{finding.case}")
    if finding.rule in ONLY_BY_NAME and policy.how is not How.NOTIFY and not set(words) & set(meant.rules):
        return False
    return (
        fault.kind in meant.kinds
        and finding.state in meant.states
        and any(fnmatchcase(word, pattern) for pattern in meant.rules for word in words)
        and meant.covers(fault.rack, tuple(fault.jobs), (fault.component,))
    )


def _ask_of(fault: ComponentFault, finding: Finding, policy: Policy, memory: AutopilotMemory) -> Ask | None:
    """The request for approval that was made for this finding, if any."""
    done = memory.handled.get(fault.key)
    # A fault that began again after the request is another fault: the request does not speak of it.
    if policy.how is not How.APPROVE or done is None or done.plan is None or finding.since > done.at:
        return None
    return memory.asks.get(done.plan)


def _decided(  # noqa: PLR0911 - one for each possible result
    case: PolicyMatch, checked: tuple[PolicyCondition, ...]
) -> Decision:
    def made(act: Response, reason: str, because: str, plan: str | None = None) -> Decision:
        return Decision(case.now, case.fault, case.finding, act, case.policy, reason, because, checked, plan)

    missing = [condition for condition in checked if not condition.holds]
    if missing:
        # The plan stays in the decision, so that an overdue approval is still escalated.
        plan = case.ask.plan if case.ask and case.ask.state is AskState.ASKED else None
        return made(Response.NOTHING, missing[0].name, "; ".join(condition.text for condition in missing), plan)
    done = case.memory.handled.get(case.fault.key)
    # A fault that began again is news, and so is one that another policy decides now.
    before = done if done is not None and case.finding.since <= done.at and done.policy == case.policy.name else None
    saw = f"{case.finding.rule}: {case.finding.evidence}"
    match case.policy.how:
        case How.NOTIFY if before is not None:
            return made(Response.NOTHING, "told", "it was already notified")
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
    # Before the approval: a plan that was approved but not applied in time has expired, too.
    if case.now >= ask.expires_at:
        return made(Response.NOTHING, "expired", f"no one approved {ask.plan} in time", ask.plan)
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
