"""A worker of a job that lumctl runs: it gets a rank, trains, parks when the group fails, and resumes."""

import atexit
import os
import re
import signal
import sys
import time
import traceback
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from lumctl.errors import LumctlError, RefusedError, UnreachableError, UsageError
from lumctl.training.protocol import Message
from lumctl.training.torch.agent_link import AgentLink, Environment, Membership
from lumctl.training.torch.checkpoints import Persistence, of_rank, read
from lumctl.training.torch.collectives import Copies
from lumctl.training.torch.group import JoinOrder, ProcessGroup
from lumctl.training.torch.state_transfer import Fetcher, NotHereError, StateServer, StateTransferError, WantedState
from lumctl.training.torch.states import REPLICATED, UNIQUE, BrokenStateError, Layout, StateSnapshot, TrainingState


class StateLoader:
    """Finds states for other workers, and loads states from others, from own copies, or from a file."""

    def __init__(self, work: TrainingState, membership: Membership, copies: Copies, token: str) -> None:
        self.fetcher = Fetcher(token)
        self._work, self._membership, self._copies = work, membership, copies

    def find(self, wanted: WantedState) -> Layout:
        """A state that another worker asks for; this one is parked.

        Raises:
            NotHereError: it is not here.
        """
        if self._work.layout == REPLICATED:
            if wanted.done != self._work.done:
                raise NotHereError(f"this worker has done {self._work.done} steps, not {wanted.done}")
            return self._work.laid_out()
        kept = self._kept(wanted)
        return Layout(kept.meta, (kept.data,), len(kept.data))

    def load(self, order: Message, control: AgentLink, holds: int) -> None:
        """Take over the state that the coordinator has chosen, and say so.

        Raises:
            UsageError: it does not fit this script, or the script cannot have the rank that it is for.
        """
        began = time.monotonic()
        wanted = WantedState(int(order["done"]), None if order.get("of") is None else int(order["of"]))
        if order.get("world") is not None and wanted.of is not None:
            self._work.shape(wanted.of, int(order["world"]))
        try:
            tree, size = self._found(order, wanted, lambda: control.holds == holds)
        except (StateTransferError, NotHereError, BrokenStateError) as error:
            if control.holds == holds:
                control.say("unloaded", done=wanted.done, error=in_short(error))
            return
        if tree is not None:
            self._work.load(tree, wanted.done)
        control.say("loaded", done=wanted.done, bytes=size, seconds=time.monotonic() - began)

    def _found(
        self, order: Message, wanted: WantedState, still: Callable[[], bool]
    ) -> tuple[dict[str, Any] | None, int]:
        """A state and its size in bytes; ``None`` if the current state is the one."""
        if order.get("file"):
            path = of_rank(Path(order["file"]), wanted.of or 0)
            try:
                done, tree = read(path)
            except UsageError as error:
                raise NotHereError(error.message) from error
            if done != wanted.done:
                raise NotHereError(f"{path} is the state after {done} steps")
            return tree, path.stat().st_size
        if order.get("source"):
            host, port = order["source"]
            fetched = self.fetcher.fetch((str(host), int(port)), wanted, still=still)
            if self._work.layout == UNIQUE and wanted.of is not None:
                self._copies.keep(wanted.of, fetched)  # a second failure may find nobody else who has it
                return fetched.tree(), len(fetched.data)
            return fetched.tree(copied=False), len(fetched.data)
        if self._work.layout == REPLICATED and wanted.done == self._work.done:
            return None, 0
        kept = self._kept(wanted)
        return kept.tree(), len(kept.data)

    def _kept(self, wanted: WantedState) -> StateSnapshot:
        rank = self._membership.rank if wanted.of is None else wanted.of
        kept = self._copies.find(rank, wanted.done)
        if kept is None:
            raise NotHereError(f"no state of rank {rank} after {wanted.done} steps is kept here")
        return kept


TOLD_LINES, LONGEST_LINE = 12, 200
"""Of a traceback, which is told from its end."""


def of_group(error: BaseException, *, is_broken: bool) -> bool:
    """Whether an error comes from a collective whose peer failed first, by its type and by what is left of the group.

    gloo's errors are mere ``RuntimeError``, as are many others: they are the group's if a peer has left it by then.
    """
    return isinstance(error, dist.DistError) or (type(error) is RuntimeError and is_broken)


def in_short(error: BaseException) -> str:
    """The first line of an error, without a path of somebody else's building machine."""
    first = (str(error) or type(error).__name__).splitlines()[0]
    return re.sub(r"^\[[^\]]*/([^\]/]+)\]", r"[\1]", first)[:300]


def tail(error: BaseException) -> list[str]:
    """The last lines of an error's traceback, without those of the errors that have led to it."""
    shown = traceback.TracebackException.from_exception(error)
    lines = "".join([*shown.stack.format(), *shown.format_exception_only()]).splitlines()
    return [line[:LONGEST_LINE] for line in lines[-TOLD_LINES:]]


END = "end"
"""The order that a worker gives itself at SIGTERM."""


class OrderLoop:
    """The servers of a worker, its group, and the orders that change them. Used by the main thread."""

    def __init__(
        self, environment: Environment, work: TrainingState, persistence: Persistence, device: torch.device
    ) -> None:
        self.membership = Membership()
        self.copies = Copies()
        self._work, self._persistence, self._device = work, persistence, device
        self._loader = StateLoader(work, self.membership, self.copies, environment.token)
        self.server = StateServer(environment.address, environment.token, self._loader.find)
        self.group = ProcessGroup(device, environment.address, lambda: [self.server.address[1]])
        self.control = AgentLink(environment, done=lambda: work.done, hold=self._hold)

    def _hold(self) -> None:
        """Called by the thread that listens to the agent."""
        self.group.abort()
        self._loader.fetcher.cancel()

    def park(self) -> None:
        """Follow orders until the worker is in a group again or ends."""
        self._work.undo()
        self.server.open()
        try:
            while not self.membership.stopped:
                order, holds = self.control.orders.get()
                if order.get("do") == "join":
                    if self._join(order, holds):
                        return
                else:
                    self._follow(order, holds)
        finally:
            self.server.shut()

    def _follow(self, order: Message, holds: int) -> None:
        match order.get("do"):
            case "hold":
                self._held(int(order["generation"]), holds)
            case "load" if self.control.holds == holds:
                self._loader.load(order, self.control, holds)
            case "stop":
                self._stop(order)
            case "finish":  # the others have done so, and are gone
                self.end(save=self._persistence.due_at_end(self.membership.rank))
            case "end":
                self.membership.cut_short = True
                self.end(save=self.membership.joined)
            case _:
                pass

    def _held(self, generation: int, holds: int) -> None:
        membership, work = self.membership, self._work
        if work.layout == UNIQUE and membership.joined and self.copies.find(membership.rank, work.done) is None:
            self.copies.keep(membership.rank, work.snapshot())
        keeps = self.copies.keeps(membership.rank if membership.joined else None)
        self.control.answered = holds
        self.control.say("held", generation=generation, done=work.done, keeps=keeps)
        self.group.destroy()

    def _join(self, order: Message, holds: int) -> bool:
        """Take a rank in a new group; whether that went well."""
        began = time.monotonic()
        lanes = order.get("lanes") or {}
        host, port = order["store"]
        place = JoinOrder(
            generation=int(order["generation"]),
            rank=int(order["rank"]),
            world=int(order["world"]),
            store=(str(host), int(port)),
            placement=tuple(order.get("placement") or ()),
            lanes=lanes.get("socket"),
        )
        self._work.shape(place.rank, place.world)
        self.server.shut()
        self.group.destroy()
        try:
            if order.get("done") not in {None, self._work.done}:
                raise RuntimeError(f"this worker has done {self._work.done} steps, not {order['done']}")  # noqa: TRY301
            self.group.make(place, wanted=lambda: self.control.holds == holds)
            self._settle(place)
        except (RuntimeError, UnreachableError, RefusedError) as error:  # the latter two from lanes
            self.broken(place.generation, error)
            self.server.open()
            return False
        membership = self.membership
        membership.rank, membership.world, membership.generation, membership.joined = (
            place.rank,
            place.world,
            place.generation,
            True,
        )
        seconds = time.monotonic() - began
        self.control.say("joined", generation=place.generation, rank=place.rank, seconds=seconds, done=self._work.done)
        return True

    def _settle(self, place: JoinOrder) -> None:
        """Bring all ranks to one state where none has been handed over, and have each state kept twice."""
        if self._work.done == 0:
            if self._work.layout == UNIQUE:
                self._persistence.agree(place.rank, place.world, self._device)
            else:
                self._persistence.level(place.rank, place.world, self._device)
        self._persistence.went_back()
        if self._work.layout == UNIQUE:
            self.copies.forget_after(self._work.done)
            self.hand_on(place.rank, place.world)

    def hand_on(self, rank: int, world: int) -> None:
        """Keep the state that is reached, and have the next rank keep it too.

        Raises:
            RuntimeError: the group broke.
        """
        if self._work.layout == UNIQUE:
            self.copies.keep(rank, self._work.snapshot(into=self.copies.spent(rank)))
            self.copies.hand_on(rank, world, self._device)

    def broken(self, generation: int, error: Exception) -> None:
        """Report that the group failed, unless the coordinator has already ordered a hold."""
        if not self.control.held:
            self.control.say("broken", generation=generation, done=self._work.done, error=in_short(error))

    def _stop(self, order: Message) -> None:
        """Write the checkpoints asked for, and end. A worker that never had a rank has none to write."""
        done = int(order["done"])
        own = self._work.layout == UNIQUE
        trees: dict[int, Any] = {}
        if self.membership.joined:
            kept = self.copies.find(self.membership.rank, done) if own else None
            if done == self._work.done:
                trees[self.membership.rank] = self._work.tree()
            elif kept is not None:
                trees[self.membership.rank] = kept.tree()
        for rank in map(int, order.get("also") or ()):
            if (kept := self.copies.find(rank, done)) is not None:
                trees[rank] = kept.tree()
        for rank, tree in trees.items():
            if (path := self._persistence.save(rank, tree=tree, done=done)) is not None:
                self.control.say("saved", done=done, path=str(path), rank=rank)
        self.membership.cut_short = True
        self.end(save=False)

    def end(self, *, save: bool) -> None:
        """End, optionally with a checkpoint of the current state."""
        if save and (path := self._persistence.save(self.membership.rank)) is not None:
            self.control.say("saved", done=self._work.done, path=str(path))
        self.membership.stopped = True
        self.control.say("ended", done=self._work.done, cut_short=self.membership.cut_short)


def in_children(call: Callable[[], None]) -> None:
    """Have a bound method called in each forked process, while its object lives."""
    method = weakref.WeakMethod(call)

    def forked() -> None:
        if (found := method()) is not None:
            found()

    os.register_at_fork(after_in_child=forked)


def give_up(descriptors: Iterable[int]) -> None:
    """Give up connections in a forked process. Their numbers stay in use, so that a later close hits nothing else."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in descriptors:
        with suppress(OSError):
            os.dup2(nothing, each, inheritable=False)
    os.close(nothing)


class Member:
    """Takes part in a job under its coordinator's orders."""

    def __init__(
        self, environment: Environment, work: TrainingState, persistence: Persistence, device: torch.device
    ) -> None:
        self._work, self._persistence, self._device = work, persistence, device
        self._order_loop = OrderLoop(environment, work, persistence, device)
        self._control = self._order_loop.control
        self.membership = self._order_loop.membership
        self._handler: Any = None
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._handler = signal.signal(signal.SIGTERM, self._terminate)
        self._pid, self._failed = os.getpid(), False
        self._control.start()
        in_children(self._forked)
        atexit.register(self._exiting)

    @property
    def given_up(self) -> bool:
        """Whether the results of this step's collectives are invalid."""
        return self._order_loop.group.given_up

    def begin(self) -> None:
        """The script has reached its training steps: wait for a rank."""
        if self._work.layout == REPLICATED:
            self._persistence.go_on()
        self._control.say(
            "ready",
            store=list(self._order_loop.group.store),
            state=list(self._order_loop.server.address),
            layout=self._work.layout,
            done=self._work.done,
        )
        self._order_loop.park()

    def between(self) -> None:
        """Park if asked to: no step is under way."""
        if self._control.held or not self._control.orders.empty():
            self._order_loop.park()

    def after(self, loss: float | None) -> None:
        """Report a step, have its state copied if no other rank has it, and write a checkpoint when due."""
        membership = self.membership
        self._say_stepped({} if loss is None else {"loss": loss})
        try:
            self._order_loop.hand_on(membership.rank, membership.world)
        except RuntimeError as error:
            if not self.recovers(error):
                raise
            return
        if self._persistence.due(membership.rank):
            self._save()

    def recovers(self, error: Exception) -> bool:
        """An error came out of a step: whether it was the group's; then the job goes on after this returns.

        It was if another failed first: the coordinator has said so, or a peer has left the group.
        """
        if not (self._control.held or of_group(error, is_broken=self._order_loop.group.is_broken)):
            return False
        if self._work.counted:
            self._say_stepped({})
        self._order_loop.broken(self.membership.generation, error)
        self._order_loop.park()
        return True

    def finish(self) -> None:
        """Wait until all ranks have done all steps; a failure may take the job back to an earlier step."""
        try:
            if self.membership.world > 1:
                met = torch.zeros(1, device=self._device)
                dist.all_reduce(met)
                met.item()
        except RuntimeError as error:
            if not self.recovers(error):
                raise
            return
        if self._persistence.due_at_end(self.membership.rank):
            self._save()
        self._persistence.over()
        self._order_loop.end(save=False)

    def failed(self, error: BaseException) -> None:
        """The script's own error ends it."""
        if self._failed:
            return
        self._failed = True
        hint = f" ({error.hint})" if isinstance(error, LumctlError) and error.hint else ""
        self._control.say(
            "failed",
            error=f"{type(error).__name__}: {in_short(error)}{hint}",
            type=type(error).__qualname__,
            step=self._work.done,
            traceback=tail(error),
            at=time.time(),
        )

    def close(self) -> None:
        """Leave the group. The agent hears of this process on, for the script may have much to do yet."""
        self._order_loop.server.close()
        self._order_loop.group.close()
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)

    def _exiting(self) -> None:
        """The script's last line has run, or an error has ended it: say so, and hang up."""
        if os.getpid() != self._pid:
            return
        if (error := getattr(sys, "last_value", None)) is not None:
            self.failed(error)
        self._control.say("exiting")
        self._control.close()

    def _forked(self) -> None:
        """Called in a forked process, which has no rank."""
        give_up([*self._control.descriptors(), *self._order_loop.group.descriptors()])
        if signal.getsignal(signal.SIGTERM) == self._terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _say_stepped(self, loss: dict[str, float]) -> None:
        self._control.say(
            "stepped", generation=self.membership.generation, done=self._work.done, at=time.time(), **loss
        )

    def _save(self) -> None:
        if (path := self._persistence.save(self.membership.rank)) is not None:
            self._control.say("saved", done=self._work.done, path=str(path))

    def _terminate(self, _signal: int, _frame: FrameType | None) -> None:
        """SIGTERM: at the end of this step, or at once where none is under way, write a checkpoint and end."""
        self._control.orders.put(({"do": END}, self._control.holds))
