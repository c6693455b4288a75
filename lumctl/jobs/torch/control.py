"""The line to the agent: what it tells is taken in at once, whatever the main thread does."""

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from lumctl.jobs import lifeline
from lumctl.jobs.torch.environment import Environment
from lumctl.jobs.torch.speech import Speech
from lumctl.jobs.wire import BrokenLineError, Line, Message

PATIENCE_S = 1.0
"""How long an agent may take to read who we are, and our last words."""
AGAIN_S, LATER_AGAIN_S = 0.05, 1.0
_log = logging.getLogger(__name__)


class Control:
    """Speaks with the agent; a thread of its own listens and beats.

    Orders are put into ``orders``, each with the number of holds that came before it. An agent that is gone is looked
    for at its socket until it, or another, is back; then all that still holds is said again.
    """

    def __init__(self, environment: Environment, *, done: Callable[[], int], hold: Callable[[], None]) -> None:
        self.orders: SimpleQueue[tuple[Message, int]] = SimpleQueue()
        self.holds = 0
        """How many holds have come."""
        self.answered = 0
        """How many of them the main thread has answered."""
        self.speech = Speech(done, self._wake)
        self.say = self.speech.say
        self._environment = environment
        self._hold = hold
        self._end, self._ending = socket.socketpair()
        self._end.setblocking(False)  # noqa: FBT003 - as it is called
        self._thread = threading.Thread(target=self._run, name="lumctl-agent", daemon=True)

    @property
    def held(self) -> bool:
        """Whether a hold waits to be answered."""
        return self.holds != self.answered

    def start(self) -> None:
        """Say who we are, and listen from now on. Called by the thread whose end is the worker's."""
        path = self._environment.lifeline
        held = path is not None and lifeline.hold(path)
        self.say("hello", worker=self._environment.worker, pid=os.getpid(), lifeline=held)
        self._thread.start()

    def close(self) -> None:
        """Say what is late, and hang up."""
        self.speech.finish()
        self._end.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._ending.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._end.send(b".")

    def _run(self) -> None:
        pause = AGAIN_S
        while True:
            if (line := self._connected()) is not None:
                pause = AGAIN_S
                ended = self._listen(line)
                self.speech.over()
                line.close()
                if ended:
                    return
            if _readable(self._ending, within_s=pause) and self._told_to_end():
                return
            pause = min(2 * pause, LATER_AGAIN_S)

    def _told_to_end(self) -> bool:
        return not self._ending.recv(4096)

    def _connected(self) -> Line | None:
        """A line to an agent that has been told all that still holds; ``None`` if there is no agent."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE_S)
        try:
            connection.connect(str(self._environment.socket))
            connection.settimeout(None)
            line = Line(connection, patience_s=PATIENCE_S)
            self.speech.to(line)
        except OSError:
            connection.close()
            return None
        return line

    def _listen(self, line: Line) -> bool:
        """Take in orders until the line breaks, or until we end it: whether it was us."""
        poll = select.poll()
        poll.register(self._ending, select.POLLIN)
        heard = line.fileno()
        beat_at = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= beat_at:
                self.speech.beat()
                beat_at = now + self._environment.beat_s
            if not line.pending:
                try:
                    poll.register(line.fileno(), select.POLLIN | (select.POLLOUT if self.speech.late else 0))
                except ValueError:
                    return False  # whoever spoke last has found it broken
                ready = dict(poll.poll(1000 * max(0.0, beat_at - now)))
                if self._ending.fileno() in ready and self._told_to_end():
                    return True
                self.speech.catch_up()
                if not ready.get(heard, 0) & ~select.POLLOUT:
                    continue
            try:
                message = line.receive()
            except (OSError, BrokenLineError) as error:
                _log.warning("the line to the agent broke: %s", error)
                return False
            if message is None:
                return False
            self._take_in(message)

    def _take_in(self, order: Message) -> None:
        if order.get("do") == "hold":
            self.holds += 1
            self._hold()
        self.orders.put((order, self.holds))


def _readable(one: socket.socket, *, within_s: float) -> bool:
    poll = select.poll()
    poll.register(one, select.POLLIN)
    return bool(poll.poll(1000 * within_s))
