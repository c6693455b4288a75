"""Time limits for processes to get ready, to leave a failed step, and to end.

The operator is informed about long waits; a process that exceeds its limit is killed.
"""

import math

from lumctl.inventory.folded_names import fold
from lumctl.inventory.job_run import PAUSED_WITHIN_S
from lumctl.training.coordinator import failures, job_end
from lumctl.training.coordinator.failures import EARLY
from lumctl.training.coordinator.state import JobEnd, JobStage, JobState
from lumctl.training.coordinator.workers import JobWorker

KILLED_WITHIN_S = 5.0
"""How long a killed process may take to end."""
CHECKED_EVERY_S = 0.25
"""How often processes are compared with their limits while the job waits for one."""
REPORTED_AFTER_S = 30.0
"""The wait after which the operator is informed; a further report follows whenever the wait has doubled."""


def _needed(state: JobState) -> list[JobWorker]:
    starting = list(state.workers.starting.values()) if state.is_forming else []
    placed = set(state.placement) if starting else ()
    return [each for each in starting if each.accelerator in placed and state.needs_worker(each.accelerator)]


def _in_a_step(state: JobState) -> list[JobWorker]:
    """Members with an order to hold that are still in a step."""
    return list(state.workers.in_step.values()) if state.is_holding else []


def _after_the_steps(state: JobState) -> list[JobWorker]:
    """Members that have done all steps and run the part of their script that follows."""
    return (
        [worker for worker in state.living_members() if not worker.exiting] if state.phase is JobStage.FINISHING else []
    )


def enforce_exit(state: JobState) -> None:
    """Kill workers that do not end in time; a worker that survives even that is left to its agent."""
    now = state.effects.now()
    state.limits_checked_at = now
    for worker in list(state.workers.leaving.values()):
        if now < worker.leave_by:
            continue
        if worker.killed:
            worker.alive = worker.dying = False
            continue
        state.effects.say(f"{worker.name} has not ended within {state.run.exit_s:g} s (exit_s), and is killed")
        worker.killed, worker.leave_by = True, now + KILLED_WITHIN_S
        state.effects.ask(worker.host, {"ask": "kill", "worker": worker.name})


def _waits_since(state: JobState) -> float:
    """The time since which the job waits for a process; infinity if it waits for none."""
    if state.phase is JobStage.FINISHING:
        return state.steps_ended_at if _after_the_steps(state) else math.inf
    held = [state.group.hold_sent_at] if _in_a_step(state) else []
    return min([*held, *(worker.begun_at for worker in _needed(state))], default=math.inf)


def next_due(state: JobState) -> float:
    """When :func:`enforce` is due next; infinity if the job waits for nothing."""
    workers = state.workers
    waits = workers.starting or workers.leaving or state.phase is JobStage.FINISHING
    waits = waits or (state.is_holding and workers.in_step)
    return state.limits_checked_at + CHECKED_EVERY_S if waits else math.inf


def _next_report(state: JobState) -> float:
    since = _waits_since(state)
    if state.wait_reported_at < since:
        return since + REPORTED_AFTER_S
    return state.wait_reported_at + max(state.wait_reported_at - since, REPORTED_AFTER_S)


def enforce(state: JobState) -> None:
    """Report what the job waits for, if a report is due, and kill workers that take too long to get ready."""
    now = state.effects.now()
    enforce_exit(state)
    for worker in list(state.workers.starting.values()):
        if now >= worker.begun_at + state.run.start_s:
            _too_late(state, worker, now)
    if now >= _next_report(state) and not state.phase.over:
        state.wait_reported_at = now
        state.effects.say(f"{state.phase}: {waits_for(state)}")


def waits_for(state: JobState) -> str:
    """The processes that the job waits for, the reason and the duration, in words; empty if it waits for none."""
    coming, in_a_step = _needed(state), _in_a_step(state)
    parts = []
    if coming:
        parts.append(_named(state, coming, "", min(worker.begun_at for worker in coming)))
    if rest := _after_the_steps(state):
        parts.append(_named(state, rest, " to come to the end of the script", state.steps_ended_at))
    if in_a_step:
        parts.append(_named(state, in_a_step, " to leave the step", state.group.hold_sent_at))
    return f"waiting for {' and '.join(parts)}" if parts else ""


def _named(state: JobState, workers: list[JobWorker], to: str, since: float) -> str:
    names = {worker.accelerator for worker in workers}
    shown = fold([*(name for name in state.placement if name in names), *sorted(names - {*state.placement})])
    return f"{', '.join(shown)}{to} ({state.effects.now() - since:.0f} s)"


def _too_late(state: JobState, worker: JobWorker, now: float) -> None:
    """End a worker that does not get ready. A job that never ran stops: a new process would fail as well."""
    missing = "has not reached its training steps" if worker.met else "has not connected to its agent"
    within = f"within {state.run.start_s:g} s (start_s)"
    # It is given no rank while it ends.
    worker.silent = True
    state.effects.ask(worker.host, {"ask": "kill", "worker": worker.name})
    if state.phase is JobStage.STARTING and state.needs_worker(worker.accelerator):
        log = state.effects.log(worker.host, worker.name)
        job_end.give_up(state, f"{worker.name} {missing} {within} (log: {log})", JobEnd.NOT_STARTED)
    else:
        failures.gone(state, worker, f"hangs {EARLY}: it {missing} {within}", now)


def group_is_late(state: JobState) -> None:
    """Handle a missed deadline of the group: kill the worker that blocks the others, or examine the light."""
    group, now, within = state.group, state.effects.now(), f"{state.run.stall_s:g} s"
    # Once only: the next hold or group sets another deadline.
    group.due = math.inf
    if state.phase.over or state.phase is JobStage.FINISHING:
        return
    if state.phase is JobStage.RUNNING:
        _stalled(state, f"no step was done within {within}")
    elif group.join_sent and state.is_forming:
        _stalled(state, f"the ranks formed no group within {PAUSED_WITHIN_S:.0f} s")
    else:
        for worker in [each for each in state.workers if each.alive]:
            if worker.busy or (group.resume_point is not None and worker.loading is not None):
                worker.silent = True
                state.effects.ask(worker.host, {"ask": "kill", "worker": worker.name})
                does = "does not pause" if worker.busy else "has not loaded its state"
                failures.gone(state, worker, f"hangs: it {does} within {within}", now)


def _stalled(state: JobState, why: str) -> None:
    """Order an examination of all accelerators and circuits: all processes live, but none makes progress."""
    if state.light is not None:
        state.light.again = True  # perhaps light did not arrive
    state.effects.say(why)
    failures.fail(state, [], why, state.effects.now())
    if state.recovery is not None and state.is_forming:
        state.recovery.stalled = True
        state.recovery.unexamined |= {name for rank, name in enumerate(state.placement) if rank not in state.vacant}
