"""A worker of a job that lumctl runs: it gets a rank, trains, parks when the group fails, and resumes."""

import atexit
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from lumctl.errors import LumctlError
from lumctl.training.torch.environment import Environment
from lumctl.training.torch.failures import in_short, of_group, tail
from lumctl.training.torch.order_loop import END, OrderLoop
from lumctl.training.torch.persistence import Persistence
from lumctl.training.torch.training_state import REPLICATED, TrainingState


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
