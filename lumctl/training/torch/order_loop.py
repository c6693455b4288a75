"""A parked worker follows the coordinator's orders until it is in a group again or ends."""

import time
from typing import Any

import torch

from lumctl.errors import RefusedError, UnreachableError
from lumctl.training.torch.agent_link import AgentLink
from lumctl.training.torch.copies import Copies
from lumctl.training.torch.environment import Environment, Membership
from lumctl.training.torch.failures import in_short
from lumctl.training.torch.group import JoinOrder, ProcessGroup
from lumctl.training.torch.persistence import Persistence
from lumctl.training.torch.state_loader import StateLoader
from lumctl.training.torch.state_transfer import StateServer
from lumctl.training.torch.training_state import UNIQUE, TrainingState
from lumctl.training.wire import Message

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
