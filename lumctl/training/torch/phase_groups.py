"""Process groups of a job with phases: each transfer waits until the phase of its group has light.

The group of all ranks and the groups inside a host are those of gloo or NCCL, and need no light. Any other group asks
for its phase before each collective, send and receive, and then hands it to a group of gloo or NCCL. That is made at
the first of them, because gloo connects all members, which lasts for ever in the dark.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from lumctl.errors import RefusedError, UnreachableError
from lumctl.training.phase_pairs import PhasePairs
from lumctl.training.phase_traffic import NO_PEER, TransferPart
from lumctl.training.torch.collective_times import METHODS, recorded
from lumctl.training.torch.phase_light import PhaseDarkError, WorkerPhase
from lumctl.training.torch.stores import LANES
from lumctl.training.torch.waits import Waits, natively

if TYPE_CHECKING:
    # The public classes have types only in the private module.
    from torch._C._distributed_c10d import PrefixStore, ProcessGroup, Work
else:
    from torch.distributed import PrefixStore, ProcessGroup, Work

BACKEND = "lumctl"
_COLLECTIVES = (*METHODS, "broadcast", "reduce", "gather", "scatter")
BRIEFLY_S = 0.0005
"""How long a collective that the script waits for at once is awaited without another thread."""
_DIRECT = ("allreduce",)
"""Handed to the back end itself, past PyTorch's dispatcher, which takes as long as asking for light. Its methods are
called with the same arguments."""
_POINT_TO_POINT = ("send", "recv", "recv_anysource")


class Transfer(Work):
    """A send or receive over gloo. Any thread may wait for it, several times, which gloo's own does not allow."""

    def __init__(self, native: Work, waits: Waits) -> None:
        super().__init__()
        self._native, self._waits = native, waits
        self._once = threading.Lock()
        self._over = False
        self._error: BaseException | None = None

    def end(self, *timeout: Any) -> None:
        """Wait in a thread that nothing releases. Raises the error of the transfer."""
        with self._once:
            if not self._over:
                try:
                    natively(self._native, *timeout)
                except RuntimeError as error:
                    self._error = error
                self._over = True
        if self._error is not None:
            raise self._error

    def wait(self, *timeout: Any) -> bool:
        """Wait for the transfer.

        Raises:
            GivenUpError: the group is abandoned.
            RuntimeError: the transfer failed.
        """
        self._waits.wait(lambda: self.end(*timeout))
        return True

    def is_completed(self) -> bool:
        """Whether somebody has waited for its end: gloo does not say more."""
        return self._over

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self._over and self._error is None

    def _source_rank(self) -> int:
        return self._native._source_rank()  # noqa: SLF001 - `torch.distributed.recv` calls it


class GlooWait:
    """Waits for the transfers of gloo."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits

    def in_script(self, work: Work) -> None:
        """Wait in a thread of the script. Raises ``GivenUpError`` when the group is abandoned."""
        self._waits.wait(lambda: self.in_helper(work))

    def in_helper(self, work: Work) -> None:
        """Wait in a thread that nothing releases."""
        if isinstance(work, Transfer):
            work.end()
        else:
            natively(work)


class NcclWait:
    """Waits until kernels of NCCL have ended."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def in_script(self, work: Work) -> None:
        """Wait in a thread of the script; an abort of NCCL's groups ends the wait."""
        natively(work)  # this makes only the present stream wait
        torch.cuda.synchronize(self._device)

    in_helper = in_script


class PhaseGroups:
    """Makes the groups of one generation, as PyTorch asks for them.

    ``forming`` surrounds the forming of a group in a step; ``formed`` is called after that.
    """

    def __init__(
        self,
        *,
        phases: PhasePairs,
        light: WorkerPhase,
        waits: Waits,
        device: torch.device,
        forming: Callable[[], AbstractContextManager[None]],
        formed: Callable[[], None],
    ) -> None:
        self.light, self.waits, self.forming, self.formed = light, waits, forming, formed
        self._phases, self._device = phases, device

    @property
    def on_gpu(self) -> bool:
        """Whether the groups are those of NCCL."""
        return self._device.type == "cuda"

    def register(self) -> None:
        """Make this object the one that makes groups of the back end ``lumctl``."""
        dist.Backend.register_backend(BACKEND, self._make, extended_api=True, devices=["cpu", "cuda"])

    def native(self, options: Any, store: Any) -> Any:
        """The back end of gloo or NCCL for a group, whose members it may connect at once."""
        rank, size = options.group_rank, options.group_size
        if self.on_gpu:
            chosen = dist.ProcessGroupNCCL.Options()
            chosen._timeout = options.timeout  # noqa: SLF001 - as PyTorch does
            made: Any = dist.ProcessGroupNCCL(store, rank, size, chosen)
        else:
            made = dist.ProcessGroupGloo(store, rank, size, options.timeout)
        made.options.global_ranks_in_group = options.global_ranks_in_group
        made.options.group_name = options.group_id
        made._set_sequence_number_for_group()  # noqa: SLF001 - as PyTorch does
        return made

    def inner(self, options: Any) -> ProcessGroup:
        """A whole group of gloo or NCCL whose connections go over light."""
        store = PrefixStore(LANES, options.store)
        group = dist.ProcessGroup(store, options.group_rank, options.group_size)
        kind = dist.ProcessGroup.BackendType.NCCL if self.on_gpu else dist.ProcessGroup.BackendType.GLOO
        group._set_default_backend(kind)  # noqa: SLF001 - as PyTorch does
        group._register_backend(torch.device(self._device.type), kind, self.native(options, store))  # noqa: SLF001
        group._set_group_name(options.group_id)  # noqa: SLF001 - as PyTorch does
        return group

    def _make(self, options: Any, _: Any) -> Any:
        """The group for these options. Raises ``UsageError`` if no phase joins its members."""
        ranks: Iterable[int] = options.global_ranks_in_group or range(options.group_size)
        phase = self._phases.phase_for(ranks)
        if phase is None:
            return self.native(options, options.store)
        return PhaseGroup(self, options, phase)


class PhaseGroup(ProcessGroup):
    """A group whose transfers need a phase. The methods that start one are made below, from a table."""

    def __init__(self, groups: PhaseGroups, options: Any, phase: str) -> None:
        # PyTorch's types lack this constructor, the only one for classes in Python.
        super().__init__(options.group_rank, options.group_size)  # type: ignore[call-arg]
        self._groups, self._options, self._phase = groups, options, phase
        self._start = groups.light.start
        self._waits = None if groups.on_gpu else groups.waits
        self._ranks = tuple(options.global_ranks_in_group or range(options.group_size))
        peers = [rank for rank in self._ranks if rank != self._ranks[options.group_rank]]
        self._exchange = TransferPart(peers[0], exchanges=1) if len(peers) == 1 else NO_PEER
        self._one_way = TransferPart(peers[0]) if len(peers) == 1 else NO_PEER
        self._inner: ProcessGroup | None = None
        self._natives: dict[str, Callable[..., Work]] = {}
        self._name, self._description = str(options.group_id), ""

    def native(self, name: str) -> Callable[..., Work]:
        """A method of the inner group, which is made in the light of the phase if it does not exist yet.

        Raises:
            GivenUpError: the group is abandoned.
            PhaseDarkError: the phase has no light, or its lanes do not lead to the members.
        """
        if self._inner is None:
            self._groups.light.under(self._phase, self._connect)
        group: Any = self._inner
        if name in _DIRECT:
            group = group._get_backend(self._device_types[0])  # noqa: SLF001 - nothing public
        native: Callable[..., Work] = getattr(group, name)
        self._natives[name] = native
        return native

    def _connect(self) -> None:
        if self._inner is None:
            try:
                with self._groups.forming():
                    self._inner = self._groups.inner(self._options)
                    self._groups.formed()
            except (RefusedError, UnreachableError) as error:
                raise PhaseDarkError(f"a group in phase {self._phase} was not formed: {error}") from error

    def abort(self) -> None:
        """Abort the inner group."""
        if self._inner is not None:
            self._inner.abort()

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cuda" if self._groups.on_gpu else "cpu")]

    # PyTorch's own keep these names in their back ends.

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch calls it
        """The name of the back end."""
        return BACKEND

    def getGroupName(self) -> str:  # noqa: N802 - PyTorch calls it
        """The name of the group."""
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802 - PyTorch calls it
        """Name the group."""
        self._name = name

    def getGroupDesc(self) -> str:  # noqa: N802 - PyTorch calls it
        """The description of the group."""
        return self._description

    def setGroupDesc(self, description: str) -> None:  # noqa: N802 - PyTorch calls it
        """Describe the group."""
        self._description = description


def _collective(name: str) -> Callable[..., Work]:
    is_exchange = name in METHODS

    def start(group: PhaseGroup, *given: Any, **named: Any) -> Work:
        native = group._natives.get(name) or group.native(name)  # noqa: SLF001 - a method of the class
        part = group._exchange if is_exchange else group._one_way  # noqa: SLF001 - as above
        work = group._start(group._phase, part, native, *given, **named)  # noqa: SLF001 - as above
        if given and getattr(given[-1], "asyncOp", True) is False:
            _await_briefly(work)
        return work

    return recorded(name, start)


def _await_briefly(work: Work) -> None:
    """Let a small collective end before the script waits for it: that takes two changes of threads, see `waits`."""
    is_completed, until = work.is_completed, time.monotonic() + BRIEFLY_S
    while not is_completed() and time.monotonic() < until:
        os.sched_yield()


def _point_to_point(name: str) -> Callable[..., Work]:
    def part_of(ranks: Sequence[int], given: Sequence[Any]) -> TransferPart:
        if name == "recv_anysource" or len(given) < 2 or not 0 <= given[1] < len(ranks):  # noqa: PLR2004 - tensors, peer
            return NO_PEER
        return TransferPart(ranks[given[1]], sends=name == "send", receives=name == "recv")

    def start(group: PhaseGroup, *given: Any, **named: Any) -> Work:
        native, waits = group._natives.get(name) or group.native(name), group._waits  # noqa: SLF001 - as above
        part = part_of(group._ranks, given)  # noqa: SLF001 - as above
        if waits is None:
            return group._start(group._phase, part, native, *given, **named)  # noqa: SLF001 - as above
        return group._start(group._phase, part, lambda: Transfer(native(*given, **named), waits))  # noqa: SLF001 - as above

    return start


for _names, _maker in ((_COLLECTIVES, _collective), (_POINT_TO_POINT, _point_to_point)):
    for _each in _names:
        if hasattr(ProcessGroup, _each):  # versions of PyTorch differ
            setattr(PhaseGroup, _each, _maker(_each))
