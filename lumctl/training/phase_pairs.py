"""Which phase joins the ranks of a group: the pairs of ranks that each phase gives light, and the ranks' hosts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lumctl.errors import UsageError

Pair = tuple[int, int]
MOST_SHOWN = 8
"""The most ranks, phases or pairs of a phase that an error names."""


@dataclass(frozen=True, slots=True)
class PhasePairs:
    """The phases of a job, in the order of the inventory, by the pairs of ranks that have light in each.

    ``hosts[r]`` is the host of rank ``r``; ranks of one host need no light.
    """

    pairs: Mapping[str, Sequence[Pair]]
    hosts: Sequence[str]

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> "PhasePairs":
        """The phases in the field ``phases`` of a ``join`` message."""
        pairs = {str(name): tuple((int(a), int(b)) for a, b in each) for name, each in message["pairs"].items()}
        return cls(pairs, tuple(map(str, message["hosts"])))

    def phase_for(self, ranks: Iterable[int]) -> str | None:
        """The phase that a group of ranks needs; ``None`` if it needs none.

        The group of all ranks uses the network between hosts, as its collectives belong to no phase.

        Raises:
            UsageError: no phase joins these ranks.
        """
        members = frozenset(ranks)
        if len(members) == len(self.hosts) or len({self.hosts[rank] for rank in members}) <= 1:
            return None
        for name, pairs in self.pairs.items():
            if _joins(pairs, members):
                return name
        raise UsageError(
            f"no phase joins the ranks {_shown(sorted(members))} of a group: {self._described()}",
            hint="give a phase of the job links that join these ranks, or make a group of other ranks",
        )

    def _described(self) -> str:
        return "; ".join(
            f"{name} joins {_shown([f'{a}-{b}' for a, b in pairs])}"
            for name, pairs in list(self.pairs.items())[:MOST_SHOWN]
        )


def _joins(pairs: Sequence[Pair], members: frozenset[int]) -> bool:
    """Whether members reach each other over pairs of members; others forward nothing."""
    inside = [pair for pair in pairs if members.issuperset(pair)]
    reached = {min(members)}
    while more := {rank for pair in inside if not reached.isdisjoint(pair) for rank in pair} - reached:
        reached |= more
    return reached == members


def _shown(items: Sequence[object]) -> str:
    more = f" and {len(items) - MOST_SHOWN} more" if len(items) > MOST_SHOWN else ""
    return ", ".join(map(str, items[:MOST_SHOWN])) + more
