"""Decides which worker has which rank of a job, and recovers the job after a failure.

One thread decides. All events are posted to it, and it waits only for the next event: a failure during a recovery is an
event like any other. A failure begins a new generation of the process group; messages of older generations are ignored.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Concatenate, ParamSpec

from lumctl.errors import RefusedError
from lumctl.training.coordinator import failures, groups, job_end, orders, phase_light, requests, time_limits
from lumctl.training.coordinator.state import JobStage, JobState

P = ParamSpec("P")
QUITS_WITHIN_S = 5.0
"""How long an agent may take to end."""


class Coordinator:
    """Runs one job. Any thread may call :meth:`post`; only the thread in :meth:`run` may call the rest.

    That thread calls ``after_turn`` after each event.
    """

    def __init__(self, state: JobState, after_turn: Callable[[], None] = lambda: None) -> None:
        self.state = state
        self.after_turn = after_turn
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._saved = (0, 0)
        """Generation of the group and number of recoveries at the last save of the status."""

    def post(self, event: Callable[Concatenate[JobState, P], None], *arguments: P.args, **more: P.kwargs) -> None:
        """Post a function, which the deciding thread calls with the state and these arguments."""
        self._work.put(lambda: event(self.state, *arguments, **more))

    def run(self) -> None:
        """Run the job to its end.

        Raises:
            RefusedError: another lumctl has taken the job over.
        """
        state = self.state
        for host in state.hosts():
            state.lines.open(host)
        while not state.phase.over:
            self.turn()
        if state.phase is JobStage.LEFT:
            raise RefusedError(
                f"another lumctl now runs job {state.job.name}: {state.why_ended}",
                hint=f"end that lumctl, or take over the job: lumctl job run {state.job.name} --take",
            )
        self._end_processes()

    def turn(self) -> None:
        """Wait for the next event or deadline, and handle it."""
        state = self.state
        with suppress(Empty):
            self._work.get(timeout=self._timeout_s())()
        now = state.effects.now
        if now() >= state.group.due and self._work.empty():  # else the expected report may be in the queue
            time_limits.group_is_late(state)
        if now() >= time_limits.next_due(state) and self._work.empty():
            time_limits.enforce(state)
        if now() >= state.lines.next_at:
            state.lines.try_again(now())
        before = None
        while before is not state.phase:  # an advance may change the phase, which requires another advance
            before = state.phase
            _advance(state)
        progress = (state.group.generation, len(state.recoveries))
        if state.phase is JobStage.RUNNING and self._saved != progress:
            self._saved = progress
            state.effects.keep(requests.document(state))
        self.after_turn()

    def _timeout_s(self) -> float | None:
        state = self.state
        retry_at = state.recovery.retry_at if state.recovery is not None else None
        due = [state.group.due, state.lines.next_at, time_limits.next_due(state), phase_light.next_due(state), math.inf]
        at = min(due if retry_at is None else [*due, retry_at])
        return None if at == math.inf else max(0.0, at - state.effects.now())

    def _end_processes(self) -> None:
        """End the standby processes, wait until all processes have ended, and then end the agents."""
        state, stops = self.state, []
        for worker in state.workers:
            # A process without a state to save may never read an order: it is killed.
            if worker.alive and not worker.ready and not worker.generation:
                state.effects.ask(worker.host, {"ask": "kill", "worker": worker.name})
            elif worker.alive and not state.is_member(worker):
                stops.append((worker, {"done": worker.done, "also": []}))
            # Such a worker still writes its checkpoint, and gets more time.
            writes = worker.alive and state.is_member(worker) and not worker.ended
            within_s = state.run.exit_s + (state.run.stall_s if writes else 0.0)
            worker.leave_by = min(worker.leave_by, state.effects.now() + within_s)
        orders.send_all(state, stops, {"do": "stop"})
        while state.workers.existing:
            if state.effects.now() >= time_limits.next_due(state):
                time_limits.enforce_exit(state)
            self._take_work(time_limits.next_due(state))
        asked = {host for host in state.hosts() if state.effects.ask(host, {"ask": "quit"})}
        deadline = state.effects.now() + QUITS_WITHIN_S
        # An order is lost if its line is closed at once.
        while not asked <= state.hosts_left and state.effects.now() < deadline:
            self._take_work(deadline)
        state.ended_at = state.effects.now()
        phase_light.ended(state)
        state.effects.keep(requests.document(state))
        requests.report_stopped(state)

    def _take_work(self, until: float) -> None:
        with suppress(Empty):
            self._work.get(timeout=max(0.0, until - self.state.effects.now()))()


def _advance(state: JobState) -> None:
    """Do the next action for the present phase of the job."""
    if state.phase.over:
        return
    recovery = state.recovery
    if recovery is not None and recovery.retry_at is not None and state.effects.now() >= recovery.retry_at:
        recovery.retry_at = None
    phase_light.go_on(state)
    requests.grant_pauses(state)
    if state.phase is JobStage.STOPPING and state.all_parked():
        job_end.write_checkpoints(state)
    if state.phase is JobStage.FINISHING:
        job_end.conclude(state)
    if state.is_forming and state.all_listed():
        if state.phase is JobStage.STARTING and not state.group.members:
            taken_over = groups.adopt(state)
            if taken_over:
                state.earlier_recoveries = state.effects.before
            if job_end.stop_if_asked_before(state) or taken_over:
                return
            failures.examine_first(state)
        failures.examine(state)
        groups.form(state)
