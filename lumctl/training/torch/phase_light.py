"""The light of the phase that this worker holds: it starts no transfer without, and leaves none behind under way.

A worker holds one phase at most. Before it asks for another, all its transfers of the present one have ended, so that
the coordinator may take that light away as soon as all its holders have asked for another.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch.distributed as dist

from lumctl.training.phase_model import ChangeMode
from lumctl.training.phase_order import Crossing, PhaseOrder
from lumctl.training.phase_traffic import TrafficCount, TransferPart
from lumctl.training.protocol import DARK, LIT, NO_PHASE, Message, printable_line
from lumctl.training.torch.waits import given_up

if TYPE_CHECKING:
    # The public class has types only in the private module.
    from torch._C._distributed_c10d import Work
else:
    from torch.distributed import Work

_NEVER = -1


class PhaseDarkError(dist.DistError):
    """A phase that this worker needs cannot have light."""


class TransferWait(Protocol):
    """Waits for transfers without recording the wait as one of the script."""

    def in_script(self, work: Work) -> None:
        """Wait in a thread of the script. Raises ``GivenUpError`` when the group is abandoned."""

    def in_helper(self, work: Work) -> None:
        """Wait in a thread that nobody waits for."""


class _Request(NamedTuple):
    """A phase to ask for when transfers have ended, unless more than ``started`` collectives were started by then."""

    phase: str
    started: int
    under_way: tuple[Work, ...]


class WorkerPhase:
    """The phase of this worker in one generation. Any thread may call any method.

    ``ask`` sends a request: its number, counted from 1, the phase, and whether it comes ahead of the need.
    """

    def __init__(
        self,
        generation: int,
        ask: Callable[[int, str, bool], None],
        wait: TransferWait,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._generation, self._ask, self._wait, self._clock = generation, ask, wait, clock
        self._starting = threading.Lock()
        """Held while a collective is started, or light is waited for: meanwhile no other thread leaves the phase."""
        self._held: str | None = None
        self._under_way: deque[Work] = deque()
        """The transfers of the held phase that may not have ended."""
        self._started = 0
        self._ahead_at = _NEVER
        self._ahead = ""
        self._order = PhaseOrder()
        self._traffic = TrafficCount()
        self._step_began: float | None = None
        self._change = threading.Condition()
        """Guards what follows; never held for long, as the thread that listens to the agent takes it."""
        self._number = 0
        self._asked: str | None = None
        self._asked_at = 0.0
        self._is_lit = False
        self._change_s = 0.0
        """How long the last change of the light took."""
        self._dark: str | None = None
        self._given_up = False
        self._is_dark = False
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._asker: threading.Thread | None = None

    @property
    def holds(self) -> str | None:
        """The phase in whose light transfers may start."""
        return self._held

    @property
    def number(self) -> int:
        """The number of requests."""
        return self._number

    @property
    def is_dark(self) -> bool:
        """Whether a collective failed because its phase cannot have light."""
        return self._is_dark

    def start(self, phase: str, part: TransferPart, begin: Callable[..., Work], *given: Any, **named: Any) -> Work:
        """Start a transfer in the light of a phase, and return its work. ``part``: what it does with which peer.

        Raises:
            GivenUpError: the group is abandoned.
            PhaseDarkError: the phase cannot have light.
            RuntimeError: a transfer of the phase that is left has failed.
        """
        with self._starting:
            if phase != self._held:
                self._enter(phase)
            work = begin(*given, **named)
            under_way = self._under_way
            while under_way and under_way[0].is_completed():
                under_way.popleft()
            under_way.append(work)
            self._started += 1
            self._traffic.count(part)
            if self._started == self._ahead_at:
                self._ask_ahead(self._ahead)
            return work

    def under(self, phase: str, make: Callable[[], None]) -> None:
        """Do something that has ended when the call returns, in the light of a phase. Raises as :meth:`start` does."""
        with self._starting:
            if phase != self._held:
                self._enter(phase)
            make()

    def need(self, phase: str) -> None:
        """Wait until this worker holds a phase. Raises as :meth:`start` does."""
        self.under(phase, lambda: None)

    def want(self, phase: str) -> None:
        """Ask for a phase as soon as all transfers under way have ended, if no other is started before."""
        with self._starting:
            self._ask_ahead(phase)

    def release(self) -> None:
        """Let others change the light: this worker needs none until its next transfer. Raises as :meth:`start` does."""
        with self._starting:
            if self._held is not None:
                self._request(NO_PHASE)

    def answered(self, message: Message) -> None:
        """Take in an answer of the coordinator. One to another request than the newest is ignored."""
        with self._change:
            if message.get("generation") != self._generation or message.get("number") != self._number:
                return
            if self._is_lit or self._dark is not None:
                return
            if message.get("do") == LIT:
                self._is_lit, self._change_s = True, float(message.get("change_s") or 0.0)
            elif message.get("do") == DARK:
                self._dark = printable_line(str(message.get("why") or "no reason given"))
            self._change.notify_all()

    def give_up(self) -> None:
        """Wake threads that wait for light, with an error, and start no transfer any more."""
        with self._change:
            self._given_up = True
            self._held = None
            self._change.notify_all()
        self._requests.put(None)

    def end_step(self) -> dict[str, Any]:
        """End a training step; return its record, as the field ``phases`` of ``stepped``."""
        with self._starting:
            found, now = self._order.end_step(self._started), self._clock()
            if self._step_began is not None:
                found["step_s"] = round(now - self._step_began, 7)
            self._step_began = now
            if self._held is not None:
                self._plan()
                self._traffic.close(self._held, self._number, all_ended=all(w.is_completed() for w in self._under_way))
            return {**found, "traffic": self._traffic.take()}

    # -- with `_starting` held

    def _enter(self, phase: str) -> None:
        needed_at = self._clock()
        ahead = self._asked == phase
        gained_s = needed_at - self._asked_at if ahead else 0.0
        # Where it was to ask ahead, but needs the phase before it could ask, there was no time between the two.
        missed = (self._started, phase) == (self._ahead_at, self._ahead)
        self._request(phase)
        with self._change:
            self._change.wait_for(lambda: self._given_up or self._is_lit or self._dark is not None)
            if self._given_up:
                raise given_up()
            if not self._is_lit:
                self._is_dark = True
                raise PhaseDarkError(f"phase {phase} has no light: {self._dark}")
            self._held = phase
            hidden_s = min(gained_s, self._change_s)
        mode = ChangeMode.AHEAD if ahead else ChangeMode.ON_DEMAND
        window_s = gained_s if ahead or missed else None
        crossing = Crossing(mode, self._clock() - needed_at, hidden_s, window_s, self._change_s)
        self._order.enter(phase, self._started, crossing)
        self._plan()

    def _plan(self) -> None:
        self._ahead_at, self._ahead = self._order.next_request or (_NEVER, "")

    def _request(self, phase: str, *, ahead: bool = False) -> None:
        """Leave the held phase, and ask for another."""
        while self._under_way:
            self._wait.in_script(self._under_way[0])
            self._under_way.popleft()
        if self._held is not None:
            self._traffic.close(self._held, self._number)
        with self._change:
            if self._given_up:
                raise given_up()
            self._held, self._asked, self._is_lit, self._dark = None, phase, False, None
            self._number += 1
            number, self._asked_at = self._number, self._clock()
        self._ask(number, phase, ahead)

    def _ask_ahead(self, phase: str) -> None:
        if self._asker is None:
            self._asker = threading.Thread(target=self._ask_when_ended, name="lumctl-phases", daemon=True)
            self._asker.start()
        self._requests.put(_Request(phase, self._started, tuple(self._under_way)))

    # -- the thread that asks ahead

    def _ask_when_ended(self) -> None:
        while (request := self._requests.get()) is not None:
            with suppress(RuntimeError):  # the script gets the error of its transfer
                self._follow(request)
            del request  # it holds tensors

    def _follow(self, request: _Request) -> None:
        for work in request.under_way:
            self._wait.in_helper(work)
        with self._starting:
            if self._started == request.started and self._asked != request.phase:
                self._request(request.phase, ahead=True)
