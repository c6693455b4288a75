"""The status of a job: the document that ``lumctl job status`` shows."""

from typing import Any

from lumctl.training.coordinator import time_limits
from lumctl.training.coordinator.job_workers import JobWorker
from lumctl.training.coordinator.state import JobPhase, JobState

WAITING = "waiting"
"""The state shown for a job that recovers and lacks what it needs for that."""


def document(state: JobState) -> dict[str, Any]:
    """The status of the job as data."""
    first = state.workers.get(state.group.members.get(0, ""))
    return {
        "job": state.job.name,
        "state": state_of_job(state),
        "why": _why(state),
        "end": str(state.end) if state.phase.over and state.end is not None else None,
        "script_error": state.script_error or (state.recovery.record.error if state.recovery is not None else None),
        "parked": state.all_parked(),
        "generation": state.group.generation,
        "of": len(state.placement),
        "done": steps_done(state) if state.phase.over else first.done if first is not None else 0,
        "ended_at": state.ended_at,
        "saved": newest_checkpoints(state) if state.phase.over else [],
        "loss": first.loss if first is not None else None,
        "rate_steps_per_s": steps_per_s(state),
        "ranks": [
            {"rank": rank, **_process(worker), "state": _state_of_rank(state, worker), "done": worker.done}
            for rank, worker in ((rank, state.workers[name]) for rank, name in sorted(state.group.members.items()))
        ],
        "ready": [_process(worker) for worker in state.workers if _is_ready(state, worker)],
        "recoveries": [*state.earlier_recoveries, *(record.document() for record in state.recoveries)],
    }


def state_of_job(state: JobState) -> str:
    """The state of the job for the operator: paused as long as it may not go on."""
    held = state.pause_granted and state.is_forming and not state.under_examination
    lacks = state.is_forming and state.recovery is not None and state.recovery.why
    return str(JobPhase.PAUSED if held else WAITING if lacks else state.phase)


def _why(state: JobState) -> str:
    if state.phase is JobPhase.FINISHING:
        return time_limits.waits_for(state)
    if state.is_forming and state.is_settled:
        placed = [state.host_of(name) for rank, name in enumerate(state.placement) if rank not in state.vacant]
        if waits := state.lines.away(dict.fromkeys(placed)) or time_limits.waits_for(state):
            return waits
    if state.phase is JobPhase.STOPPING or state.phase.over or state.recovery is None:
        return state.why_ended
    return state.recovery.why


def _state_of_rank(state: JobState, worker: JobWorker) -> str:
    if state.phase.over:
        return str(state.phase)
    if not worker.alive:
        return "lost"
    return "held" if worker.held is not None else state_of_job(state)


def _is_ready(state: JobState, worker: JobWorker) -> bool:
    wanted = worker.accelerator in state.placement or worker.accelerator in state.store_placement.spares
    return wanted and worker.usable and not state.is_member(worker)


def steps_done(state: JobState) -> int:
    """The number of training steps that the group has done."""
    return max((worker.done for worker in state.workers if state.is_member(worker)), default=0)


def newest_checkpoints(state: JobState) -> list[str]:
    """The checkpoints of the newest step."""
    done = steps_done(state)
    return sorted({path for worker in state.workers for (_, at), path in worker.saved.items() if at == done})


def steps_per_s(state: JobState) -> float | None:
    """The training rate over the last steps, in steps per second."""
    steps, at = len(state.step_times) - 1, state.step_times
    return round(steps / (at[-1] - at[0]), 3) if steps > 0 and at[-1] > at[0] else None


def _process(worker: JobWorker) -> dict[str, Any]:
    return {"accelerator": worker.accelerator, "host": worker.host, "worker": worker.name, "pid": worker.pid}
