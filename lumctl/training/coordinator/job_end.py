"""The end of a job: all steps done, stopped on request, or abandoned."""

import math
from collections.abc import Mapping
from typing import Any

from lumctl.training.coordinator import orders
from lumctl.training.coordinator.state import JobEnd, JobStage, JobState
from lumctl.training.coordinator.workers import JobWorker, choose
from lumctl.training.protocol import REPLICATED


def stop(state: JobState, why: str) -> None:
    """End the job with a checkpoint of the newest complete step; open pause requests are refused."""
    for answer in state.pause_replies:
        answer({"error": f"the job stops: {why}"})
    state.pause_replies.clear()
    if state.phase is JobStage.STARTING and not state.group.members and not state.all_listed():
        state.stop_reason = why  # workers that are still unknown must write their checkpoints too
        return
    if state.is_closing:
        return
    state.end = state.end or JobEnd.STOPPED
    state.effects.say(f"the job stops: {why}")
    state.why_ended, state.phase, state.pause_granted = why, JobStage.STOPPING, False
    orders.reply_to_light(state, {"error": f"the job stops: {why}"})
    orders.hold(state)


def stop_if_asked_before(state: JobState) -> bool:
    """Stop if that was requested before all running workers were known; return whether it was."""
    why, state.stop_reason = state.stop_reason, ""
    if why:
        stop(state, why)
    return bool(why)


def give_up(state: JobState, why: str, end: JobEnd) -> None:
    """Stop the job because of a failure, with a checkpoint of the newest complete step."""
    if state.is_closing:
        return
    lost = state.effects.lost()
    state.end = JobEnd.SIMULATOR_GONE if lost else end
    stop(state, lost or why)


def stop_if_fruitless(state: JobState) -> bool:
    """Stop a job that fails repeatedly without a new step in between; return whether it was stopped."""
    if state.recovery is None or state.failed_attempts <= state.run.restarts:
        return False
    record = state.recovery.record
    if record.error is not None:
        state.script_error = record.error
        times = (
            f"{state.failed_attempts} attempts have ended like this, without a new step (restarts: "
            f"{state.run.restarts})"
        )
        give_up(state, f"{_of_script(record.error)}; {times}", JobEnd.SCRIPT_ERROR)
    else:
        why = f"{state.failed_attempts} failures without a step in between; the last: {record.cause}"
        give_up(state, why, JobEnd.NO_PROGRESS)
    return True


def state_lost(state: JobState) -> None:
    """Stop a job whose state is lost, and report the cause."""
    lost = "the state of a rank is lost" if state.most_steps is None else f"{state.most_steps} steps are proven"
    why = f"{lost}, and no checkpoint of all ranks was written" + ("" if state.most_steps is None else " by then")
    record = state.recovery.record if state.recovery is not None else None
    if record is not None and record.error is not None:
        state.script_error = record.error
        give_up(state, f"{_of_script(record.error)}; then {why}", JobEnd.SCRIPT_ERROR)
    else:
        give_up(state, f"{why} ({record.cause})" if record is not None else why, JobEnd.STATE_LOST)


def finish(state: JobState) -> None:
    """Handle that all steps are done: wait until each rank has reached the end of its script.

    If some ranks have left the group and a failure keeps the rest in it, no group can repeat the last step: it counts
    as done, and the remaining ranks are ordered to finish.
    """
    state.phase, state.steps_ended_at = JobStage.FINISHING, state.effects.now()
    orders.reply_to_light(state, {"error": "all steps are done"})
    rest = [worker for worker in state.living_members() if not worker.ended]
    if rest:
        orders.hold(state)
    orders.send_all(state, [(worker, {}) for worker in rest], {"do": "finish"})
    state.group.due = math.inf


def conclude(state: JobState) -> None:
    """Decide how the job ended, once the processes of all ranks have ended."""
    members = [(rank, state.workers[name]) for rank, name in sorted(state.group.members.items())]
    if any(worker.alive or worker.dying for _, worker in members):
        return
    lacking = [(rank, worker) for rank, worker in members if not _completed(worker)]
    errors = [error for _, worker in lacking if (error := state.script_error_of(worker)) is not None]
    state.phase = JobStage.ENDED
    if not lacking:
        doubts = state.light.doubts() if state.light is not None else ""
        state.end = JobEnd.DONE if state.most_steps is None else JobEnd.NO_LIGHT
        done = f"all {max(worker.done for _, worker in members)} steps are done"
        state.why_ended = f"{done}, but {doubts}" if doubts else done
    elif errors:
        # Later errors may be consequences of the first.
        state.script_error = min(errors, key=lambda error: float(error["at"]))
        state.end, state.why_ended = (
            JobEnd.SCRIPT_ERROR,
            f"all steps are done, but then {_of_script(state.script_error)}",
        )
    else:
        rank, worker = lacking[0]
        how = f"{worker.how or 'its process is gone'} (log: {state.effects.log(worker.host, worker.name)})"
        state.end = JobEnd.UNFINISHED
        state.why_ended = f"all steps are done, but not the rest of the script: rank {rank} ({worker.name}) {how}"


def write_checkpoints(state: JobState) -> None:
    """Order all parked members to write checkpoints of the newest complete step whose light is proven, and to end."""
    members, ranks = state.living_members(), state.group.members
    held = {worker.name: worker.held for worker in members if worker.held is not None}
    living = {rank: name for rank, name in ranks.items() if name in held}
    layout = members[0].layout if members else REPLICATED
    most = state.most_steps
    found = choose(layout, list(held.values()), living, most) if held else None
    lost, stops = ranks.keys() - living.keys(), []
    for name, one in held.items():
        # Without a complete step each writes its own; of steps in wrong light, none does.
        done = found.done if found is not None else one.done if most is None else min(one.done, most)
        also = sorted(rank for rank in lost if done in one.of.get(rank, ()))
        stops.append((state.workers[name], {"done": done, "also": also}))
    orders.send_all(state, stops, {"do": "stop"})
    state.phase = JobStage.STOPPED


def _of_script(error: Mapping[str, Any]) -> str:
    """A script's error in one line."""
    where = f"rank {error['rank']} ({error['worker']}) failed in step {error['step']}"
    return f"{where}: {error['error']} (log: {error['log']})"


def _completed(worker: JobWorker) -> bool:
    """Whether the last line of its script ran: by its exit code, or by its own report if the code is unknown."""
    if not worker.ended or worker.script_error is not None:
        return False
    return worker.code == 0 or (worker.code is None and worker.exiting)
