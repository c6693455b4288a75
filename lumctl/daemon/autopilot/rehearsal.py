"""What policies would have done in the face of a history: the same decisions, no device, and a clock that is given."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lumctl.daemon.autopilot import breaker
from lumctl.daemon.autopilot.breaker import BreakerState
from lumctl.daemon.autopilot.decide import Act, Decision, decide
from lumctl.daemon.autopilot.history import look_at
from lumctl.daemon.autopilot.memory import REMARK, Ask, AskState, Event, Memory
from lumctl.daemon.autopilot.telling import decision_document
from lumctl.errors import UsageError
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.policies import How, Policy
from lumctl.inventory.wiring import initial_assignment, job_circuits
from lumctl.site.observation import Observation

TICK_S = 1.0
"""The daemon does one thing in a rack at each look."""
_MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that would have happened: ``what`` is what was decided, a breaker's change, or a swap's outcome."""

    at: float
    rack: str
    what: str
    component: str
    policy: str
    because: str
    decision: Decision | None = None

    def document(self) -> dict[str, Any]:
        """As data."""
        told = {"at": self.at, "rack": self.rack, "what": self.what, "component": self.component}
        more = decision_document(self.decision) if self.decision else None
        return {**told, "policy": self.policy or None, "because": self.because, "decision": more}


@dataclass(frozen=True, slots=True)
class _Remark:
    at: float
    kind: str
    data: Mapping[str, Any]


@dataclass
class _Rack:
    name: str
    memory: Memory = field(default_factory=Memory)
    onsets: dict[tuple[str, str], float] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    """Troubles for which there was no spare."""

    def remark(self, at: float, event: Event, **data: Any) -> None:
        self.memory.take([_Remark(at, REMARK, {"event": event.value, **data})])


class Rehearsal:
    """Runs a history. ``approve_after_s``: a person is taken to approve each plan so long after it is asked for."""

    def __init__(self, inventory: Inventory, target: str, *, approve_after_s: float | None = None) -> None:
        self._inventory, self._target = inventory, target
        self._approve_after_s = approve_after_s
        self._assignment = dict(initial_assignment(inventory))
        self._states: dict[tuple[str, str], Transition] = {}
        self._racks = [_Rack(name) for name in inventory.racks]
        self._plans = 0

    def run(self, history: Sequence[Transition], *, ends_at: float) -> Iterator[Happening]:
        """Everything that would have happened, in order, until a time (seconds since the epoch)."""
        waiting = list(history)
        now: float | None = waiting[0].at if waiting else None
        for _ in range(_MOST_STEPS):
            if now is None or now > ends_at:
                return
            while waiting and waiting[0].at <= now:
                row = waiting.pop(0)
                self._states[row.kind, row.component] = row
            times = [waiting[0].at] if waiting else []
            for rack in self._racks:
                yield from self._one_look(rack, now, times)
            now = min((at for at in times if at > now), default=None)

    def _one_look(self, rack: _Rack, now: float, times: list[float]) -> Iterator[Happening]:
        """One look at one rack; adds to ``times`` when something may be otherwise."""
        look = look_at(self._inventory, self._target, self._states, self._assignment, now)
        yield from self._breakers(rack, look, now, times)
        self._answer(rack, now, times)
        decisions = decide(self._inventory.policies, look, rack.name, rack.memory, rack.onsets, now=now)
        for decision in decisions:
            key = decision.trouble.key
            if rack.memory.decided.get(key) != decision.signature:
                rack.memory.decided[key] = decision.signature
                policy = decision.policy.name if decision.policy else ""
                name = decision.trouble.component
                yield Happening(now, rack.name, decision.act, name, policy, decision.because, decision)
            if decision.until is not None:
                times.append(decision.until)
        for decision in decisions:
            if decision.policy is None or decision.trouble.key in rack.given_up:
                continue
            told = list(self._do(rack, look, decision, decision.policy, now))
            yield from told
            if decision.act in {Act.PLAN, Act.ASK, Act.APPLY}:
                times.append(now + TICK_S)
                return

    def _breakers(self, rack: _Rack, look: Observation, now: float, times: list[float]) -> Iterator[Happening]:
        policies = [policy for policy in self._inventory.policies if policy.how is not How.NOTIFY]
        keep_s = max((max(p.breaker.window_s, p.breaker.quiet_s) for p in policies), default=0.0) + 1.0
        rack.onsets = breaker.onsets_of(look, rack.name, rack.onsets, keep_s=keep_s)
        for policy in policies:
            before = rack.memory.breakers.get(policy.name, BreakerState())
            after = breaker.step(before, policy.breaker, look, rack.name, rack.onsets, now)
            if after.open_since is not None:
                times.append(max(breaker.closes_at(policy.breaker, rack.onsets), now + TICK_S))
            if after == before:
                continue
            opened = after.open_since is not None
            event = Event.BREAKER_OPENED if opened else Event.BREAKER_CLOSED
            why = after.why if opened else f"nothing more has failed for {policy.breaker.quiet_s:g} s"
            rack.remark(now, event, policy=policy.name, why=why)
            yield Happening(now, rack.name, event, rack.name, policy.name, why)

    def _answer(self, rack: _Rack, now: float, times: list[float]) -> None:
        """A person approves, if one is there."""
        for ask in list(rack.memory.asks.values()):
            if ask.state is not AskState.ASKED:
                continue
            times += [ask.expires_at, *(ask.at + p.escalation.after_s for p in self._inventory.policies)]
            if self._approve_after_s is not None:
                at = ask.at + self._approve_after_s
                times.append(at)
                if at <= now and at < ask.expires_at:
                    answered = Ask(ask.plan, ask.at, ask.expires_at, AskState.APPROVED, "a person")
                    rack.memory.asks[ask.plan] = answered

    def _do(
        self, rack: _Rack, look: Observation, decision: Decision, policy: Policy, now: float
    ) -> Iterator[Happening]:
        key, name = decision.trouble.key, decision.trouble.component
        match decision.act:
            case Act.NOTIFY:
                rack.remark(now, Event.TOLD, key=key, policy=policy.name)
            case Act.PLAN:
                rack.remark(now, Event.PLANNED, key=key, policy=policy.name, plan=self._new_plan())
            case Act.ASK:
                plan = self._new_plan()
                rack.memory.asks[plan] = Ask(plan, now, now + policy.approval.expires_s, AskState.ASKED)
                rack.remark(now, Event.ASKED, key=key, policy=policy.name, plan=plan)
            case Act.APPLY:
                yield self._applied(rack, look, decision, policy, now)
            case _:
                ask = rack.memory.asks.get(decision.plan or "")
                overdue = ask is not None and ask.state is AskState.ASKED and now - ask.at >= policy.escalation.after_s
                if ask is not None and overdue and rack.memory.handled[key].event is not Event.ESCALATED:
                    rack.remark(now, Event.ESCALATED, key=key, policy=policy.name, plan=ask.plan)
                    because = f"{ask.plan} waits for approval since {now - ask.at:.0f} s"
                    yield Happening(now, rack.name, Event.ESCALATED, name, policy.name, because)

    def _applied(self, rack: _Rack, look: Observation, decision: Decision, policy: Policy, now: float) -> Happening:
        """A swap is taken to succeed where there is a spare of the same kind; which one, the planner would know."""
        plan = decision.plan or self._new_plan()
        pairs: list[tuple[str, str]] = []
        for job, accelerators in decision.trouble.jobs.items():
            for failed in accelerators:
                spare = self._spare(look, job, failed, dict(pairs))
                if spare is None:
                    rack.given_up.add(decision.trouble.key)
                    because = f"no spare of its kind is left for {failed}"
                    return Happening(now, rack.name, "failed", failed, policy.name, because)
                pairs.append((failed, spare))
        by = dict(pairs)
        for job in decision.trouble.jobs:
            self._assignment[job] = tuple(by.get(rank, rank) for rank in self._assignment[job])
        replaced = [failed for failed, _ in pairs]
        rack.remark(now, Event.ATTEMPT, plan=plan, policy=policy.name, key=decision.trouble.key, accelerators=replaced)
        rack.remark(now, Event.OUTCOME, plan=plan, outcome="done")
        rack.memory.last_change = now
        if plan in rack.memory.asks:
            ask = rack.memory.asks[plan]
            rack.memory.asks[plan] = Ask(plan, ask.at, ask.expires_at, AskState.SPENT, ask.by)
        told = ", ".join(f"{failed} by {spare}" for failed, spare in pairs)
        return Happening(now, rack.name, "applied", decision.trouble.component, policy.name, f"replace {told}")

    def _spare(self, look: Observation, job: str, failed: str, taken: Mapping[str, str]) -> str | None:
        """The first spare of its kind whose lanes lead where the job's links need them."""
        old, written = look.inventory.accelerators[failed], look.inventory.jobs[job]
        for name, new in look.inventory.accelerators.items():
            alike = new.rack == old.rack and new.model == old.model and new.memory_gib >= old.memory_gib
            well = look.report.accelerators[name].state is State.OK
            if not alike or not well or name in taken.values() or look.role_of(name) is not Role.SPARE:
                continue
            by = {**taken, failed: name}
            with suppress(UsageError):
                job_circuits(look.inventory, written, tuple(by.get(rank, rank) for rank in self._assignment[job]))
                return name
        return None

    def _new_plan(self) -> str:
        self._plans += 1
        return f"plan-{self._plans:04}"
