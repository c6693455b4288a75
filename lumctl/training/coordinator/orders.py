"""Orders to workers, sent through their agents, and the reply to a run that moved light."""

from collections.abc import Iterable, Mapping
from typing import Any

from lumctl.training.coordinator.state import JobState
from lumctl.training.coordinator.workers import JobWorker

HOME = "~"
"""The folder in which a worker starts if the inventory names none: the home folder on its host."""
NOT_YET = {"state": "recovering"}
"""The reply to a run that moved light and resumes the job while another failure stops the job: the run is done."""


def send(state: JobState, worker: JobWorker, message: Mapping[str, Any]) -> None:
    """Send a worker an order through its agent; an unanswered order is repeated when the line is reopened."""
    worker.order = message
    state.effects.ask(worker.host, {"ask": "tell", "worker": worker.name, "message": message})


def send_all(state: JobState, orders: Iterable[tuple[JobWorker, Mapping[str, Any]]], common: Mapping[str, Any]) -> None:
    """Send several workers an order, of which each worker's own part is given: one message for each host."""
    of_host: dict[str, dict[str, Mapping[str, Any]]] = {}
    for worker, own in orders:
        worker.order = {**common, **own}
        of_host.setdefault(worker.host, {})[worker.name] = own
    for host, parts in of_host.items():
        state.effects.ask(host, {"ask": "tell", "orders": parts, "message": common})


def hold(state: JobState) -> None:
    """Order all members to leave the group and park; messages of that group are ignored from now on."""
    group = state.group
    group.generation += 1
    group.resume_point, group.join_sent, group.joined = None, False, set()
    group.hold_sent_at = state.effects.now()
    group.due = group.hold_sent_at + state.run.stall_s
    if state.light is not None:
        state.light.hold()
    hold_also(state, [worker for worker in state.workers if worker.busy or state.is_member(worker)])


def hold_also(state: JobState, workers: Iterable[JobWorker]) -> None:
    """Order workers to park before they get a rank: a process that was found running may be in a group."""
    held = [worker for worker in workers if worker.alive and not worker.ended]
    for worker in held:
        worker.held, worker.loaded, worker.busy = None, False, True
    send_all(state, [(worker, {}) for worker in held], {"do": "hold", "generation": state.group.generation})


def reply_to_light(state: JobState, answer: Mapping[str, Any]) -> None:
    """Reply to the run that waits for the job to continue, if there is one."""
    if state.light_reply is not None:
        state.light_reply(answer)
        state.light_reply = None


def start_worker(state: JobState, accelerator: str) -> None:
    """Order the host's agent to start a worker on an accelerator."""
    host = state.host_of(accelerator)
    worker = state.workers.begun(accelerator, host)
    worker.begun_at = state.effects.now()
    run = state.run
    asked = state.effects.ask(
        host,
        {
            "ask": "start",
            "worker": worker.name,
            "accelerator": accelerator,
            "argv": list(run.command),
            "environment": dict(state.effects.environment(host)),
            "folder": run.folder or HOME,
            "heartbeat_s": run.heartbeat_s,
            "silence_s": run.silence_s,
        },
    )
    if not asked:  # the lost line is reported separately
        state.workers.remove(worker)
