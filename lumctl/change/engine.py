"""The engine: lease, intent before act, outcome after, proof of light, and undo in reverse when anything fails.

Every intent is on disk before its step acts. Killed at any point, the journal therefore names every step that may
have acted, and ``swap rollback RUN`` takes them back from there.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NoReturn

from lumctl.change import preconditions
from lumctl.change.light import NotProvedError, Proof
from lumctl.change.origin import origin
from lumctl.change.plan import Do, Plan, Step, to_document
from lumctl.change.steps import ACTIONS, Bench, Evidence, Verify
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import PucState
from lumctl.errors import HalfDoneError, LumctlError, RefusedError, RolledBackError
from lumctl.inventory.wiring import Circuit, circuits_of
from lumctl.site import Site
from lumctl.store import Lease, Record, Store, StoreError

LEASE_TERM_S = 30.0
"""Renewed with every intent; longer than any single step may take."""

Progress = Callable[[str], None]
Gate = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Phase:
    """A step as it went: what it did (``check``, ``program``, ...), its title, and how long it took."""

    name: str
    title: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run that was done: its id, the time of each step, and the light that was proved."""

    run: str
    plan: Plan
    outcome: str
    phases: tuple[Phase, ...]
    verified: tuple[Proof, ...]
    seconds: float


def _silent(_line: str) -> None:
    return None


def _at_once(_step: Step) -> None:
    return None


def apply(
    site: Site, plan: Plan, *, progress: Progress = _silent, before_step: Gate = _at_once, who: str | None = None
) -> RunResult:
    """Apply a plan. ``before_step`` is called before each step and may raise to stop the run, which is then undone.

    Raises:
        RefusedError: a precondition does not hold; nothing was done.
        RolledBackError: a step failed; all that was done is undone.
        HalfDoneError: a step failed and so did its undo; the journal says what stands.
    """
    preconditions.require(site, plan)
    store = site.store(plan.rack)
    who = who or origin()
    lease = store.acquire(plan.rack, who, term_s=LEASE_TERM_S, now=site.now())
    try:
        return _Run(site, plan, store, lease, who, progress).execute(before_step)
    finally:
        store.release(lease)


class _Run:
    """One execution of a plan under a lease."""

    def __init__(self, site: Site, plan: Plan, store: Store, lease: Lease, who: str, progress: Progress) -> None:
        self._site, self._plan, self._store, self._lease, self._progress = site, plan, store, lease, progress
        self._bench = Bench(site, plan_circuits(site, plan))
        values = {
            "kind": plan.kind,
            "target": plan.target,
            "title": plan.title,
            "plan_digest": plan.digest,
            "inventory_digest": plan.inventory_digest,
            "who": who,
        }
        self.id = store.begin_run(lease, values, to_document(plan), now=site.now())
        self._attempted: list[tuple[Step, Evidence | None]] = []

    def execute(self, before_step: Gate) -> RunResult:
        """Run every step; on any failure undo in reverse."""
        started = perf_counter()
        phases: list[Phase] = []
        try:
            for step in self._plan.steps:
                before_step(step)
                begun = perf_counter()
                self._perform(step)
                phases.append(Phase(step.do.value, step.title, round(perf_counter() - begun, 4)))
                self._progress(f"{step.id}. {step.title}: {phases[-1].seconds:.2f} s")
        except BaseException as failure:  # noqa: BLE001 - an interrupt must be undone like any other failure
            self._fail(failure)
        self._end("done", {"seconds": round(perf_counter() - started, 4)}, undid=self._plan.undoes)
        proofs = tuple(
            Proof(**proof) for _, evidence in self._attempted for proof in (evidence or {}).get("proofs", ())
        )
        return RunResult(self.id, self._plan, "done", tuple(phases), proofs, round(perf_counter() - started, 4))

    def _perform(self, step: Step) -> None:
        unsure = step.data["device"] if step.do is Do.PROGRAM else None
        held = self._site.known_states(unsure) if unsure else {}
        self._journal_intent("intent", step, unsure)
        self._attempted.append((step, None))
        try:
            evidence = ACTIONS[step.do].act(self._bench, step)
        except (DeviceUnreachableError, DeviceRefusedError) as error:
            # Nothing reached the device: it holds what it held.
            self._attempted.pop()
            self._conclude("outcome", step, {"failed": error.message}, states={unsure: held} if unsure and held else {})
            if step.required:
                raise
            self._progress(f"{step.id}. {step.title}: not done ({error.message})")
            return
        except LumctlError as error:
            self._conclude("outcome", step, {"failed": error.message})
            if step.required:
                raise
            self._progress(f"{step.id}. {step.title}: outcome not known ({error.message})")
            return
        self._attempted[-1] = (step, evidence)
        after = {puc: PucState(state) for puc, _, state in step.data["changes"]} if unsure else {}
        self._conclude(
            "outcome",
            step,
            {"done": True, **evidence},
            states={unsure: self._held_at_start(unsure) | after} if unsure else {},
            placed=_placed(step.data["assignment"]) if step.do is Do.ASSIGN else {},
        )

    def _fail(self, failure: BaseException) -> NoReturn:
        reason = failure.message if isinstance(failure, LumctlError) else type(failure).__name__
        self._progress(f"failed: {reason}; undoing")
        if all(step.do is Do.CHECK for step, _ in self._attempted) and isinstance(failure, LumctlError):
            self._end("refused", {"failed": reason})
            raise failure if isinstance(failure, RefusedError | DeviceUnreachableError) else RefusedError(reason)
        try:
            self._undo()
        except LumctlError as error:
            with suppress(StoreError):
                self._end("half-done", {"failed": reason, "undo_failed": error.message})
            raise HalfDoneError(
                f"{self.id} failed ({reason}) and could not be undone: {error.message}",
                hint=f"look at it: lumctl runbook show {self.id}; then: lumctl swap rollback {self.id}",
            ) from failure
        self._end("rolled-back", {"failed": reason})
        raise RolledBackError(f"{self.id} failed and was rolled back: {reason}") from failure

    def _undo(self) -> None:
        programmed = False
        for step, evidence in reversed(self._attempted):
            unsure = step.data["device"] if step.do is Do.PROGRAM else None
            programmed = programmed or unsure is not None
            self._journal_intent("undo-intent", step, unsure)
            try:
                undone = ACTIONS[step.do].undo(self._bench, step, evidence)
            except LumctlError as error:
                if step.required:
                    raise
                undone = {"failed": error.message}
            self._conclude(
                "undo-outcome",
                step,
                {"undone": "failed" not in undone, **undone},
                states={unsure: self._held_at_start(unsure)} if unsure else {},
                placed=_placed(step.data["before"]) if step.do is Do.ASSIGN else {},
            )
        if programmed:
            self._require_light_as_before()

    def _require_light_as_before(self) -> None:
        """Circuits that were sound before the run must be sound again, or the rack is not as it was."""
        kept = [c for step in self._plan.steps if step.do is Do.VERIFY for c in step.data["kept"]]
        try:
            Verify.prove_kept(self._bench, kept)
        except NotProvedError as error:
            raise HalfDoneError(f"the cells were put back, but {error.message}") from error

    def _held_at_start(self, device: str) -> dict[int, PucState]:
        crosses = frozenset(self._plan.start.crosses.get(device, ()))
        geometry = self._site.inventory.devices[device].geometry
        count = geometry.puc_count if geometry else 0
        return {puc: PucState.CROSS if puc in crosses else PucState.BAR for puc in range(count)}

    def _journal_intent(self, kind: str, step: Step, unsure: str | None) -> None:
        record = Record(self._site.now(), kind, step.id, {"do": step.do.value, "title": step.title})
        self._lease = self._store.intend(self._lease, self.id, record, term_s=LEASE_TERM_S, unsure=unsure)

    def _conclude(
        self,
        kind: str,
        step: Step,
        data: Mapping[str, Any],
        *,
        states: Mapping[str, Mapping[int, PucState]] | None = None,
        placed: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        record = Record(self._site.now(), kind, step.id, data)
        self._store.conclude(self._lease, self.id, record, states=states, placed=placed)

    def _end(self, state: str, data: Mapping[str, Any], *, undid: str | None = None) -> None:
        record = Record(self._site.now(), "end", "", {"state": state, **data})
        self._store.end_run(self._lease, self.id, record, state, undid=undid)


def plan_circuits(site: Site, plan: Plan) -> dict[str, Circuit]:
    """The circuits that a plan names: those of the assignment before it and, where ids meet, of the one after it."""
    after = dict(plan.start.assignment)
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            after |= _placed(step.data["assignment"])
    whole = site.assignment(sound=False)
    before = {c.id: c for c in circuits_of(site.inventory, whole | dict(plan.start.assignment))}
    return before | {c.id: c for c in circuits_of(site.inventory, whole | after)}


def _placed(assignment: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {job: tuple(accelerators) for job, accelerators in assignment.items()}
