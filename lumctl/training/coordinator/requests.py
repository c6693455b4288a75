"""What operators and runs ask of a job: its status, that it pauses, resumes, or stops."""

from lumctl.training.coordinator import job_end, orders, status
from lumctl.training.coordinator.orders import NOT_YET
from lumctl.training.coordinator.state import JobPhase, JobState, Reply
from lumctl.training.wire import Message

LEFT = {"error": "lumctl job run has ended; the job goes on without it"}


def receive(state: JobState, request: Message, answer: Reply) -> None:
    """Answer a request, some of them later."""
    match request.get("ask"):
        case "status":
            answer(status.document(state))
        case "pause":
            _pause(state, answer)
        case "resume":
            _resume(state, answer)
        case "stop":
            state.stop_replies.append(answer)
            job_end.stop(state, "somebody asked for it")
        case _:
            answer({"error": f"{request.get('ask')!r} is not known"})


def _refused(state: JobState, answer: Reply) -> bool:
    """Refuse if the job is ending, or its placement cannot be read; whether it was refused."""
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
    if state.phase is JobPhase.RUNNING:
        state.phase = JobPhase.PAUSED
    if state.group.join_sent:
        orders.hold(state)


def _resume(state: JobState, answer: Reply) -> None:
    if _refused(state, answer):
        return
    state.pause_granted = False
    moved = state.placement != list(state.store_placement.placed)
    if state.phase is JobPhase.RUNNING and not moved:
        answer({"state": "running"})
        return
    if moved and state.group.join_sent:
        orders.hold(state)
    if state.phase is not JobPhase.STARTING:
        state.phase = JobPhase.RECOVERING
    if _still_waits(state):
        answer(NOT_YET)
        return
    state.place_ranks(state.store_placement.placed)
    orders.reply_to_light(state, NOT_YET)
    state.light_reply = answer


def _still_waits(state: JobState) -> bool:
    """Whether ranks are placed where none can run: a swap that is rolled back resumes the job too."""
    if (recovery := state.recovery) is None:
        return False
    placed = set(state.store_placement.placed)
    recovery.unexamined &= placed  # an operator may have replaced the others
    if not recovery.unexamined:
        recovery.retry_at = None
    return bool(recovery.unexamined or (state.under_examination & recovery.record.bad.keys() & placed))


def grant_pauses(state: JobState) -> None:
    """Answer the pause requests once the job holds."""
    if state.pause_replies and state.phase is JobPhase.RUNNING:  # it became running after the request
        state.phase = JobPhase.PAUSED
        orders.hold(state)
    if state.pause_replies and _holds(state):
        state.pause_granted = True
        for answer in state.pause_replies:
            answer({"state": "paused"})
        state.pause_replies.clear()


def _holds(state: JobState) -> bool:
    if state.phase is JobPhase.STARTING and not state.group.members:  # processes that were found may be training
        return state.all_listed() and not any(worker.alive and worker.busy for worker in state.workers)
    return state.phase in {JobPhase.STARTING, JobPhase.PAUSED, JobPhase.RECOVERING} and state.all_parked()


def report_stopped(state: JobState) -> None:
    """Answer the stop requests: the job has ended."""
    done, saved = status.steps_done(state), status.newest_checkpoints(state)
    for answer in state.stop_replies:
        answer({"state": str(state.phase), "done": done, "saved": saved})
    state.stop_replies.clear()


def leave(state: JobState) -> None:
    """Answer all open requests: this coordinator ends, and the job goes on without it."""
    for answer in (*state.pause_replies, *state.stop_replies):
        answer(LEFT)
    orders.reply_to_light(state, LEFT)
