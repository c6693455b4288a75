"""Drains nodes that are not drained yet, and undrains only nodes that lumctl has drained."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from lumctl.errors import LumctlError, UnreachableError
from lumctl_slurm.cluster import Cluster, SlurmNode

if TYPE_CHECKING:
    from lumctl.jobs.control import Facts

_REASON = re.compile(r"lumctl (\S+): (\S+) replaced by (\S+)")
_HELD = re.compile(r"(?:; )?lumctl (\S+): (held|requeued)")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why lumctl has drained a node: run ``run`` replaces ``failed`` on it by ``spares``."""

    run: str
    failed: Sequence[str]
    spares: Sequence[str]

    def __str__(self) -> str:
        return f"lumctl {self.run}: {','.join(self.failed)} replaced by {','.join(self.spares)}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse the reason of a drained node; ``None`` if lumctl did not write it."""
        found = _REASON.fullmatch(text.strip())
        return cls(found[1], found[2].split(","), found[3].split(",")) if found else None


@dataclass(frozen=True, slots=True)
class Held:
    """The run that holds a job; ``requeued``: the job ran before, otherwise it waited."""

    run: str
    requeued: bool

    @classmethod
    def read(cls, comment: str) -> Self | None:
        """Parse an administrator's comment; ``None`` if lumctl has not held the job."""
        found = _HELD.search(comment)
        return cls(found[1], found[2] == "requeued") if found else None

    def added_to(self, comment: str) -> str:
        """The comment with this mark added; text from others stays."""
        theirs = without(comment)
        mark = f"lumctl {self.run}: {'requeued' if self.requeued else 'held'}"
        return f"{theirs}; {mark}" if theirs else mark


def without(comment: str) -> str:
    """The comment without lumctl's mark."""
    return _HELD.sub("", comment).strip()


class StayDrainedError(UnreachableError):
    """Nodes were drained for an act that failed, and could not be undrained."""

    def __init__(self, why: LumctlError, names: Collection[str], cause: LumctlError) -> None:
        command = f"scontrol update nodename={','.join(names)} state=undrain"
        super().__init__(
            f"{why.message}; node {', '.join(names)} may also stay drained: {cause.message}",
            hint=f"{why.hint}; then: {command}" if why.hint else command,
        )


class Nodes:
    """The nodes of one cluster; ``said`` collects a line about each node that is not drained or undrained as wanted."""

    def __init__(self, cluster: Cluster, node_of: Callable[[str], str], said: list[str]) -> None:
        self._cluster, self._node_of, self._said = cluster, node_of, said

    def take_out(self, facts: "Facts", used: Collection[str]) -> list[str]:
        """Drain the nodes of the failed accelerators; return the nodes that this call drained.

        Nodes in ``used`` are not drained: Slurm can only drain a whole node, not one accelerator.

        Raises:
            StayDrainedError: some nodes could not be drained, and the others could not be undrained again.
            UnreachableError: some nodes could not be drained; this call leaves no node drained.
        """
        reasons = self._reasons(facts)
        drained: list[str] = []  # includes a node whose drain command had no clear outcome
        found = self._cluster.nodes(reasons)
        try:
            for name, reason in reasons.items():
                if name in used:
                    self._said.append(f"node {name} is not drained: the job has other accelerators on it")
                elif found[name].drained:
                    self._tell_of(found[name], facts.run)
                else:
                    drained.append(name)
                    self._cluster.tell("update", f"nodename={name}", "state=drain", f"reason={reason}")
        except LumctlError as error:
            self.put_back(drained, facts.run, error)
            raise
        return drained

    def put_back(self, names: Iterable[str], run: str, why: LumctlError) -> None:
        """Undrain those of the nodes that this run has drained.

        Raises:
            StayDrainedError: some could not be undrained; ``why`` is the reason for undraining them.
        """
        left: dict[str, LumctlError] = {}
        for name in names:
            try:
                # Read again, because another user may have drained it for another reason since.
                node = self._cluster.nodes([name])[name]
                if (reason := Reason.read(node.reason)) is not None and reason.run == run:
                    self._resume(node)
            except LumctlError as error:
                left[name] = error
        if left:
            raise StayDrainedError(why, left, next(iter(left.values()))) from why

    def make_usable(self, names: Collection[str], run: str, placed: Collection[str]) -> list[str]:
        """Undrain the nodes that lumctl has drained and on which the job will run; return their names.

        A node that another run has drained is undrained only if its failed accelerators are in use again.
        """
        resumed = []
        for node in self._cluster.nodes(names).values():
            if not node.drained:
                continue
            reason = Reason.read(node.reason)
            if reason is None:
                self._said.append(f"node {node.name} is {node.state}, but not by lumctl ({node.reason}): it stays so")
            elif reason.run == run or set(reason.failed) <= set(placed):
                self._resume(node)
                resumed.append(node.name)
            else:
                self._said.append(f"node {node.name} stays {node.state}: {node.reason}")
        return resumed

    def _resume(self, node: SlurmNode) -> None:
        self._cluster.tell("update", f"nodename={node.name}", "state=undrain")

    def _reasons(self, facts: "Facts") -> dict[str, Reason]:
        """Why each node that has a failed accelerator is drained."""
        pairs: dict[str, list[tuple[str, str]]] = {}
        for failed, spare in zip(facts.failed, facts.spares, strict=False):
            pairs.setdefault(self._node_of(failed), []).append((failed, spare))
        return {
            node: Reason(facts.run, [failed for failed, _ in items], [spare for _, spare in items])
            for node, items in pairs.items()
        }

    def _tell_of(self, node: SlurmNode, run: str) -> None:
        reason = Reason.read(node.reason)
        if reason is None or reason.run != run:
            whose = "somebody else" if reason is None else "an earlier run"
            self._said.append(f"node {node.name} was {node.state} by {whose}: {node.reason}; it is left unchanged")
