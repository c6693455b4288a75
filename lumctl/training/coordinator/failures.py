"""Failures and their repair: the group is abandoned; the healer examines the accelerators and replaces failed ones.

``agent_reports`` calls :func:`gone` when an agent reports that a process has ended. ``orders.hold`` then makes the
other ranks leave their group (``Member`` in ``torch/member.py``), and ``groups.form`` orders the next one.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lumctl.change.engine import RunResult
from lumctl.change.plan import Plan
from lumctl.errors import LumctlError, RolledBackError
from lumctl.inventory.folded_names import fold
from lumctl.inventory.job_run import WithoutSpare
from lumctl.training.coordinator import job_end, orders
from lumctl.training.coordinator.state import JobEnd, JobStage, JobState, OpenRecovery, RecoveryRecord
from lumctl.training.coordinator.workers import JobWorker, ScriptError
from lumctl.training.protocol import REPLICATED

EARLY = "before it was ready"
"""For messages about a process that was never ready for a rank."""


def gone(state: JobState, worker: JobWorker, why: str, at: float) -> None:
    """Handle that a worker has died, or counts as dead."""
    was_member = state.is_member(worker)
    worker.alive = False
    if state.is_closing or worker.ended:
        return
    state.store_placement.changed()
    if not (was_member or worker.ready or state.needs_worker(worker.accelerator)):
        _restart_later(state, worker, why)
        return
    event = f"{worker.name} {why}" if worker.seat is None else f"rank {worker.seat} ({worker.name}) {why}"
    named = worker.script_error is not None or not worker.ready
    log = f" (log: {state.effects.log(worker.host, worker.name)})" if named else ""
    state.effects.say(event + log)
    if was_member:
        fail(state, [worker.accelerator], f"{worker.accelerator}: {why}", at, state.script_error_of(worker))
        return
    if state.recovery is not None and worker.accelerator in state.placement:
        state.recovery.unexamined.add(worker.accelerator)  # this worker was about to take over a rank
        orders.reply_to_light(state, orders.NOT_YET)
    if not worker.ready:
        state.failed_attempts += 1
        if state.failed_attempts > state.run.restarts:
            state.script_error = state.script_error_of(worker)
            job_end.give_up(
                state, event + log, JobEnd.SCRIPT_ERROR if state.script_error is not None else JobEnd.NOT_STARTED
            )


def script_failed(state: JobState, worker: JobWorker, error: ScriptError) -> None:
    """Handle an error of the script, which ends its process."""
    if state.is_member(worker):
        state.error_step = max(state.error_step, error.step)
    when = f"failed in step {error.step}" if worker.ready else f"failed {EARLY}"
    leaves(state, worker, f"{when}: {error.text}", error.at)


def leaves(state: JobState, worker: JobWorker, why: str, at: float) -> None:
    """Handle that a process has begun to end: it leaves the job, and is killed after ``exit_s`` seconds."""
    worker.dying, worker.dies_at = True, state.effects.now()
    worker.leave_by = worker.dies_at + state.run.exit_s
    gone(state, worker, why, at)


def _restart_later(state: JobState, worker: JobWorker, why: str) -> None:
    """Schedule another start of a standby process that died before it was ready; the job continues."""
    if state.standby_retries.failed(worker.accelerator, state.effects.now()) > 1:
        worker.dying = False  # repeated failures are not reported
        return
    log = state.effects.log(worker.host, worker.name)
    state.effects.say(f"{worker.name} {why} (log: {log}); a replacement is started later")


def dead(state: JobState, worker: JobWorker, how: str) -> None:
    """Handle that a dying worker has ended; the recovery is already in progress."""
    worker.dying = False
    if state.is_closing or worker.ended:
        return
    if worker.leave_by < math.inf:
        return  # the worker has reported its end itself
    state.effects.say(f"{worker.name} {how}")
    if state.recovery is not None and state.recovery.record.cause.startswith(f"{worker.accelerator}: dies"):
        state.recovery.record.cause = f"{worker.accelerator}: {how}"


def broken(state: JobState, worker: JobWorker, why: str, at: float) -> None:
    """Handle a failed collective. Usually a peer died, which its agent reports next; otherwise a circuit is dark."""
    fail(state, [], f"{worker.accelerator}: {why}", at)


def fail(
    state: JobState, accelerators: Sequence[str], cause: str, at: float, error: Mapping[str, Any] | None = None
) -> None:
    """Start a recovery, or start it again. ``accelerators`` are those that failed; empty if only a peer reported it.

    The recorded cause is the earliest failure of an accelerator: later ones are its consequences.
    """
    if state.recovery is None:
        state.recovery = OpenRecovery(RecoveryRecord(cause, at, ()))
    record = state.recovery.record
    if accelerators:
        if at < record.caused_at:
            record.cause, record.caused_at, record.error = cause, at, error
        record.failed = tuple(dict.fromkeys([*record.failed, *accelerators]))
    if state.phase is JobStage.RUNNING or not accelerators:
        state.failed_attempts += 1  # compared with the limit once the whole failure is known
    if state.workers.finished:
        job_end.finish(state)
        return
    if state.phase is not JobStage.STARTING:
        state.phase = JobStage.RECOVERING
    state.recovery.unexamined |= set(accelerators)
    orders.reply_to_light(state, orders.NOT_YET)
    if not state.is_holding:
        orders.hold(state)


AGAIN_S = 5.0
"""The pause between failed attempts to repair."""
ATTEMPTS = 2
"""How often a swap is tried if each attempt is rolled back."""


def examine_first(state: JobState) -> None:
    """Before any rank is started, order an examination that replaces accelerators known to have failed."""
    if not state.examined_first:
        state.examined_first = True
        state.recovery = OpenRecovery(
            RecoveryRecord("before the start", state.effects.now(), ()), set(state.placement), is_first_examination=True
        )


def examine(state: JobState) -> None:
    """Order an examination of the open recovery's accelerators, once the healer is free and a retry is due."""
    recovery = state.recovery
    if recovery is not None and recovery.unexamined and not state.under_examination and recovery.retry_at is None:
        state.under_examination = state.with_neighbours(recovery.unexamined)
        state.repair_of, recovery.unexamined = recovery.record, set()
        state.effects.examine(sorted(state.under_examination), recovery.is_first_examination)


def examined(state: JobState, bad: Mapping[str, str]) -> None:
    """Handle the result of an examination: ``bad`` has the accelerators that are not healthy, with the reasons."""
    if state.recovery is None:
        return
    state.recovery.record.mark("health", state.effects.now())
    known = state.recovery.record.bad
    for name in state.under_examination - bad.keys():
        known.pop(name, None)  # the accelerator has recovered
    for name, why in bad.items():
        if known.get(name) != why:
            state.effects.say(f"{name} is not healthy: {why}")
    known |= bad
    if state.recovery.is_first_examination and bad:
        state.recovery.record.cause = "; ".join(f"{name}: {why}" for name, why in bad.items())
        state.recovery.record.failed = tuple(bad)


def planned(state: JobState, plan: Plan) -> None:
    """Handle a planned swap: workers on the spares may load state while light moves."""
    state.repair_planned = True
    if (recovery := state.recovery) is not None:
        recovery.why = ""
        recovery.record.mark("planned", state.effects.now())
        recovery.record.replaced |= {each.failed: each.spare for each in plan.replacements}
    for each in plan.replacements:
        if each.job == state.job.name:
            state.placement[each.rank] = each.spare
            state.lines.want(state.host_of(each.spare))
            state.store_placement.changed()
    state.placement_changed()
    state.effects.say(plan.title)


def programmed(state: JobState) -> None:
    """Handle that every device of the plan is written."""
    if state.recovery is not None:
        state.recovery.record.mark("circuits", state.effects.now())


def verified(state: JobState) -> None:
    """Handle that every receiver of the new circuits has been verified."""
    if state.recovery is not None:
        state.recovery.record.mark("verified", state.effects.now())


def circuits_dark(state: JobState, why: str) -> None:
    """Handle that all examined accelerators are healthy, but circuits of the job are dark: wait for light."""
    examined_now, recovery = state.under_examination, state.recovery
    known = recovery.why if recovery is not None else ""
    repaired(state, None)
    if recovery is None or not recovery.stalled or state.phase is JobStage.STOPPING:
        return  # the job made progress until a process died: its circuits carry light
    recovery.unexamined |= examined_now
    recovery.retry_at = state.effects.now() + AGAIN_S
    recovery.why = why
    if why != known:
        state.effects.say(f"{why}; the job waits for it, and checks every {AGAIN_S:g} s")


def repaired(state: JobState, result: RunResult | None) -> None:
    """Handle a finished repair; ``None``: no light had to move."""
    if state.store_placement.read() is not None and result is not None:
        state.store_placement.placed = tuple(state.placement)  # the plan has been carried out
    state.place_ranks(state.store_placement.placed)
    state.under_examination, state.repair_planned = frozenset(), False
    if state.recovery is not None:
        state.recovery.attempts, state.recovery.why = 0, ""
        if state.recovery.is_first_examination and not state.recovery.record.replaced:
            state.recovery = None  # all accelerators are well
    if result is not None and state.repair_of is not None:
        state.repair_of.run = result.run


def not_repaired(state: JobState, error: LumctlError) -> None:
    """Handle a failed repair: try again, then follow ``without_spare`` of the inventory."""
    state.store_placement.read()
    state.place_ranks(state.store_placement.placed)
    examined_now, state.under_examination, state.repair_planned = state.under_examination, frozenset(), False
    if (recovery := state.recovery) is None or state.phase is JobStage.STOPPING:
        return
    record = recovery.record
    if recovery.is_first_examination and not record.bad:
        state.effects.say(f"the accelerators could not be examined before the start: {error.message}")
        state.recovery = None
        return
    record.replaced = {failed: spare for failed, spare in record.replaced.items() if spare in state.placement}
    orders.reply_to_light(state, {"error": error.message})
    recovery.attempts += 1
    others, recovery.unexamined = recovery.unexamined - examined_now, recovery.unexamined | examined_now
    why = f"{error.message} ({error.hint})" if error.hint else error.message
    if recovery.why != why:
        waits = state.run.without_spare is WithoutSpare.WAIT and not isinstance(error, RolledBackError)
        then = _waits_until(record) if waits else ""
        state.effects.say(f"{why}{then}")
        recovery.why = why
    if isinstance(error, RolledBackError) and recovery.attempts < ATTEMPTS:
        return  # try once more immediately
    if others:
        return  # more accelerators have failed meanwhile: examine all together
    if state.run.without_spare is WithoutSpare.WAIT:
        recovery.retry_at = state.effects.now() + AGAIN_S
    elif state.run.without_spare is WithoutSpare.SHRINK and _may_shrink(state):
        _shrink(state, recovery)
    else:
        job_end.give_up(state, f"no spare is available: {error.message}", JobEnd.NO_SPARE)


def _waits_until(record: RecoveryRecord) -> str:
    """The events that end the wait of a job without a swap, in words."""
    lost = ", ".join(fold(sorted(record.bad))) or "what failed"
    return f"; the job waits until {lost} is healthy or a swap is possible, and tries every {AGAIN_S:g} s"


def _may_shrink(state: JobState) -> bool:
    members = state.living_members()
    return bool(members) and all(worker.layout == REPLICATED for worker in members)


def _shrink(state: JobState, recovery: OpenRecovery) -> None:
    working = {worker.accelerator for worker in state.living_members()}
    lost = {rank for rank, name in enumerate(state.placement) if name in recovery.unexamined and name not in working}
    state.vacant |= {rank: state.placement[rank] for rank in lost}
    state.placement_changed()
    recovery.unexamined = set()
    recovery.record.without += sorted(lost)
    state.effects.say(f"the job continues without rank {', '.join(map(str, sorted(lost)))}")
