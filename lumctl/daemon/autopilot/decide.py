"""What is to be done about everything that is at fault, and why. Pure: what was decided can be decided again."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Protocol

from lumctl.daemon.autopilot.breaker import Onsets
from lumctl.daemon.autopilot.conditions import Case, Condition, conditions
from lumctl.daemon.autopilot.memory import Ask, AskState, Event, Memory
from lumctl.daemon.autopilot.troubles import Trouble, troubles_of
from lumctl.health.states import Finding
from lumctl.inventory.policies import How, Policy
from lumctl.jobs import by_hand
from lumctl.site.observation import Observation


class _Made(Protocol):
    def __call__(self, act: "Act", reason: str, because: str, plan: str | None = None) -> "Decision": ...


class Act(StrEnum):
    """What is done about a trouble."""

    NOTHING = "nothing"
    WAIT = "wait"
    """A plan is made and waits for a person's yes."""
    NOTIFY = "notify"
    PLAN = "plan"
    ASK = "ask"
    APPLY = "apply"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done about one trouble. ``policy`` is the one that decided, ``None`` where none speaks of it.

    ``reason`` names what decided: a condition that does not hold, or what was done before. ``plan`` is one that was
    made for it.
    """

    at: float
    trouble: Trouble
    finding: Finding
    act: Act
    policy: Policy | None
    reason: str
    because: str
    conditions: tuple[Condition, ...] = ()
    plan: str | None = None

    @property
    def signature(self) -> tuple[str, ...]:
        """What makes it another decision than the one before: the numbers in its reasons do not."""
        plan = self.plan or ""
        return (self.act, self.policy.name if self.policy else "", self.finding.rule, self.reason, plan)

    @property
    def until(self) -> float | None:
        """When it may change though nothing happens."""
        return min((c.until for c in self.conditions if c.until is not None and c.until > self.at), default=None)


def decide(
    policies: Sequence[Policy], look: Observation, rack: str, memory: Memory, onsets: Onsets, *, now: float
) -> tuple[Decision, ...]:
    """A decision about everything that is at fault in a rack; there is one for each trouble, also to do nothing."""
    return tuple(
        decide_one(policies, trouble, look, memory, onsets, now=now)
        for trouble in troubles_of(look)
        if trouble.rack == rack
    )


def decide_one(
    policies: Sequence[Policy], trouble: Trouble, look: Observation, memory: Memory, onsets: Onsets, *, now: float
) -> Decision:
    """The decision about one trouble: the first policy that matches one of its findings decides."""
    for policy in policies:
        finding = next((finding for finding in trouble.findings if matches(policy, trouble, finding)), None)
        if finding is None:
            continue
        ask = _ask_of(trouble, finding, policy, memory)
        alone = by_hand(look.inventory, look.target, trouble.jobs)
        case = Case(trouble, finding, policy, memory, onsets, look.unfinished, now, ask, alone)
        return _decided(case, tuple(conditions(case)))
    worst = trouble.findings[0]
    because = f"no policy speaks of {worst.rule} ({worst.state}) for {trouble.kind}s"
    return Decision(now, trouble, worst, Act.NOTHING, None, "no-policy", because)


def matches(policy: Policy, trouble: Trouble, finding: Finding) -> bool:
    """Whether a policy speaks of a finding."""
    meant = policy.matching
    words = (finding.rule, f"{finding.rule}/{finding.case}")
    return (
        trouble.kind in meant.kinds
        and finding.state in meant.states
        and any(fnmatchcase(word, pattern) for pattern in meant.rules for word in words)
        and _among(meant.components, (trouble.component,))
        and _among(meant.racks, (trouble.rack,))
        and _among(meant.jobs, tuple(trouble.jobs))
    )


def _among(patterns: Sequence[str], names: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _ask_of(trouble: Trouble, finding: Finding, policy: Policy, memory: Memory) -> Ask | None:
    """The request for approval that was made for this very finding, if one was."""
    done = memory.handled.get(trouble.key)
    if policy.how is not How.APPROVE or done is None or done.plan is None or finding.since > done.at:
        return None
    return memory.asks.get(done.plan)


def _decided(  # noqa: PLR0911 - one for each thing that may come of it
    case: Case, checked: tuple[Condition, ...]
) -> Decision:
    def made(act: Act, reason: str, because: str, plan: str | None = None) -> Decision:
        return Decision(case.now, case.trouble, case.finding, act, case.policy, reason, because, checked, plan)

    missing = [condition for condition in checked if not condition.holds]
    if missing:
        plan = case.ask.plan if case.ask and case.ask.state is AskState.ASKED else None
        return made(Act.NOTHING, missing[0].name, "; ".join(condition.told for condition in missing), plan)
    done = case.memory.handled.get(case.trouble.key)
    before = done if done is not None and case.finding.since <= done.at and done.policy == case.policy.name else None
    saw = f"{case.finding.rule}: {case.finding.evidence}"
    match case.policy.how:
        case How.NOTIFY if before is not None:
            return made(Act.NOTHING, "told", "it was told")
        case How.NOTIFY:
            return made(Act.NOTIFY, "news", saw)
        case How.PLAN if before is not None and before.event is Event.PLANNED:
            return made(Act.NOTHING, "planned", f"{before.plan} was made for it", before.plan)
        case How.PLAN:
            return made(Act.PLAN, "news", saw)
        case How.APPROVE:
            return _by_approval(case, made, saw)
        case How.APPLY:
            return made(Act.APPLY, "allowed", saw)


def _by_approval(case: Case, made: _Made, saw: str) -> Decision:
    ask = case.ask
    if ask is None or ask.state is AskState.SPENT:
        return made(Act.ASK, "news", saw)
    if ask.state is AskState.REJECTED:
        said = f": {ask.comment}" if ask.comment else ""
        return made(Act.NOTHING, "rejected", f"{ask.plan} was rejected by {ask.by}{said}", ask.plan)
    if case.now >= ask.expires_at:
        return made(Act.NOTHING, "expired", f"nobody approved {ask.plan} in time", ask.plan)
    if ask.state is AskState.APPROVED:
        return made(Act.APPLY, "approved", f"{ask.plan} was approved by {ask.by}; {saw}", ask.plan)
    return made(Act.WAIT, "approval", f"{ask.plan} waits for approval", ask.plan)
