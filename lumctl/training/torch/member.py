"""A worker of a job that lumctl runs: it waits for a rank, has one, parks when the group fails, and goes on."""

import atexit
import os
import signal
import sys
import time
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from lumctl.errors import LumctlError
from lumctl.training.torch.environment import Environment
from lumctl.training.torch.failures import in_short, of_group, tail
from lumctl.training.torch.forks import give_up, in_children
from lumctl.training.torch.parked import END, Parked
from lumctl.training.torch.saving import Saving
from lumctl.training.torch.work import REPLICATED, Work


class Member:
    """Takes part in a job under its coordinator's orders."""

    def __init__(self, environment: Environment, work: Work, saving: Saving, device: torch.device) -> None:
        self._work, self._saving, self._device = work, saving, device
        self._parked = Parked(environment, work, saving, device)
        self._control = self._parked.control
        self.seat = self._parked.seat
        self._handler: Any = None
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._handler = signal.signal(signal.SIGTERM, self._terminate)
        self._pid, self._failed = os.getpid(), False
        self._control.start()
        in_children(self._forked)
        atexit.register(self._exiting)

    @property
    def given_up(self) -> bool:
        """Whether what collectives gave in this step is worth nothing."""
        return self._parked.group.given_up

    def begin(self) -> None:
        """The script is at its steps: wait for a rank."""
        if self._work.layout == REPLICATED:
            self._saving.go_on()
        self._control.say(
            "ready",
            store=list(self._parked.group.store),
            state=list(self._parked.server.address),
            layout=self._work.layout,
            done=self._work.done,
        )
        self._parked.park()

    def between(self) -> None:
        """Park here if that is asked for: no step is under way."""
        if self._control.held or not self._control.orders.empty():
            self._parked.park()

    def after(self, loss: float | None) -> None:
        """A step is done: tell it, have it kept where no other rank has the same, and written when it is time."""
        seat = self.seat
        self._say_stepped({} if loss is None else {"loss": loss})
        try:
            self._parked.hand_on(seat.rank, seat.world)
        except RuntimeError as error:
            if not self.recovers(error):
                raise
            return
        if self._saving.due(seat.rank):
            self._save()

    def recovers(self, error: Exception) -> bool:
        """An error came out of a step: whether it was the group's; then the job goes on after this returns.

        It was if another failed first: the coordinator has said so, or a peer has left the group.
        """
        if not (self._control.held or of_group(error, is_broken=self._parked.group.is_broken)):
            return False
        if self._work.counted:
            self._say_stepped({})
        self._parked.broken(self.seat.generation, error)
        self._parked.park()
        return True

    def finish(self) -> None:
        """All steps are done here: wait until they are everywhere. A failure may take the job back to a step before."""
        try:
            if self.seat.world > 1:
                met = torch.zeros(1, device=self._device)
                dist.all_reduce(met)
                met.item()
        except RuntimeError as error:
            if not self.recovers(error):
                raise
            return
        if self._saving.due_at_end(self.seat.rank):
            self._save()
        self._saving.over()
        self._parked.end(save=False)

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
        self._parked.server.close()
        self._parked.group.close()
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
        """In a forked process: it is no rank."""
        give_up([*self._control.descriptors(), *self._parked.group.descriptors()])
        if signal.getsignal(signal.SIGTERM) == self._terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _say_stepped(self, loss: dict[str, float]) -> None:
        self._control.say("stepped", generation=self.seat.generation, done=self._work.done, at=time.time(), **loss)

    def _save(self) -> None:
        if (path := self._saving.save(self.seat.rank)) is not None:
            self._control.say("saved", done=self._work.done, path=str(path))

    def _terminate(self, _signal: int, _frame: FrameType | None) -> None:
        """SIGTERM: at the end of this step, or at once where none is under way, write a checkpoint and end."""
        self._control.orders.put(({"do": END}, self._control.holds))
