"""What a run records under its lease, in as few transactions as safety allows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lumctl.change.guard_scope import GuardScope
from lumctl.change.interrupts import LEASE_TERM_S
from lumctl.change.light_proof import Proof
from lumctl.change.plan import Do, Plan, Step, StepEvidence, to_document
from lumctl.change.step_actions import job_states_before, revert_timer_s
from lumctl.context import Context
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    OutcomeUnknownError,
    StaleFenceError,
    UnsupportedError,
)
from lumctl.devices.permission import require_permission, sending_with
from lumctl.devices.types import Receipt
from lumctl.errors import LumctlError
from lumctl.inventory.wiring import own_cells
from lumctl.jobs import HookRefusedError
from lumctl.store import Lease, LeaseLostError, Record, Store, StoreError
from lumctl.store.records import REVERT_TIMER, run_seconds

NOTHING_SENT = (DeviceUnreachableError, DeviceRefusedError, UnsupportedError, HookRefusedError)
"""Errors after which a device certainly has its old states, or a job is certainly unchanged."""
States = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step: its evidence or its failure; ``seconds`` excludes writing the journal."""

    step: Step
    seconds: float
    evidence: StepEvidence | None = None
    failure: Exception | None = None

    @property
    def remark(self) -> str:
        """Why a step was skipped; empty if it was done."""
        return "" if self.failure is None else f"skipped ({getattr(self.failure, 'message', self.failure)})"


@dataclass(slots=True)
class PendingEntries:
    """Outcomes that are not on disk yet: entries, steps, and the states and placements that become certain."""

    entries: list[Record] = field(default_factory=list)
    states: dict[str, Mapping[int, str]] = field(default_factory=dict)
    placed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def proofs_in(found: Iterable[StepEvidence]) -> tuple[Proof, ...]:
    """The proofs of light."""
    return tuple(Proof(**proof) for evidence in found for proof in evidence.get("proofs", ()))


def silent_in(found: Iterable[StepEvidence]) -> tuple[str, ...]:
    """The circuits that were skipped because one of their hosts does not answer."""
    return tuple(dict.fromkeys(name for evidence in found for name in evidence.get("silent", ())))


@dataclass(frozen=True, slots=True)
class Certainty:
    """The states of a plan's devices that become certain by its steps, beginning with the plan's start."""

    context: Context
    plan: Plan

    def after(self, step: Step, attempted: Iterable[Step], receipts: Mapping[str, Receipt[Any]]) -> States:
        """The states that a step makes certain: written cells, unless the device may still revert them by itself."""
        armed = {device for device, receipt in receipts.items() if receipt.revert_armed}
        if step.do is Do.PROGRAM and step.data["device"] not in armed:
            return {step.data["device"]: self.cells(step, after=True)}
        if step.do is Do.CONFIRM:
            programs = [s for s in attempted if s.do is Do.PROGRAM and s.data["device"] in step.data["devices"]]
            return {s.data["device"]: self.cells(s, after=True) for s in programs}
        return {}

    def cells(self, step: Step, *, after: bool) -> dict[int, str]:
        """The states of the whole device that a step writes, with its cells as they are ``after`` or before it."""
        device = self.context.inventory.devices[step.data["device"]]
        own = own_cells(self.context.inventory, device)
        written = {int(change[0]): str(change[2 if after else 1]) for change in step.data["changes"]}
        # A cut join of ports outside the inventory is not part of the record.
        return (self.plan.start.cells(device.id, own) or {}) | {cell: written[cell] for cell in own if cell in written}


BY_HAND = ("resume", "abort")
"""Entries by which an operator has taken over an interrupted run."""

Placed = Mapping[str, tuple[str, ...]]


def begin(plan: Plan, store: Store, lease: Lease, who: str, now: float) -> str:
    """Record a run that begins now; return its id."""
    values = {
        "kind": plan.kind,
        "target": plan.target,
        "title": plan.title,
        "plan_digest": plan.digest,
        "inventory_digest": plan.inventory_digest,
        "who": who,
    }
    return store.runs.begin(lease, values, to_document(plan), now=now)


class RunJournal:
    """The journal of one run. Outcomes are ``pending`` until they are written with the next intents or with the end."""

    def __init__(
        self,
        context: Context,
        plan: Plan,
        store: Store,
        lease: Lease,
        run: str,
        scope: GuardScope,
        *,
        started_at: float,
        by: str | None,
    ) -> None:
        self.pending = PendingEntries()
        self._started_at = started_at
        self._ended_at: float | None = None
        self.adrift: tuple[Step, ...] = ()
        """The steps that were in progress when another process took over the run: they may have acted since."""
        self._context, self._plan, self._store, self._lease, self._run, self._scope = (
            context,
            plan,
            store,
            lease,
            run,
            scope,
        )
        self._signed = {"by": by} if by else {}

    @property
    def state(self) -> str:
        """The state of the run in the store."""
        return self._store.runs.get(self._run).state

    @property
    def seconds(self) -> float:
        """How long the run took, once it has ended: by this process, or by the one that took it over."""
        ended_at = self._ended_at
        if ended_at is None:
            with suppress(StoreError):
                ended_at = self._store.runs.get(self._run).ended_at
        return run_seconds(self._started_at, self._context.now() if ended_at is None else ended_at)

    @property
    def overtaken(self) -> bool:
        """Whether a revert guard or an operator has taken this run over."""
        with suppress(StoreError):
            return self._store.runs.get(self._run).fence != self._lease.fence
        return False

    @property
    def taken_over_by(self) -> tuple[str, str] | None:
        """The operator who has since resumed or aborted this run, and which of the two; ``None`` if no one has."""
        with suppress(StoreError):
            for entry in self._store.journal.of_run(self._run):
                if entry.kind in BY_HAND and entry.fence > self._lease.fence:
                    return str(entry.data.get("by", "somebody")), entry.kind
        return None

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Within the block, this thread may send to devices, provided that the lease is valid at the time of each send.

        An expired lease is renewed before anything is sent, because this process may have been frozen.

        Raises:
            StaleFenceError: the lease is lost, or cannot be renewed; nothing was sent.
            OutcomeUnknownError: the same, after this step had already sent something.
        """
        has_sent = False

        def require() -> None:
            nonlocal has_sent
            # The renewal fails if a guard or an operator has a newer lease.
            if self._lease.deadline.has_passed or self._scope.is_in_doubt:
                try:
                    self._store.leases.renew(self._lease, term_s=LEASE_TERM_S, now=self._context.now())
                except LumctlError as error:
                    kind, what = (OutcomeUnknownError, "no more") if has_sent else (StaleFenceError, "nothing")
                    raise kind(f"{error.message}; {what} was sent") from error
            has_sent = True

        with sending_with(require):
            require_permission()  # also covers what does not use lumctl's transports: hooks, outside drivers
            # The check above sent nothing; each later one is followed by a send.
            has_sent = False
            yield

    def record(self, kind: str, step: Step, data: Mapping[str, Any]) -> Record:
        """A journal entry with the current time."""
        return Record(self._context.now(), kind, step.id, {**data, **self._signed})

    def vouched(self, said: Mapping[str, str]) -> None:
        """Record an operator's statement, if there is one, on disk before anything is done."""
        if said:
            self.pending.entries.append(Record(self._context.now(), "vouched", "", said))

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record planned actions other than the steps; the entry stays pending if the store is not writable."""
        self.pending.entries.append(Record(self._context.now(), kind, "", {**data, **self._signed}))
        try:
            self.settle()
        except LeaseLostError:
            raise
        except StoreError:
            pass  # it stays pending

    def job_states_before(self, steps: Sequence[Step]) -> dict[str, StepEvidence]:
        """The state of each job that is about to be paused, by step; hooks may answer slowly."""
        return job_states_before(self._context, steps, lambda step: self._scope.alive(self._context, [step]))

    def intend(self, steps: Sequence[Step], found: Mapping[str, Mapping[str, Any]]) -> None:
        """Record that steps are about to act, with pending entries and what the steps ``found`` earlier (by step).

        Entries of steps that only read stay pending: they need not be on disk before the step acts.

        Raises:
            StoreError: the record is not on disk.
            LeaseLostError: another process may act now.
        """
        if all(step.do is Do.CHECK for step in steps):
            self._scope.alive(self._context, steps)
            self.pending.entries += (self.record("intent", step, _named(step)) for step in steps)
        else:
            self._advance("intent", steps, {step.id: {**found.get(step.id, {}), **self._timer(step)} for step in steps})

    def _timer(self, step: Step) -> dict[str, float]:
        """The revert timer that a step may arm: the journal states for how long light paths may still change."""
        with suppress(LumctlError):  # a device that cannot be opened is not written either
            return {REVERT_TIMER: revert_timer_s(self._context, step.data["device"])} if step.do is Do.PROGRAM else {}
        return {}

    def settle(self) -> None:
        """Write pending entries to disk."""
        if self.pending.entries:
            self._advance()

    def intend_undo(self, step: Step) -> None:
        """Record that a step is about to be undone.

        If the store is not writable the entry stays pending, and the undo continues: the step's intent is on disk.
        """
        try:
            self._advance("undo-intent", [step])
        except StoreError:
            self.pending.entries.append(self.record("undo-intent", step, _named(step)))

    def conclude_undo(
        self, step: Step, data: Mapping[str, Any], states: States | None = None, placed: Placed | None = None
    ) -> None:
        """Record the result of an undo and the states that it made certain; pending if the store is not writable."""
        self.pending.entries.append(self.record("undo-outcome", step, data))
        self.pending.states |= states or {}
        self.pending.placed |= placed or {}
        try:
            self.settle()
        except LeaseLostError:
            if not self.overtaken:  # the process that took the run over undoes this step in the same way
                self._lost_hold_of([step])
            raise
        except StoreError:
            pass  # it stays pending

    def end(self, state: str, data: Mapping[str, Any], *, undid: str | None = None) -> None:
        """Close the run in its final state, together with pending entries."""
        pending, entry = self.pending, Record(self._context.now(), "end", "", {"state": state, **data, **self._signed})
        try:
            self._store.runs.end(
                self._lease,
                self._run,
                entry,
                state,
                undid=undid,
                outcomes=pending.entries,
                states=pending.states,
                placed=pending.placed,
            )
        except LeaseLostError:
            self._lost_hold_of(pending.steps)
            raise
        self.pending, self._ended_at = PendingEntries(), entry.at

    def leave(self) -> None:
        """Leave the run half done because its end cannot be written; its lease allows no more writes after this."""
        self._store.runs.leave(self._lease, self._run)

    def doubt(self) -> None:
        """Mark the devices of steps that were in progress at a take-over as uncertain; this needs no lease."""
        for step in self.adrift:
            if device := step.writes:
                with suppress(StoreError):
                    self._store.runs.doubt(device, self._run)

    def _advance(
        self, kind: str = "", steps: Sequence[Step] = (), found: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> None:
        pending = self.pending
        self._scope.alive(self._context, steps)
        entries = [
            *pending.entries,
            *(self.record(kind, step, {**_named(step), **found.get(step.id, {})}) for step in steps),
        ]
        # Until a step's outcome is known its device holds either the old or the new states.
        unsure = [device for step in steps if (device := step.writes) is not None]
        unsure += [device for step in steps for device in step.data.get("doubted", ())]
        try:
            self._store.runs.advance(
                self._lease, self._run, entries, states=pending.states, placed=pending.placed, unsure=unsure
            )
        except LeaseLostError:
            self._lost_hold_of(pending.steps)
            raise
        # Only now: after a failed write the entries stay pending and go with the next one.
        self.pending = PendingEntries()

    def _lost_hold_of(self, acted: Sequence[Step]) -> None:
        """Note the steps that were in progress when the lease was lost, or had acted before.

        Behind a gateway no note is needed: the gateway finished all accepted writes before a newer lease wrote, and has
        accepted none since.
        """
        if self._context.is_gated(self._plan.rack):
            return
        if touching := tuple(step for step in acted if step.touches):
            self.adrift = touching
            self.doubt()


def _named(step: Step) -> dict[str, str]:
    return {"do": step.do.value, "title": step.title}
