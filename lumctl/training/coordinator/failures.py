"""What a failure leads to: the group is given up, and the healer examines the accelerators."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lumctl.inventory.job_run import PAUSED_WITHIN_S
from lumctl.training.coordinator import job_end, orders
from lumctl.training.coordinator.job_workers import JobWorker, ScriptError
from lumctl.training.coordinator.recovery_record import RecoveryRecord
from lumctl.training.coordinator.state import JobEnd, JobPhase, JobState, OpenRecovery

EARLY = "before it was ready"
"""When a process ended that was never ready for a rank."""


def gone(state: JobState, worker: JobWorker, why: str, at: float) -> None:
    """A worker has died, or counts as dead."""
    was_member = state.is_member(worker)
    worker.alive = False
    if state.is_closing or worker.ended:
        return
    state.store_placement.changed()
    if not (was_member or worker.ready or state.needs_worker(worker.accelerator)):
        _put_off(state, worker, why)
        return
    rank = state.rank_of(worker)
    told = f"{worker.name} {why}" if rank is None else f"rank {rank} ({worker.name}) {why}"
    named = worker.script_error is not None or not worker.ready
    log = f" (log: {state.effects.log(worker.host, worker.name)})" if named else ""
    state.effects.say(told + log)
    if was_member:
        fail(state, [worker.accelerator], f"{worker.accelerator}: {why}", at, state.script_error_of(worker))
        return
    if state.recovery is not None and worker.accelerator in state.placement:
        state.recovery.unexamined.add(worker.accelerator)  # it was to take a rank over
        orders.reply_to_light(state, orders.NOT_YET)
    if not worker.ready:
        state.failed_attempts += 1
        if state.failed_attempts > state.run.restarts:
            state.script_error = state.script_error_of(worker)
            job_end.give_up(
                state, told + log, JobEnd.SCRIPT_ERROR if state.script_error is not None else JobEnd.NOT_STARTED
            )


def script_failed(state: JobState, worker: JobWorker, error: ScriptError) -> None:
    """The script raised an error, which ends the process."""
    if state.is_member(worker):
        state.error_step = max(state.error_step, error.step)
    when = f"failed in step {error.step}" if worker.ready else f"failed {EARLY}"
    leaves(state, worker, f"{when}: {error.text}", error.at)


def leaves(state: JobState, worker: JobWorker, why: str, at: float) -> None:
    """A process has begun to end; it belongs to the job no more and has ``exit_s`` seconds."""
    worker.dying, worker.dies_at = True, state.effects.now()
    worker.leave_by = worker.dies_at + state.run.exit_s
    gone(state, worker, why, at)


def _put_off(state: JobState, worker: JobWorker, why: str) -> None:
    """A standby process died before it was ready: it is started again later, and the job runs on."""
    if state.standby_retries.failed(worker.accelerator, state.effects.now()) > 1:
        worker.dying = False  # its end is reported once
        return
    log = state.effects.log(worker.host, worker.name)
    state.effects.say(f"{worker.name} {why} (log: {log}); another is started later")


def dead(state: JobState, worker: JobWorker, how: str) -> None:
    """A dying worker has ended; the recovery is already under way."""
    worker.dying = False
    if state.is_closing or worker.ended:
        return
    if worker.leave_by < math.inf:
        return  # it has reported itself how it ends
    state.effects.say(f"{worker.name} {how}")
    if state.recovery is not None and state.recovery.record.cause.startswith(f"{worker.accelerator}: dies"):
        state.recovery.record.cause = f"{worker.accelerator}: {how}"


def group_is_late(state: JobState) -> None:
    """The group missed its deadline: kill the worker that holds up the others, or else examine the light."""
    group, now, within = state.group, state.effects.now(), f"{state.run.stall_s:g} s"
    group.due = math.inf
    if state.phase.over or state.phase is JobPhase.FINISHING:
        return
    if state.phase is JobPhase.RUNNING:
        _stalled(state, f"no step was done within {within}")
    elif group.join_sent and state.is_forming:
        _stalled(state, f"the ranks found no group within {PAUSED_WITHIN_S:.0f} s")
    else:
        for worker in [each for each in state.workers if each.alive]:
            if worker.busy or (group.resume_point is not None and worker.loading is not None):
                worker.silent = True
                state.effects.ask(worker.host, {"ask": "kill", "worker": worker.name})
                does = "does not hold" if worker.busy else "has not loaded its state"
                gone(state, worker, f"hangs: it {does} within {within}", now)


def _stalled(state: JobState, why: str) -> None:
    """All processes live, but none progresses: have all accelerators and their circuits examined."""
    state.effects.say(why)
    fail(state, [], why, state.effects.now())
    if state.recovery is not None and state.is_forming:
        state.recovery.stalled = True
        state.recovery.unexamined |= {name for rank, name in enumerate(state.placement) if rank not in state.vacant}


def broken(state: JobState, worker: JobWorker, why: str, at: float) -> None:
    """A collective failed. Mostly a peer died, which its agent reports in a moment; otherwise a circuit is dark."""
    fail(state, [], f"{worker.accelerator}: {why}", at)


def fail(
    state: JobState, accelerators: Sequence[str], cause: str, at: float, error: Mapping[str, Any] | None = None
) -> None:
    """Begin to recover, or begin again. ``accelerators`` are those that failed; empty if only a peer reported it.

    The recorded cause is the earliest failure of an accelerator: all others are its consequences.
    """
    if state.recovery is None:
        state.recovery = OpenRecovery(RecoveryRecord(cause, at, ()))
    record = state.recovery.record
    if accelerators:
        if at < record.caused_at:
            record.cause, record.caused_at, record.error = cause, at, error
        record.failed = tuple(dict.fromkeys([*record.failed, *accelerators]))
    if state.phase is JobPhase.RUNNING or not accelerators:
        state.failed_attempts += 1  # compared with the limit when the whole failure is known
    if any(state.workers[name].ended for name in state.group.members.values()):
        job_end.finish(state)
        return
    if state.phase is not JobPhase.STARTING:
        state.phase = JobPhase.RECOVERING
    state.recovery.unexamined |= set(accelerators)
    orders.reply_to_light(state, orders.NOT_YET)
    if not state.is_holding:
        orders.hold(state)
