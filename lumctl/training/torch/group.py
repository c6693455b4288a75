"""The process groups of a worker, one per generation: formed in place, abandoned at once, formed again."""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from lumctl.training.phase_pairs import PhasePairs
from lumctl.training.protocol import Message
from lumctl.training.torch.collective_times import CollectiveTimes
from lumctl.training.torch.key_store import RemoteStore, StoreServer
from lumctl.training.torch.sockets import OpenSocket, between, calling, connected, deafen, knock, shut, sockets
from lumctl.training.torch.stores import LaneStore, PortRecorder, interface_with
from lumctl.training.torch.waits import Waits, given_up, keep

if TYPE_CHECKING:
    import socket

    # The public class has types only in the private module.
    from torch._C._distributed_c10d import Store

    from lumctl.training.torch.phase_light import WorkerPhase

_log = logging.getLogger(__name__)
COLLECTIVE_S = 1800.0
"""PyTorch's own default. Heartbeats, not this limit, detect a rank that hangs."""
# The first pause between two wake-ups, and the longest; pauses double.
KNOCK_S = 0.005
LATER_KNOCK_S = 0.1
CLOSED_WITHIN_S = 5.0
"""How long gloo may take to notice that its connections have ended, and to close them."""
RELEASED_WITHIN_S = 0.05
"""Grace period for waits that gloo has already informed."""


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """The group that a worker must join.

    ``lanes`` is the simulator's lane socket; ``None`` without a simulator. ``phases`` is ``None`` for a job without.
    """

    generation: int
    rank: int
    world: int
    store: tuple[str, int]
    placement: Sequence[str] = ()
    lanes: str | None = None
    phases: PhasePairs | None = None


@dataclass
class _Forming:
    """The forming of a group inside the group of an attempt, in a step."""

    before: frozenset[OpenSocket]
    settled: threading.Event = field(default_factory=threading.Event)
    waker: threading.Thread | None = None


@dataclass
class _Attempt:
    """A group, formed or being formed."""

    order: JoinOrder
    before: frozenset[OpenSocket]
    given_up: threading.Event = field(default_factory=threading.Event)
    settled: threading.Event = field(default_factory=threading.Event)
    made: frozenset[OpenSocket] | None = None
    joins: frozenset[OpenSocket] = frozenset()
    """The sockets of the group that connect to other ranks."""
    remote: RemoteStore | None = None
    store: PortRecorder | None = None
    lanes: LaneStore | None = None
    waker: threading.Thread | None = None
    waits: Waits = field(default_factory=Waits)
    light: "WorkerPhase | None" = None
    forming: _Forming | None = None


class ProcessGroup:
    """The process group that a worker is in. Any thread may call :meth:`abort`; only the main thread calls the rest.

    With NCCL, an abort ends the communicator and its kernels; with gloo, it shuts its sockets for reading. Either way a
    thread that waits in a collective, or in :meth:`make`, continues with an error.
    """

    def __init__(
        self,
        device: torch.device,
        address: str,
        token: str,
        own_ports: Callable[[], Sequence[int]] = tuple,
        *,
        wants: Callable[[int, int, str, bool], None] = lambda *_: None,
    ) -> None:
        """``wants`` sends a request for a phase: generation, number, phase, and whether it comes ahead of the need."""
        self._device, self._wants = device, wants
        self._token = token
        self._own_ports = own_ports
        self.times = CollectiveTimes()
        """When this rank was in its collectives; with gloo only."""
        self.store: tuple[str, int] = StoreServer(address, token).address
        self._attempt: _Attempt | None = None
        self._left: list[socket.socket] = []
        """Connections of an abandoned group; they stay open as long as peers may use them."""
        self._changing = threading.Lock()
        self._backend = "nccl" if device.type == "cuda" else "gloo"
        if self._backend == "nccl":
            # Otherwise NCCL's watchdog would end the process while it recovers.
            os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
            os.environ.setdefault("TORCH_NCCL_ENABLE_MONITORING", "0")
        elif "GLOO_SOCKET_IFNAME" not in os.environ and (name := interface_with(address)) is not None:
            os.environ["GLOO_SOCKET_IFNAME"] = name

    @property
    def given_up(self) -> bool:
        """Whether the group is abandoned; then the results of its collectives are invalid."""
        return self._attempt is not None and self._attempt.given_up.is_set()

    @property
    def is_broken(self) -> bool:
        """Whether a peer has left the group, so that a connection of the group is closed or at its end.

        A group that failed because a phase has no light counts as broken.

        NCCL's connections cannot be seen, and count as open.
        """
        attempt = self._attempt
        if attempt is None:
            return False
        is_dark = attempt.light is not None and attempt.light.is_dark
        return is_dark or attempt.given_up.is_set() or any(each.is_at_end for each in attempt.joins)

    def descriptors(self) -> list[int]:
        """The sockets of the group and of this worker's servers, which a forked process must give up."""
        made = (self._attempt.made if self._attempt is not None else None) or frozenset()
        ours = between(sockets(), self._ports(), ()) | {each for each in made if each.is_open}
        return [*(each.descriptor for each in ours), *(each.fileno() for each in self._left if each.fileno() >= 0)]

    def make(self, order: JoinOrder, *, wanted: Callable[[], bool]) -> None:
        """Form a group with all workers that get the same order; ``wanted`` returns whether the group is still needed.

        Raises:
            DistError: the group was abandoned.
            RuntimeError: a peer has ended.
        """
        self._close_left()
        attempt = self._attempt = _Attempt(order, sockets())
        if not wanted():  # an abort after this line finds the attempt
            attempt.given_up.set()
            raise given_up()
        if self._backend == "gloo":
            attempt.waits.take_over()
            self.times.record()
        try:
            self._form(attempt)
            attempt.made = self._sockets_of(attempt)
            attempt.joins = connected(attempt.made, but=order.store[1])
            for each in attempt.made:
                each.close_on_exec()  # PyTorch leaves the socket open for programs that the script starts
        except RuntimeError as error:
            if attempt.given_up.is_set():  # PyTorch may report this under another error
                raise given_up() from error
            raise
        finally:
            with self._changing:
                attempt.settled.set()
            if attempt.waker is not None:
                attempt.waker.join()  # the waker must not mistake the next attempt's sockets for this attempt's
        if attempt.given_up.is_set():
            raise given_up()

    def _form(self, attempt: _Attempt) -> None:
        order, hook = attempt.order, sys.excepthook
        store: Store
        store = attempt.remote = RemoteStore(order.store, order.generation, self._token)
        if attempt.given_up.is_set():  # an abort after this line finds the store
            raise given_up()
        if order.lanes is not None:
            store = attempt.lanes = LaneStore(
                store,
                rank=order.rank,
                placement=list(order.placement),
                lanes=order.lanes,
                phased=order.phases is not None,
            )
        if self._backend == "gloo":
            store = attempt.store = PortRecorder(store)
        # PyTorch numbers its groups, including failed attempts, and looks for peers under that number.
        dist.distributed_c10d._world.group_count = 0  # noqa: SLF001 - as PyTorch does when it destroys a group
        try:
            dist.init_process_group(
                self._backend if order.phases is None else self._phased(attempt, order.phases),
                store=store,
                rank=order.rank,
                world_size=order.world,
                timeout=timedelta(seconds=COLLECTIVE_S),
                device_id=self._device if self._backend == "nccl" else None,
            )
        finally:
            sys.excepthook = hook  # PyTorch wraps the hook each time
        if order.phases is None:
            self._require_lanes(attempt)

    def _require_lanes(self, attempt: _Attempt) -> None:
        if attempt.lanes is not None:
            attempt.lanes.require_joined()

    def _phased(self, attempt: _Attempt, phases: PhasePairs) -> str:
        """Prepare the back end whose groups need phases; return its name."""
        # A job without phases must not wait for these imports.
        from lumctl.training.torch.phase_groups import BACKEND, GlooWait, NcclWait, PhaseGroups  # noqa: PLC0415
        from lumctl.training.torch.phase_light import WorkerPhase  # noqa: PLC0415

        wait = NcclWait(self._device) if self._backend == "nccl" else GlooWait(attempt.waits)
        generation = attempt.order.generation
        attempt.light = WorkerPhase(generation, partial(self._wants, generation), wait)
        PhaseGroups(
            phases=phases,
            light=attempt.light,
            waits=attempt.waits,
            device=self._device,
            forming=lambda: self._forming(attempt),
            formed=lambda: self._require_lanes(attempt),
        ).register()
        return BACKEND

    def phase_answered(self, message: Message) -> None:
        """Take in the answer to a request for a phase."""
        attempt = self._attempt
        if attempt is not None and attempt.light is not None:
            attempt.light.answered(message)

    def release_light(self) -> None:
        """Let others change the light: what follows needs none. Raises ``RuntimeError`` if the group broke."""
        attempt = self._attempt
        if attempt is not None and attempt.light is not None:
            attempt.light.release()

    def end_step(self) -> dict[str, Any] | None:
        """End a training step; return the record of its phases, ``None`` for a job without."""
        attempt = self._attempt
        if attempt is None or attempt.light is None:
            return None
        # Waits for NCCL only make its stream wait.
        blocked = {"blocked_s": round(attempt.waits.blocked_s(), 7)} if self._backend == "gloo" else {}
        return {**attempt.light.end_step(), **blocked}

    @contextlib.contextmanager
    def _forming(self, attempt: _Attempt) -> Iterator[None]:
        """Form a group inside the group of an attempt; an abort wakes this, and frees the group's waits later."""
        forming = _Forming(sockets())
        with self._changing:
            if attempt.given_up.is_set():
                raise given_up()
            attempt.forming = forming
        try:
            yield
        except RuntimeError as error:
            if attempt.given_up.is_set():  # PyTorch may report this under another error
                raise given_up() from error
            raise
        finally:
            with self._changing:
                attempt.forming = None
                made = self._sockets_of(attempt, forming.before)
                attempt.made = made | (attempt.made or frozenset())
                attempt.joins |= connected(made, but=attempt.order.store[1])
                forming.settled.set()
            if forming.waker is not None:
                forming.waker.join()
        for each in made:
            each.close_on_exec()
        if attempt.given_up.is_set():
            raise given_up()

    def abort(self) -> None:
        """Wake threads that wait for the group or for its collectives; do nothing if there is no group."""
        attempt = self._attempt
        if attempt is None:
            return
        with self._changing:
            if attempt.given_up.is_set():
                return
            attempt.given_up.set()
            if attempt.light is not None:
                attempt.light.give_up()
            if attempt.remote is not None:
                attempt.remote.cancel()
            if not attempt.settled.is_set():
                attempt.waker = _thread(lambda: self._wake(attempt, attempt.settled, attempt.before))
            elif attempt.made is not None and self._backend == "nccl":
                _thread(self._abort_nccl)
            elif attempt.made is not None:
                if attempt.store is not None and not attempt.store.unknown:
                    # The script may have formed groups of its own since then.
                    attempt.made |= self._sockets_of(attempt)
                    attempt.joins = connected(attempt.made, but=attempt.order.store[1])
                self._left += deafen(attempt.made, self._ports())
                if (forming := attempt.forming) is not None:
                    forming.waker = _thread(lambda: self._wake(attempt, forming.settled, forming.before))
                _thread(lambda: self._free(attempt))

    def _free(self, attempt: _Attempt) -> None:
        """Release the waits for operations that gloo has lost.

        gloo informs the operations on its lists before it closes a connection, and moves no byte after that. A wait
        that lasts longer than a wake-up takes would never end. gloo no longer writes to its buffers.
        """
        until, pause, never_set = time.monotonic() + CLOSED_WITHIN_S, KNOCK_S, threading.Event()
        while any(each.is_open for each in attempt.joins) and time.monotonic() < until:
            never_set.wait(pause)
            pause = min(2 * pause, LATER_KNOCK_S)
        attempt.waits.leave(RELEASED_WITHIN_S)

    def _wake(self, attempt: _Attempt, settled: threading.Event, before: frozenset[OpenSocket]) -> None:
        """Make the forming of a group fail: make each connection that it waits for arrive or break."""
        pause = KNOCK_S
        with contextlib.ExitStack() as calls:
            while True:
                knock(self._sockets_of(attempt, before), range(attempt.order.world), calls)
                if settled.wait(pause):
                    return
                shut(self._sockets_of(attempt, before) | calling(sockets() - before), self._ports())
                pause = min(2 * pause, LATER_KNOCK_S)

    def _sockets_of(self, attempt: _Attempt, before: frozenset[OpenSocket] | None = None) -> frozenset[OpenSocket]:
        """The sockets of a group that were not there ``before``, without others that the script opened meanwhile.

        With NCCL, or if gloo publishes addresses in an unknown form, all new sockets.
        """
        new, store = sockets() - (attempt.before if before is None else before), attempt.store
        if self._backend == "nccl" or (store is not None and store.unknown):
            return new
        own, peers = (store.own_ports, store.peers_ports) if store is not None else (set(), set())
        return between(new, own, {*peers, attempt.order.store[1]})

    def _abort_nccl(self) -> None:
        """Abort the communicators of all groups, the script's own too, newest first."""
        world = dist.distributed_c10d._world  # noqa: SLF001 - nothing public names the groups
        with contextlib.ExitStack() as together:
            if dist.is_initialized():
                backend: Any = dist.distributed_c10d._get_default_group()._get_backend(self._device)  # noqa: SLF001 - see above
                # As PyTorch does: otherwise the abort of one communicator may wait for that of another.
                if hasattr(backend, "_group_start"):
                    backend._group_start()  # noqa: SLF001 - see above
                    together.callback(backend._group_end)  # noqa: SLF001 - see above
            for group in sorted(world.pg_names, key=world.pg_names.__getitem__, reverse=True):
                try:
                    group.abort()
                except RuntimeError as error:
                    _log.warning("group %s could not be aborted: %s", world.pg_names[group], error)

    def destroy(self) -> None:
        """Leave the group, if there is one, without waiting for peers."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None and attempt.light is not None:
            attempt.light.give_up()
        if attempt is not None and attempt.made is not None and self._backend == "gloo":
            self._left += deafen(attempt.made, self._ports())
        if dist.is_initialized():
            if attempt is not None:
                # PyTorch keeps no reference to a store that is written in Python; the script may keep the groups.
                groups = dist.distributed_c10d._world.pg_map if self._backend == "gloo" else ()  # noqa: SLF001 - no other way
                keep([attempt, *groups], COLLECTIVE_S)
            with contextlib.suppress(RuntimeError):
                dist.destroy_process_group()
        if attempt is not None and attempt.remote is not None:
            attempt.remote.close()
        if attempt is not None and attempt.lanes is not None:
            attempt.lanes.close()

    def close(self) -> None:
        """Leave the group permanently."""
        self.destroy()
        self._close_left()

    def _close_left(self) -> None:
        """Close connections kept open for peers; when a group is formed, all peers have abandoned the previous one."""
        for each in self._left:
            each.close()
        self._left.clear()

    def _ports(self) -> frozenset[int]:
        return frozenset((self.store[1], *self._own_ports()))


def _thread(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act, name="lumctl-group", daemon=True)
    thread.start()
    return thread
