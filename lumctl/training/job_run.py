"""Run a job: its coordinator with the lines to agents, the healer and the control socket."""

import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from lumctl.change.engine import RunResult
from lumctl.change.plan import Plan
from lumctl.change.preconditions import uncertain
from lumctl.errors import LumctlError
from lumctl.inventory.job_run import JobRun
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.wiring import job_circuits
from lumctl.site import Site
from lumctl.site.observation import current_role
from lumctl.training import variables
from lumctl.training.agent.folder import Folder
from lumctl.training.agent_lines import AgentLines, Open, on_this_machine, over_ssh
from lumctl.training.control_socket import ControlSocket
from lumctl.training.coordinator import agent_reports, job_end, repair, requests
from lumctl.training.coordinator.coordinator import Coordinator
from lumctl.training.coordinator.state import Effects, JobEnd, JobState, Reply
from lumctl.training.healer import Consent, Healer
from lumctl.training.job_folder import COORDINATOR, claimed, earlier_recoveries, job_folder, save_status, token_of
from lumctl.training.simulator_watch import GONE, SimulatorWatch
from lumctl.training.wire import Message

P = ParamSpec("P")
LOOPBACK = "127.0.0.1"
PYTHON = "python3"
_THERE = ".lumctl/jobs/{}"
"""The folder of a job's agent on a host, relative to the home folder."""


@dataclass(frozen=True, slots=True)
class RunMode:
    """How a job is run: agents on this machine (a simulated rack) or on the hosts, and whether they are taken over."""

    local: bool
    take: bool = False


def run_job(
    open_site: Callable[[], Site], job: str, consent: Consent, mode: RunMode, say: Callable[[str], None]
) -> Coordinator:
    """Run a job to its end; the coordinator after it has ended.

    ``open_site`` opens one aimed at the target: one for the placement, one for the healer's thread.

    Raises:
        LumctlError: it cannot be run: it has no ``run:``, or somebody else runs it.
    """
    with begun(open_site, job, consent, mode, say) as coordinator:
        coordinator.run()
    return coordinator


@contextmanager
def begun(
    open_site: Callable[[], Site], job: str, consent: Consent, mode: RunMode, say: Callable[[str], None]
) -> Iterator[Coordinator]:
    """Open the coordinator of a job with all it needs, not yet running; see :func:`run_job`."""
    with ExitStack() as stack:
        site = stack.enter_context(open_site())
        inventory = site.inventory
        found = inventory.jobs[job]
        run = found.run_settings()
        _require_programmed(site, job, found.rack)
        folder = job_folder(inventory.path, site.target, job)
        stack.enter_context(claimed(folder, job))
        events = _Events()
        who = f"pid {os.getpid()} on {socket.gethostname()} ({secrets.token_hex(4)})"
        lines = AgentLines(_opener(site, run.agent, folder, job, mode, who), who, events.agent_reported)
        stack.callback(lines.close)
        healer = Healer(open_site, job, found.rack, consent, events)
        stack.callback(healer.close)
        lanes = site.endpoints.lanes
        effects = Effects(
            ask=lines.ask,
            open=lines.open,
            examine=healer.examine,
            placement=lambda: site.assignment()[job],
            ready_on=lambda: spares(inventory, site, found.rack),
            environment=_environment(site, job, run, token_of(folder), mode),
            log=_log(folder, job, mode),
            keep=_keeper(folder),
            before=earlier_recoveries(folder),
            lost=lambda: GONE if lanes is not None and not lanes.exists() else "",
            lanes={"socket": str(lanes)} if lanes is not None else None,
            say=say,
            who=who,
        )
        run = replace(run, command=with_this_python(run.command)) if mode.local else run
        coordinator = Coordinator(JobState(inventory, found, run, effects))
        events.coordinator = coordinator
        healer.begin()
        stack.callback(ControlSocket(folder / COORDINATOR, events.requested).close)
        stack.callback(requests.leave, coordinator.state)
        if lanes is not None:
            stack.callback(SimulatorWatch(lanes, events.simulator_gone).close)
        yield coordinator


def with_this_python(command: tuple[str, ...]) -> tuple[str, ...]:
    """A worker's command on this machine: ``python3`` is replaced by the interpreter that runs lumctl."""
    return (sys.executable, *command[1:]) if command[0] == PYTHON else command


def _require_programmed(site: Site, job: str, rack: str) -> None:
    """Require that the job's circuits are programmed, or a run on them is unfinished: else ranks wait forever."""
    circuits = job_circuits(site.inventory, site.inventory.jobs[job], site.assignment()[job])
    for device in sorted({circuit.device for circuit in circuits}):
        if not site.known_cells(device) and site.store(rack).uncertain_since(device) is None:
            raise uncertain(site, rack, device)


def _keeper(folder: Path) -> Callable[[Mapping[str, Any]], None]:
    def keep_it(document: Mapping[str, Any]) -> None:
        with suppress(OSError):  # the job goes on without
            save_status(folder, document)

    return keep_it


def _log(folder: Path, job: str, mode: RunMode) -> Callable[[str, str], str]:
    def log(host: str, worker: str) -> str:
        if mode.local:
            return str(Folder(folder / host).log(worker))
        return f"{Folder(Path(_THERE.format(job))).log(worker)} on {host}"

    return log


def _opener(site: Site, agent: tuple[str, ...], folder: Path, job: str, mode: RunMode, who: str) -> Open:
    if mode.local:
        return on_this_machine(folder, take=mode.take, who=who)
    return over_ssh(site, agent, _THERE.format(job), take=mode.take, who=who)


def _environment(site: Site, job: str, run: JobRun, token: str, mode: RunMode) -> Callable[[str], Mapping[str, str]]:
    def environment(host: str) -> dict[str, str]:
        address = LOOPBACK if mode.local else site.fleet.address(host)
        return {
            "OMP_NUM_THREADS": "1",
            **run.environment,
            variables.JOB: job,
            variables.TOKEN: token,
            variables.ADDRESS: address,
        }

    return environment


def spares(inventory: Inventory, site: Site, rack: str) -> tuple[str, ...]:
    """The accelerators of a rack that are spares now."""
    placed = site.assignment()
    mine = [each.id for each in inventory.accelerators.values() if each.rack == rack]
    return tuple(name for name in mine if current_role(inventory, placed, name) is Role.SPARE)


class _Events:
    """Posts what other threads report to the thread that decides."""

    coordinator: Coordinator

    def _post(self, event: Callable[Concatenate[JobState, P], None], *arguments: P.args, **more: P.kwargs) -> None:
        state = self.coordinator.state
        self.coordinator.post(lambda: event(state, *arguments, **more))

    def agent_reported(self, host: str, message: Message | None, why: str) -> None:
        self._post(agent_reports.receive, host, message, why)

    def requested(self, request: Message, reply: Reply) -> None:
        self._post(requests.receive, request, reply)

    def examined(self, bad: Mapping[str, str]) -> None:
        self._post(repair.examined, bad)

    def planned(self, plan: Plan) -> None:
        self._post(repair.planned, plan)

    def programmed(self) -> None:
        self._post(repair.programmed)

    def verified(self) -> None:
        self._post(repair.verified)

    def circuits_dark(self, why: str) -> None:
        self._post(repair.circuits_dark, why)

    def repaired(self, result: RunResult | None) -> None:
        self._post(repair.repaired, result)

    def not_repaired(self, error: LumctlError) -> None:
        self._post(repair.not_repaired, error)

    def simulator_gone(self) -> None:
        self._post(job_end.give_up, GONE, JobEnd.SIMULATOR_GONE)
