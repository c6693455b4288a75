"""The line to the agent: orders are received at once, whatever the main thread does."""

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from lumctl.training import death_watch
from lumctl.training.torch.environment import Environment
from lumctl.training.torch.send_queue import SendQueue
from lumctl.training.wire import BrokenLineError, Message, MessageLine

PATIENCE_S = 1.0
"""How long an agent may take to read who we are, and our last words."""
AGAIN_S, LATER_AGAIN_S = 0.05, 1.0
_log = logging.getLogger(__name__)


class AgentLink:
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
        self.outbox = SendQueue(done, self._wake)
        self.say = self.outbox.say
        self._environment = environment
        self._hold = hold
        self._over = threading.Event()
        """No more is to be said or heard. Told with a byte: an end of file would wait for forked processes too."""
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)  # noqa: FBT003 - as it is called
        self._line: MessageLine | None = None
        self._thread = threading.Thread(target=self._run, name="lumctl-agent", daemon=True)

    @property
    def held(self) -> bool:
        """Whether a hold has not been answered yet."""
        return self.holds != self.answered

    def start(self) -> None:
        """Introduce the worker and start to listen. Called by the thread whose end is the worker's."""
        path = self._environment.lifeline
        held = path is not None and death_watch.hold(path)
        self.say("hello", worker=self._environment.worker, pid=os.getpid(), lifeline=held)
        self._thread.start()

    def close(self) -> None:
        """Send what is late, and close. A second call does nothing."""
        if self._over.is_set():
            return
        self.outbox.finish()
        self._over.set()
        self._wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._waker.close()
        self._woken.close()

    def descriptors(self) -> list[int]:
        """Its open descriptors, for a forked process to give up."""
        line = self._line
        found = [self._waker.fileno(), self._woken.fileno(), -1 if line is None else line.fileno()]
        return [each for each in found if each >= 0]

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # its buffer is full: it will wake up
            self._waker.send(b".")

    def _run(self) -> None:
        pause = AGAIN_S
        while True:
            if (line := self._connected()) is not None:
                pause = AGAIN_S
                self._listen(line)
                self.outbox.over()
                line.close()
                if self._over.is_set():
                    return
            if _readable(self._woken, within_s=pause) and self._told_to_end():
                return
            pause = min(2 * pause, LATER_AGAIN_S)

    def _told_to_end(self) -> bool:
        self._woken.recv(4096)
        return self._over.is_set()

    def _connected(self) -> MessageLine | None:
        """A line to an agent that has been told all that still holds; ``None`` if there is no agent."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE_S)
        try:
            connection.connect(str(self._environment.socket))
            connection.settimeout(None)
            line = self._line = MessageLine(connection, patience_s=PATIENCE_S)
            self.outbox.to(line)
        except OSError:
            connection.close()
            return None
        return line

    def _listen(self, line: MessageLine) -> None:
        """Take in orders until the line breaks, or until we end it."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        heard = line.fileno()
        beat_at = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= beat_at:
                self.outbox.beat()
                beat_at = now + self._environment.beat_s
            if not line.pending:
                try:
                    poll.register(line.fileno(), select.POLLIN | (select.POLLOUT if self.outbox.late else 0))
                except ValueError:
                    return  # whoever spoke last has found it broken
                ready = dict(poll.poll(1000 * max(0.0, beat_at - now)))
                if self._woken.fileno() in ready and self._told_to_end():
                    return
                self.outbox.catch_up()
                if not ready.get(heard, 0) & ~select.POLLOUT:
                    continue
            try:
                message = line.receive()
            except (OSError, BrokenLineError) as error:
                _log.warning("the line to the agent broke: %s", error)
                return
            if message is None:
                return
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
