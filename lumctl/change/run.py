"""One execution of a plan under a lease: each step journalled before and after, and undone in reverse."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, Self

from lumctl.change.abreast import Abreast
from lumctl.change.certainty import Certainty
from lumctl.change.circuits import circuits_before_and_after, placed_by
from lumctl.change.guarded import Cover, one_way
from lumctl.change.job_step import facts_of, resumes
from lumctl.change.ledger import Ledger, device_of
from lumctl.change.light import Proof
from lumctl.change.outcomes import NOTHING_SENT, Did
from lumctl.change.plan import Do, Plan, Step, from_document, to_document
from lumctl.change.steps import ACTIONS, Bench, Evidence, Verify
from lumctl.change.trail import Trail, as_first_found
from lumctl.errors import LumctlError
from lumctl.site import Site
from lumctl.store import Lease, LeaseLostError, Store, StoreError
from lumctl.store import Run as StoredRun

MOST_AT_A_HOST, MOST_AT_ONCE = 8, 32
"""sshd lets ten commands run over one connection (MaxSessions); the loop that reads a host's probes is one of them."""


class Run:
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
        self._acting: Abreast[Did] = Abreast()
        self._wrote = False
        self._evidence: dict[str, Evidence] = {}
        self._failed: dict[str, str] = {}

    @classmethod
    def begun(cls, site: Site, plan: Plan, store: Store, lease: Lease, who: str, cover: Cover) -> Self:
        """A run that begins now."""
        values = {
            "kind": plan.kind,
            "target": plan.target,
            "title": plan.title,
            "plan_digest": plan.digest,
            "inventory_digest": plan.inventory_digest,
            "who": who,
        }
        run_id = store.begin_run(lease, values, to_document(plan), now=site.now())
        return cls(site, plan, store, lease, run_id, cover=cover)

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
        return any(one_way(step) for step in self._attempted)

    @property
    def not_resumed(self) -> dict[str, str]:
        """The jobs that were to go on and do not, with the reason."""
        return {str(s.data["job"]): self._failed.get(s.id, "") for s in self.plan.steps if self._is_still(s)}

    def _is_still(self, step: Step) -> bool:
        return resumes(step) and (step.id in self._failed or step.id not in self._evidence)

    def relight(self, step: Step) -> None:
        """Light what a verification may have left dark that was cut in mid-blink."""
        ACTIONS[step.do].undo(self._bench, step, None)

    def proofs(self) -> tuple[Proof, ...]:
        """The light that was proved so far."""
        return tuple(Proof(**proof) for evidence in self._evidence.values() for proof in evidence.get("proofs", ()))

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
        attempted = list(self._attempted)
        devices = [device for step in steps if (device := device_of(step)) is not None]
        self._held = {device: self._site.known_cells(device) for device in devices}
        # Before the journal: an interrupt may come between the two.
        self._attempted += [step for step in steps if step not in attempted]
        for step in steps:
            if "was" not in self._evidence.get(step.id, {}):
                self._evidence.pop(step.id, None)  # of when it was done before
        try:
            self.ledger.intend(steps)
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
            evidence = ACTIONS[step.do].act(self._bench, step)
        except Exception as failure:  # noqa: BLE001 - it is raised once the others have ended
            return Did(step, perf_counter() - began, failure=failure)
        return Did(step, perf_counter() - began, evidence)

    def _learn(self, did: Did) -> None:
        """What a step did is known from here on, and due to be written down."""
        step, device, due = did.step, device_of(did.step), self.ledger.due
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

    def undo(self) -> list[str]:
        """Take back every attempted step in reverse, as far as each goes; what went wrong is returned, in words."""
        troubles: list[str] = []
        try:
            for did in self._acting.rest():  # an interrupt does not stop those that act beside each other
                self._learn(did)
            with suppress(StoreError):
                self.ledger.settle()
        except LeaseLostError as error:
            return [error.message]
        for step in sorted(self._attempted, key=self.plan.steps.index, reverse=True):
            if one_way(step):
                troubles.append(f"{step.data['device']} was written whole: what it held before was not known")
                continue
            try:
                self._undo(step)
            except LeaseLostError as error:
                return [*troubles, error.message]
            except Exception as error:  # noqa: BLE001 - one step's trouble must not keep the others from being undone
                said = error.message if isinstance(error, LumctlError) else f"{type(error).__name__}: {error}"
                troubles.append(f"{step.title}: {said}")
        if not troubles and (self._wrote or any(step.do is Do.PROGRAM for step in self._attempted)):
            troubles += Verify.as_before(self._bench, self.plan.steps)
        try:
            self.ledger.settle()
        except LumctlError as error:
            troubles.append(f"what was undone could not be written down: {error.message}")
        return troubles

    def _undo(self, step: Step) -> None:
        """Take one step back; what cannot be written down stays due."""
        self.ledger.intend_undo(step)
        try:
            undone = {"undone": True, **ACTIONS[step.do].undo(self._bench, step, self._evidence.get(step.id))}
        except LumctlError as error:
            self.ledger.conclude_undo(step, {"undone": False, "failed": error.message})
            if step.required:
                raise
            return  # nothing is certain by it
        placed = placed_by(step.data["before"]) if step.do is Do.ASSIGN else {}
        device = device_of(step)
        states = {device: self._certain.cells(step, after=False)} if device else {}
        self.ledger.conclude_undo(step, undone, states, placed)

    def end(self, state: str, data: Mapping[str, Any], *, undid: str | None = None) -> None:
        """Close the run in its final state."""
        self.ledger.end(state, data, undid=undid)

    def close(self, seconds: float) -> str:
        """End a run whose every step is done: as done, or half done where a job was to go on and does not."""
        idle = self.not_resumed
        said = {"seconds": round(seconds, 4), **({"not_resumed": idle} if idle else {})}
        self.end("half-done" if idle else "done", said, undid=None if idle else self.plan.undoes)
        return "half-done" if idle else "done"
