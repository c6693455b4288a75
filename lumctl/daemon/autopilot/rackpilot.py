"""The autopilot of one rack: what it does at each look. Used by one thread; everything it knows is in the journal."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lumctl.change.approval import ask as ask_approval
from lumctl.change.plan import Plan, from_document, to_document
from lumctl.daemon.autopilot import breaker, switch
from lumctl.daemon.autopilot.acting import Ended, again, carry_out, how_it_ended, name_of, plan_for
from lumctl.daemon.autopilot.decide import Act, Decision, decide
from lumctl.daemon.autopilot.memory import AskState, Event, Memory
from lumctl.daemon.autopilot.notebook import WHO, Notebook
from lumctl.daemon.autopilot.telling import Occasion, Tell, told_alike, told_of
from lumctl.daemon.autopilot.troubles import troubles_of
from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import How, Policy
from lumctl.site import Observation, Site
from lumctl.store import Store

RETRY_S = 60.0
"""How long what could not be planned, or was refused, is left before it is tried anew."""
_HOLDS = frozenset({"accelerator-week", "rack-hour", "rack-day", "halt", "pause"})
"""Reasons for which a person should hear that nothing is done."""


class RackPilot:
    """Decides and acts in one rack."""

    def __init__(
        self,
        rack: str,
        store: Store,
        open_site: Callable[[Inventory], Site],
        tell: Tell,
        say: Callable[[str], None],
        *,
        stopped: Callable[[], str | None],
        now: Callable[[], float],
    ) -> None:
        """``stopped`` tells why nothing may be done, by what only this process knows."""
        self.rack = rack
        self.counts: Counter[tuple[str, str]] = Counter()
        """Decisions by act, and attempts by outcome: ``("decision", "nothing")``, ``("attempt", "done")``."""
        self.decisions: tuple[Decision, ...] = ()
        self._store, self._notebook = store, Notebook(store)
        self._open_site = open_site
        self._tell, self._say = tell, say
        self._stopped_here, self._now = stopped, now
        self._onsets: dict[tuple[str, str], float] | None = None
        self._retry_at: dict[str, float] = {}
        self._acted_at = 0.0

    @property
    def memory(self) -> Memory:
        """What is known of the past."""
        return self._notebook.memory

    @property
    def stop_files(self) -> tuple[Path, ...]:
        """Where the switch is looked for."""
        return switch.places([self.rack], [self._store.files])

    def stopped(self) -> str | None:
        """Why nothing may be done now; ``None`` if the autopilot runs."""
        return self._stopped_here() or switch.thrown(self.stop_files) or self.memory.stopped

    def consider(self, look: Observation) -> None:
        """Decide about one look, write down what is new, and do at most one thing that moves or plans anything.

        Raises:
            LumctlError: the store could not be read or written; nothing was done then.
        """
        if look.at < self._acted_at:
            return  # it was taken before the last act had ended
        policies, now = look.inventory.policies, self._now()
        troubled = any(trouble.rack == self.rack for trouble in troubles_of(look))
        self._notebook.recall(policies, now, whole=troubled)
        self._settle_attempts(look, now)
        onsets = self._mind_the_breakers(look, now)
        memory = replace(self.memory, stopped=self.stopped())
        self.decisions = decide(policies, look, self.rack, memory, onsets, now=now)
        self._write_down(self.decisions, now)
        for decision in self.decisions:
            if decision.policy is None or now < self._retry_at.get(decision.trouble.key, now):
                continue
            if self._do(look, decision, decision.policy, onsets):
                return

    def _settle_attempts(self, look: Observation, now: float) -> None:
        """Find out how attempts ended that this process, or one before it, did not see the end of."""
        for attempt in self.memory.open_attempts:
            kept = self._store.plan(attempt.plan)
            digest = str(kept["digest"]) if kept else ""
            ended = how_it_ended(self._store, digest, since=attempt.at, now=now)
            if ended.outcome != "running":
                policy = next((p for p in look.inventory.policies if p.name == attempt.policy), None)
                hook = policy.escalation.hook if policy is not None else None
                self._end(attempt.plan, attempt.key, ended, policy, {"rack": self.rack, "hook": hook})

    def _mind_the_breakers(self, look: Observation, now: float) -> breaker.Onsets:
        policies = [policy for policy in look.inventory.policies if policy.how is not How.NOTIFY]
        keep_s = max((max(p.breaker.window_s, p.breaker.quiet_s) for p in policies), default=0.0) + 1.0
        kept = self._notebook.onsets(since=now - keep_s) if self._onsets is None else self._onsets
        self._onsets = onsets = breaker.onsets_of(look, self.rack, kept, keep_s=keep_s)
        for policy in policies:
            before = self.memory.breakers.get(policy.name, breaker.BreakerState())
            after = breaker.step(before, policy.breaker, look, self.rack, onsets, now)
            if after == before:
                continue
            opened = after.open_since is not None
            why = after.why if opened else f"nothing more has failed for {policy.breaker.quiet_s:g} s"
            event = Event.BREAKER_OPENED if opened else Event.BREAKER_CLOSED
            self._notebook.remark(event, now, policy=policy.name, why=why)
            occasion = Occasion.BREAKER_OPENED if opened else Occasion.BREAKER_CLOSED
            text = f"{self.rack}: the breaker of policy {policy.name} {'opened' if opened else 'closed'}: {why}"
            self._told(occasion, text, {"policy": policy.name, "why": why, "hook": policy.escalation.hook})
        return onsets

    def _write_down(self, decisions: tuple[Decision, ...], now: float) -> None:
        news = self._notebook.write_down(decisions, now)
        for line in told_alike(news):
            self._say(f"autopilot: {line}")
        for decision in news:
            self.counts["decision", decision.act] += 1
            policy, name = decision.policy, decision.trouble.component
            if policy is None:
                continue
            if policy.how is not How.NOTIFY and decision.reason in _HOLDS:
                text = f"{self.rack}: nothing is done about {name}: {decision.because}"
                self._tell(Occasion.HELD, text, told_of(policy, decision))

    def _do(self, look: Observation, decision: Decision, policy: Policy, onsets: breaker.Onsets) -> bool:
        """Do what was decided; whether that was something after which the rack is to be looked at anew."""
        match decision.act:
            case Act.NOTIFY:
                saw = f"{self.rack}: {decision.finding.state}: {decision.trouble.component}: {decision.because}"
                self._tell(Occasion.FOUND, saw, told_of(policy, decision))
                self._notebook.remark(Event.TOLD, self._now(), key=decision.trouble.key, policy=policy.name)
            case Act.PLAN | Act.ASK | Act.APPLY:
                with self._open_site(look.inventory) as site:
                    self._act(site, decision, policy, onsets)
                self._acted_at = self._now()
                return True
            case _:
                self._escalate(decision, policy)
        return False

    def _escalate(self, decision: Decision, policy: Policy) -> None:
        """Tell again where nobody has answered for too long."""
        ask, now = self.memory.asks.get(decision.plan or ""), self._now()
        done = self.memory.handled.get(decision.trouble.key)
        if ask is None or ask.state is not AskState.ASKED or (done is not None and done.event is Event.ESCALATED):
            return
        if now - ask.at >= policy.escalation.after_s:
            text = f"{self.rack}: {ask.plan} for {decision.trouble.component} still waits for approval"
            self._told(Occasion.ESCALATED, text, told_of(policy, decision, plan=ask.plan))
            self._notebook.remark(Event.ESCALATED, now, key=decision.trouble.key, policy=policy.name, plan=ask.plan)

    def _act(self, site: Site, decision: Decision, policy: Policy, onsets: breaker.Onsets) -> None:
        seen = site.observe()
        memory = replace(self.memory, stopped=self.stopped())
        fresh = again(decision, seen, memory, onsets, now=self._now())
        if fresh is None or fresh.act is not decision.act:
            self._later(decision)
            said = "it is over" if fresh is None else fresh.because
            self._say(f"autopilot: {decision.trouble.component}: by a fresh reading: {said}")
            if fresh is not None:
                others = (d for d in self.decisions if d.trouble.key != fresh.trouble.key)
                self._write_down((fresh, *others), self._now())
            return
        plan = self._plan(site, fresh, policy, seen)
        if plan is None:
            return
        key, now, told = fresh.trouble.key, self._now(), told_of(policy, fresh, plan=plan.id, title=plan.title)
        aimed = plan.id if plan.target == "rack" else f"{plan.id} --target {plan.target}"
        if fresh.act is Act.APPLY:
            self._apply(site, plan, fresh, policy)
        elif fresh.act is Act.ASK:
            ask_approval(site, plan, policy, made_by=name_of(policy))
            self._notebook.remark(Event.ASKED, now, key=key, policy=policy.name, plan=plan.id)
            self._told(Occasion.ASKED, f"{self.rack}: {plan.title}: lumctl swap approve {aimed}", told)
        else:
            self._notebook.remark(Event.PLANNED, now, key=key, policy=policy.name, plan=plan.id)
            self._told(Occasion.PLANNED, f"{self.rack}: {plan.title}: lumctl swap apply {aimed}", told)

    def _plan(self, site: Site, decision: Decision, policy: Policy, seen: Observation) -> Plan | None:
        """The plan that was approved, or a new one, which is kept."""
        try:
            if decision.act is Act.APPLY and decision.plan is not None:
                plan = from_document(self._store.plan(decision.plan))
                if self._store.approval(plan.digest) is None:
                    raise RefusedError(f"what was approved as {decision.plan} is another plan than the one kept here")
                return plan
            plan = plan_for(site, decision, seen)
            self._store.save_plan(to_document(plan))
        except LumctlError as error:
            self._later(decision)
            text = f"{self.rack}: no plan for {decision.trouble.component}: {error.message}"
            self._told(Occasion.FAILED, text, told_of(policy, decision))
            return None
        return plan

    def _apply(self, site: Site, plan: Plan, decision: Decision, policy: Policy) -> None:
        replaced = [replacement.failed for replacement in plan.replacements]
        told = {"plan": plan.id, "policy": policy.name, "key": decision.trouble.key, "accelerators": replaced}
        # This also takes in what others have remarked: a person may have stopped it in this moment.
        self._notebook.remark(Event.ATTEMPT, self._now(), who=name_of(policy), **told)
        if (why := self.stopped()) is not None:
            ended = Ended("refused", told=f"the autopilot was stopped {why}")
        else:
            ended = carry_out(
                site, plan, policy, lambda line: self._say(f"autopilot: {line}"), self._require_not_stopped
            )
        self._end(plan.id, decision.trouble.key, ended, policy, told_of(policy, decision, plan=plan.id))

    def _require_not_stopped(self) -> None:
        """Refuse to begin if the autopilot was stopped meanwhile, in this process or through the journal.

        Raises:
            RefusedError: the autopilot is stopped.
            StoreError: the journal cannot be read.
        """
        self._notebook.recall((), self._now(), whole=False)
        if (why := self.stopped()) is not None:
            raise RefusedError(f"the autopilot was stopped {why}")

    def _end(self, plan: str, key: str, ended: Ended, policy: Policy | None, data: Mapping[str, Any]) -> None:
        """Write down how an attempt ended, and tell; what nobody knows stops the autopilot of this rack."""
        run = f" ({ended.run})" if ended.run else ""
        self.counts["attempt", ended.outcome or "unknown"] += 1
        if ended.outcome is None:
            why = f"how {plan}{run} ended is not known{f': {ended.told}' if ended.told else ''}"
            self.memory.halted = why  # also where it cannot be written down
            self._told(Occasion.HALTED, f"{self.rack}: the autopilot has stopped itself: {why}", data)
            self._notebook.remark(Event.HALT, self._now(), why=why, run=ended.run)
        outcome = ended.outcome or "unknown"
        self._notebook.remark(Event.OUTCOME, self._now(), plan=plan, run=ended.run, outcome=outcome, told=ended.told)
        if (kept := self._store.plan(plan)) is not None and self._store.approval(kept["digest"]) is not None:
            by = name_of(policy) if policy is not None else WHO
            self._store.spend_approval(kept["digest"], why=outcome, by=by, at=self._now())
        if ended.outcome is None:
            return
        if outcome != "done":
            self._retry_at[key] = self._now() + RETRY_S
        said = f"{self.rack}: {plan}{run}: {outcome}{f': {ended.told}' if ended.told else ''}"
        self._told(Occasion.APPLIED if outcome == "done" else Occasion.FAILED, said, {**data, "run": ended.run})

    def _later(self, decision: Decision) -> None:
        self._retry_at[decision.trouble.key] = self._now() + RETRY_S

    def _told(self, occasion: Occasion, text: str, data: Mapping[str, Any]) -> None:
        self._say(f"autopilot: {text}")
        self._tell(occasion, text, {"rack": self.rack, **data})
