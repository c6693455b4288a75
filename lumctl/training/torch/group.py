"""The process group of a worker, one generation after another: formed in place, given up at once, formed again.

gloo of PyTorch 2.13 informs the operations on its lists when a connection ends. An operation whose bytes have begun to
move is on no list: if its connection ends before the last byte, the caller waits for the time-out of collectives. So
helper threads wait for gloo, and the script waits for them and can be released.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from lumctl.training.torch.sockets import OpenSocket, between, calling, connected, deafen, knock, shut, sockets
from lumctl.training.torch.stores import CancellableStore, GivenUpError, LaneStore, interface_with, reach, serve

if TYPE_CHECKING:
    import socket

    # What is public is typed in the private module only.
    from torch._C._distributed_c10d import PrefixStore, Store, Work
else:
    from torch.distributed import PrefixStore, Store, Work

Native = Callable[[], Any]
Outcome = SimpleQueue[tuple[Any, BaseException | None]]
_natively: Callable[..., Any] = Work.wait
_helpers: SimpleQueue[SimpleQueue[tuple[Native, Outcome]]] = SimpleQueue()
"""The queues of idle helper threads."""


class Waits:
    """The waits for collectives of one group; each method may be called by any thread."""

    def __init__(self) -> None:
        self._waiting: set[Outcome] = set()
        self._left = False
        self._change = threading.Condition()

    def wait(self, native: Native) -> Any:
        """The result of ``native``, or its error.

        Raises:
            GivenUpError: it did not end before :meth:`leave`.
        """
        outcome: Outcome = SimpleQueue()
        with self._change:
            if self._left:
                raise _given_up()
            self._waiting.add(outcome)
        try:
            _helper().put((native, outcome))
            found, error = outcome.get()
        finally:
            with self._change:
                self._waiting.discard(outcome)
                self._change.notify_all()
        if error is not None:
            raise error
        return found

    def leave(self, within_s: float) -> None:
        """Release waits that do not end within ``within_s``, and all later ones, with an error."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting, within_s)
            self._left = True
            for outcome in self._waiting:
                outcome.put((None, _given_up()))

    def take_over(self) -> None:
        """Route all waits for collectives of this process through this object."""
        global _current  # noqa: PLW0603 - a process has one class `Work`, and one group at a time
        _current = self
        setattr(Work, "wait", _wait)  # noqa: B010 - to mypy, assigning a method is an error


_current = Waits()


def keep(groups: list[object], for_s: float) -> None:
    """Keep groups alive for ``for_s``: freeing one waits for its threads, and they may wait for a lost peer.

    They may also wait for the interpreter lock, to free a tensor, which the thread that frees the group holds.
    """
    never_set = threading.Event()

    def hold_on() -> None:  # what a thread refers to lives until the process ends
        never_set.wait(for_s)
        groups.clear()

    threading.Thread(target=hold_on, name="lumctl-group-left", daemon=True).start()


def _wait(work: Work, *given: Any, **named: Any) -> Any:
    """The replacement of ``Work.wait``."""
    if work.is_completed():
        return _natively(work, *given, **named)
    return _current.wait(lambda: _natively(work, *given, **named))


def _helper() -> "SimpleQueue[tuple[Native, Outcome]]":
    try:
        return _helpers.get_nowait()
    except Empty:
        asked: SimpleQueue[tuple[Native, Outcome]] = SimpleQueue()
        threading.Thread(target=_help, args=(asked,), name="lumctl-collective", daemon=True).start()
        return asked


def _help(asked: "SimpleQueue[tuple[Native, Outcome]]") -> None:
    while True:
        native, outcome = asked.get()
        try:
            found, error = native(), None
        except BaseException as raised:  # noqa: BLE001 - the waiting thread raises it
            found, error = None, raised
        del native
        _helpers.put(asked)
        outcome.put((found, error))
        del found, error, outcome


def _given_up() -> GivenUpError:
    return GivenUpError("the group is given up")


COLLECTIVE_S = 1800.0
"""PyTorch's own default. A rank that hangs is detected by its heartbeats, not by this."""
KNOCK_S = 0.005
LATER_KNOCK_S = 0.1
CLOSED_WITHIN_S = 5.0
"""How long gloo may take to notice that its connections have ended, and to close them."""
RELEASED_WITHIN_S = 0.05
"""Grace period for waits that gloo has already informed."""


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """The group that a worker must join. ``lanes`` is the socket of the simulator's lanes, if there are any."""

    generation: int
    rank: int
    world: int
    store: tuple[str, int]
    placement: Sequence[str] = ()
    lanes: str | None = None


@dataclass
class _Attempt:
    """A group that is being formed, or is formed."""

    order: JoinOrder
    before: frozenset[OpenSocket]
    given_up: threading.Event = field(default_factory=threading.Event)
    settled: threading.Event = field(default_factory=threading.Event)
    made: frozenset[OpenSocket] | None = None
    joins: frozenset[OpenSocket] = frozenset()
    """The sockets among these that lead to other ranks."""
    store: CancellableStore | None = None
    lanes: LaneStore | None = None
    waker: threading.Thread | None = None
    waits: Waits = field(default_factory=Waits)


class ProcessGroup:
    """The process group that a worker is in. :meth:`abort` may be called by any thread, all else by the main thread.

    With NCCL, an abort ends the communicator and its kernels; with gloo, it shuts its sockets for reading. Either way a
    thread that waits in a collective, or in :meth:`make`, continues with an error.
    """

    def __init__(self, device: torch.device, address: str, own_ports: Callable[[], Sequence[int]] = tuple) -> None:
        self._device = device
        self._address = address
        self._own_ports = own_ports
        self._served = serve(address)
        self.store: tuple[str, int] = (address, self._served.port)
        self._attempt: _Attempt | None = None
        self._left: list[socket.socket] = []
        """Connections of a group that was given up: open as long as peers may still use them."""
        self._changing = threading.Lock()
        self._backend = "nccl" if device.type == "cuda" else "gloo"
        if self._backend == "nccl":
            # NCCL's watchdog would end the process that is about to recover.
            os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
            os.environ.setdefault("TORCH_NCCL_ENABLE_MONITORING", "0")
        elif "GLOO_SOCKET_IFNAME" not in os.environ and (name := interface_with(address)) is not None:
            os.environ["GLOO_SOCKET_IFNAME"] = name

    @property
    def given_up(self) -> bool:
        """Whether the group is given up, so that the results of its collectives are invalid."""
        return self._attempt is not None and self._attempt.given_up.is_set()

    @property
    def is_broken(self) -> bool:
        """Whether a peer has left the group: a connection of the group is closed, or at its end.

        With NCCL connections cannot be seen, and count as open.
        """
        attempt = self._attempt
        return attempt is not None and (attempt.given_up.is_set() or any(each.is_at_end for each in attempt.joins))

    def descriptors(self) -> list[int]:
        """The sockets of the group and of this worker's servers, for a forked process to give up."""
        made = (self._attempt.made if self._attempt is not None else None) or frozenset()
        ours = between(sockets(), self._ports(), ()) | {each for each in made if each.is_open}
        return [*(each.descriptor for each in ours), *(each.fileno() for each in self._left if each.fileno() >= 0)]

    def make(self, order: JoinOrder, *, wanted: Callable[[], bool]) -> None:
        """Form a group with all workers that get the same order; ``wanted`` says whether it is still wanted.

        Raises:
            DistError: it was given up.
            RuntimeError: a peer is gone.
        """
        self._close_left()
        attempt = self._attempt = _Attempt(order, sockets())
        if not wanted():  # an abort after this line finds the attempt
            attempt.given_up.set()
            raise GivenUpError("the group is given up")
        if self._backend == "gloo":
            attempt.waits.take_over()
        try:
            self._form(attempt)
            attempt.made = self._sockets_of(attempt)
            attempt.joins = connected(attempt.made, but=order.store[1])
            for each in attempt.made:
                each.close_on_exec()  # PyTorch leaves it open for programs that the script starts
        except RuntimeError as error:
            if attempt.given_up.is_set():  # PyTorch may report that as an error of its own
                raise GivenUpError("the group is given up") from error
            raise
        finally:
            with self._changing:
                attempt.settled.set()
            if attempt.waker is not None:
                attempt.waker.join()  # it must not mistake the next attempt's sockets for this one's
        if attempt.given_up.is_set():
            raise GivenUpError("the group is given up")

    def _form(self, attempt: _Attempt) -> None:
        order, hook = attempt.order, sys.excepthook
        store: Store = PrefixStore(f"gen{order.generation}", reach(*order.store, attempt.given_up))
        if order.lanes is not None:
            store = attempt.lanes = LaneStore(
                store, rank=order.rank, placement=list(order.placement), lanes=order.lanes
            )
        if self._backend == "gloo":
            # PyTorch keeps no reference to a store that is written in Python.
            store = attempt.store = CancellableStore(store, attempt.given_up)
        # PyTorch numbers its groups, failed attempts too, and looks for peers under that number.
        dist.distributed_c10d._world.group_count = 0  # noqa: SLF001 - as PyTorch does when it destroys a group
        try:
            dist.init_process_group(
                self._backend,
                store=store,
                rank=order.rank,
                world_size=order.world,
                timeout=timedelta(seconds=COLLECTIVE_S),
                device_id=self._device if self._backend == "nccl" else None,
            )
        finally:
            sys.excepthook = hook  # PyTorch wraps it each time
        if attempt.lanes is not None:
            attempt.lanes.require_joined()

    def abort(self) -> None:
        """Wake threads that wait in a collective of the group, or for the group; do nothing if there is none."""
        attempt = self._attempt
        if attempt is None:
            return
        with self._changing:
            if attempt.given_up.is_set():
                return
            attempt.given_up.set()
            if not attempt.settled.is_set():
                attempt.waker = _thread(lambda: self._wake(attempt))
            elif attempt.made is not None and self._backend == "nccl":
                _thread(self._abort_nccl)
            elif attempt.made is not None:
                self._left += deafen(attempt.made, self._ports())
                _thread(lambda: self._free(attempt))

    def _free(self, attempt: _Attempt) -> None:
        """Release waits that gloo has lost.

        gloo informs the operations it knows before it closes a connection, and moves no byte after that. A wait that
        lasts longer than a wake-up takes would never end, and its buffers are no longer written to.
        """
        until, pause, never_set = time.monotonic() + CLOSED_WITHIN_S, KNOCK_S, threading.Event()
        while any(each.is_open for each in attempt.joins) and time.monotonic() < until:
            never_set.wait(pause)
            pause = min(2 * pause, LATER_KNOCK_S)
        attempt.waits.leave(RELEASED_WITHIN_S)

    def _wake(self, attempt: _Attempt) -> None:
        """Make the forming of a group fail: whatever it waits for next must arrive or break."""
        pause = KNOCK_S
        with contextlib.ExitStack() as calls:
            while True:
                knock(self._sockets_of(attempt), range(attempt.order.world), calls)
                if attempt.settled.wait(pause):
                    return
                shut(self._sockets_of(attempt) | calling(sockets() - attempt.before), self._ports())
                pause = min(2 * pause, LATER_KNOCK_S)

    def _sockets_of(self, attempt: _Attempt) -> frozenset[OpenSocket]:
        """The sockets of a group, without others that the script opened meanwhile.

        With NCCL, and if gloo publishes addresses in an unknown form: all new sockets.
        """
        new, store = sockets() - attempt.before, attempt.store
        if self._backend == "nccl" or (store is not None and store.unknown):
            return new
        own, peers = (store.own_ports, store.peers_ports) if store is not None else (set(), set())
        return between(new, own, {*peers, attempt.order.store[1]})

    def _abort_nccl(self) -> None:
        with contextlib.suppress(RuntimeError, ValueError):
            backend = dist.distributed_c10d._get_default_group()._get_backend(self._device)  # noqa: SLF001 - no other way
            backend.abort()

    def destroy(self) -> None:
        """Leave the group, if there is one, without waiting for peers."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None and attempt.made is not None and self._backend == "gloo":
            self._left += deafen(attempt.made, self._ports())
        if dist.is_initialized():
            if attempt is not None and self._backend == "gloo":
                keep([attempt, *dist.distributed_c10d._world.pg_map], COLLECTIVE_S)  # noqa: SLF001 - no other way
            with contextlib.suppress(RuntimeError):
                dist.destroy_process_group()
        if attempt is not None and attempt.lanes is not None:
            attempt.lanes.close()

    def close(self) -> None:
        """Leave the group for good."""
        self.destroy()
        self._close_left()

    def _close_left(self) -> None:
        """Close connections kept open for peers: when a group is formed, all have given up the one before."""
        for each in self._left:
            each.close()
        self._left.clear()

    def _ports(self) -> frozenset[int]:
        return frozenset((self.store[1], *self._own_ports()))


def _thread(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act, name="lumctl-group", daemon=True)
    thread.start()
    return thread
