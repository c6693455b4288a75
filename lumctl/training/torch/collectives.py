"""Collective operations: average gradients, bring all ranks to one state, and keep copies of states on other ranks."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from lumctl.training.torch.collective_times import blocked
from lumctl.training.torch.scheduled_all_reduce import all_reduce_for
from lumctl.training.torch.states import StateSnapshot
from lumctl.training.torch.training_state import TrainingState

if TYPE_CHECKING:
    # The public class has types only in the private module.
    from torch._C._distributed_c10d import Work
else:
    from torch.distributed import Work


class AgreedAllReduce:
    """The all-reduce that all ranks of a group use: the backend's own, or the schedule for a late rank.

    Rank 0 knows the late rank (``late`` returns it), and the sum that is exchanged tells all ranks. So they use the
    schedule from the next step on, all at once and without another message.
    """

    def __init__(self, late: Callable[[], int | None] = lambda: None) -> None:
        self._late = late
        self._group = (0, 0, 1)
        self._agreed: int | None = None

    @property
    def late(self) -> int | None:
        """The late rank for whose schedule all ranks have agreed; ``None`` if they use the backend's all-reduce."""
        return self._agreed

    def enter(self, generation: int, rank: int, world: int) -> None:
        """Begin with the backend's own all-reduce if the group is a new one."""
        if self._group != (generation, rank, world):
            self._group, self._agreed = (generation, rank, world), None

    def digits(self, kind: Tensor) -> Tensor:
        """What this rank tells the others, in numbers that every type of gradients has: two digits."""
        _, rank, world = self._group
        late = self._late() if rank == 0 else None
        code = 0 if late is None or not 0 <= late < world else late + 1
        return kind.new_tensor(divmod(code, _BASE))

    def agree(self, digits: Sequence[complex]) -> None:
        """Use from now on what the sum of all ranks' digits tells."""
        first, second = (round(each.real) for each in digits)
        code = _BASE * first + second
        self._agreed = code - 1 if code else None

    def sum(self, bucket: Tensor) -> None:
        """Replace a tensor by its sum over all ranks.

        Raises:
            RuntimeError: the process group broke.
        """
        _, rank, world = self._group
        if self._agreed is None:
            dist.all_reduce(bucket)
        else:
            with blocked():
                all_reduce_for(self._agreed, rank, world)(bucket)


_BASE = 64
"""Two digits are enough for all ranks of a schedule, and each is exact in every floating-point type."""


def average(parameters: Iterable[nn.Parameter], agreed: AgreedAllReduce, *, world: int, divide_by: float) -> None:
    """Replace gradients by their sum over the ranks divided by ``divide_by``.

    A missing gradient counts as zero; a parameter that has no gradient on any rank gets none.

    Raises:
        RuntimeError: the process group broke; gradients may be partly replaced.
    """
    kinds: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
    for parameter in parameters:
        if parameter.requires_grad:
            kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    told: list[complex] = [0, 0]
    for (dtype, device), alike in kinds.items():
        told = _average(alike, torch.zeros(0, dtype=dtype, device=device), agreed, world, divide_by)
    agreed.agree(told)


def _average(
    alike: list[nn.Parameter], kind: Tensor, agreed: AgreedAllReduce, world: int, divide_by: float
) -> list[complex]:
    """Average gradients of one type; return the digits of :class:`AgreedAllReduce` that all ranks have now."""
    has = kind.new_tensor([parameter.grad is not None for parameter in alike])
    shares = [parameter.grad if parameter.grad is not None else torch.zeros_like(parameter) for parameter in alike]
    # One all-reduce sums the gradients, counts the ranks that have them, and tells of a late rank.
    bucket = torch.cat([agreed.digits(kind), has, *(share.detach().reshape(-1) for share in shares)])
    if world > 1:
        agreed.sum(bucket)
    first, second, *anywhere = bucket[: 2 + len(alike)].tolist()
    bucket = bucket[2 + len(alike) :].div_(divide_by)
    at = 0
    for parameter, has_gradient in zip(alike, anywhere, strict=True):
        mean = bucket[at : at + parameter.numel()].view_as(parameter)
        at += parameter.numel()
        if has_gradient:
            _put(parameter, mean)
    return [first, second]


def _put(parameter: nn.Parameter, mean: Tensor) -> None:
    if parameter.grad is None:
        parameter.grad = mean.clone()
    else:
        parameter.grad.copy_(mean)


def level(state: TrainingState, rank: int, device: torch.device, *, source: int = 0) -> None:
    """Give all ranks the state of rank ``source`` and its number of steps done.

    Raises:
        RuntimeError: the group broke; this rank's state is unchanged.
    """
    if rank == source:
        ours = state.snapshot()
        meta = torch.frombuffer(bytearray(json.dumps(ours.meta).encode()), dtype=torch.uint8)
        _broadcast(torch.tensor([ours.done, len(meta), len(ours.data)]), source, device)
        _broadcast(meta, source, device)
        _broadcast(ours.data, source, device)
        return
    sizes = _broadcast(torch.zeros(3, dtype=torch.int64), source, device)
    done, meta_size, size = (int(each) for each in sizes.tolist())
    described = _broadcast(torch.empty(meta_size, dtype=torch.uint8), source, device)
    data = _broadcast(torch.empty(size, dtype=torch.uint8), source, device)
    state.load(StateSnapshot(done, json.loads(bytes(described.tolist())), data).tree(copied=False), done)


def _broadcast(tensor: torch.Tensor, source: int, device: torch.device) -> torch.Tensor:
    there = tensor.to(device)
    if len(there):
        dist.broadcast(there, source)
    return there.cpu()


STATES_KEPT = 3
"""States kept per rank. Ranks are at most one step apart, and the transfer of the newest state may be incomplete."""
# A separate tag (ASCII "lu"), so that no message of the script is received as a state.
_TAG = 0x6C75


@dataclass(frozen=True, slots=True)
class _Arriving:
    """A state on its way from another rank, and ours on its way to the next one."""

    rank: int
    snapshot: StateSnapshot
    """Its bytes are complete when all of ``works`` have ended."""
    works: Sequence[Work]
    sent: Tensor
    """Must not be freed before."""

    def wait(self) -> StateSnapshot:
        for each in self.works:
            each.wait()
        return replace(self.snapshot, data=self.snapshot.data.cpu())


class Copies:
    """Copies of unique states, by rank and steps done: the worker's own states and those of the previous rank.

    The bytes of a step's state move during the next step, so a neighbour's newest copy is complete one step later.
    """

    def __init__(self) -> None:
        self._kept: dict[int, dict[int, StateSnapshot]] = {}
        self._arriving: _Arriving | None = None

    def find(self, rank: int, done: int) -> StateSnapshot | None:
        """The state of a rank after ``done`` steps; ``None`` if it is not stored."""
        return self._kept.get(rank, {}).get(done)

    def keep(self, rank: int, snapshot: StateSnapshot) -> None:
        """Keep a snapshot, and drop the oldest."""
        kept = self._kept.setdefault(rank, {})
        kept[snapshot.done] = snapshot
        for done in sorted(kept)[:-STATES_KEPT]:
            del kept[done]

    def spent(self, rank: int) -> Tensor | None:
        """Remove the snapshot of a rank that would be dropped next; return its bytes, which may be overwritten."""
        kept = self._kept.get(rank, {})
        return kept.pop(min(kept)).data if len(kept) >= STATES_KEPT else None

    def forget_after(self, done: int) -> None:
        """Drop newer states: the job continues after ``done`` steps and repeats the later ones."""
        for kept in self._kept.values():
            for newer in [each for each in kept if each > done]:
                del kept[newer]

    def document(self, rank: int | None) -> dict[str, Any]:
        """The steps whose states are stored, for the coordinator: those of this rank, and those of other ranks."""
        return {
            "own": [] if rank is None else sorted(self._kept.get(rank, {})),
            "of": {str(other): sorted(kept) for other, kept in self._kept.items() if other != rank and kept},
        }

    def hand_on(self, rank: int, world: int, device: torch.device) -> None:
        """Start to send our newest state to the next rank of the ring, and to receive that of the previous rank.

        Raises:
            RuntimeError: the group broke; earlier copies are kept.
        """
        if world < 2:  # noqa: PLR2004 - alone
            return
        self.arrive()
        newest = self._kept[rank][max(self._kept[rank])]
        before = (rank - 1) % world
        self._arriving = _exchange(newest, (rank + 1) % world, before, device)
        for other in set(self._kept) - {rank, before}:
            del self._kept[other]  # copies from a former ring

    def arrive(self) -> None:
        """Wait for the state that is on its way, and keep it.

        Raises:
            RuntimeError: the group broke; earlier copies are kept.
        """
        arriving, self._arriving = self._arriving, None
        if arriving is not None:
            self.keep(arriving.rank, arriving.wait())

    def give_up(self) -> None:
        """Forget the state that was on its way in a group that is abandoned."""
        self._arriving = None


def _exchange(ours: StateSnapshot, to: int, origin: int, device: torch.device) -> _Arriving:
    described = bytearray(json.dumps(ours.meta, separators=(",", ":")).encode())
    meta = torch.frombuffer(described, dtype=torch.uint8)
    sizes = _swapped(torch.tensor([ours.done, len(meta), len(ours.data)]), 3, to, origin, device)
    done, meta_size, size = (int(each) for each in sizes.tolist())
    their_meta = _swapped(meta, meta_size, to, origin, device)
    sent, data = ours.data.to(device), torch.empty(size, dtype=torch.uint8, device=device)
    snapshot = StateSnapshot(done, json.loads(bytes(their_meta.tolist())), data)
    return _Arriving(origin, snapshot, _swap(sent, data, to, origin), sent)


def _swapped(ours: Tensor, size: int, to: int, origin: int, device: torch.device) -> Tensor:
    theirs = torch.empty(size, dtype=ours.dtype, device=device)
    for each in _swap(ours.to(device), theirs, to, origin):
        each.wait()
    return theirs.cpu()


def _swap(ours: Tensor, theirs: Tensor, to: int, origin: int) -> Sequence[Work]:
    """Start to send a tensor and to receive another; an empty tensor is not sent."""
    under_way = [dist.P2POp(dist.isend, ours, to, tag=_TAG)] if len(ours) else []
    under_way += [dist.P2POp(dist.irecv, theirs, origin, tag=_TAG)] if len(theirs) else []
    # Both are started before either is awaited: in a ring, no rank would receive if all waited for their sends.
    return dist.batch_isend_irecv(under_way) if under_way else ()
