"""The kind ``torchrun``: ends a job on all its hosts before its light moves, then starts it at its placement."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from lumctl.errors import LumctlError, RefusedError, UnreachableError
from lumctl.inventory.entry import JobKindEntry, Text, Time
from lumctl.inventory.job_entries import Command
from lumctl.programs import plain, through

if TYPE_CHECKING:
    from lumctl.jobs.control import Facts, JobContext, Placement, Rank

MOST_PORT = 65_535


class TorchrunHookEntry(JobKindEntry):
    """A job that torchrun starts: lumctl ends it before light moves, and starts it again at its new placement."""

    kind: Literal["torchrun"] = Field(description="The job is run by torchrun.")
    command: Command = Field(
        description="The script and its arguments, the same on each host. It continues from its own checkpoint."
    )
    torchrun: Command = Field(["torchrun"], description="The program that starts it on a host.")
    options: Annotated[list[Text], Field(max_length=256)] = Field(
        [], description="Options of torchrun in addition to those of lumctl, such as --max-restarts=3."
    )
    id: Text | None = Field(
        None,
        description="Its rendezvous id, which identifies a torchrun that was started otherwise. Default: its name.",
    )
    endpoint: Text | None = Field(
        None,
        description="Rendezvous address of its ranks, host:port. Default: the address of rank 0's host, and `port`.",
    )
    port: Annotated[int, Field(ge=1, le=MOST_PORT)] = Field(29400, description="The rendezvous port of its ranks.")
    folder: Text | None = Field(
        None, description="The folder in which it runs, on each host. Default: the home folder."
    )
    environment: Mapping[Text, str] = Field({}, description="Added to its environment; must not contain secrets.")
    on: Annotated[list[Text], Field(max_length=64)] = Field(
        [],
        description='Put before each command on a host, such as [ssh, "{host}"]. Default: all hosts are this machine.',
    )
    python: Text = Field("python3", description="A Python on each host, 3.9 or newer, that supervises torchrun.")
    grace_s: Time = Field(10.0, description="Seconds between the request to end and the kill.")


RUNNING, STOPPED = "running", "stopped"
STATE = "~/.local/state/lumctl/torchrun"
"""The folder on a host with the records and logs of its jobs."""
LEAST_S = 2.0
"""Time limit of a command on a host even if the act's time has passed."""
SILENT_S = 5.0
"""Time limit for a host that the job does not need; it may be the failed one."""


class Torchrun:
    """Ends torchrun on the job's hosts, and starts it where the job is placed."""

    api_version: ClassVar[int] = 1
    entry: ClassVar[type[TorchrunHookEntry]] = TorchrunHookEntry

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self._settings: TorchrunHookEntry = context.settings
        self._id = self._settings.id or context.job
        self._begin("status")

    def status(self) -> str:
        """Running if torchrun or a worker of the job runs on any of its hosts; otherwise stopped."""
        self._begin("status")
        silent: LumctlError | None = None
        for host in _hosts(self._context.placement()):
            try:
                # One host on which it runs is enough; without one, a host that is silent leaves it open.
                if self._ask(host, "status")["running"]:
                    return RUNNING
            except LumctlError as error:
                silent = error
        if silent is not None:
            raise silent
        return STOPPED

    def pause(self, facts: "Facts", placement: "Placement") -> dict[str, str]:
        """End the job on all its hosts: by SIGTERM first, and by SIGKILL after the grace period."""
        self._begin("pause")
        lost = {rank.host for rank in placement if rank.accelerator in facts.failed}
        said: list[str] = []
        ran = self._end(_hosts(placement), lost, said)
        return {"was": RUNNING if ran else STOPPED, "is": STOPPED, **({"said": "\n".join(said)} if said else {})}

    def resume(self, facts: "Facts", placement: "Placement") -> dict[str, str]:
        """Start the job, and wait for its workers. A job that runs elsewhere is ended first."""
        self._begin("resume")
        groups, said = self._groups(placement), list[str]()
        found = {host: self._ask(host, "status") for host in groups}
        elsewhere = self._elsewhere(facts, groups, said)
        running = [host for host in groups if found[host]["running"]]
        if len(running) == len(groups) and not elsewhere and not self._differs(found, groups):
            return {"was": RUNNING, "is": RUNNING, **self._ranks(found, groups)}
        ended = [*running, *elsewhere]
        self._end(ended, (), [])  # new ranks would never meet ranks of an earlier start
        try:
            for node, host in enumerate(groups):
                self._require(host, self._ask(host, "start", **self._start(node, groups)), started=False)
            # All are started before any is awaited: ranks meet only when all are there.
            for host, ranks in groups.items():
                up = self._ask(host, "up", workers=len(ranks), within_s=max(self._left_s() - LEAST_S, LEAST_S))
                self._require(host, up, started=len(ranks) <= up.get("workers", 0))
                found[host] = up
        except LumctlError as error:
            # Hosts that do not answer are passed over, so that the error that is reported is the first one.
            self._end(groups, set(groups), [])
            if ended and isinstance(error, RefusedError):  # the job ran before and does not run now: no refusal
                job = self._context.job
                raise UnreachableError(
                    f"torchrun of job {job} was ended on {', '.join(ended)}; then: {error.message}", hint=error.hint
                ) from error
            raise
        if ended:
            said.append(f"ended on {', '.join(ended)}: it did not run where it was placed")
        said.append(f"started on {', '.join(groups)}")
        was = RUNNING if ended else STOPPED
        return {"was": was, "is": RUNNING, "said": "\n".join(said), **self._ranks(found, groups)}

    @classmethod
    def programs(cls, settings: TorchrunHookEntry) -> Mapping[str, Sequence[str]]:
        """The programs that run on this machine: the prefix ``on``, or without it Python and torchrun."""
        return {"on": settings.on} if settings.on else {"python": [settings.python], "torchrun": settings.torchrun}

    @classmethod
    def words(cls, settings: TorchrunHookEntry) -> str:
        """The command that torchrun starts."""
        return f"torchrun ({' '.join(settings.command)})"

    def _begin(self, act: str) -> None:
        self._act, self._ends = act, self._context.now() + self._context.timeout_s

    def _left_s(self) -> float:
        return max(self._ends - self._context.now(), LEAST_S)

    def _end(self, hosts: Iterable[str], lost: Iterable[str], said: list[str]) -> bool:
        """End the job on these hosts; return whether it ran on any. Hosts in ``lost`` need not answer."""
        ran, asked = False, []
        for host in hosts:
            try:
                ran |= bool(self._ask(host, "term")["running"])
                asked.append(host)
            except LumctlError as error:
                if host not in lost:
                    raise
                said.append(f"{host} could not be reached: {error.message}")
        # All were asked before any is awaited, so the grace period runs once for all.
        ends = self._context.now() + self._settings.grace_s
        for host in asked:
            left_s = min(ends - self._context.now(), self._left_s() - LEAST_S)
            if self._ask(host, "gone", within_s=max(left_s, 0.0))["running"]:
                raise UnreachableError(f"torchrun of job {self._context.job} does not end on {host}")
        return ran

    def _elsewhere(self, facts: "Facts", groups: Mapping[str, Any], said: list[str]) -> list[str]:
        """The hosts of this run outside ``groups`` on which the job runs; a host that does not answer is skipped.

        Such a host may be the failed one. If all hosts are this machine, only ranks that lumctl has started count: a
        job that lumctl did not start would be found on every host.
        """
        running = []
        for host in dict.fromkeys(self._context.host_of(name) for name in (*facts.failed, *facts.spares)):
            if host in groups:
                continue
            try:
                told = self._ask(host, "status", most_s=SILENT_S)
                if told["running"] and (self._settings.on or self._known(told)):
                    running.append(host)
            except LumctlError as error:
                said.append(f"{host} could not be reached: {error.message}")
        return running

    def _differs(self, found: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Sequence["Rank"]]) -> bool:
        """Whether a rank is known to run on a wrong host or accelerator; for a restarting rank that is unknown."""
        for host, told in found.items():
            mine = {rank.rank: rank.accelerator for rank in groups[host]}
            for rank, accelerator in self._known(told).items():
                if rank not in mine or accelerator not in {None, mine[rank]}:
                    return True
        return False

    def _ranks(self, found: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Sequence["Rank"]]) -> dict[str, str]:
        """The evidence of where each rank runs: its accelerator, or else its host; empty if some are unknown."""
        at: dict[int, str] = {}
        for host, told in found.items():
            at.update({rank: accelerator or host for rank, accelerator in self._known(told).items()})
        count = sum(map(len, groups.values()))
        return {"ranks": ",".join(at[rank] for rank in range(count))} if at.keys() == set(range(count)) else {}

    def _known(self, told: Mapping[str, Any]) -> dict[int, str | None]:
        """The accelerator of each rank on a host; ``None`` if only the host is known.

        If all hosts are this machine, ranks that lumctl did not start are omitted: their host is unknown.
        """
        ranks = told.get("ranks", {}).items()
        return {int(rank): name for rank, name in ranks if name is not None or self._settings.on}

    def _groups(self, placement: "Placement") -> dict[str, list["Rank"]]:
        """The ranks of each host, in the order of the hosts: torchrun numbers ranks host by host."""
        groups: dict[str, list[Rank]] = {}
        last = ""
        for rank in placement:
            if rank.host in groups and rank.host != last:
                raise RefusedError(
                    f"torchrun cannot place job {self._context.job}: rank {rank.rank} is on {rank.host}, and rank "
                    f"{rank.rank - 1} between its other ranks is on {last}",
                    hint="torchrun numbers ranks host by host: choose another spare",
                )
            groups.setdefault(rank.host, []).append(rank)
            last = rank.host
        return groups

    def _start(self, node: int, groups: Mapping[str, Sequence["Rank"]]) -> dict[str, Any]:
        settings, host = self._settings, list(groups)[node]
        ranks = groups[host]
        address = self._context.address_of(next(iter(groups))) if settings.on else "127.0.0.1"
        argv = [
            *settings.torchrun,
            f"--nnodes={len(groups)}",
            f"--node-rank={node}",
            f"--nproc-per-node={len(ranks)}",
            f"--rdzv-id={self._id}",
            # Other backends do not number the ranks by --node-rank, and the placement depends on these numbers.
            "--rdzv-backend=static",
            f"--rdzv-endpoint={settings.endpoint or f'{address}:{settings.port}'}",
            *settings.options,
            *settings.command,
        ]
        environment = {
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # otherwise four restarted ranks do not connect
            # By default CUDA numbers GPUs by speed, not in the order of the bus as nvidia-smi does.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": ",".join(str(rank.index) for rank in ranks),
            "LUMCTL_ACCELERATORS": ",".join(rank.accelerator for rank in ranks),
            **settings.environment,
        }
        return {"argv": argv, "environment": environment, "folder": settings.folder}

    def _require(self, host: str, told: Mapping[str, Any], *, started: bool) -> None:
        job = self._context.job
        if not told["running"]:
            lines = [
                plain(line) for line in str(told.get("error") or told.get("said", "")).splitlines() if line.strip()
            ]
            why = lines[-1] if lines else "it said nothing"
            raise RefusedError(f"torchrun of job {job} did not start on {host}: {why}", hint=_log(told))
        if "workers" in told and not started:
            raise UnreachableError(
                f"torchrun of job {job} has {told['workers']} workers on {host} after {self._context.timeout_s:g} s",
                hint=_log(told),
            )

    def _ask(self, host: str, act: str, *, most_s: float = math.inf, **more: Any) -> dict[str, Any]:
        """Run the minder on a host, within ``most_s`` and the time of the act; return its answer.

        Raises:
            UnreachableError: the minder failed, or did not answer in time.
        """
        order = {"act": act, "name": f"{self._context.job}@{host}", "id": self._id, "state": STATE, **more}
        source = files("lumctl_torchrun").joinpath("minder.py").read_text()
        # -I and -S: no setting, folder or package of that host's Python may change what runs.
        command = [self._settings.python, "-I", "-S", "-c", source, json.dumps(order)]
        # Longer than the minder's own time limit, so that its answer still arrives.
        timeout_s = min(self._left_s() + LEAST_S, most_s)
        ended = self._context.run(through(self._settings.on, command, host=host), act=self._act, timeout_s=timeout_s)
        try:
            told = json.loads(ended.last_line) if not ended.code and not ended.late else None
        except ValueError:
            told = None
        if not isinstance(told, dict):
            how = "took too long" if ended.late else plain(ended.last_line) or f"exit code {ended.code}"
            raise UnreachableError(f"torchrun of job {self._context.job} cannot be supervised on {host}: {how}")
        return told


def _hosts(placement: "Placement") -> list[str]:
    return list(dict.fromkeys(rank.host for rank in placement))


def _log(told: Mapping[str, Any]) -> str | None:
    return f"see {told['log']} there" if "log" in told else None
