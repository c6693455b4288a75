"""An all-reduce that follows a schedule: rounds of sends and receives between the ranks of the process group."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from lumctl.collectives import Schedule, ScheduleRound, rounds_of, stragglar

# A tag of its own (ASCII "lr"), so that no message of the script is received as a chunk.
_TAG = 0x6C72


class _Transfer(NamedTuple):
    """Chunks that this rank sends to or receives from a peer in one round."""

    peer: int
    chunks: tuple[int, ...]
    reduces: bool


@dataclass(frozen=True, slots=True)
class _OwnRound:
    """What one rank does in one round. The sends carry its chunks as they were before the round."""

    sends: tuple[_Transfer, ...]
    receives: tuple[_Transfer, ...]

    @property
    def sent(self) -> frozenset[int]:
        """The chunks that must not change during the round."""
        return frozenset(chunk for each in self.sends for chunk in each.chunks)


class ScheduledAllReduce:
    """The sum of a tensor over all ranks of the default process group, by a schedule.

    A chunk is summed up in the order of the schedule, by one rank, and copied to the others. So all ranks end with the
    same bits, and so do equal runs.
    """

    def __init__(self, schedule: Schedule, rank: int) -> None:
        self.straggler = schedule.straggler
        self._chunks = schedule.chunks
        self._rounds = [own for each in rounds_of(schedule) if (own := _own(each, rank)) is not None]

    def __call__(self, tensor: Tensor) -> None:
        """Replace a contiguous tensor by its sum over all ranks.

        Raises:
            RuntimeError: the group broke, or was abandoned; the tensor may be partly summed up.
        """
        # The chunks differ by one element at most; those of a small tensor may be empty.
        chunks = tensor.view(-1).tensor_split(self._chunks)
        for each in self._rounds:
            _exchange(each, chunks)


@lru_cache(maxsize=8)
def all_reduce_for(straggler: int, rank: int, world: int) -> ScheduledAllReduce:
    """The all-reduce for a late rank, as one of the ranks executes it."""
    return ScheduledAllReduce(stragglar(world, straggler), rank)


def _own(each: ScheduleRound, rank: int) -> _OwnRound | None:
    """The part of one rank in a round; ``None`` if it has none."""
    sends = tuple(_Transfer(send.receiver, send.chunks, send.reduces) for send in each if send.sender == rank)
    receives = tuple(_Transfer(send.sender, send.chunks, send.reduces) for send in each if send.receiver == rank)
    return _OwnRound(sends, receives) if sends or receives else None


def _exchange(own: _OwnRound, chunks: Sequence[Tensor]) -> None:
    """Do one round: start all transfers, wait for them, then add what is to be added."""
    sent = own.sent
    transfers: list[dist.P2POp] = []
    arrived: list[tuple[Tensor, Tensor, bool]] = []
    # Receives first: gloo tells a sender over the same connection that it may begin, behind what is sent there already.
    for receive in own.receives:
        for chunk in receive.chunks:
            mine = chunks[chunk]
            # A chunk on its way out, or to be added to, must not be overwritten by what comes in.
            into = torch.empty_like(mine) if receive.reduces or chunk in sent else mine
            if len(mine):
                transfers.append(dist.P2POp(dist.irecv, into, receive.peer, tag=_TAG))
            if into is not mine:
                arrived.append((mine, into, receive.reduces))
    transfers += [
        dist.P2POp(dist.isend, chunks[chunk], send.peer, tag=_TAG)
        for send in own.sends
        for chunk in send.chunks
        if len(chunks[chunk])
    ]
    for work in dist.batch_isend_irecv(transfers) if transfers else ():
        work.wait()
    for mine, theirs, reduces in arrived:
        if reduces:
            mine.add_(theirs)
        else:
            mine.copy_(theirs)
