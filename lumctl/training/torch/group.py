"""The process group of one generation after the other: made in place, given up at once, made anew."""

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
"""Where threads are asked that wait for nothing now."""


class Waits:
    """Those who wait for collectives of one group; each method may be called by any thread."""

    def __init__(self) -> None:
        self._waiting: set[Outcome] = set()
        self._left = False
        self._change = threading.Condition()

    def wait(self, native: Native) -> Any:
        """What ``native`` gives, or raises.

        Raises:
            GivenUpError: it did not come to its end before :meth:`leave`.
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
        """Have those go on with an error who do not come to their end by then, and whoever waits later."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting, within_s)
            self._left = True
            for outcome in self._waiting:
                outcome.put((None, _given_up()))

    def take_over(self) -> None:
        """From now on whatever in this process waits for a collective waits here."""
        global _current  # noqa: PLW0603 - there is one class of PyTorch's in a process, and one group at a time
        _current = self
        setattr(Work, "wait", _wait)  # noqa: B010 - to mypy, assigning a method is an error


_current = Waits()


def keep(groups: list[object], for_s: float) -> None:
    """Have groups live for so long: whoever frees one waits for its threads, and they may wait for a lost peer.

    They may also wait for Python's interpreter, to free a tensor, and whoever frees the group holds that.
    """
    nothing_comes = threading.Event()

    def hold_on() -> None:  # what a thread knows is there to the end of the process, whatever is torn down before
        nothing_comes.wait(for_s)
        groups.clear()

    threading.Thread(target=hold_on, name="lumctl-group-left", daemon=True).start()


def _wait(work: Work, *given: Any, **named: Any) -> Any:
    """What takes the place of ``Work.wait``."""
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
        except BaseException as raised:  # noqa: BLE001 - whoever waits raises it
            found, error = None, raised
        del native
        _helpers.put(asked)
        outcome.put((found, error))
        del found, error, outcome


def _given_up() -> GivenUpError:
    return GivenUpError("the group is given up")


COLLECTIVE_S = 1800.0
"""PyTorch's own limit. A rank that hangs is found by its heart, not by this."""
KNOCK_S = 0.005
LATER_KNOCK_S = 0.1
CLOSED_WITHIN_S = 5.0
"""How long gloo may take to find all its connections at their end, and to close them."""
TOLD_WITHIN_S = 0.05
"""How long after that those may take to go on whom it has told so before."""


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """What a worker is told to join. ``lanes`` is the socket of the simulator's lanes, where there are any."""

    generation: int
    rank: int
    world: int
    store: tuple[str, int]
    placement: Sequence[str] = ()
    lanes: str | None = None


@dataclass
class _Attempt:
    """A group that is being made, or is made."""

    place: JoinOrder
    before: frozenset[OpenSocket]
    given_up: threading.Event = field(default_factory=threading.Event)
    settled: threading.Event = field(default_factory=threading.Event)
    made: frozenset[OpenSocket] | None = None
    joins: frozenset[OpenSocket] = frozenset()
    """Those of them that lead to other ranks."""
    store: CancellableStore | None = None
    lanes: LaneStore | None = None
    waker: threading.Thread | None = None
    waits: Waits = field(default_factory=Waits)


class ProcessGroup:
    """The process group that a worker is in. :meth:`abort` may be called by any thread, all else by the main thread.

    With NCCL the communicator is aborted, which ends its kernels; with gloo its sockets are at their end for those who
    read. Either way whoever waits in a collective, or in :meth:`make`, goes on with an error.
    """

    def __init__(self, device: torch.device, address: str, own_ports: Callable[[], Sequence[int]] = tuple) -> None:
        self._device = device
        self._address = address
        self._own_ports = own_ports
        self._served = serve(address)
        self.store: tuple[str, int] = (address, self._served.port)
        self._attempt: _Attempt | None = None
        self._left: list[socket.socket] = []
        """Connections of a group that is given up: open, for as long as peers may still be at work on it."""
        self._changing = threading.Lock()
        self._backend = "nccl" if device.type == "cuda" else "gloo"
        if self._backend == "nccl":
            # Its watchdog would end the process that is about to recover.
            os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")
            os.environ.setdefault("TORCH_NCCL_ENABLE_MONITORING", "0")
        elif "GLOO_SOCKET_IFNAME" not in os.environ and (name := interface_with(address)) is not None:
            os.environ["GLOO_SOCKET_IFNAME"] = name

    @property
    def given_up(self) -> bool:
        """Whether the group is given up, so that what its collectives gave is worth nothing."""
        return self._attempt is not None and self._attempt.given_up.is_set()

    @property
    def is_broken(self) -> bool:
        """Whether a peer has left the group before us: a connection of it is closed, or at its end.

        What cannot be seen, as with NCCL, counts as whole.
        """
        attempt = self._attempt
        return attempt is not None and (attempt.given_up.is_set() or any(each.is_at_end for each in attempt.joins))

    def descriptors(self) -> list[int]:
        """The sockets of the group and of this worker's servers, for a forked process to give up."""
        made = (self._attempt.made if self._attempt is not None else None) or frozenset()
        ours = between(sockets(), self._ports(), ()) | {each for each in made if each.is_open}
        return [*(each.descriptor for each in ours), *(each.fileno() for each in self._left if each.fileno() >= 0)]

    def make(self, place: JoinOrder, *, wanted: Callable[[], bool]) -> None:
        """Form a group with all who are told the same; ``wanted`` says whether that still is to be.

        Raises:
            DistError: it was given up.
            RuntimeError: a peer is gone.
        """
        self._let_go()
        attempt = self._attempt = _Attempt(place, sockets())
        if not wanted():  # whoever gives up after this line finds the attempt
            attempt.given_up.set()
            raise GivenUpError("the group is given up")
        if self._backend == "gloo":
            attempt.waits.take_over()
        try:
            self._form(attempt)
            attempt.made = self._sockets_of(attempt)
            attempt.joins = connected(attempt.made, but=place.store[1])
            for each in attempt.made:
                each.close_on_exec()  # PyTorch leaves it open for programs that the script starts
        finally:
            with self._changing:
                attempt.settled.set()
            if attempt.waker is not None:
                attempt.waker.join()  # it must not take the next attempt's sockets for this one's
        if attempt.given_up.is_set():
            raise GivenUpError("the group is given up")

    def _form(self, attempt: _Attempt) -> None:
        place, hook = attempt.place, sys.excepthook
        store: Store = PrefixStore(f"gen{place.generation}", reach(*place.store, attempt.given_up))
        if place.lanes is not None:
            store = attempt.lanes = LaneStore(
                store, rank=place.rank, placement=list(place.placement), lanes=place.lanes
            )
        if self._backend == "gloo":
            # Kept: PyTorch does not keep a store alive that is written in Python.
            store = attempt.store = CancellableStore(store, attempt.given_up)
        # PyTorch numbers its groups, an attempt that failed too, and looks for peers under the number.
        dist.distributed_c10d._world.group_count = 0  # noqa: SLF001 - it does so itself where it destroys the group
        try:
            dist.init_process_group(
                self._backend,
                store=store,
                rank=place.rank,
                world_size=place.world,
                timeout=timedelta(seconds=COLLECTIVE_S),
                device_id=self._device if self._backend == "nccl" else None,
            )
        finally:
            sys.excepthook = hook  # PyTorch puts one around it each time
        if attempt.lanes is not None:
            attempt.lanes.require_joined()

    def abort(self) -> None:
        """Wake whoever waits in a collective of the group, or for the group; nothing if there is none."""
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
        """Let those go on whom gloo has forgotten.

        It tells whom it knows of before it closes a connection, and then moves no byte any more: who waits after that
        for longer than it takes to wake up waits for nothing, and what was to be written to is its owner's again.
        """
        until, pause, nobody_tells = time.monotonic() + CLOSED_WITHIN_S, KNOCK_S, threading.Event()
        while any(each.is_open for each in attempt.joins) and time.monotonic() < until:
            nobody_tells.wait(pause)
            pause = min(2 * pause, LATER_KNOCK_S)
        attempt.waits.leave(TOLD_WITHIN_S)

    def _wake(self, attempt: _Attempt) -> None:
        """Make the forming of a group fail: whatever it waits for next must come, or break."""
        pause = KNOCK_S
        with contextlib.ExitStack() as calls:
            while True:
                knock(self._sockets_of(attempt), range(attempt.place.world), calls)
                if attempt.settled.wait(pause):
                    return
                shut(self._sockets_of(attempt) | calling(sockets() - attempt.before), self._ports())
                pause = min(2 * pause, LATER_KNOCK_S)

    def _sockets_of(self, attempt: _Attempt) -> frozenset[OpenSocket]:
        """The sockets of a group: the script may have opened others meanwhile.

        With NCCL, and where the form is not known in which gloo's addresses are published, all that are new.
        """
        new, store = sockets() - attempt.before, attempt.store
        if self._backend == "nccl" or (store is not None and store.unknown):
            return new
        own, peers = (store.own_ports, store.peers_ports) if store is not None else (set(), set())
        return between(new, own, {*peers, attempt.place.store[1]})

    def _abort_nccl(self) -> None:
        with contextlib.suppress(RuntimeError, ValueError):
            backend = dist.distributed_c10d._get_default_group()._get_backend(self._device)  # noqa: SLF001 - no other way
            backend.abort()

    def destroy(self) -> None:
        """Leave the group, if there is one; nobody waits for anybody."""
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
        """Leave for good."""
        self.destroy()
        self._let_go()

    def _let_go(self) -> None:
        """Close what was kept open for peers: when a group is made, all have given up the one before."""
        for each in self._left:
            each.close()
        self._left.clear()

    def _ports(self) -> frozenset[int]:
        return frozenset((self.store[1], *self._own_ports()))


def _thread(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act, name="lumctl-group", daemon=True)
    thread.start()
    return thread
