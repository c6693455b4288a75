"""When this rank enters and leaves its collectives, for `lumctl job stragglers`: one entry per training step and group.

The collectives are those that Python code starts through `torch.distributed` (`job.average`, FSDP2, a script's own),
and the all-reduces of DistributedDataParallel. Those that DTensor starts in C++ are not seen. Only collectives count
from which no rank returns before all have entered. With NCCL nothing is recorded: the CPU only queues a collective.

All-reduces that had the network for themselves are recorded by their size, too: they tell the cost of a link.
"""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from lumctl.training.collective_record import MOST_SIZES
from lumctl.training.torch.ddp_times import DdpTimes

if TYPE_CHECKING:
    # The public classes have types only in the private module.
    from torch._C._distributed_c10d import ProcessGroup, Work
else:
    from torch.distributed import ProcessGroup, Work

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MOST_GROUPS = 8
"""Groups of a step that are recorded: data, tensor and pipeline parallelism need three."""
METHODS = (
    "allreduce",
    "allreduce_coalesced",
    "allgather",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "_allgather_base",
    "all_gather_single",
    "all_gather_single_coalesced",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor_coalesced",
    "alltoall",
    "alltoall_base",
    "all_to_all_single",
    "barrier",
)
"""The methods of `ProcessGroup` that stand for such collectives; each version of PyTorch has some of them."""
_ALL_REDUCES = ("allreduce", "allreduce_coalesced")
_BLOCKED_SHARE = 0.9
"""A rank that waits less of an all-reduce's time has done something else meanwhile."""


class _Ranks(NamedTuple):
    """The ranks of a group as text, empty for all of them, and their number. Groups of the same ranks count as one."""

    text: str
    number: int


_NOT_RECORDED = _Ranks("", 1)


class _Started(NamedTuple):
    """A collective under way: its group, when its start began and ended, and the bytes of an all-reduce."""

    group: _Ranks
    began: float
    returned: float
    size: int


class CollectiveTimes:
    """The times of the present training step.

    Several collectives of a step in one group count as one: it is left with the last of them, and entered as much
    before as this rank was blocked in all of them. A late rank is blocked least.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        # Not the time of day: were it set while the job runs, all ranks of a host would seem late.
        self._clock = clock
        self._groups: dict[str, _Ranks] = {}
        """By the name of a group for PyTorch."""
        self._started: WeakKeyDictionary[Work, _Started] = WeakKeyDictionary()
        """The collectives that were not awaited yet."""
        self._all_reduced: dict[_Ranks, dict[int, float]] = {}
        """By group and size in bytes: the seconds of the newest all-reduce."""
        self._blocked: dict[_Ranks, tuple[float, float]] = {}
        """By group: the seconds in collectives, and when the last was left."""
        self._wrapped: list[tuple[_Ranks, DdpTimes]] = []
        """Wrapped models, each with its group."""

    def record(self) -> None:
        """Record the collectives of this process from now on; those of a former group are forgotten."""
        global _current  # noqa: PLW0603 - a process has one class `ProcessGroup`, and one rank
        self._groups.clear()
        self._started.clear()
        self._all_reduced.clear()
        self._blocked.clear()
        self._wrapped.clear()
        _current = self
        for name in METHODS:
            native = getattr(ProcessGroup, name, None)
            if native is not None and not hasattr(native, _RECORDS):
                setattr(ProcessGroup, name, recorded(name, native))

    def watch(self, model: DistributedDataParallel) -> None:
        """Record the all-reduces of a wrapped model too, until the next :meth:`record`; without gloo, do nothing."""
        if _current is self:
            self._wrapped.append((self._known(model.process_group), DdpTimes(model)))

    def take(self) -> list[list[Any]]:
        """The times since the last call, as :data:`lumctl.training.protocol.COLLECTIVES` says: a row for each group."""
        for group, wrapped in self._wrapped:
            if (found := wrapped.take()) is not None:
                self._add(group, *found)
        taken, self._blocked = self._blocked, {}  # a thread of the script may just add to it
        sizes, self._all_reduced = self._all_reduced, {}
        return [
            [
                *(*group, round(left - blocked, 7), round(left, 7)),
                *([size, round(seconds, 7)] for size, seconds in sizes.get(group, {}).items()),
            ]
            for group, (blocked, left) in taken.items()
        ]

    def started(self, group: ProcessGroup, work: Work | None, began: float, size: int = 0) -> None:
        """Note that a collective was started at ``began``, by this object's clock; without a work it has ended, too.

        ``size`` is how many bytes an all-reduce has, and 0 for others.
        """
        now = self._clock()
        started = _Started(self._known(group), began, now, size if size and not self._started else 0)
        if work is None:
            self._end(started, now, now)
        else:
            self._started[work] = started

    def ended(self, work: Work, began: float) -> None:
        """Note that a script has waited for a collective, from ``began`` until now."""
        if (started := self._started.pop(work, None)) is not None:
            self._end(started, began, self._clock())

    def _end(self, started: _Started, waited_from: float, left: float) -> None:
        """Note that a collective, awaited from ``waited_from`` on, was left."""
        blocked, took = started.returned - started.began + left - waited_from, left - started.began
        self._add(started.group, blocked, left)
        if started.size and not self._started and blocked > _BLOCKED_SHARE * took:
            sizes = self._all_reduced.setdefault(started.group, {})
            sizes[started.size] = took
            if len(sizes) > MOST_SIZES:
                del sizes[sorted(sizes)[1]]

    def _known(self, group: ProcessGroup) -> _Ranks:
        """The ranks of a group."""
        name = group.group_name
        if name not in self._groups and len(self._groups) < MOST_GROUPS:
            ranks = dist.get_process_group_ranks(group)
            everyone = len(ranks) == dist.get_world_size()
            self._groups[name] = _Ranks("" if everyone else ranks_text(ranks), len(ranks))
        return self._groups.get(name, _NOT_RECORDED)

    def _add(self, group: _Ranks, blocked: float, left: float) -> None:
        if group.number > 1:  # a rank alone waits for nobody
            before = self._blocked.get(group, (0.0, left))
            self._blocked[group] = before[0] + blocked, max(before[1], left)

    @property
    def now(self) -> float:
        """The time by this object's clock."""
        return self._clock()


def clock_id() -> str:
    """The name of this machine's clock, which all its processes share, whatever the names of its hosts."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return socket.gethostname()


def ranks_text(ranks: list[int]) -> str:
    """The ranks of a group: ``0-3``, ``0-12 by 4``, or all of them."""
    stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    if ranks == list(range(ranks[0], ranks[-1] + 1, stride)):
        return f"{ranks[0]}-{ranks[-1]}" + ("" if stride == 1 else f" by {stride}")
    return ", ".join(map(str, ranks))


_RECORDS = "lumctl_records"
_current: CollectiveTimes | None = None


def waited(work: Work, wait: Callable[[], Any]) -> Any:
    """The result of a wait for a collective, which is recorded unless it fails."""
    if (times := _current) is None:
        return wait()
    began = times.now
    found = wait()
    times.ended(work, began)
    return found


@contextmanager
def blocked() -> Iterator[None]:
    """Record what the block does as a collective of all ranks, unless it fails."""
    times, group = _current, dist.group.WORLD
    began = 0.0 if times is None else times.now
    yield
    if times is not None and group is not None:
        times.started(group, None, began)


def recorded(name: str, native: Callable[..., Any]) -> Callable[..., Any]:
    """The method ``name`` of a group, whose calls are recorded if no rank returns before all have entered."""
    if name not in METHODS:
        return native
    sized = name in _ALL_REDUCES

    def start(group: ProcessGroup, *given: Any, **named: Any) -> Any:
        if (times := _current) is None:
            return native(group, *given, **named)
        began = times.now
        work = native(group, *given, **named)
        with suppress(RuntimeError, ValueError, KeyError):  # a group without a name: only its times are lost
            times.started(group, work, began, _bytes(*given) if sized else 0)
        return work

    setattr(start, _RECORDS, True)
    return start


def _bytes(tensors: Tensor | Sequence[Tensor] = (), *_: Any) -> int:
    """The bytes of what an all-reduce is given first, a tensor or several; sparse ones, sent in two parts, are none."""
    each = (tensors,) if isinstance(tensors, Tensor) else tensors
    return sum(tensor.nbytes for tensor in each if tensor.layout is torch.strided)
