"""A schedule of an all-reduce: which rank sends which chunks to which rank, round by round."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lumctl.errors import UsageError

MOST_RANKS = 1024
MOST_CHUNKS = 4096
"""The most chunks that a file may cut a buffer into."""


class Algorithm(StrEnum):
    """The algorithms that lumctl has schedules of."""

    STRAGGLAR = "stragglar"
    RING = "ring"
    HALVING_DOUBLING = "halving-doubling"
    DIRECT = "direct"


class Send(NamedTuple):
    """``sender`` sends its state of some chunks, as it was before the round, to ``receiver``.

    With ``reduces`` the receiver adds it to its own state, without it replaces that.
    """

    sender: int
    receiver: int
    chunks: tuple[int, ...]
    reduces: bool


ScheduleRound = Sequence[Send]


@dataclass(frozen=True, slots=True)
class Schedule:
    """An all-reduce of ``ranks`` ranks, whose buffer is cut into ``chunks`` equal chunks.

    With a ``straggler`` the rounds begin when it arrives: before, the others have reduced each chunk over all but the
    straggler, and ``owners[chunk]`` is the only rank that holds the result. Without, each rank begins with its own
    contribution to every chunk, and ``owners`` is empty. No schedule of the same kind has fewer rounds than
    ``lower_bound``.
    """

    algorithm: str
    ranks: int
    chunks: int
    straggler: int | None
    owners: tuple[int, ...]
    rounds: tuple[ScheduleRound, ...]
    lower_bound: int

    @property
    def proven(self) -> bool:
        """Whether the number of rounds is proven to be the least."""
        return len(self.rounds) == self.lower_bound

    @property
    def chunks_per_round(self) -> tuple[int, ...]:
        """The most chunks that a rank sends, for each round."""
        return tuple(max((len(send.chunks) for send in each), default=0) for each in self.rounds)


def require_ranks(ranks: int, least: int = 2) -> None:
    """Refuse a number of ranks that no schedule has.

    Raises:
        UsageError: it is not from ``least`` to :data:`MOST_RANKS`.
    """
    if not least <= ranks <= MOST_RANKS:
        raise UsageError(f"{ranks} ranks: a schedule has {least} to {MOST_RANKS}")


def require_straggler(straggler: int, ranks: int) -> None:
    """Refuse a straggler that is none of the ranks.

    Raises:
        UsageError: it is not from 0 to ``ranks`` - 1.
    """
    if not 0 <= straggler < ranks:
        raise UsageError(f"straggler {straggler} is none of the ranks 0 to {ranks - 1}")
