"""One execution of a plan under a lease: each step is recorded before and after, and undone in reverse."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, Self

from lumctl.change.concurrency import MOST_AT_A_HOST, MOST_AT_ONCE, Concurrent
from lumctl.change.foreign_circuits import circuits_before_and_after, placed_by
from lumctl.change.guard_scope import GuardScope
from lumctl.change.live_paths import NOTHING_TO_SWITCH, TransmitterChanges, switching_for
from lumctl.change.plan import Do, Plan, Step, StepEvidence, from_document
from lumctl.change.refusal_advice import plan_again
from lumctl.change.run_history import RunHistory, as_first_found
from lumctl.change.run_journal import NOTHING_SENT, Certainty, RunJournal, StepResult, begin
from lumctl.change.run_scope import RunScope
from lumctl.change.step_actions import ACTIONS, ProgramStep, VerifyStep, facts_of
from lumctl.context import Context
from lumctl.devices.errors import DeviceError
from lumctl.errors import LumctlError
from lumctl.inventory.wiring import Assignment
from lumctl.store import Lease, LeaseLostError, Store, StoredRun, StoreError


class RunInProgress:
    """A run in progress: ``intend`` and ``act`` for each stage, then ``end``; or ``undo`` and ``end``.

    The outcomes of a stage are written to disk with the intents of the next stage or with the end, unless ``settle`` is
    called earlier. That saves one transaction per stage.
    """

    placed_after: Assignment | None = None
    """The placement of the jobs once an operator has undone this run: transmitters are then switched to match."""

    def __init__(
        self,
        context: Context,
        plan: Plan,
        store: Store,
        lease: Lease,
        run_id: str,
        *,
        started_at: float,
        scope: GuardScope,
        by: str | None = None,
    ) -> None:
        self.id = run_id
        self.plan = plan
        self.complete = False
        """Whether every step was done when this process took over the run, except those that resume jobs."""
        self.to_resume: tuple[Step, ...] = ()
        """The steps that resume jobs and were not reached."""
        self.journal = RunJournal(context, plan, store, lease, run_id, scope, started_at=started_at, by=by)
        self._certain = Certainty(context, plan)
        self._context = context
        context.act_under(lease)
        self._view = RunScope(context, *circuits_before_and_after(context, plan), covered=scope.names)
        self._view.switched = [str(s.data["transponder"]) for s in plan.steps if s.do is Do.TRANSMIT]
        if plan.undoes is None:  # an undo is tried in any case
            self._view.proved = [name for s in plan.steps if s.do is Do.VERIFY for name in s.data["circuits"]]
        self._view.facts = facts_of(plan, run_id)
        self._before = RunHistory(plan)
        self._attempted: list[Step] = []
        self._held: dict[str, Mapping[int, str]] = {}
        self._acting: Concurrent[StepResult] = Concurrent()
        self._wrote = False
        self._evidence: dict[str, StepEvidence] = {}
        self._failed: dict[str, str] = {}
        self.undone_as = "rolled-back"
        """The state of this run once it is undone."""

    @classmethod
    def begun(cls, context: Context, plan: Plan, store: Store, lease: Lease, who: str, scope: GuardScope) -> Self:
        """Begin a run now."""
        now = context.now()
        run_id = begin(plan, store, lease, who, now)
        return cls(context, plan, store, lease, run_id, started_at=now, scope=scope)

    @classmethod
    def resumed(
        cls,
        context: Context,
        store: Store,
        lease: Lease,
        stored: StoredRun,
        by: str,
        *,
        scope: GuardScope | None = None,
    ) -> Self:
        """Rebuild a run of another process from its journal; ``by`` signs the entries that are added."""
        plan, scope = from_document(stored.plan), scope or GuardScope()
        run = cls(context, plan, store, lease, stored.id, started_at=stored.started_at, scope=scope, by=by)
        run._recall(RunHistory.of(run.plan, store.journal.of_run(stored.id)))
        return run

    def _recall(self, history: RunHistory) -> None:
        self._before = history
        # Writes that were undone since count too: their light may not have been proved after the undo.
        self._wrote = any(step.do is Do.PROGRAM for step in self.plan.steps if step.id in history.intended)
        self._attempted = list(history.tried)
        self._evidence = dict(history.found)
        for evidence in self._evidence.values():
            self._view.sound |= evidence.get("sound", {})
            self._view.powers |= evidence.get("powers", {})
            self._view.lit |= evidence.get("transmitting", {})
        self.complete, self.to_resume = history.complete, history.to_resume

    @property
    def touched(self) -> bool:
        """Whether any step may have changed something."""
        return any(step.do not in {Do.CHECK, Do.VERIFY} for step in self._attempted)

    @property
    def wrote_whole(self) -> bool:
        """Whether a device with unknown earlier states was written, which cannot be undone."""
        return any(step.has_no_undo for step in self._attempted)

    @property
    def not_resumed(self) -> dict[str, str]:
        """The jobs that should have been resumed but were not, with the reason."""
        return {str(s.data["job"]): self._failed.get(s.id, "") for s in self.plan.steps if self._is_still(s)}

    def _is_still(self, step: Step) -> bool:
        return step.resumes_job and (step.id in self._failed or step.id not in self._evidence)

    @property
    def stuck(self) -> Sequence[str]:
        """The PUCs that did not take the states that this process wrote."""
        return self._view.stuck

    @property
    def suspects(self) -> Sequence[str]:
        """The PUCs that the plan writes on the paths of new circuits whose light did not arrive."""
        written = {
            (step.data["device"], cell)
            for step in self.plan.steps
            if step.do is Do.PROGRAM
            for cell, _, _ in step.data["changes"]
        }
        dark = [circuit for circuit in self.plan.add if circuit.id in self._view.unproved]
        return tuple(dict.fromkeys(f"{d}/puc/{n}" for c in dark for d, n in c.pucs if (d, n) in written))

    def again(self) -> str | None:
        """How to plan the same change again; ``None`` for a replay, or if the store does not contain the placement."""
        if self.plan.kind in {"replay", "seed"}:
            return None
        with suppress(LumctlError):
            return plan_again(self._context, self.plan)
        return None

    def leave_alone(self, steps: Sequence[Step]) -> None:
        """Exclude these steps from an undo, because later runs have overwritten them."""
        self._attempted = [step for step in self._attempted if step not in steps]
        self._wrote = self._wrote and not any(step.do is Do.PROGRAM for step in steps)
        self.undone_as = "superseded" if steps else self.undone_as

    def narrate(self, say: Callable[[str], None]) -> None:
        """Report progress within steps to ``say``, which is called from several threads."""
        self._view.say = say

    def unasked(self) -> Self:
        """Undo, without an operator's consent, only the steps that this run is known to have done; return the run."""
        self._view.unasked = True
        return self

    def relight(self, step: Step) -> None:
        """Switch on the transmitters that an interrupted blink of a verify step may have left off."""
        with self.journal.sending():
            ACTIONS[step.do].undo(self._view, step, None)

    def evidence(self) -> tuple[StepEvidence, ...]:
        """What the steps have found so far."""
        return tuple(self._evidence.values())

    def perform(self, step: Step) -> str:
        """Do a single step until its outcome is on disk; return why it was skipped, or an empty text."""
        self.intend([step])
        (did,) = self.act([step])
        self.journal.settle()
        return did.remark

    def intend(self, steps: Sequence[Step]) -> None:
        """Record that steps are about to act, together with the outcomes of the steps before them.

        Raises:
            StoreError: the record is not on disk; none of these steps may act.
            LeaseLostError: another process may act now.
        """
        # First: if asking the hooks fails, there is nothing to undo yet.
        found, attempted = self.journal.job_states_before(steps), list(self._attempted)
        self._held = {device: self._context.known_cells(device) for step in steps if (device := step.writes)}
        # Noted before the journal is written, because an interrupt may come between the two.
        self._attempted += [step for step in steps if step not in attempted]
        for step in steps:
            if "was" not in self._evidence.get(step.id, {}):
                self._evidence.pop(step.id, None)  # from an earlier attempt
        self._evidence |= {step.id: found[step.id] for step in steps if step.id in found and step not in attempted}
        try:
            self.journal.intend(steps, found)
        # Not on disk, so none of them acts: an undo must not touch what they would have changed.
        except StoreError:
            self._attempted = attempted
            raise

    def act(self, steps: Sequence[Step]) -> list[StepResult]:
        """Do recorded steps at the same time; return the result of each.

        Raises:
            LumctlError: a required step failed; all steps have ended, and their outcomes are on disk.
        """
        through_hosts = any(step.do is Do.TRANSMIT for step in steps)
        calls = [partial(self._do, step) for step in steps]
        ended = self._acting.run(calls, most=MOST_AT_A_HOST if through_hosts else MOST_AT_ONCE)
        for did in ended:
            self._learn(did)
        # All outcomes are noted before the first failure is raised, because the undo needs them.
        for did in ended:
            if did.failure is not None and (did.step.required or not isinstance(did.failure, LumctlError)):
                with suppress(StoreError):  # then the outcomes stay pending
                    self.journal.settle()
                raise did.failure
        return ended

    def _do(self, step: Step) -> StepResult:
        began = perf_counter()
        try:
            with self.journal.sending():
                evidence = ACTIONS[step.do].act(self._view, step)
        except Exception as failure:  # noqa: BLE001 - it is raised once the others have ended
            return StepResult(step, perf_counter() - began, failure=failure)
        return StepResult(step, perf_counter() - began, evidence)

    def _learn(self, did: StepResult) -> None:
        """Note the result of a step; it stays pending until it is on disk."""
        step, device, pending = did.step, did.step.writes, self.journal.pending
        took = {"seconds": round(did.seconds, 4)}
        if not isinstance(did.failure, NOTHING_SENT):
            pending.steps.append(step)
        if did.evidence is not None:
            self._failed.pop(step.id, None)
            self._evidence[step.id] = evidence = as_first_found(step, did.evidence, self._before)
            pending.entries.append(self.journal.record("outcome", step, {"done": True, **evidence, **took}))
            pending.states |= self._certain.after(step, self._attempted, self._view.receipts)
            pending.placed |= placed_by(step.data["assignment"]) if step.do is Do.ASSIGN else {}
        elif isinstance(did.failure, NOTHING_SENT):
            if step not in self._before.tried:  # a step that was tried before may have acted then
                self._attempted.remove(step)
            said = {"failed": did.failure.message, "nothing_sent": True, **took}
            pending.entries.append(self.journal.record("outcome", step, said))
            # The intent made the device's record uncertain; nothing was sent, so the earlier states are certain again.
            if device is not None and self._held.get(device):
                pending.states[device] = self._held[device]
        elif isinstance(did.failure, LumctlError):
            pending.entries.append(self.journal.record("outcome", step, {"failed": did.failure.message, **took}))
        if isinstance(did.failure, LumctlError):
            self._failed[step.id] = did.failure.message

    def end(self, state: str, data: Mapping[str, Any], *, undid: str | None = None) -> None:
        """Close the run in its final state."""
        self.journal.end(state, data, undid=undid)

    def close(self) -> str:
        """End a run whose every step is done: as done, or as half done if a job was not resumed."""
        idle = self.not_resumed
        self.end(
            "half-done" if idle else "done",
            {"not_resumed": idle} if idle else {},
            undid=None if idle else self.plan.undoes,
        )
        return "half-done" if idle else "done"

    def undo(self) -> list[str]:
        """Undo every attempted step in reverse, as far as possible; return what went wrong, in words."""
        troubles: list[str] = []
        try:
            for did in self._acting.rest():  # an interrupt does not stop steps that act in threads
                self._learn(did)
            with suppress(StoreError):
                self.journal.settle()
        except LeaseLostError as error:
            return [error.message]
        # After a resume the attempted steps are not in the order of the plan.
        backwards = sorted(self._attempted, key=self.plan.steps.index, reverse=True)
        try:
            for step in backwards:
                if not step.pauses_job:
                    troubles += self._undone(step)
            # Before the proof, which fails if a transmitter that a circuit needs is dark.
            if self.placed_after is not None:
                troubles += self.switch(switching_for(self._view.context, self.plan.rack, self.placed_after))
            if not troubles and (self._wrote or any(step.do is Do.PROGRAM for step in self._attempted)):
                troubles += VerifyStep.as_before(self._view, self.plan.steps)
            is_dark = bool(troubles)
            # Jobs continue last, once the light is proved as before.
            for step in (each for each in backwards if each.pauses_job):
                stays = f"job {step.data['job']} stays paused: its light paths may be wrong"
                troubles += [stays] if is_dark else self._undone(step)
        except LeaseLostError as error:
            return [*troubles, error.message]
        try:
            self.journal.settle()
        except LumctlError as error:
            troubles.append(f"the undo could not be recorded: {error.message}")
        return troubles

    def switch(self, switching: TransmitterChanges) -> list[str]:
        """Switch transmitters other than those of the steps; return which required transmitters stay off, and why.

        Raises:
            LeaseLostError: another process may act now.
        """
        if switching == NOTHING_TO_SWITCH:
            return []
        self.journal.note("transmitters", {"light": list(switching.light), "darken": list(switching.darken)})
        troubles = []
        for lane in (*switching.light, *switching.darken):
            is_needed = lane in switching.light
            try:
                with self.journal.sending(), self._view.turn(lane):
                    self._view.context.devices.transponder(lane).set_transmit(is_needed)
            except DeviceError as error:
                troubles += [f"cannot turn on the transmitter of {lane}: {error.message}"] if is_needed else []
        return troubles

    def _undone(self, step: Step) -> list[str]:
        """Undo one step; return what went wrong: one failure must not keep the other steps from being undone."""
        if step.do is Do.PROGRAM:
            step = ProgramStep.with_held(self._view, step, self._evidence.get(step.id))
        if step.has_no_undo:
            return [f"all cells of {step.data['device']} were written, because their earlier states were unknown"]
        try:
            self._undo(step)
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001 - see above
            said = error.message if isinstance(error, LumctlError) else f"{type(error).__name__}: {error}"
            return [f"{step.title}: {said}"]
        return []

    def _undo(self, step: Step) -> None:
        """Undo one step; if the outcome cannot be recorded, it stays pending."""
        self.journal.intend_undo(step)
        try:
            with self.journal.sending():
                undone = {"undone": True, **ACTIONS[step.do].undo(self._view, step, self._evidence.get(step.id))}
        except LumctlError as error:
            self.journal.conclude_undo(step, {"undone": False, "failed": error.message})
            if step.required:
                raise
            return  # the states of its device stay uncertain
        placed = placed_by(step.data["before"]) if step.do is Do.ASSIGN else {}
        device = step.writes
        states = {device: self._certain.cells(step, after=False)} if device else {}
        self.journal.conclude_undo(step, undone, states, placed)
