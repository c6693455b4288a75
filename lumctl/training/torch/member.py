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
from torch.nn.parallel import DistributedDataParallel

from lumctl.errors import LumctlError, RefusedError, UnreachableError, UsageError
from lumctl.training.phase_pairs import PhasePairs
from lumctl.training.protocol import COLLECTIVES, PHASES, REPLICATED, SCHEDULED_FOR, UNIQUE, WANTS, Message, phase_mac
from lumctl.training.torch.agent_link import AgentLink, Environment, Membership
from lumctl.training.torch.checkpoints import Persistence, of_rank, read
from lumctl.training.torch.collective_times import clock_id
from lumctl.training.torch.collectives import Copies, level
from lumctl.training.torch.group import JoinOrder, ProcessGroup
from lumctl.training.torch.state_transfer import Fetcher, NotHereError, StateServer, StateTransferError, WantedState
from lumctl.training.torch.states import BrokenStateError, Layout, StateSnapshot
from lumctl.training.torch.training_state import TrainingState

TERMINATE = "terminate"
"""The order that a worker gives itself at SIGTERM."""
TRACEBACK_LINES, LONGEST_LINE = 12, 200
"""The last lines of a traceback that are reported, and the most characters of each."""


class Member:
    """Takes part in a job under its coordinator's orders. Only the main thread uses it.

    A parked worker follows orders until it is in a group again, or ends: ``hold`` (leave the group), ``load`` (a
    state), ``join`` (a group), ``stop`` and ``finish``.
    """

    def __init__(
        self, environment: Environment, state: TrainingState, persistence: Persistence, device: torch.device
    ) -> None:
        self.membership = Membership()
        self.scheduled_for: int | None = None
        """The late rank for whose schedule the ranks have agreed in this step; ``None``: they use none."""
        self._state, self._persistence, self._device = state, persistence, device
        self._copies = Copies()
        self._fetcher = Fetcher(environment.token)
        self._server = StateServer(environment.address, environment.token, self._find)
        self._environment = environment
        self._group = ProcessGroup(
            device, environment.address, environment.token, lambda: [self._server.address[1]], wants=self._want
        )
        self._agent = AgentLink(environment, done=lambda: state.done, hold=self._hold)
        self._agent.phase_answered = self._group.phase_answered
        self._handler: Any = None
        # A handler of the script stays.
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._handler = signal.signal(signal.SIGTERM, self._terminate)
        self._pid, self._failed = os.getpid(), False
        self._agent.start()
        in_children(self._forked)
        atexit.register(self._exiting)

    # -- the steps of the script

    @property
    def given_up(self) -> bool:
        """Whether the results of this step's collectives are invalid."""
        return self._group.given_up

    @property
    def late_rank(self) -> int | None:
        """The late rank for which this group is to use a schedule."""
        generation, rank = self._agent.late
        return rank if generation == self.membership.generation else None

    def begin(self) -> None:
        """Wait for a rank: the script has reached its training steps."""
        if self._state.layout == REPLICATED:
            self._persistence.resume()
        self._agent.say(
            "ready",
            store=list(self._group.store),
            state=list(self._server.address),
            layout=self._state.layout,
            done=self._state.done,
        )
        self.park()

    def watch(self, model: DistributedDataParallel) -> None:
        """Record when a wrapped model waits for the other ranks."""
        self._group.times.watch(model)

    @property
    def has_orders(self) -> bool:
        """Whether an order waits."""
        return self._agent.held or not self._agent.orders.empty()

    def park(self) -> None:
        """Leave the group, and follow orders until the worker is in a group again or ends."""
        self._state.undo()
        self._server.open()
        try:
            while not self.membership.stopped:
                order, holds = self._agent.orders.get()
                if order.get("do") == "join":
                    if self._join(order, holds):
                        return
                else:
                    self._follow(order, holds)
        finally:
            self._server.shut()

    def after(self, loss: float | None) -> None:
        """Report a step, copy its state to another rank if that is unique, and write a checkpoint when due.

        Raises:
            RuntimeError: the group broke.
        """
        phases = {} if (record := self._group.end_step()) is None else {PHASES: record}
        self._report_step({**phases, **({} if loss is None else {"loss": loss})})
        self._copy_to_next(self.membership.rank, self.membership.world)
        if self._persistence.due(self.membership.rank):
            self._save()

    def is_of_group(self, error: Exception) -> bool:
        """Return whether a step's error came from the group, and report that; the worker must then park.

        The error came from the group if another process failed first: the coordinator has ordered a hold, or a peer has
        left the group.
        """
        if not (self._agent.held or of_group(error, is_broken=self._group.is_broken)):
            return False
        if self._state.counted:
            self._report_step({})
        self._report_broken(self.membership.generation, error)
        return True

    def finish(self) -> None:
        """Wait until all ranks have done all steps.

        Raises:
            RuntimeError: the group broke; the job may go back to an earlier step.
        """
        self._group.release_light()
        self._copies.arrive()
        if self.membership.world > 1:
            met = torch.zeros(1, device=self._device)
            dist.all_reduce(met)
            # On CUDA `all_reduce` only starts; reading the result waits for it.
            met.item()
        if self._persistence.due_at_end(self.membership.rank):
            self._save()
        self._persistence.over()
        self._end()

    def failed(self, error: BaseException) -> None:
        """Report the error that ends the script."""
        if self._failed:
            return
        self._failed = True
        hint = f" ({error.hint})" if isinstance(error, LumctlError) and error.hint else ""
        self._agent.say(
            "failed",
            error=f"{type(error).__name__}: {in_short(error)}{hint}",
            type=type(error).__qualname__,
            step=self._state.done,
            traceback=tail(error),
            at=time.time(),
        )

    def close(self) -> None:
        """Leave the group. The line to the agent stays open, because the script may run for long after this."""
        self._server.close()
        self._group.close()
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)

    # -- orders

    def _hold(self) -> None:
        """Give up the group; called by the thread that listens to the agent."""
        self._group.abort()
        self._fetcher.cancel()

    def _want(self, generation: int, number: int, phase: str, ahead: bool) -> None:
        """Ask for a phase; any thread may call this."""
        worker, token = self._environment.worker, self._environment.token
        mac = phase_mac(token, worker, generation, number, phase)
        self._agent.say(WANTS, generation=generation, number=number, phase=phase, ahead=ahead, mac=mac)

    def _follow(self, order: Message, holds: int) -> None:
        match order.get("do"):
            case "hold":
                self._leave_group(int(order["generation"]), holds)
            case "load" if self._agent.holds == holds:
                self._load(order, holds)
            case "stop":
                self._stop(order)
            case "finish":  # the other ranks have ended already
                if self._persistence.due_at_end(self.membership.rank):
                    self._save()
                self._end()
            case "terminate":
                self.membership.cut_short = True
                if self.membership.joined:
                    self._save()
                self._end()
            case _:
                pass

    def _leave_group(self, generation: int, holds: int) -> None:
        membership, state = self.membership, self._state
        if state.layout == UNIQUE and membership.joined and self._copies.find(membership.rank, state.done) is None:
            self._copies.keep(membership.rank, state.snapshot())
        self._copies.give_up()
        keeps = self._copies.document(membership.rank if membership.joined else None)
        self._agent.answered = holds
        self._agent.say("held", generation=generation, done=state.done, keeps=keeps)
        self._group.destroy()
        self.scheduled_for = None

    def _join(self, message: Message, holds: int) -> bool:
        """Take a rank in a new group; return whether that succeeded."""
        began = time.monotonic()
        host, port = message["store"]
        order = JoinOrder(
            generation=int(message["generation"]),
            rank=int(message["rank"]),
            world=int(message["world"]),
            store=(str(host), int(port)),
            placement=tuple(message.get("placement") or ()),
            lanes=(message.get("lanes") or {}).get("socket"),
            phases=PhasePairs.of(message[PHASES]) if message.get(PHASES) else None,
        )
        self._state.shape(order.rank, order.world)
        self._server.shut()
        self._group.destroy()
        try:
            if message.get("done") not in {None, self._state.done}:
                raise RuntimeError(f"this worker has done {self._state.done} steps, not {message['done']}")  # noqa: TRY301
            self._group.make(order, wanted=lambda: self._agent.holds == holds)
            self._resume(order.rank, order.world)
            if self._state.is_built:
                self._keep_copies(order.rank, order.world)
            self._group.times.take()  # those were no training step's
        except (RuntimeError, UnreachableError, RefusedError) as error:  # lanes raise the latter two
            self._report_broken(order.generation, error)
            self._server.open()
            return False
        membership = self.membership
        membership.rank, membership.world, membership.generation = order.rank, order.world, order.generation
        membership.joined = True
        told = {"seconds": time.monotonic() - began, "done": self._state.done, "clock": clock_id()}
        self._agent.say("joined", generation=order.generation, rank=order.rank, **told)
        return True

    def synchronise(self) -> None:
        """Bring all ranks to one state; called in a new group when the script has made its parts.

        Raises:
            RuntimeError: the group broke.
        """
        if self._state.done == 0 and self._state.layout == REPLICATED and self.membership.world > 1:
            level(self._state, self.membership.rank, self._device)
        self._keep_copies(self.membership.rank, self.membership.world)

    def _resume(self, rank: int, world: int) -> None:
        """At the start of a job, load what a stop has left, all ranks the same step."""
        if self._state.done == 0:
            if self._state.layout == UNIQUE:
                self._persistence.agree(rank, world, self._device)
            else:
                self._persistence.level(rank, world, self._device)
        self._persistence.went_back()

    def _keep_copies(self, rank: int, world: int) -> None:
        """Keep a second copy of each unique state, from the first step of the group on."""
        if self._state.layout == UNIQUE:
            self._copies.forget_after(self._state.done)
            self._copy_to_next(rank, world)

    def _copy_to_next(self, rank: int, world: int) -> None:
        """Keep a copy of a unique state here and on the next rank. Raises ``RuntimeError`` if the group broke."""
        if self._state.layout == UNIQUE:
            # The next rank may wait for another phase before it comes to this exchange.
            self._group.release_light()
            self._copies.keep(rank, self._state.snapshot(into=self._copies.spent(rank)))
            self._copies.hand_on(rank, world, self._device)

    def _stop(self, order: Message) -> None:
        """Write the requested checkpoints, and end. A worker that never had a rank writes none."""
        done = int(order["done"])
        trees: dict[int, Any] = {}
        if self.membership.joined:
            if done == self._state.done:
                trees[self.membership.rank] = self._state.tree()
            elif self._state.layout == UNIQUE and (kept := self._copies.find(self.membership.rank, done)) is not None:
                trees[self.membership.rank] = kept.tree()
        for rank in map(int, order.get("also") or ()):
            if (kept := self._copies.find(rank, done)) is not None:
                trees[rank] = kept.tree()
        for rank, tree in trees.items():
            if (path := self._persistence.save(rank, tree=tree, done=done)) is not None:
                self._agent.say("saved", done=done, path=str(path), rank=rank)
        self.membership.cut_short = True
        self._end()

    # -- states

    def _find(self, wanted: WantedState) -> Layout:
        """The state that another worker requests while this one is parked. Raises ``NotHereError``."""
        if self._state.layout == REPLICATED:
            if wanted.done != self._state.done:
                raise NotHereError(f"this worker has done {self._state.done} steps, not {wanted.done}")
            return self._state.laid_out()
        kept = self._kept(wanted)
        return Layout(kept.meta, (kept.data,), len(kept.data))

    def _load(self, order: Message, holds: int) -> None:
        """Load the state that the coordinator has chosen, and report that.

        Raises:
            UsageError: the state does not fit this script, or the script cannot take the rank.
        """
        began = time.monotonic()
        wanted = WantedState(int(order["done"]), None if order.get("of") is None else int(order["of"]))
        if order.get("world") is not None and wanted.of is not None:
            self._state.shape(wanted.of, int(order["world"]))
        try:
            tree, size = self._fetched(order, wanted, lambda: self._agent.holds == holds)
        except (StateTransferError, NotHereError, BrokenStateError) as error:
            if self._agent.holds == holds:
                self._agent.say("unloaded", done=wanted.done, error=in_short(error))
            return
        if tree is not None:
            self._state.load(tree, wanted.done)
        self._agent.say("loaded", done=wanted.done, bytes=size, seconds=time.monotonic() - began)

    def _fetched(
        self, order: Message, wanted: WantedState, still: Callable[[], bool]
    ) -> tuple[dict[str, Any] | None, int]:
        """A state from a file, another worker or our own copies, and its size in bytes; ``None``: the current state."""
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
            fetched = self._fetcher.fetch((str(host), int(port)), wanted, still=still)
            if self._state.layout == UNIQUE and wanted.of is not None:
                self._copies.keep(wanted.of, fetched)  # after a second failure this may be the only copy
                return fetched.tree(), len(fetched.data)
            return fetched.tree(copied=False), len(fetched.data)
        if self._state.layout == REPLICATED and wanted.done == self._state.done:
            return None, 0
        kept = self._kept(wanted)
        return kept.tree(), len(kept.data)

    def _kept(self, wanted: WantedState) -> StateSnapshot:
        rank = self.membership.rank if wanted.of is None else wanted.of
        kept = self._copies.find(rank, wanted.done)
        if kept is None:
            raise NotHereError(f"no state of rank {rank} after {wanted.done} steps is stored here")
        return kept

    # -- reports

    def _report_step(self, more: dict[str, Any]) -> None:
        collectives = {COLLECTIVES: times} if (times := self._group.times.take()) else {}
        schedule = {} if self.scheduled_for is None else {SCHEDULED_FOR: self.scheduled_for}
        told = {**more, **collectives, **schedule}
        generation, done = self.membership.generation, self._state.done
        self._agent.say("stepped", generation=generation, done=done, at=time.time(), **told)

    def _report_broken(self, generation: int, error: Exception) -> None:
        """Report that the group failed, unless the coordinator has already ordered a hold."""
        if not self._agent.held:
            self._agent.say("broken", generation=generation, done=self._state.done, error=in_short(error))

    def _save(self) -> None:
        if (path := self._persistence.save(self.membership.rank)) is not None:
            self._agent.say("saved", done=self._state.done, path=str(path))

    def _end(self) -> None:
        self.membership.stopped = True
        self._agent.say("ended", done=self._state.done, cut_short=self.membership.cut_short)

    def _exiting(self) -> None:
        """At exit, report that the script's last line has run, or the error that ended it; then close the line."""
        # A forked process has inherited this callback.
        if os.getpid() != self._pid:
            return
        if (error := getattr(sys, "last_value", None)) is not None:
            self.failed(error)
        self._agent.say("exiting")
        self._agent.close()

    def _forked(self) -> None:
        """Give up all connections; called in a forked process, which has no rank."""
        give_up([*self._agent.descriptors(), *self._group.descriptors()])
        if signal.getsignal(signal.SIGTERM) == self._terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _terminate(self, _signal: int, _frame: FrameType | None) -> None:
        """On SIGTERM, write a checkpoint and end after the current step, or at once if no step is in progress."""
        self._agent.orders.put(({"do": TERMINATE}, self._agent.holds))


def of_group(error: BaseException, *, is_broken: bool) -> bool:
    """Whether an error comes from a collective whose peer failed first.

    gloo raises a plain ``RuntimeError``, as other code does too: the error counts as the group's if a peer has left the
    group by then.
    """
    return isinstance(error, dist.DistError) or (type(error) is RuntimeError and is_broken)


def in_short(error: BaseException) -> str:
    """The first line of an error that is not empty, without the path of the machine on which PyTorch was built."""
    first = next((line for line in map(str.strip, str(error).splitlines()) if line), type(error).__name__)
    return re.sub(r"^\[[^\]]*/([^\]/]+)\]", r"[\1]", first)[:300]


def tail(error: BaseException) -> list[str]:
    """The last lines of an error's traceback, without the tracebacks of its causes."""
    shown = traceback.TracebackException.from_exception(error)
    lines = "".join([*shown.stack.format(), *shown.format_exception_only()]).splitlines()
    return [line[:LONGEST_LINE] for line in lines[-TRACEBACK_LINES:]]


def in_children(call: Callable[[], None]) -> None:
    """Call a bound method in each forked process, as long as its object lives."""
    method = weakref.WeakMethod(call)

    def forked() -> None:
        if (found := method()) is not None:
            found()

    os.register_at_fork(after_in_child=forked)


def give_up(descriptors: Iterable[int]) -> None:
    """Close connections in a forked process. Their descriptors stay in use: a later close affects nothing else."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in descriptors:
        with suppress(OSError):
            os.dup2(nothing, each, inheritable=False)
    os.close(nothing)
