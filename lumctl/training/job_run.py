"""Run a job: its coordinator, the lines to the agents on the hosts, the healer and the control socket."""

import json
import os
import secrets
import select
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from lumctl.change.origin import origin
from lumctl.change.preconditions import uncertain
from lumctl.context import Context
from lumctl.context.job_files import COORDINATOR, LATE, LIGHT, job_folder, save_late, save_light
from lumctl.devices.endpoints import RUNTIME_FILE
from lumctl.errors import LumctlError
from lumctl.health.observation import current_role
from lumctl.inventory.filler_records import running_fillers
from lumctl.inventory.job_run import JobRun, StragglerSchedule
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import job_circuits
from lumctl.training import protocol
from lumctl.training.agent.folder import Folder
from lumctl.training.agent_lines import AgentLines, CommandLine, Open
from lumctl.training.coordinator import agent_reports, job_end, requests
from lumctl.training.coordinator.coordinator import Coordinator
from lumctl.training.coordinator.state import Effects, JobEnd, JobStage, JobState
from lumctl.training.healer import Healer
from lumctl.training.job_control import ControlSocket
from lumctl.training.job_folder import (
    claimed,
    earlier_recoveries,
    save_collectives,
    save_profiles,
    save_status,
    token_of,
)
from lumctl.training.phase_permission import end_permit, require_gateway
from lumctl.training.phase_threads import PhaseThreads
from lumctl.training.protocol import StreamLine
from lumctl.training.record_judge import RecordJudge

P = ParamSpec("P")
GONE = "its simulator has ended, and all light between the ranks with it"
AGENT_WITHIN_S = 5.0
"""How long an agent may take to start and answer."""
POLL_MS = 250
"""How often the simulator's socket is checked: an orderly end takes seconds, and first removes the socket."""
LOOPBACK = "127.0.0.1"
PYTHON = "python3"
_REMOTE_FOLDER = ".lumctl/jobs/{}"
"""The folder of a job's agent on a host, relative to the home folder."""


def run_job(
    open_context: Callable[[], Context], job: str, agreed_by: str, say: Callable[[str], None], *, take: bool = False
) -> Coordinator:
    """Run a job to its end; return the ended coordinator.

    ``open_context`` is called twice: for the placement, and for the healer's thread. ``agreed_by`` is
    the operator who has agreed to swaps; empty if no operator has. With ``take``, agents are taken over from another
    lumctl.

    Raises:
        LumctlError: the job has no ``run:``, another lumctl runs it, or it cannot be run.
    """
    with open_coordinator(open_context, job, agreed_by, say, take=take) as coordinator:
        coordinator.run()
    return coordinator


@contextmanager
def open_coordinator(
    open_context: Callable[[], Context], job: str, agreed_by: str, say: Callable[[str], None], *, take: bool = False
) -> Iterator[Coordinator]:
    """Set up the coordinator of a job with all that it needs, but do not run it; see :func:`run_job`."""
    with ExitStack() as stack:
        context = stack.enter_context(open_context())
        found = context.inventory.jobs[job]
        run = found.run_settings()
        _require_programmed(context, job)
        folder = job_folder(context.inventory.path, context.target, job)
        stack.enter_context(claimed(folder, job))
        who = f"pid {os.getpid()} on {socket.gethostname()} ({secrets.token_hex(4)})"
        lanes = context.endpoints.lanes
        local = context.target == "sim"
        open_line = (
            on_this_machine(folder, take=take, who=who)
            if local
            else over_ssh(context, run.agent, _REMOTE_FOLDER.format(job), take=take, who=who)
        )

        def post(event: Callable[Concatenate[JobState, P], None], *arguments: P.args, **more: P.kwargs) -> None:
            coordinator.post(event, *arguments, **more)

        def log(host: str, worker: str) -> str:
            if local:
                return str(Folder(folder / host).log(worker))
            return f"{Folder(Path(_REMOTE_FOLDER.format(job))).log(worker)} on {host}"

        def keep(document: Mapping[str, Any]) -> None:
            if document["ended_at"] is not None:
                _keep_records(folder, coordinator.state)
            with suppress(OSError):  # the job continues without a saved status
                save_status(folder, document)

        lines = AgentLines(open_line, who, lambda host, message, why: post(agent_reports.receive, host, message, why))
        stack.callback(lines.close)
        phases = PhaseThreads(context, found, agreed_by or origin(), post, say)
        stack.callback(phases.close)
        healer = Healer(open_context, job, found.rack, agreed_by, post, before_rest=phases.stop)
        stack.callback(healer.close)
        token = token_of(folder)
        effects = Effects(
            ask=lines.ask,
            open=lines.open,
            examine=healer.examine,
            placement=lambda: context.assignment()[job],
            ready_on=lambda: spares(context, found.rack),
            environment=_environment(context, job, run, token, local=local),
            log=log,
            keep=keep,
            before=earlier_recoveries(folder),
            lost=lambda: GONE if lanes is not None and not lanes.exists() else "",
            lanes={"socket": str(lanes)} if lanes is not None else None,
            phases=phases.effects(healer) if found.phases else None,
            token=token,
            say=say,
            who=who,
        )
        run = replace(run, command=with_this_python(run.command)) if local else run
        coordinator = Coordinator(JobState(context.inventory, found, run, effects))
        stack.callback(_keep_records, folder, coordinator.state)
        healer.begin()
        for name in (LATE, LIGHT):  # nobody waits for a rank, or for light, of a job that has ended
            stack.callback((folder / name).unlink, missing_ok=True)
        judge = RecordJudge(
            post,
            partial(save_late, folder),
            schedules=run.straggler_schedule is StragglerSchedule.ON,
            save_light=partial(save_light, folder),
        )
        stack.callback(judge.close)
        judge.begin()
        control = ControlSocket(folder / COORDINATOR, lambda request, reply: post(requests.receive, request, reply))
        # Callbacks run in reverse order: open requests are answered before their connections close.
        stack.callback(control.close)
        stack.callback(requests.leave, coordinator.state)
        if lanes is not None:
            watch = SimulatorWatch(lanes, lambda: post(job_end.give_up, GONE, JobEnd.SIMULATOR_GONE))
            stack.callback(watch.close)
        yield coordinator
        phases.stop()
        _end_permit(context, coordinator.state, healer, agreed_by or origin())


def _keep_records(folder: Path, state: JobState) -> None:
    """Save what is recorded of the collectives and the phases of a job."""
    with suppress(OSError):
        if (recorded := state.collectives.document())["steps"]:
            save_collectives(folder, recorded)
        if state.light is not None and (profiles := state.light.profiles.document()):
            save_profiles(folder, profiles)


def _end_permit(context: Context, state: JobState, healer: Healer, who: str) -> None:
    """End the permit of a job with phases that has ended; one that goes on without lumctl keeps it."""
    if state.light is not None and state.phase in {JobStage.ENDED, JobStage.STOPPED}:
        healer.close()  # it may be obtaining a permit
        try:
            end_permit(context, state.job.name, who)
        except LumctlError as error:
            hint = f" ({error.hint})" if error.hint else ""
            state.effects.say(f"{state.job.name} may still change its phases: {error.message}{hint}")


def with_this_python(command: tuple[str, ...]) -> tuple[str, ...]:
    """A worker's command on this machine: ``python3`` is replaced by the interpreter that runs lumctl."""
    return (sys.executable, *command[1:]) if command[0] == PYTHON else command


def spares(context: Context, rack: str) -> tuple[str, ...]:
    """The accelerators of a rack that are spares now, and run no filler job."""
    inventory, placed = context.inventory, context.assignment()
    of_rack = [each.id for each in inventory.accelerators.values() if each.rack == rack]
    busy = running_fillers(inventory, placed)
    return tuple(name for name in of_rack if name not in busy and current_role(inventory, placed, name) is Role.SPARE)


def _require_programmed(context: Context, job: str) -> None:
    """Require that the job's circuits are programmed or that a run on them is unfinished; else ranks wait forever."""
    found = context.inventory.jobs[job]
    circuits = job_circuits(context.inventory, found, context.assignment()[job])
    if found.phases:
        require_gateway(context, found)
    for device in sorted({device for circuit in circuits for device in circuit.devices}):
        if not context.known_cells(device) and context.store(found.rack).fabric.uncertain_since(device) is None:
            raise uncertain(context, found.rack, device)


def _environment(
    context: Context, job: str, run: JobRun, token: str, *, local: bool
) -> Callable[[str], Mapping[str, str]]:
    def environment(host: str) -> dict[str, str]:
        return {
            # As torchrun sets it: otherwise each worker of a host starts a thread for every core.
            "OMP_NUM_THREADS": "1",
            **run.environment,
            protocol.JOB: job,
            protocol.TOKEN: token,
            protocol.ADDRESS: LOOPBACK if local else context.fleet.address(host),
        }

    return environment


def on_this_machine(folder: Path, *, take: bool, who: str) -> Open:
    """Open the agents of all hosts as processes on this machine, for a simulated rack; each has its own folder."""
    from lumctl.training.agent import open_agent  # noqa: PLC0415 - a rack's agents are elsewhere

    return lambda host: open_agent(folder / host, take=take, who=who)


def over_ssh(context: Context, agent: Iterable[str], folder: str, *, take: bool, who: str) -> Open:
    """Open agents on the hosts over SSH; ``folder`` is a path there."""
    command = shlex.join([*agent, "bridge", folder, *(["--take"] if take else []), "--who", who])

    def opened(host: str) -> StreamLine:
        stream = context.fleet.stream(host, command, within_s=AGENT_WITHIN_S)
        stream.settimeout(None)
        return CommandLine(stream)

    return opened


class SimulatorWatch:
    """Calls ``gone`` once, from its own thread, when a simulator ends. ``lanes`` is the simulator's lane socket."""

    def __init__(self, lanes: Path, gone: Callable[[], None]) -> None:
        self._lanes, self._gone = lanes, gone
        self._stop, self._stopped = os.pipe()
        self._thread: threading.Thread | None = None
        with suppress(OSError, ValueError, KeyError, TypeError):  # the simulator has just ended: the next request fails
            watched = os.pidfd_open(int(json.loads(lanes.with_name(RUNTIME_FILE).read_text())["pid"]))
            self._thread = threading.Thread(target=self._wait, args=(watched,), name="lumctl-simulator", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        # The end of this pipe ends the thread's wait.
        os.close(self._stopped)
        if self._thread is not None:
            self._thread.join()
        os.close(self._stop)

    def _wait(self, watched: int) -> None:
        try:
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            poll.register(self._stop, select.POLLIN | select.POLLHUP)
            while not (found := dict(poll.poll(POLL_MS))) and self._lanes.exists():
                pass
        finally:
            os.close(watched)
        if self._stop not in found:
            self._gone()
