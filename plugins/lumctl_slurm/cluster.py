"""What Slurm's commands are asked and told: argument lists, their answers as data, their complaints as errors."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumctl.errors import RefusedError, UnreachableError
from lumctl.programs import plain, through

if TYPE_CHECKING:
    from lumctl.programs import Ended

MOST_SAID = 1_000_000
"""Bytes of an answer that are read: many jobs of one name, many nodes."""
HINTS = {
    "Unable to contact slurm controller": "see that slurmctld runs, and that SLURM_CONF is right: scontrol ping",
    "denied": "lumctl must run as Slurm's own user, as root, or as one of its operators: "
    "sacctmgr modify user NAME set adminlevel=operator",
    "Invalid node name": "name Slurm's nodes in the inventory: jobs: hook: nodes",
    "Requested operation is presently disabled": "submit it so that it may be requeued: sbatch --requeue",
    "Only batch jobs": "submit it with sbatch: Slurm requeues no other job",
    "munge": "see that munged runs",
}
ENDED = frozenset(
    "COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY REVOKED".split()  # noqa: SIM905
)
NOT_DRAINED = frozenset({"none", "Not responding", "Node unexpectedly rebooted", ""})
"""Reasons that nobody gave: Slurm itself did, or there is none."""


class SlurmError(UnreachableError):
    """A command of Slurm failed. ``text`` is what it said."""

    def __init__(self, message: str, text: str) -> None:
        hint = next((hint for part, hint in HINTS.items() if part in text), None)
        super().__init__(message, hint=hint)
        self.text = text


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job as Slurm has it. ``nodes`` is where it runs, in Slurm's folded form; ``held``: it is not started again."""

    id: str
    user: str
    state: str
    held: bool
    nodes: str
    shown: str
    name: str

    @property
    def ended(self) -> bool:
        """Whether it has ended for good."""
        return self.state in ENDED

    @property
    def waits(self) -> bool:
        """Whether it is in the queue."""
        return self.state in {"PENDING", "REQUEUE_HOLD", "REQUEUED", "SPECIAL_EXIT"}


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node's state, such as ``idle`` or ``drained``, and why it is not in use."""

    name: str
    state: str
    reason: str

    @property
    def answers(self) -> bool:
        """Whether its slurmd has answered lately."""
        return not self.state.endswith("*")

    @property
    def drained(self) -> bool:
        """Whether somebody has taken it out of use, so that Slurm starts nothing on it and will not by itself."""
        state = self.state.lower()
        by_hand = self.reason not in NOT_DRAINED
        return "drain" in state or (by_hand and any(word in state for word in ("down", "fail", "maint")))


class Cluster:
    """One Slurm. ``run`` runs a command within so many seconds, ``left_s`` says how many there are."""

    def __init__(
        self, on: Sequence[str], run: "Callable[[Sequence[str], float], Ended]", left_s: Callable[[], float]
    ) -> None:
        self._on, self._run, self._left_s = on, run, left_s

    def jobs(self, *which: str) -> list[SlurmJob]:
        """The jobs that fit, also those that ended a short while ago.

        Raises:
            SlurmError: Slurm does not tell.
        """
        asked = ["squeue", "--noheader", "--all", "--states=all", *which, "--format=%A|%u|%T|%Q|%N|%i|%j"]
        try:
            lines = self._ask(asked).splitlines()
        except SlurmError as error:
            if "Invalid job id" in error.text:
                return []
            raise
        rows = [line.strip().split("|", 6) for line in lines if line.count("|") >= 6]  # noqa: PLR2004 - as asked
        return [SlurmJob(a, b, c, d == "0", e, f, g) for a, b, c, d, e, f, g in rows]

    def about(self, job: str, what: str) -> str:
        """One thing that Slurm says of a job, by the name that squeue has for it."""
        return self._ask(["squeue", "--noheader", "--states=all", f"--jobs={job}", f"--Format={what}:4000"]).strip()

    def nodes(self, names: Collection[str]) -> dict[str, SlurmNode]:
        """The nodes of these names.

        Raises:
            SlurmError: Slurm does not tell.
            RefusedError: it knows no such node.
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
        """The nodes that a folded list of Slurm's stands for."""
        return set(self._ask(["scontrol", "show", "hostnames", folded]).split()) if folded.strip("()nul") else set()

    def tell(self, *words: str) -> None:
        """Have scontrol do something.

        Raises:
            SlurmError: it did not.
        """
        self._ask(["scontrol", *words])

    def _ask(self, command: Sequence[str]) -> str:
        limit = self._left_s()
        ended = self._run(through(self._on, command), limit)
        what = " ".join(word for word in command[:3] if not word.startswith("--"))
        if ended.late:
            raise SlurmError(f"{what} did not end within {limit:.3g} s: {plain(ended.last_line) or 'nothing was said'}",
                             ended.said)  # fmt: skip
        if ended.code:
            raise SlurmError(f"{what} failed: {plain(ended.last_line) or f'exit code {ended.code}'}", ended.said)
        return ended.said
