"""One execution of a plan under a lease: each step journalled before and after, and undone in reverse."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, Self

from lumctl.change.advice import plan_again
from lumctl.change.circuits import circuits_before_and_after, placed_by
from lumctl.change.concurrency import MOST_AT_A_HOST, MOST_AT_ONCE, Concurrent
from lumctl.change.guard_scope import Cover
from lumctl.change.job_step import facts_of
from lumctl.change.ledger import Ledger, begin
from lumctl.change.outcomes import NOTHING_SENT, Certainty, Did
from lumctl.change.plan import Do, Plan, Step, from_document
from lumctl.change.rollback import Undoing
from lumctl.change.steps import ACTIONS, Bench, Evidence
from lumctl.change.trail import Trail, as_first_found
from lumctl.errors import LumctlError
from lumctl.site import Site
from lumctl.store import Lease, Store, StoreError
from lumctl.store import Run as StoredRun


class Run(Undoing):
    """A run in progress: ``intend`` a stage, ``act`` on it, and so on, then ``end`` it; or ``undo`` and ``end`` it.

    What a stage did goes to disk with the intents of the next one or with the end, unless ``settle`` is called before.
    """

    def __init__(
        self, site: Site, plan: Plan, store: Store, lease: Lease, run_id: str, *, cover: Cover, by: str | None = None
    ) -> None:
        self.id = run_id
        self.plan = plan
        self.complete = False
        """Whether every step was done when this process took the run over, but for jobs that are to go on."""
        self.to_resume: tuple[Step, ...] = ()
        """The steps by which jobs go on that nobody came to."""
        self.ledger = Ledger(site, plan, store, lease, run_id, cover, by=by)
        self._certain = Certainty(site, plan)
        self._site = site
        site.act_under(lease)
        self._bench = Bench(site, *circuits_before_and_after(site, plan), covered=cover.names)
        self._bench.switched = [str(s.data["transponder"]) for s in plan.steps if s.do is Do.TRANSMIT]
        self._bench.facts = facts_of(plan, run_id)
        self._before = Trail(plan)
        self._attempted: list[Step] = []
        self._held: dict[str, Mapping[int, str]] = {}
        self._acting: Concurrent[Did] = Concurrent()
        self._wrote = False
        self._evidence: dict[str, Evidence] = {}
        self._failed: dict[str, str] = {}
        self.undone_as = "rolled-back"
        """The state of this run once it is undone."""

    @classmethod
    def begun(cls, site: Site, plan: Plan, store: Store, lease: Lease, who: str, cover: Cover) -> Self:
        """A run that begins now."""
        return cls(site, plan, store, lease, begin(site, plan, store, lease, who), cover=cover)

    @classmethod
    def resumed(
        cls, site: Site, store: Store, lease: Lease, stored: StoredRun, by: str, *, cover: Cover | None = None
    ) -> Self:
        """A run that another process began, as its journal has it; ``by`` signs what is added."""
        run = cls(site, from_document(stored.plan), store, lease, stored.id, cover=cover or Cover(), by=by)
        run._recall(Trail.of(run.plan, store.entries(stored.id)))
        return run

    def _recall(self, trail: Trail) -> None:
        self._before = trail
        self._wrote = any(step.do is Do.PROGRAM for step in self.plan.steps if step.id in trail.intended)
        self._attempted = list(trail.tried)
        self._evidence = dict(trail.found)
        for evidence in self._evidence.values():
            self._bench.sound |= evidence.get("sound", {})
            self._bench.powers |= evidence.get("powers", {})
            self._bench.lit |= evidence.get("transmitting", {})
        self.complete, self.to_resume = trail.complete, trail.to_resume

    @property
    def touched(self) -> bool:
        """Whether any step may have changed something."""
        return any(step.do not in {Do.CHECK, Do.VERIFY} for step in self._attempted)

    @property
    def wrote_whole(self) -> bool:
        """Whether a device was written whose states before were not known: there is no way back from that."""
        return any(step.has_no_undo for step in self._attempted)

    @property
    def not_resumed(self) -> dict[str, str]:
        """The jobs that were to go on and do not, with the reason."""
        return {str(s.data["job"]): self._failed.get(s.id, "") for s in self.plan.steps if self._is_still(s)}

    def _is_still(self, step: Step) -> bool:
        return step.resumes_job and (step.id in self._failed or step.id not in self._evidence)

    def again(self) -> str | None:
        """How to plan the same again; ``None`` for a replay, or where the store does not say what runs where."""
        if self.plan.kind in {"replay", "seed"}:
            return None
        with suppress(LumctlError):
            return plan_again(self._site, self.plan)
        return None

    def leave_alone(self, steps: Sequence[Step]) -> None:
        """Do not take these steps back: later runs have written over what they did."""
        self._attempted = [step for step in self._attempted if step not in steps]
        self._wrote = self._wrote and not any(step.do is Do.PROGRAM for step in steps)
        self.undone_as = "superseded" if steps else self.undone_as

    def narrate(self, say: Callable[[str], None]) -> None:
        """Report progress within steps to ``say``, which is called from several threads."""
        self._bench.say = say

    def unasked(self) -> Self:
        """Nobody has asked for what is undone: only that is undone which this run is shown to have done."""
        self._bench.unasked = True
        return self

    def relight(self, step: Step) -> None:
        """Light what a verification may have left dark that was cut in mid-blink."""
        with self.ledger.sending():
            ACTIONS[step.do].undo(self._bench, step, None)

    def evidence(self) -> tuple[Evidence, ...]:
        """What the steps have found so far."""
        return tuple(self._evidence.values())

    def perform(self, step: Step) -> str:
        """Do one step, by itself, up to its outcome on disk; a remark says why it was passed over."""
        self.intend([step])
        (did,) = self.act([step])
        self.ledger.settle()
        return did.remark

    def intend(self, steps: Sequence[Step]) -> None:
        """Write down that steps are about to act, together with what came of those before them.

        Raises:
            StoreError: it is not on disk; none of these may act.
            LeaseLostError: somebody else may act now.
        """
        found, attempted = self.ledger.seen_before(steps), list(self._attempted)  # there is nothing to take back yet
        self._held = {device: self._site.known_cells(device) for step in steps if (device := step.writes)}
        # Before the journal: an interrupt may come between the two.
        self._attempted += [step for step in steps if step not in attempted]
        for step in steps:
            if "was" not in self._evidence.get(step.id, {}):
                self._evidence.pop(step.id, None)  # of when it was done before
        self._evidence |= {step.id: found[step.id] for step in steps if step.id in found and step not in attempted}
        try:
            self.ledger.intend(steps, found)
        except StoreError:
            self._attempted = attempted
            raise

    def act(self, steps: Sequence[Step]) -> list[Did]:
        """Do steps that were intended, side by side; how each went.

        Raises:
            LumctlError: one that is required failed; all have ended, and what came of them is on disk.
        """
        through_hosts = any(step.do is Do.TRANSMIT for step in steps)
        calls = [partial(self._do, step) for step in steps]
        ended = self._acting.run(calls, most=MOST_AT_A_HOST if through_hosts else MOST_AT_ONCE)
        for did in ended:
            self._learn(did)
        for did in ended:
            if did.failure is not None and (did.step.required or not isinstance(did.failure, LumctlError)):
                with suppress(StoreError):  # then it stays due
                    self.ledger.settle()
                raise did.failure
        return ended

    def _do(self, step: Step) -> Did:
        began = perf_counter()
        try:
            with self.ledger.sending():
                evidence = ACTIONS[step.do].act(self._bench, step)
        except Exception as failure:  # noqa: BLE001 - it is raised once the others have ended
            return Did(step, perf_counter() - began, failure=failure)
        return Did(step, perf_counter() - began, evidence)

    def _learn(self, did: Did) -> None:
        """What a step did is known from here on, and due to be written down."""
        step, device, due = did.step, did.step.writes, self.ledger.due
        if not isinstance(did.failure, NOTHING_SENT):
            due.steps.append(step)
        if did.evidence is not None:
            self._failed.pop(step.id, None)
            self._evidence[step.id] = evidence = as_first_found(step, did.evidence, self._before)
            due.entries.append(self.ledger.record("outcome", step, {"done": True, **evidence}))
            due.states |= self._certain.after(step, self._attempted, self._bench.receipts)
            due.placed |= placed_by(step.data["assignment"]) if step.do is Do.ASSIGN else {}
        elif isinstance(did.failure, NOTHING_SENT):
            if step not in self._before.tried:  # else it may have acted then
                self._attempted.remove(step)
            said = {"failed": did.failure.message, "nothing_sent": True}
            due.entries.append(self.ledger.record("outcome", step, said))
            if device is not None and self._held.get(device):
                due.states[device] = self._held[device]
        elif isinstance(did.failure, LumctlError):
            due.entries.append(self.ledger.record("outcome", step, {"failed": did.failure.message}))
        if isinstance(did.failure, LumctlError):
            self._failed[step.id] = did.failure.message

    def end(self, state: str, data: Mapping[str, Any], *, undid: str | None = None) -> None:
        """Close the run in its final state."""
        self.ledger.end(state, data, undid=undid)

    def close(self, seconds: float) -> str:
        """End a run whose every step is done: as done, or half done where a job was to go on and does not."""
        idle = self.not_resumed
        said = {"seconds": round(seconds, 4), **({"not_resumed": idle} if idle else {})}
        self.end("half-done" if idle else "done", said, undid=None if idle else self.plan.undoes)
        return "half-done" if idle else "done"
