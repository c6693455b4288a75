"""Requests of operators and runs: status, collectives, schedule, pause, resume, stop; and the status document."""

from typing import Any

from lumctl.training.coordinator import job_end, late_rank, orders, phase_light, time_limits
from lumctl.training.coordinator.orders import NOT_YET
from lumctl.training.coordinator.state import JobStage, JobState
from lumctl.training.coordinator.workers import JobWorker
from lumctl.training.job_control import LEFT
from lumctl.training.protocol import Message, Reply


def receive(state: JobState, request: Message, answer: Reply) -> None:
    """Answer a request, now or later."""
    match request.get("ask"):
        case "status":
            answer(document(state))
        case "collectives":
            answer(state.collectives.document())
        case "profiles":
            answer(state.light.profiles.document() if state.light is not None else {})
        case "schedule":
            late_rank.asked(state, request, answer)
        case "pause":
            _pause(state, answer)
        case "resume":
            _resume(state, answer)
        case "stop":
            state.stop_replies.append(answer)
            job_end.stop(state, "an operator requested it")
        case _:
            answer({"error": f"unknown request {request.get('ask')!r}"})


def _refused(state: JobState, answer: Reply) -> bool:
    """Refuse a request if the job is ending or its placement cannot be read; return whether it was refused."""
    if state.is_closing:
        answer({"error": f"job {state.job.name} is {state.phase}"})
        return True
    if (error := state.store_placement.read()) is not None:
        answer({"error": error.message})
        return True
    return False


def _pause(state: JobState, answer: Reply) -> None:
    if _refused(state, answer):
        return
    state.pause_replies.append(answer)
    if state.phase is JobStage.RUNNING:
        state.phase = JobStage.PAUSED
    if state.group.join_sent:
        orders.hold(state)


def _resume(state: JobState, answer: Reply) -> None:
    if _refused(state, answer):
        return
    state.pause_granted = False
    moved = state.placement != list(state.store_placement.placed)
    if state.phase is JobStage.RUNNING and not moved:
        answer({"state": "running"})
        return
    if moved and state.group.join_sent:
        orders.hold(state)
    if state.phase is not JobStage.STARTING:
        state.phase = JobStage.RECOVERING
    if _still_waits(state):
        answer(NOT_YET)
        return
    state.place_ranks(state.store_placement.placed)
    # Only one run can wait for the job: an earlier one is answered now.
    orders.reply_to_light(state, NOT_YET)
    if phase_light.needs_permit(state):
        answer(NOT_YET)  # the permit needs runs of its own, which cannot begin before this one ends
    else:
        state.light_reply = answer


def _still_waits(state: JobState) -> bool:
    """Whether ranks are placed on failed accelerators: a swap that was rolled back resumes the job too."""
    if (recovery := state.recovery) is None:
        return False
    placed = set(state.store_placement.placed)
    recovery.unexamined &= placed  # an operator may have replaced the other accelerators
    if not recovery.unexamined:
        recovery.retry_at = None
    return bool(recovery.unexamined or (state.under_examination & recovery.record.bad.keys() & placed))


def grant_pauses(state: JobState) -> None:
    """Answer the pause requests once the job is holding."""
    if state.pause_replies and state.phase is JobStage.RUNNING:  # the job began to run after the request
        state.phase = JobStage.PAUSED
        orders.hold(state)
    if state.pause_replies and _holds(state):
        state.pause_granted = True
        for answer in state.pause_replies:
            answer({"state": "paused"})
        state.pause_replies.clear()


def _holds(state: JobState) -> bool:
    if state.phase is JobStage.STARTING and not state.group.members:  # processes found at the start may be training
        return state.all_listed() and not any(worker.alive and worker.busy for worker in state.workers)
    is_held = state.phase in {JobStage.STARTING, JobStage.PAUSED, JobStage.RECOVERING} and state.all_parked()
    return is_held and phase_light.is_at_rest(state)


def report_stopped(state: JobState) -> None:
    """Answer the stop requests: the job has ended."""
    done, saved = steps_done(state), newest_checkpoints(state)
    for answer in state.stop_replies:
        answer({"state": str(state.phase), "done": done, "saved": saved})
    state.stop_replies.clear()


def leave(state: JobState) -> None:
    """Answer all open requests: this coordinator ends, and the job continues without it."""
    for answer in (*state.pause_replies, *state.stop_replies):
        answer(LEFT)
    orders.reply_to_light(state, LEFT)


WAITING = "waiting"
"""The state shown for a job that cannot recover yet, because it waits for something."""


def document(state: JobState) -> dict[str, Any]:
    """The status of the job as data."""
    first = state.workers.get(state.group.members.get(0, ""))
    wanted = {*state.placement, *state.store_placement.spares}
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
        "scheduled_for": first.scheduled_for if first is not None else None,
        "ranks": [
            {"rank": rank, **_process(worker), "state": _state_of_rank(state, worker), "done": worker.done}
            for rank, worker in ((rank, state.workers[name]) for rank, name in sorted(state.group.members.items()))
        ],
        "ready": [
            _process(worker)
            for worker in state.workers
            if worker.accelerator in wanted and worker.usable and not state.is_member(worker)
        ],
        **({"light": phase_light.document(state.light)} if state.light is not None else {}),
        "recoveries": [*state.earlier_recoveries, *(record.document() for record in state.recoveries)],
    }


def state_of_job(state: JobState) -> str:
    """The state of the job for the operator; a paused job is shown as paused until it is resumed."""
    held = state.pause_granted and state.is_forming and not state.under_examination
    lacks = state.is_forming and state.recovery is not None and state.recovery.why
    return str(JobStage.PAUSED if held else WAITING if lacks else state.phase)


def _why(state: JobState) -> str:
    if state.phase is JobStage.FINISHING:
        return time_limits.waits_for(state)
    if state.is_forming and state.is_settled:
        placed = [state.host_of(name) for rank, name in enumerate(state.placement) if rank not in state.vacant]
        if waits := state.lines.away(dict.fromkeys(placed)) or time_limits.waits_for(state):
            return waits
    if state.is_forming and state.light is not None and state.light.why:
        return state.light.why
    if state.phase is JobStage.STOPPING or state.phase.over or state.recovery is None:
        return state.why_ended
    return state.recovery.why


def _state_of_rank(state: JobState, worker: JobWorker) -> str:
    if state.phase.over:
        return str(state.phase)
    if not worker.alive:
        return "lost"
    return "held" if worker.held is not None else state_of_job(state)


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
