"""The autopilot of one rack, and of an inventory. It runs in its own thread, so that it delays no observation."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lumctl.change.approval import ask as ask_approval
from lumctl.change.plan import Plan, from_document, to_document
from lumctl.context import Context, Observation
from lumctl.daemon.autopilot import stop_switch
from lumctl.daemon.autopilot.attempt import AttemptResult, again, carry_out, how_it_ended, name_of, plan_for
from lumctl.daemon.autopilot.decision import Decision, Response, decide, decision_document
from lumctl.daemon.autopilot.faults import faults_of
from lumctl.daemon.autopilot.journal import WHO, AutopilotJournal
from lumctl.daemon.autopilot.memory import AskState, AutopilotMemory, Event
from lumctl.daemon.autopilot.policy import Onsets, breaker_changes, kept_onsets_s, onsets_of
from lumctl.daemon.notifications.message import AutopilotOccasion
from lumctl.daemon.process import ErrorLog
from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import How, Policy
from lumctl.store import Store
from lumctl.swap.demand_queue import queue_demands
from lumctl.swap.explanations import NoSpareError

if TYPE_CHECKING:
    from lumctl.inventory.wiring import Assignment

RETRY_S = 60.0
"""Seconds before a fault is handled again after a failed or refused attempt."""
_HOLDS = frozenset({"accelerator-week", "rack-hour", "rack-day", "halt", "pause"})
"""The reasons for doing nothing that operators are notified of."""


class Notify(Protocol):
    """Sends a message to the receivers: ``text`` is a line for people, ``data`` has ``rack`` and details.

    ``data["hook"]``, if set, names the receiver that also gets escalations.
    """

    def __call__(self, occasion: str, text: str, data: Mapping[str, Any], /) -> None:
        """Send a message; this must neither wait for a receiver nor raise."""


class RackPilot:
    """Decides and acts in one rack."""

    def __init__(
        self,
        rack: str,
        store: Store,
        open_context: Callable[[Inventory], Context],
        tell: Notify,
        say: Callable[[str], None],
        *,
        stopped: Callable[[], str | None],
        now: Callable[[], float],
    ) -> None:
        """``stopped`` returns the reason if this process itself was ordered to stop."""
        self.rack = rack
        self.counts: Counter[tuple[str, str]] = Counter()
        """Decisions by act, and attempts by outcome: ``("decision", "nothing")``, ``("attempt", "done")``."""
        self.decisions: tuple[Decision, ...] = ()
        self._store, self._journal = store, AutopilotJournal(store)
        self._open_context = open_context
        self._tell, self._say = tell, say
        self._stopped_here, self._now = stopped, now
        self._onsets: dict[tuple[str, str], float] | None = None
        self._retry_at: dict[str, float] = {}
        self._placed: Assignment | None = None
        self._in_vain: dict[str, str] = {}
        """Why the faults that no spare can serve were not queued, as it was last reported."""
        self._acted_at = 0.0

    @property
    def memory(self) -> AutopilotMemory:
        """What the autopilot knows about its past."""
        return self._journal.memory

    @property
    def stop_files(self) -> tuple[Path, ...]:
        """The stop files that stop this rack's autopilot."""
        return stop_switch.places([self.rack], [self._store.files])

    def stopped(self) -> str | None:
        """Why the autopilot is stopped; ``None`` if it runs."""
        return self._stopped_here() or stop_switch.thrown(self.stop_files) or self.memory.stopped

    def consider(self, look: Observation) -> None:
        """Decide about one observation, write new decisions, and make at most one plan or swap.

        Raises:
            LumctlError: the store could not be read or written; no further action follows.
        """
        if look.at < self._acted_at:
            return  # the observation was made before the last action ended
        policies, now = look.inventory.policies, self._now()
        # Where jobs have moved, what was refused before may be possible now: a spare may be free again.
        if look.assignment != self._placed:
            self._placed = look.assignment
            self._retry_at.clear()
        at_fault = any(fault.rack == self.rack for fault in faults_of(look))
        self._journal.recall(policies, now, whole=at_fault)
        # Before any decision: an attempt whose outcome is unknown halts the autopilot.
        self._settle_attempts(look, now)
        onsets = self._mind_the_breakers(look, now)
        # A stop file, or an order to this process, is in no remark.
        memory = replace(self.memory, stopped=self.stopped())
        self.decisions = decide(policies, look, self.rack, memory, onsets, now=now)
        self._write_down(self.decisions, now)
        for decision in self.decisions:
            if decision.policy is None or now < self._retry_at.get(decision.fault.key, now):
                continue
            if self._do(look, decision, decision.policy, onsets):
                return

    def _settle_attempts(self, look: Observation, now: float) -> None:
        """Determine the result of attempts if neither this process nor an earlier one recorded it."""
        for attempt in self.memory.open_attempts:
            kept = self._store.runs.plan(attempt.plan)
            digest = str(kept["digest"]) if kept else ""
            ended = how_it_ended(self._store, digest, since=attempt.at, now=now)
            if ended.outcome != "running":
                policy = next((p for p in look.inventory.policies if p.name == attempt.policy), None)
                hook = policy.escalation.hook if policy is not None else None
                self._end(attempt.plan, attempt.key, ended, policy, {"rack": self.rack, "hook": hook})

    def _mind_the_breakers(self, look: Observation, now: float) -> Onsets:
        policies = [policy for policy in look.inventory.policies if policy.how is not How.NOTIFY]
        keep_s = kept_onsets_s(policies)
        # After a restart, the history tells what failed before: a breaker must not forget a storm.
        kept = self._journal.onsets(since=now - keep_s) if self._onsets is None else self._onsets
        self._onsets = onsets = onsets_of(look, self.rack, kept, keep_s=keep_s)
        # A list first: each remark below changes the breakers that the generator reads.
        for policy, state, why in list(breaker_changes(policies, self.memory.breakers, look, self.rack, onsets, now)):
            opened = state.open_since is not None
            event = Event.BREAKER_OPENED if opened else Event.BREAKER_CLOSED
            self._journal.remark(event, now, policy=policy.name, why=why)
            occasion = AutopilotOccasion.BREAKER_OPENED if opened else AutopilotOccasion.BREAKER_CLOSED
            text = f"{self.rack}: the circuit breaker of policy {policy.name} {'opened' if opened else 'closed'}: {why}"
            self._notify(occasion, text, {"policy": policy.name, "why": why, "hook": policy.escalation.hook})
        return onsets

    def _write_down(self, decisions: tuple[Decision, ...], now: float) -> None:
        news = self._journal.write_down(decisions, now)
        for line in decision_lines(news):
            self._say(f"autopilot: {line}")
        for decision in news:
            self.counts["decision", decision.act] += 1
            policy, name = decision.policy, decision.fault.component
            if policy is None:
                continue
            if policy.how is not How.NOTIFY and decision.reason in _HOLDS:
                text = f"{self.rack}: no action on {name}: {decision.because}"
                self._tell(AutopilotOccasion.HELD, text, message_data(policy, decision))

    def _do(self, look: Observation, decision: Decision, policy: Policy, onsets: Onsets) -> bool:
        """Do what was decided; return whether the rack must be observed again before another action."""
        match decision.act:
            case Response.NOTIFY:
                saw = f"{self.rack}: {decision.finding.state}: {decision.fault.component}: {decision.because}"
                # Before the remark: if the store refuses that, the message is sent again, not lost.
                self._tell(AutopilotOccasion.FOUND, saw, message_data(policy, decision))
                self._journal.remark(Event.TOLD, self._now(), key=decision.fault.key, policy=policy.name)
            case Response.PLAN | Response.ASK | Response.APPLY:
                with self._open_context(look.inventory) as context:
                    self._act(context, decision, policy, onsets)
                self._acted_at = self._now()
                return True
            case _:
                self._escalate(decision, policy)
        return False

    def _escalate(self, decision: Decision, policy: Policy) -> None:
        """Notify operators of an overdue approval."""
        ask, now = self.memory.asks.get(decision.plan or ""), self._now()
        done = self.memory.handled.get(decision.fault.key)
        if ask is None or ask.state is not AskState.ASKED or (done is not None and done.event is Event.ESCALATED):
            return
        if now - ask.at >= policy.escalation.after_s:
            text = f"{self.rack}: {ask.plan} for {decision.fault.component} still waits for approval"
            self._notify(AutopilotOccasion.ESCALATED, text, message_data(policy, decision, plan=ask.plan))
            self._journal.remark(Event.ESCALATED, now, key=decision.fault.key, policy=policy.name, plan=ask.plan)

    def _act(self, context: Context, decision: Decision, policy: Policy, onsets: Onsets) -> None:
        # The decision rests on the daemon's observation, which may be old by now.
        seen = context.observe()
        memory = replace(self.memory, stopped=self.stopped())
        fresh = again(decision, seen, memory, onsets, now=self._now())
        if fresh is None or fresh.act is not decision.act:
            self._later(decision)
            said = "it is over" if fresh is None else fresh.because
            self._say(f"autopilot: {decision.fault.component}: after another reading: {said}")
            if fresh is not None:
                others = (d for d in self.decisions if d.fault.key != fresh.fault.key)
                # With the others: a fault that is not among the decisions would be written down as over.
                self._write_down((fresh, *others), self._now())
            return
        plan = self._plan(context, fresh, policy, seen)
        if plan is None:
            return
        key, now, told = fresh.fault.key, self._now(), message_data(policy, fresh, plan=plan.id, title=plan.title)
        aimed = plan.id if plan.target == "rack" else f"{plan.id} --target {plan.target}"
        if fresh.act is Response.APPLY:
            self._apply(context, plan, fresh, policy)
        elif fresh.act is Response.ASK:
            ask_approval(context, plan, policy, made_by=name_of(policy))
            self._journal.remark(Event.ASKED, now, key=key, policy=policy.name, plan=plan.id)
            self._notify(AutopilotOccasion.ASKED, f"{self.rack}: {plan.title}: lumctl swap approve {aimed}", told)
        else:
            self._journal.remark(Event.PLANNED, now, key=key, policy=policy.name, plan=plan.id)
            self._notify(AutopilotOccasion.PLANNED, f"{self.rack}: {plan.title}: lumctl swap apply {aimed}", told)

    def _plan(self, context: Context, decision: Decision, policy: Policy, seen: Observation) -> Plan | None:
        """The approved plan, or a new one, which is saved."""
        try:
            if decision.act is Response.APPLY and decision.plan is not None:
                plan = from_document(self._store.runs.plan(decision.plan))
                if self._store.approvals.get(plan.digest) is None:
                    raise RefusedError(f"the plan approved as {decision.plan} differs from the stored plan of that id")
                return plan
            plan = plan_for(context, decision, seen)
            self._store.runs.save_plan(to_document(plan))
        except NoSpareError as error:
            self._later(decision)
            self._queue(decision, policy, seen, error)
            return None
        except LumctlError as error:
            self._later(decision)
            text = f"{self.rack}: no plan for {decision.fault.component}: {error.message}"
            self._notify(AutopilotOccasion.FAILED, text, message_data(policy, decision))
            return None
        return plan

    def _queue(self, decision: Decision, policy: Policy, seen: Observation, error: NoSpareError) -> None:
        """Let the jobs of a fault wait for spares; report it once."""
        failed = [name for accelerators in decision.fault.jobs.values() for name in accelerators]
        if self.memory.queued.issuperset(failed):
            return
        try:
            asked = queue_demands(self._store, seen, self.rack, failed, why=error.message, who=name_of(policy))
            waits = f"{error.message}; {', '.join(each.id for each in asked)} in the queue: lumctl spare queue"
        except RefusedError as refused:
            waits = f"{error.message}; {refused.message}"
            if self._in_vain.get(decision.fault.key) == refused.message:
                return
            self._in_vain[decision.fault.key] = refused.message
        text = f"{self.rack}: no plan for {decision.fault.component}: {waits}"
        self._notify(AutopilotOccasion.FAILED, text, message_data(policy, decision))

    def _apply(self, context: Context, plan: Plan, decision: Decision, policy: Policy) -> None:
        replaced = [replacement.failed for replacement in plan.replacements]
        told = {"plan": plan.id, "policy": policy.name, "key": decision.fault.key, "accelerators": replaced}
        # This also reads the remarks of others: an operator may have just stopped the autopilot.
        self._journal.remark(Event.ATTEMPT, self._now(), who=name_of(policy), **told)
        if (why := self.stopped()) is not None:
            ended = AttemptResult("refused", told=f"the autopilot was stopped {why}")
        else:
            ended = carry_out(
                context, plan, policy, lambda line: self._say(f"autopilot: {line}"), self._require_not_stopped
            )
        self._end(plan.id, decision.fault.key, ended, policy, message_data(policy, decision, plan=plan.id))

    def _require_not_stopped(self) -> None:
        """Refuse to begin if the autopilot has been stopped: in this process, by a stop file or in the journal.

        Raises:
            RefusedError: the autopilot is stopped.
            StoreError: the journal cannot be read.
        """
        self._journal.recall((), self._now(), whole=False)
        if (why := self.stopped()) is not None:
            raise RefusedError(f"the autopilot was stopped {why}")

    def _end(self, plan: str, key: str, ended: AttemptResult, policy: Policy | None, data: Mapping[str, Any]) -> None:
        """Record and report the result of an attempt; an unknown outcome stops the autopilot of this rack."""
        run = f" ({ended.run})" if ended.run else ""
        self.counts["attempt", ended.outcome or "unknown"] += 1
        if ended.outcome is None:
            why = f"the result of {plan}{run} is unknown{f': {ended.told}' if ended.told else ''}"
            self.memory.halted = why  # holds even if the journal cannot be written
            # Before the remark: the store may be what fails.
            self._notify(AutopilotOccasion.HALTED, f"{self.rack}: the autopilot has stopped itself: {why}", data)
            self._journal.remark(Event.HALT, self._now(), why=why, run=ended.run)
        outcome = ended.outcome or "unknown"
        self._journal.remark(Event.OUTCOME, self._now(), plan=plan, run=ended.run, outcome=outcome, told=ended.told)
        # A spent request does not start the same plan again.
        if (kept := self._store.runs.plan(plan)) is not None and self._store.approvals.get(kept["digest"]) is not None:
            by = name_of(policy) if policy is not None else WHO
            self._store.approvals.spend(kept["digest"], why=outcome, by=by, at=self._now())
        if ended.outcome is None:
            return
        if outcome != "done":
            self._retry_at[key] = self._now() + RETRY_S
        said = f"{self.rack}: {plan}{run}: {outcome}{f': {ended.told}' if ended.told else ''}"
        self._notify(
            AutopilotOccasion.APPLIED if outcome == "done" else AutopilotOccasion.FAILED,
            said,
            {**data, "run": ended.run},
        )

    def _later(self, decision: Decision) -> None:
        self._retry_at[decision.fault.key] = self._now() + RETRY_S

    def _notify(self, occasion: AutopilotOccasion, text: str, data: Mapping[str, Any]) -> None:
        self._say(f"autopilot: {text}")
        self._tell(occasion, text, {"rack": self.rack, **data})


class Pilot:
    """Considers the newest observation and does what policies allow. Without policies it starts no thread."""

    def __init__(
        self,
        open_context: Callable[[Inventory], Context],
        store: Callable[[str], Store],
        say: Callable[[str], None],
        *,
        tell: Notify,
        errors: ErrorLog,
    ) -> None:
        self._open_context, self._store = open_context, store
        self._say, self._tell, self._errors = say, tell, errors
        self._changed = threading.Condition()
        self._look: Observation | None = None
        self._ended = False
        self._stopped: str | None = None
        self._thread: threading.Thread | None = None
        self._stores: list[Store] = []
        self.racks: Mapping[str, RackPilot] = {}
        """The pilot of each rack, by name. The mapping is replaced, never changed."""
        self.busy = False
        """Whether the autopilot is working on an observation; then a swap may be in progress."""

    def see(self, look: Observation) -> None:
        """Accept an observation; it replaces an earlier one that was not yet considered. Never waits."""
        if not look.inventory.policies and self._thread is None:
            return
        with self._changed:
            self._look = look
            if self._thread is None and not self._ended:
                self._thread = threading.Thread(target=self._run, name="lumctl-autopilot", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self, why: str) -> None:
        """Do nothing more until :meth:`start`. Any thread may call this; it needs nothing on disk."""
        self._stopped = why

    def start(self) -> None:
        """Undo :meth:`stop`."""
        self._stopped = None

    @property
    def stopped(self) -> str | None:
        """The reason given to :meth:`stop`, until :meth:`start`; ``None`` otherwise."""
        return self._stopped

    def close(self) -> None:
        """End. A run in progress is first finished or rolled back by its engine."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None:
            if self.busy:
                self._say("autopilot: waiting for the run in progress")
            self._thread.join()
        for store in self._stores:
            store.close()

    def states(self) -> dict[str, Any]:
        """The state for metrics, by rack: whether the autopilot may act, which breakers are open, and the counts."""
        return {
            rack: {
                "running": pilot.stopped() is None and pilot.memory.halted is None,
                "breakers": {name: state.open_since is not None for name, state in pilot.memory.breakers.items()},
                "counts": dict(pilot.counts),
            }
            for rack, pilot in self.racks.items()
        }

    def _run(self) -> None:
        while (look := self._next()) is not None:
            try:
                self._consider(look)
            finally:
                self.busy = False

    def _next(self) -> Observation | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._look is not None)
            look, self._look = self._look, None
            # Under the lock, so that close() does not take a pilot that has just begun for idle.
            self.busy = not self._ended
            return None if self._ended else look

    def _consider(self, look: Observation) -> None:
        for rack in look.inventory.racks:
            place = f"autopilot of {rack}"
            try:
                self._pilot(rack).consider(look)
            except Exception as error:  # noqa: BLE001 - one rack's error must not stop the others, nor the next observation
                self._errors.record(place, error)
            else:
                self._errors.resolve(place)

    def _pilot(self, rack: str) -> RackPilot:
        if rack not in self.racks:
            store = self._store(rack)
            self._stores.append(store)
            pilot = RackPilot(
                rack, store, self._open_context, self._tell, self._say, stopped=lambda: self._stopped, now=time.time
            )
            self.racks = {**self.racks, rack: pilot}
        return self.racks[rack]


def decision_lines(decisions: Iterable[Decision]) -> Iterator[str]:
    """Decisions of policies as lines for people: one line for each reason, with all components that share it."""
    alike: dict[str, list[str]] = {}
    for decision in decisions:
        if decision.policy is not None:
            what = f"{decision.act} ({decision.policy.name}): {decision.because}"
            alike.setdefault(what, []).append(decision.fault.component)
    for what, components in alike.items():
        yield f"{', '.join(fold(components))}: {what}"


def message_data(policy: Policy | None, decision: Decision, **more: Any) -> dict[str, Any]:
    """The data of a message about a decision."""
    hook = policy.escalation.hook if policy is not None else None
    return {"rack": decision.fault.rack, "hook": hook, "decision": decision_document(decision, briefly=True), **more}
