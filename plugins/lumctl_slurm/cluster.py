"""Slurm as lumctl knows it: the settings of a job in an inventory, Slurm's commands, and the job that is meant.

Of the commands: their argument lists, their answers as data, and their complaints as errors.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from lumctl.errors import RefusedError, UnreachableError
from lumctl.inventory.entry import JobKindEntry, Text
from lumctl.inventory.problems import Mark
from lumctl.programs import plain, through

if TYPE_CHECKING:
    from pathlib import Path

    from lumctl.programs import Ended


class SlurmHookEntry(JobKindEntry):
    """A job that Slurm runs: it is requeued and held before light paths change, and released at its new placement."""

    kind: Literal["slurm"] = Field(description="The job is run by Slurm.")
    job: Text | None = Field(None, description="Its name in Slurm. Default: its name in the inventory.")
    user: Text | None = Field(None, description="Its user, if several users have a job of that name.")
    id_file: Text | None = Field(None, description="A file that contains its number, instead of its name.")
    id_variable: Text | None = Field(
        None, description="An environment variable of lumctl that contains its number, instead of its name."
    )
    nodes: Mapping[Text, Text] = Field({}, description="Slurm's names of hosts, by host, where they differ.")
    on: Annotated[list[Text], Field(max_length=64)] = Field(
        [],
        description="Put before each Slurm command, such as [ssh, HEAD-NODE]. By default they run on this machine.",
    )

    def complaints(self, hosts: Collection[str]) -> Iterator[tuple[Mark, str]]:
        """Errors of the entry: unknown hosts, two hosts with the same node, a job that is named in two ways."""
        hosts_by_node: dict[str, str] = {}
        for host, node in self.nodes.items():
            mark = self.item_mark("nodes", host)
            if host not in hosts:
                yield mark, f"{host!r} is not a known host"
            if node in hosts_by_node:
                yield mark, f"node {node} is already host {hosts_by_node[node]}, expected one node for each host"
            hosts_by_node[node] = host
        named = [key for key in ("job", "id_file", "id_variable") if getattr(self, key) is not None]
        if len(named) > 1:
            yield self.mark(named[1]), f"found {' and '.join(named)}, expected one of them"

    def node_of(self, host: str) -> str:
        """Slurm's name of a host."""
        return self.nodes.get(host, host)


MOST_SAID = 1_000_000
"""Most bytes of an answer that are read; there may be many jobs of one name, and many nodes."""
HINTS = {
    "Unable to contact slurm controller": "check that slurmctld runs, and that SLURM_CONF is right: scontrol ping",
    "denied": "lumctl must run as Slurm's own user, as root, or as one of its operators: "
    "sacctmgr modify user NAME set adminlevel=operator",
    "Invalid node name": "give Slurm's node names in the inventory: jobs: hook: nodes",
    "Requested operation is presently disabled": "submit it as a job that may be requeued: sbatch --requeue",
    "Only batch jobs": "submit it with sbatch: Slurm requeues no other job",
    "munge": "check that munged runs",
}
ENDED = frozenset(
    "COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY REVOKED".split()  # noqa: SIM905
)
NOT_DRAINED = frozenset({"none", "Not responding", "Node unexpectedly rebooted", ""})
"""Reasons that no user gave: Slurm set them itself, or there is no reason."""


class SlurmError(UnreachableError):
    """A command of Slurm failed. ``text`` is its output."""

    def __init__(self, message: str, text: str) -> None:
        hint = next((hint for part, hint in HINTS.items() if part in text), None)
        super().__init__(message, hint=hint)
        self.text = text


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job as Slurm reports it.

    ``nodes`` are the nodes on which it runs, in Slurm's folded form. ``held``: Slurm does not start it. ``elapsed`` is
    the time that it has run, as squeue prints it.
    """

    id: str
    user: str
    state: str
    held: bool
    nodes: str
    shown: str
    elapsed: str
    name: str

    @property
    def ended(self) -> bool:
        """Whether it has ended permanently."""
        return self.state in ENDED

    @property
    def waits(self) -> bool:
        """Whether it is in the queue."""
        return self.state in {"PENDING", "REQUEUE_HOLD", "REQUEUED", "SPECIAL_EXIT"}


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node's state, such as ``idle`` or ``drained``, and the reason why it is out of use."""

    name: str
    state: str
    reason: str

    @property
    def answers(self) -> bool:
        """Whether the slurmd of the node has answered lately."""
        return not self.state.endswith("*")

    @property
    def drained(self) -> bool:
        """Whether a user has drained the node: Slurm starts nothing on it until it is undrained."""
        state = self.state.lower()
        by_hand = self.reason not in NOT_DRAINED
        return "drain" in state or (by_hand and any(word in state for word in ("down", "fail", "maint")))


class Cluster:
    """One Slurm. ``run`` runs a command within a time limit; ``left_s`` returns the remaining seconds."""

    def __init__(
        self, on: Sequence[str], run: "Callable[[Sequence[str], float], Ended]", left_s: Callable[[], float]
    ) -> None:
        self._on, self._run, self._left_s = on, run, left_s

    def jobs(self, *which: str) -> list[SlurmJob]:
        """The jobs that the options ``which`` of squeue select, including those that ended a short while ago.

        Raises:
            SlurmError: the command failed.
        """
        # The name comes last, because it alone may contain the separator.
        asked = ["squeue", "--noheader", "--all", "--states=all", *which, "--format=%A|%u|%T|%Q|%N|%i|%M|%j"]
        try:
            lines = self._ask(asked).splitlines()
        except SlurmError as error:
            if "Invalid job id" in error.text:
                return []
            raise
        rows = [line.strip().split("|", 7) for line in lines if line.count("|") >= 7]  # noqa: PLR2004 - as asked
        return [SlurmJob(a, b, c, d == "0", e, f, g, h) for a, b, c, d, e, f, g, h in rows]

    def about(self, job: str, what: str) -> str:
        """One field of a job, by squeue's name for it."""
        # With a width, because squeue cuts a field to 20 characters without one.
        return self._ask(["squeue", "--noheader", "--states=all", f"--jobs={job}", f"--Format={what}:4000"]).strip()

    def nodes(self, names: Collection[str]) -> dict[str, SlurmNode]:
        """The nodes of these names.

        Raises:
            SlurmError: the command failed.
            RefusedError: Slurm does not know one of the nodes.
        """
        if not names:
            return {}
        lines = self._ask(["sinfo", "--noheader", "--all", "--Node", f"--nodes={','.join(names)}", "--format=%N|%T|%E"])
        rows = [line.split("|", 2) for line in lines.splitlines() if line.count("|") >= 2]  # noqa: PLR2004 - as asked
        found = {name: SlurmNode(name, state, reason.strip()) for name, state, reason in rows}
        for name in names:
            if name not in found:
                raise RefusedError(f"Slurm knows no node {name}", hint=HINTS["Invalid node name"])
        return found

    def expanded(self, folded: str) -> set[str]:
        """The nodes of a list in Slurm's folded form."""
        # Slurm prints (null) if there are no nodes.
        return set(self._ask(["scontrol", "show", "hostnames", folded]).split()) if folded.strip("()nul") else set()

    def tell(self, *words: str) -> None:
        """Run scontrol with these arguments.

        Raises:
            SlurmError: the command failed.
        """
        self._ask(["scontrol", *words])

    def _ask(self, command: Sequence[str]) -> str:
        limit = self._left_s()
        ended = self._run(through(self._on, command), limit)
        what = " ".join(word for word in command[:3] if not word.startswith("--"))
        if ended.late:
            raise SlurmError(f"{what} did not end within {limit:.3g} s: {plain(ended.last_line) or 'no output'}",
                             ended.said)  # fmt: skip
        if ended.code:
            raise SlurmError(f"{what} failed: {plain(ended.last_line) or f'exit code {ended.code}'}", ended.said)
        return ended.said


_NUMBER = re.compile(r"[0-9]{1,10}")
_MOST_IN_FILE = 100
"""Most characters of a file with a job number; a longer file holds something else."""


def find(cluster: Cluster, settings: SlurmHookEntry, job: str, home: "Path") -> SlurmJob:
    """Find the job that the inventory describes: the one that has not ended, or else the newest that has ended.

    Raises:
        RefusedError: there is no such job, or several.
        SlurmError: the command failed.
    """
    number = _number(settings, job, home)
    name = settings.job or job
    if number is not None:
        found, what = cluster.jobs(f"--jobs={number}"), f"job {number}"
    else:
        whose = [f"--user={settings.user}"] if settings.user else []
        found = [each for each in cluster.jobs(f"--name={name}", *whose) if each.name == name]
        what = f"job named {name}" + (f" of user {settings.user}" if settings.user else "")
    live = [each for each in found if not each.ended]
    if len(live) > 1:
        numbers = ", ".join(f"{each.shown} of {each.user}" for each in live)
        raise RefusedError(f"Slurm has {len(live)} of {what}: {numbers}", hint="give its user, or its number: id_file")
    if not found:
        raise RefusedError(
            f"Slurm has no {what} in its queue",
            hint=(
                f"see squeue --all, and `hook` of job {job} in the inventory; submit a job that has ended again, "
                "held: sbatch --hold"
            ),
        )
    return live[0] if live else max(found, key=lambda each: int(each.id))


def _number(settings: SlurmHookEntry, job: str, home: "Path") -> str | None:
    if settings.id_variable is not None:
        place, text = f"variable {settings.id_variable}", os.environ.get(settings.id_variable, "")
    elif settings.id_file is not None:
        path = home / os.path.expanduser(settings.id_file)  # noqa: PTH111 - an unknown home folder stays as written
        place = str(path)
        try:
            with path.open(encoding="ascii", errors="replace") as file:
                text = file.read(_MOST_IN_FILE)
        except OSError as error:
            raise RefusedError(
                f"the number that Slurm gave job {job} cannot be read: {path}: {error.strerror}",
                hint="sbatch --parsable prints it: write that into the file",
            ) from error
    else:
        return None
    text = text.strip().partition(";")[0]  # sbatch --parsable adds the cluster's name
    if not _NUMBER.fullmatch(text):
        raise RefusedError(
            f"{place} does not contain the number that Slurm gave job {job}: found {text[:40]!r}",
            hint="sbatch --parsable prints it",
        )
    return text
