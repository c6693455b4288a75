"""Reports of agents about hosts and workers, and their consequences."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lumctl.training.coordinator import failures, groups, job_end, orders, phase_light
from lumctl.training.coordinator.failures import EARLY
from lumctl.training.coordinator.state import JobEnd, JobStage, JobState
from lumctl.training.coordinator.workers import JobWorker, still_holds
from lumctl.training.protocol import COLLECTIVES, PHASES, WANTS, Message, printable_line

_SHOWN = 200
"""The most characters shown of a malformed message."""


def receive(state: JobState, host: str, message: Message | None, why: str) -> None:
    """Handle a message of a host's agent; ``None``: the line to it is lost."""
    if message is None:
        _line_lost(state, host, why)
        return
    _guarded(state, host, message, lambda: _handle(state, host, message))


def _guarded(state: JobState, host: str, message: Mapping[str, Any], handle: Callable[[], None]) -> None:
    """Handle a message; if its fields are malformed, report that and continue."""
    try:
        handle()
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        state.effects.say(f"{host}: its agent sent a malformed message ({what}): {str(message)[:_SHOWN]}")


def _handle(state: JobState, host: str, message: Message) -> None:
    worker = state.workers.get(str(message.get("worker")))
    match message.get("tell"):
        case "said" if "messages" in message:
            _several(state, host, message["messages"], float(message["at"]))
        case "list":
            _list(state, host, message["workers"])
        case "said" if worker is not None and worker.alive:
            _worker_message(state, worker, message["message"], float(message["at"]))
        case "dying" if worker is not None and worker.alive:
            worker.dying, worker.dies_at = True, state.effects.now()
            failures.gone(state, worker, _with_why(worker, "dies"), float(message["at"]))
        case "exited" if worker is not None and (worker.alive or worker.dying):
            _exited(state, worker, message)
        case "silent" if worker is not None and worker.alive:
            _silent(state, worker, message)
        case "taken" if not state.effects.who or message.get("by") != state.effects.who:
            state.why_ended, state.phase = f"the agent on {host} works for {message.get('by')}", JobStage.LEFT
            state.end = JobEnd.LEFT
        case "refused" if state.phase.over and message.get("ask") == "quit":
            state.hosts_left.add(host)
        case "refused" if worker is None or worker.alive:  # ignore a refused order to a worker that has died
            state.effects.say(f"{host}: {message.get('why')}")
        case _:
            pass


def _several(state: JobState, host: str, messages: Mapping[str, Mapping[str, Any]], at: float) -> None:
    for name, message in messages.items():
        if (worker := state.workers.get(name)) is not None and worker.alive:
            _guarded(state, host, message, partial(_worker_message, state, worker, message, at))


def _exited(state: JobState, worker: JobWorker, message: Message) -> None:
    worker.error = worker.error or printable_line(str(message.get("printed") or ""))
    worker.code, worker.how = message.get("code"), worker.how or _how(worker, message)
    if worker.dying:
        failures.dead(state, worker, _how(worker, message))
    else:
        failures.gone(state, worker, _how(worker, message), float(message["at"]))


def _silent(state: JobState, worker: JobWorker, message: Message) -> None:
    for_s = f"{float(message['for_s']):.1f} s"
    what = f"it has been stopped for {for_s}" if message.get("stopped") else f"it has been silent for {for_s}"
    worker.silent, worker.how = True, f"hangs: {what}"
    state.effects.ask(worker.host, {"ask": "kill", "worker": worker.name})
    if not worker.ended:  # a worker past its last step is reported when it exits
        failures.gone(state, worker, worker.how, state.effects.now())


def _line_lost(state: JobState, host: str, why: str) -> None:
    if state.phase.over:  # nothing more is expected from the host
        state.hosts_left.add(host)
        for worker in state.workers.of_host(host):
            worker.alive = False
        return
    if not state.lines.lost(host, why, state.effects.now()):
        return
    state.effects.say(f"host {host} cannot be reached: {why}")
    of_host = state.workers.of_host(host)
    for worker in of_host:
        worker.dying = False
    for worker in [each for each in of_host if each.alive]:
        worker.away, worker.how = True, f"is on host {host}, which cannot be reached"
        failures.gone(state, worker, f"is on host {host}, which cannot be reached", state.effects.now())


def _list(state: JobState, host: str, listed: Sequence[Mapping[str, Any]]) -> None:
    """Catch up with a host: handle the reports of its workers since the interruption, and repeat unanswered orders."""
    now = state.effects.now()
    state.lines.listed(host)
    state.store_placement.changed()
    before = [worker for worker in state.workers.of_host(host) if worker.alive]
    _returned_workers(state, host, listed)
    # First what the workers said, then whether they live: one that ended in order must not count as lost.
    for each in listed:
        if (worker := state.workers.get(str(each["worker"]))) is not None and worker.alive:
            for message in still_holds(each.get("last") or {}):
                _guarded(state, host, message, partial(_worker_message, state, worker, message, now))
    new = state.workers.update(host, listed)
    for worker in new:
        worker.begun_at = now
    state.most_done = max([state.most_done, *(worker.done for worker in state.workers.of_host(host))])
    if state.group.members:
        orders.hold_also(state, new)
    for worker in before:
        if not worker.alive:
            failures.gone(state, worker, "ended while its agent was unreachable", now)
    _repeat_orders(state, host)


def _returned_workers(state: JobState, host: str, listed: Sequence[Mapping[str, Any]]) -> None:
    """Handle workers that counted as dead but run: keep those that still have their ranks, and kill the others."""
    back = False
    for each in listed:
        worker = state.workers.get(str(each["worker"]))
        if worker is None or worker.alive or not each["alive"]:
            continue
        if worker.away and state.is_member(worker) and state.is_forming:
            worker.alive, worker.away, back = True, False, True
            state.effects.say(f"{worker.name} is back")
        else:
            state.effects.ask(host, {"ask": "kill", "worker": worker.name})
    if back:
        orders.hold(state)


def _repeat_orders(state: JobState, host: str) -> None:
    """Repeating a join would make a worker leave its group: order all members to pause instead."""
    waiting = [(each, each.order) for each in state.workers.of_host(host) if each.alive]
    for worker, order in waiting:
        # Letting all hold, below, replaces the orders of workers further on in this list.
        if order is not None and order is worker.order:
            if order.get("do") != "join":
                orders.send(state, worker, order)
            elif state.group.join_sent and state.is_forming:
                orders.hold(state)


def _worker_message(state: JobState, worker: JobWorker, message: Mapping[str, Any], at: float) -> None:
    if state.phase is JobStage.STARTING and not state.group.members:
        worker.apply(message)  # the job may run already, in a group that this coordinator does not know yet
        state.most_done = max(state.most_done, worker.done)
        return
    generation = state.group.generation
    if message.get("generation", generation) != generation:
        worker.apply_outdated(message)  # the message is from an earlier group
        if message.get("say") == WANTS:
            phase_light.outdated(state)
        return
    if worker.repeats(message):
        return
    worker.apply(message)
    state.most_done = max(state.most_done, worker.done)
    _act_on(state, worker, message, at)


def _act_on(state: JobState, worker: JobWorker, message: Mapping[str, Any], at: float) -> None:
    """Act on a worker's message."""
    group, record = state.group, state.recovery.record if state.recovery is not None else None
    match message.get("say"):
        case "ready":
            state.standby_retries.over(worker.accelerator)
        case "loaded" if record is not None:
            record.mark("state", at)
        case "held" if record is not None and state.all_parked():
            record.mark("held", at)
        case "unloaded" if group.resume_point is not None and not group.join_sent:
            groups.unloaded(state, worker, str(message.get("error", "")))
        case "joined":
            groups.joined(state, worker, at)
        case "broken" if state.phase is JobStage.RUNNING or group.join_sent:
            failures.broken(state, worker, str(message.get("error", "")), at)
        case "stepped":
            _stepped(state, worker, message, at)
        case "wants":
            phase_light.wanted(state, worker, message)
        case "failed" | "exiting" | "ended":
            _ends(state, worker, message, at)
        case _:
            pass


def _ends(state: JobState, worker: JobWorker, message: Mapping[str, Any], at: float) -> None:
    phase_light.leaves(state, worker)
    match message.get("say"):
        case "failed" if worker.script_error is not None and not worker.ended:
            failures.script_failed(state, worker, worker.script_error)
        case "exiting":
            worker.leave_by = min(worker.leave_by, state.effects.now() + state.run.exit_s)
        case "ended" if state.phase is JobStage.STOPPED:
            worker.leave_by = state.effects.now() + state.run.exit_s
        case "ended" if worker.cut_short and not state.phase.over:
            worker.ended = False
            failures.leaves(state, worker, "got SIGTERM", at)
        case "ended" if state.phase is JobStage.RUNNING and state.is_member(worker) and not state.workers.training:
            job_end.finish(state)
        case _:
            pass


def _stepped(state: JobState, worker: JobWorker, message: Mapping[str, Any], reported_at: float) -> None:
    _progressed(state, worker, float(message.get("at", reported_at)))
    if state.phase is JobStage.RUNNING and worker.seat is not None:
        state.collectives.note(worker.seat, worker.done, message.get(COLLECTIVES) or (), reported_at)
        phase_light.stepped(state, worker, message.get(PHASES))


def _progressed(state: JobState, worker: JobWorker, at: float) -> None:
    if state.is_forming and state.group.join_sent:
        groups.formed(state, at)  # a step needs all ranks: all have joined, even if not all have reported it
    if state.phase is not JobStage.RUNNING:
        return
    _report_odd_loss(state, worker)
    if worker.done > state.error_step:
        state.failed_attempts, state.error_step = 0, -1
    state.group.due = state.effects.now() + state.run.stall_s
    if state.recovery is not None and not state.recovery.unexamined:
        state.recovery.record.mark("step", at)
        state.recoveries.append(state.recovery.record)
        state.recovery = None
        state.effects.say(state.recoveries[-1].line())
    if state.group.members.get(0) == worker.name:
        state.step_times.append(at)
        _start_standby(state)


def _report_odd_loss(state: JobState, worker: JobWorker) -> None:
    """Report the first loss of a rank that is infinite or not a number. The job continues: its script decides."""
    is_odd = worker.loss is not None and not math.isfinite(worker.loss)
    if is_odd and not worker.has_odd_loss:
        who = f"rank {worker.seat} ({worker.name})"
        state.effects.say(f"{who}: its loss is {worker.loss} in step {worker.done - 1}")
    worker.has_odd_loss = is_odd


def _start_standby(state: JobState) -> None:
    """Start a standby worker wherever one is missing; nothing is searched until something has changed."""
    found = (state.group.generation, state.workers.presence, state.store_placement.spares)
    if state.standbys_complete == found:
        return
    now, lost, complete = state.effects.now(), state.vacant.values(), True
    beside = [name for name in state.placement if name not in lost] if state.run.standby else []
    for accelerator in (*state.store_placement.spares, *beside):
        waiting = [w for w in state.workers.on(accelerator) if not state.is_member(w) and not w.ended]
        if waiting:
            continue
        complete = False
        if state.workers.is_taken(accelerator, now) or state.standby_retries.waits(accelerator, now):
            continue
        if state.lines.want(state.host_of(accelerator)):
            orders.start_worker(state, accelerator)
    if complete:
        state.standbys_complete = found


def _how(worker: JobWorker, message: Message) -> str:
    signal, code = message.get("signal"), message.get("code")
    how = f"was killed by signal {signal}" if signal else "ended" if code is None else f"ended with exit code {code}"
    return _with_why(worker, how)


def _with_why(worker: JobWorker, how: str) -> str:
    """How a worker ended, and the reason that it reported or printed."""
    when = how if worker.ready else f"{how} {EARLY}"
    return f"{when}: {worker.error}" if worker.error else when
