"""Finish a run that was interrupted or left half done: complete it, or undo it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from lumctl.change.disturbance import require_stopped, require_undisturbed
from lumctl.change.engine import Gate, Progress, RunResult, at_once, execute, unfailing
from lumctl.change.foreign_circuits import placed_by, require_foreign_circuits_kept
from lumctl.change.guard import Arm
from lumctl.change.guard import arm as arm_guard
from lumctl.change.guard_scope import guarded
from lumctl.change.interrupts import LEASE_TERM_S, hold_back_interrupts, kept_alive, stopping_undoes, undisturbed
from lumctl.change.live_paths import NOTHING_TO_SWITCH, TransmitterChanges, switching_for
from lumctl.change.origin import origin
from lumctl.change.plan import Do, Plan, Step, from_document
from lumctl.change.refusal_advice import after_end, asking
from lumctl.change.run import RunInProgress
from lumctl.change.run_end import rolled_back
from lumctl.change.run_history import NOTHING, RunHistory, Superseded, require_fit, superseded
from lumctl.change.step_actions import REVERT_AFTER_S, require_healthy
from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.types import Capability
from lumctl.errors import LumctlError, RefusedError, RolledBackError
from lumctl.inventory.wiring import Assignment, own_cells
from lumctl.jobs import RUNNING, Hooks, passed_over
from lumctl.jobs.hooks import PAUSE, hooked
from lumctl.store import Lease, LeaseHeldError, Record, Store, StoredRun, StoreError
from lumctl.store.records import OPEN

RESUME, ABORT = "resume", "abort"
WRITES = frozenset({Do.PROGRAM, Do.TRANSMIT, Do.SET})


@dataclass(frozen=True, slots=True)
class RunOutlook:
    """What resuming or aborting a run would do: its remaining ``steps`` if ``forward``, else the steps to undo."""

    run: StoredRun
    plan: Plan
    history: RunHistory
    forward: bool
    steps: tuple[Step, ...]
    why_not: str = ""
    """Why the run cannot continue, if that was requested."""
    left_alone: Superseded = NOTHING
    """The steps that are not undone because later runs have overwritten them."""
    switching: TransmitterChanges = NOTHING_TO_SWITCH
    """Transmitters other than those of the steps that must be switched to match the record."""


def outlook(context: Context, run: StoredRun, act: str, *, leave_later: bool = False) -> RunOutlook:
    """What ``resume`` or ``abort`` would do now; reads hosts and devices, and changes nothing.

    With ``leave_later``, steps that later runs have overwritten are kept and the others are undone.

    Raises:
        RefusedError: the run has ended, is running, or a later run changed its result.
        DeviceError: a device that must be read before the run can continue does not answer.
    """
    _require_open(context, run, act)
    plan = from_document(run.plan)
    history = RunHistory.of(plan, context.store(run.rack).journal.of_run(run.id))
    over = superseded(context, run, history)
    if not leave_later:
        require_mine(run, over)
    back_again = tuple(step for step in reversed(history.tried) if step not in over.steps)
    # The way out that the hint of require_fit names: after `fabric apply` the run's light steps are left alone. A
    # setting or a transmitter that was switched since leaves them to be undone.
    if not (leave_later and over.why) or any(step.do in {Do.PROGRAM, Do.ASSIGN} for step in back_again):
        require_fit(context, run.id, plan, is_open=True)
    switching = _switching(context, plan, placed_after(context, back_again, forward=False), back_again)
    back = RunOutlook(run, plan, history, forward=False, steps=back_again, left_alone=over, switching=switching)
    if act == ABORT:
        return back
    if run.inventory_digest != context.inventory.digest:
        raise RefusedError(
            f"{run.id} was planned with a different version of {context.inventory.path}: it cannot continue",
            hint=(
                f"undo it: lumctl swap abort {run.id} --target {context.target}; or restore that version of the "
                "inventory"
            ),
        )
    steps = left(context, history)
    try:
        require_way_on(context, history, steps)
    except RefusedError as error:
        return replace(back, why_not=error.message)
    switching = _switching(context, plan, placed_after(context, plan.steps, forward=True), steps)
    return RunOutlook(run, plan, history, forward=True, steps=steps, switching=switching)


def placed_after(context: Context, steps: Iterable[Step], *, forward: bool) -> dict[str, tuple[str, ...]]:
    """Where the jobs run after these steps of a run are done or undone."""
    placed = context.assignment(sound=False)
    for step in steps:
        if step.do is Do.ASSIGN:
            placed |= placed_by(step.data["assignment" if forward else "before"])
    return placed


def _switching(context: Context, plan: Plan, placed: Assignment, steps: Iterable[Step]) -> TransmitterChanges:
    if not _moves_light(plan):
        return NOTHING_TO_SWITCH
    switched = {str(step.data["transponder"]) for step in steps if step.do is Do.TRANSMIT}
    return switching_for(context, plan.rack, placed).without(switched)


def _moves_light(plan: Plan) -> bool:
    return any(step.do in {Do.PROGRAM, Do.TRANSMIT} for step in plan.steps)


def resume(
    context: Context,
    run: StoredRun,
    *,
    progress: Progress = lambda _line: None,
    before_step: Gate = at_once,
    who: str | None = None,
    stopped_by: str | None = None,
    revert_after_s: float = REVERT_AFTER_S,
    arm: Arm = arm_guard,
) -> RunResult:
    """Continue a run that was interrupted or left half done, to its end. If it cannot continue, it is undone.

    ``stopped_by`` is the operator who states that all jobs without a hook are stopped if their light paths change. The
    statement made when the run began may no longer be true.

    Raises:
        RefusedError, DeviceError: as :func:`outlook`, or the rack's lease is held, or no operator states that such a
            job is stopped; nothing was done.
        RolledBackError: it could not continue, or failed; everything is undone.
        HalfDoneError: it could not be undone either; or everything is done except that a job was not resumed.
    """
    who, say = who or origin(), unfailing(progress)
    with _leased(context, run, who, RESUME) as (store, lease), stopping_undoes():
        # Read again under the lease: the run may have ended since the caller read it.
        found = outlook(context, store.runs.get(run.id), RESUME)
        if not found.forward:
            with undisturbed():
                raise rolled_back(_reopened(context, store, lease, found, who), f"it cannot continue: {found.why_not}")
        said = require_stopped(context, found.plan, stopped_by, found.steps)
        silent_s = revert_after_s + 2 * context.inventory.thresholds.light_deadline_s
        with guarded(context, found.plan, lease, silent_s, arm=arm, progress=say) as scope:
            hold_back_interrupts()
            _write_down(context, store, lease, found, who)
            again = RunInProgress.resumed(context, store, lease, store.runs.get(run.id), who, scope=scope)
            again.journal.vouched(said)
            with undisturbed(), suppress(LumctlError):  # if light stays dark, the proof fails and the run is undone
                for step in found.history.unclear:
                    if step.do is Do.VERIFY:
                        again.relight(step)
                again.switch(found.switching)
            return execute(again, scope, say, before_step, found.steps)


def abort(context: Context, run: StoredRun, *, who: str | None = None, leave_later: bool = False) -> RunResult:
    """Undo a run that was interrupted or left half done.

    With ``leave_later``, steps that later runs have overwritten are kept: the others are undone, and the run is closed
    as ``superseded``.

    Raises:
        RefusedError: as :func:`outlook`, or the rack's lease is held; nothing was done.
        HalfDoneError: something could not be undone; the journal lists what is still in force.
    """
    who = who or origin()
    with _leased(context, run, who, ABORT) as (store, lease), undisturbed():
        found = outlook(context, store.runs.get(run.id), ABORT, leave_later=leave_later)
        again = _reopened(context, store, lease, found, who)
        again.leave_alone(found.left_alone.steps)
        ended = rolled_back(again, f"it was aborted by {who}")
        if not isinstance(ended, RolledBackError):
            raise ended
    return RunResult(run.id, found.plan, again.undone_as, (), (), again.journal.seconds)


@contextmanager
def _leased(context: Context, run: StoredRun, who: str, act: str) -> Iterator[tuple[Store, Lease]]:
    store = context.store(run.rack)
    _require_open(context, run, act)
    lease = store.leases.acquire(run.rack, who, term_s=LEASE_TERM_S, now=context.now())
    try:
        with kept_alive(store, lease, context.now):
            context.act_under(lease)
            yield store, lease
    finally:
        with suppress(StoreError):  # the lease expires by itself
            store.leases.release(lease)


def _reopened(context: Context, store: Store, lease: Lease, found: RunOutlook, who: str) -> RunInProgress:
    _write_down(context, store, lease, found, who)
    again = RunInProgress.resumed(context, store, lease, store.runs.get(found.run.id), who)
    if _moves_light(found.plan):
        again.placed_after = placed_after(context, found.steps, forward=False)
    return again


def _write_down(context: Context, store: Store, lease: Lease, found: RunOutlook, who: str) -> None:
    """Record the take-over of the run: from here on, the process that left it can no longer write."""
    said: dict[str, Any] = {"by": who, "was": found.run.state, "steps": [step.id for step in found.steps]}
    if found.why_not:
        said["failed"] = found.why_not
    if found.left_alone.why:
        said["left_alone"] = {"steps": [step.id for step in found.left_alone.steps], "why": list(found.left_alone.why)}
    entry = Record(context.now(), RESUME if found.forward else ABORT, "", said)
    if store.runs.reopen(lease, found.run.id, entry) is None:
        raise RefusedError(
            f"{found.run.id} has just ended",
            hint=f"see its result: lumctl swap show {found.run.id} --target {context.target}",
        )


def _require_open(context: Context, run: StoredRun, act: str) -> None:
    if run.target != context.target:
        raise RefusedError(f"{run.id} ran on target {run.target}", hint=f"add --target {run.target}")
    if run.state not in OPEN:
        what = f"it was rolled back by {run.undone_by}" if run.undone_by else f"it ended {run.state}"
        raise RefusedError(f"{run.id} has nothing to {act}: {what}", hint=after_end(context, run))
    store = context.store(run.rack)
    if run.id not in store.runs.unfinished(now=context.now()):
        try:
            store.leases.require_free(run.rack, now=context.now())
        except LeaseHeldError as held:  # by its engine or its revert guard
            raise RefusedError(
                f"{run.id} is running: {held.message}",
                hint=f"{held.hint}; then: lumctl swap {act} {run.id} --target {context.target}",
            ) from held
        # The lease of a dead engine may have lapsed between the two looks.
        if run.id not in store.runs.unfinished(now=context.now()):
            raise RefusedError(f"{run.id} has just ended", hint="see: lumctl swap list")


def left(context: Context, history: RunHistory) -> tuple[Step, ...]:
    """The remaining steps, in the order of the plan: finished steps are not repeated.

    Exceptions: a device that may have reverted by itself (it was not confirmed, or no longer holds the change) is
    written again; light is always proved again; and a job that is running again is paused again.

    Raises:
        DeviceError: a readable device does not answer.
    """
    plan = history.plan
    if history.complete:
        return tuple(step for step in plan.steps if step.resumes_job and step.id not in history.ended)
    unconfirmed = {d for s in plan.steps if s.do is Do.CONFIRM and s.id not in history.ended for d in s.data["devices"]}
    found: list[Step] = []
    for step in plan.steps:
        again = step.id not in history.ended
        if step.do is Do.CHECK and step.id in history.evidence and history.touched:
            again = False  # what worked before the change can no longer be found out
        if step.do is Do.PROGRAM and not again:
            device = step.data["device"]
            again = (device in unconfirmed and _reverts(context, device)) or _is_gone(context, step)
        if step.do is Do.VERIFY:
            again = True  # what was proved may have gone dark since
        if again:
            found.append(step)
    if any(step.do in WRITES for step in found):
        found += [step for step in plan.steps if step.id in history.ended and _runs_again(context, step)]
    return tuple(sorted(found, key=plan.steps.index))


def require_mine(run: StoredRun, over: Superseded) -> None:
    """Require that no later run has changed the result of this run, according to the record.

    Raises:
        RefusedError: a later run has, so this run can be neither finished nor rolled back.
    """
    if over.why:
        raise RefusedError(
            f"a later run has changed the result of {run.id}: {over.why[0]}",
            hint=f"close this run and keep what later runs changed: lumctl swap abort {run.id} --leave-later",
        )


def require_way_on(context: Context, history: RunHistory, steps: tuple[Step, ...]) -> None:
    """Require that the remaining steps of a run are still possible: healthy spares, devices, other jobs' circuits.

    Raises:
        RefusedError: something is missing; the message names it.
        DeviceError: a device does not answer.
    """
    plan = history.plan
    if all(step.resumes_job for step in steps):
        return
    looked = [step for step in plan.steps if step.do is Do.CHECK and step.id in history.evidence]
    if not looked and history.touched and any(step.do is Do.CHECK for step in plan.steps):
        raise RefusedError("the journal lacks which circuits worked before anything was changed")
    for step in looked if history.touched else ():
        require_healthy(context, step.data["healthy"])
    for device in dict.fromkeys(change.device for change in plan.changes):
        with asking(context, device):
            _require_cells(context, history, device)
    require_foreign_circuits_kept(context, plan)
    require_undisturbed(context, plan)


def _require_cells(context: Context, history: RunHistory, device: str) -> None:
    """Require that the cells of a device are as before, except those that this run may have written."""
    own = own_cells(context.inventory, context.inventory.devices[device])
    start = history.plan.start.cells(device, own)
    driver = context.devices.changing(device)
    driver.identify()
    if start is None:
        return  # every cell is written
    tried = {cell for s in history.tried if s.do is Do.PROGRAM and s.data["device"] == device for cell in _cells(s)}
    held = transaction.read_cells(driver, own) if transaction.readable(driver) else context.known_cells(device)
    for cell, state in held.items():
        if state != start.get(cell) and cell not in tried:
            raise RefusedError(
                f"{device} is not in the state that it had: cell {cell} was changed, but not by this run",
                hint=f"write it again: lumctl fabric apply --rewrite --rack {history.plan.rack}",
            )


def _is_gone(context: Context, step: Step) -> bool:
    """Whether a device reports other states than a step wrote; false if it cannot be read."""
    driver = context.devices.changing(step.data["device"])
    if not transaction.readable(driver):
        return False
    cells = _cells(step)
    read = transaction.read_cells(driver, cells)
    return any(read.get(cell) != state for cell, state in cells.items())


def _cells(step: Step) -> Mapping[int, str]:
    return {int(cell): str(after) for cell, _, after in step.data["changes"]}


def _reverts(context: Context, device: str) -> bool:
    return Capability.CONFIRM_TIMER in context.devices.changing(device).capabilities


def _runs_again(context: Context, step: Step) -> bool:
    if step.do is not Do.JOB or step.data["act"] != PAUSE:
        return False
    job = step.data["job"]
    if not hooked(context.inventory, job) or passed_over(context, job):
        return False
    return Hooks(context, job).status() == RUNNING
