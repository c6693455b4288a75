"""The worker's environment, and its line to the agent. A thread receives orders even while the main thread is busy."""

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lumctl.errors import UsageError
from lumctl.training import death_lock
from lumctl.training.protocol import (
    ADDRESS,
    BEAT_S,
    DARK,
    DEATH_WATCH,
    FOLDER,
    JOB,
    LATE,
    LIT,
    SOCKET,
    TOKEN,
    WANTS,
    WORKER,
    BrokenLineError,
    Message,
    MessageLine,
)


@dataclass(frozen=True, slots=True)
class Environment:
    """The worker's environment variables. Its servers listen at ``address``; the job's workers share ``token``."""

    job: str
    worker: str
    socket: Path
    address: str
    folder: Path
    beat_s: float
    token: str = field(repr=False)
    death_watch: Path | None = None

    @classmethod
    def read(cls, variables: Mapping[str, str] = os.environ) -> "Environment | None":
        """Read the variables; ``None`` in a process that no agent started.

        Raises:
            UsageError: a variable is missing or invalid.
        """
        if not variables.get(SOCKET):
            return None
        try:
            return cls(
                job=variables[JOB],
                worker=variables[WORKER],
                socket=Path(variables[SOCKET]),
                address=variables.get(ADDRESS, "127.0.0.1"),
                folder=Path(variables[FOLDER]),
                beat_s=float(variables.get(BEAT_S, "0.5")),
                token=variables[TOKEN],
                death_watch=Path(variables[DEATH_WATCH]) if variables.get(DEATH_WATCH) else None,
            )
        except (KeyError, ValueError) as error:
            raise UsageError(
                f"{SOCKET} is set, but another variable of a worker is missing or invalid: {error}",
                hint=f"workers are started by `lumctl job run`; without one, unset {SOCKET}",
            ) from None


@dataclass
class Membership:
    """The worker's rank in the group of a generation; ``joined`` is true once it has had a rank."""

    rank: int = 0
    world: int = 1
    generation: int = 0
    joined: bool = False
    stopped: bool = False
    """Whether no further step follows."""
    cut_short: bool = False
    """Whether it was ordered to end before all steps were done."""


_MAKES_OBSOLETE = {
    "joined": ("broken", "held", "loaded", "unloaded", WANTS),
    "held": ("loaded", "unloaded", WANTS),
    "loaded": ("unloaded",),
    "unloaded": ("loaded",),
}
"""The messages that each message makes obsolete."""


class SendQueue:
    """Sends messages from any thread, and never waits for an agent that does not read.

    When such an agent reads again, it gets the newest message of each kind: older ones are superseded. The sending
    thread calls ``behind`` when messages are left for :meth:`catch_up`.
    """

    def __init__(self, done: Callable[[], int], behind: Callable[[], None]) -> None:
        self._done, self._behind = done, behind
        self._newest: dict[str, Message] = {}
        self._late: dict[str, Message] = {}
        self._line: MessageLine | None = None
        self._lock = threading.RLock()

    @property
    def late(self) -> bool:
        """Whether messages are unsent."""
        return bool(self._late)

    def say(self, word: str, **what: Any) -> None:
        """Send a message; if the agent has ended, the next agent gets the message."""
        message = {"say": word, **what}
        with self._lock:
            for obsolete in (word, *_MAKES_OBSOLETE.get(word, ())):
                self._newest.pop(obsolete, None)
            self._newest[word] = message
            if self._line is None:
                return
            self._late.pop(word, None)
            # A message must not overtake unsent ones.
            if self._late or not _takes(self._line):
                self._late[word] = message
                self._behind()
            else:
                self._send(message)

    def beat(self) -> None:
        """Send a heartbeat, unless earlier messages are still unsent."""
        with self._lock:
            if self._line is not None and not self._late and _takes(self._line):
                self._send({"say": "beat", "done": self._done()})

    def catch_up(self) -> None:
        """Send unsent messages, as far as the agent reads them."""
        with self._lock:
            while self._late and self._line is not None and _takes(self._line):
                self._send(self._late.pop(next(iter(self._late))))

    def to(self, line: MessageLine) -> None:
        """Send to this agent from now on; first send all messages that are still valid.

        Raises:
            OSError: the agent does not read.
        """
        with self._lock:
            # A coordinator reads the number of steps done from this message, which may be hours old.
            if "ready" in self._newest:
                self._newest["ready"]["done"] = self._done()
            for message in self._newest.values():
                line.send(message)
            self._line = line
            self._late.clear()

    def over(self) -> None:
        """Note that the agent has ended."""
        with self._lock:
            self._line = None
            self._late.clear()

    def finish(self) -> None:
        """Send unsent messages, if the agent reads them in time, and nothing after that."""
        with self._lock:
            while self._late and self._line is not None:
                self._send(self._late.pop(next(iter(self._late))))
            self._line = None

    def _send(self, message: Message) -> None:
        line = self._line
        if line is not None:
            try:
                line.send(message)
            except OSError:
                self._line = None  # the receiving thread notices the broken line too
                line.close()


def _takes(line: MessageLine) -> bool:
    """Whether a message can be sent over a line without waiting."""
    poll = select.poll()
    try:
        poll.register(line.fileno(), select.POLLOUT)
    except (OSError, ValueError):
        return True  # the line is closed: the send fails
    return bool(poll.poll(0))


PATIENCE_S = 1.0
"""How long an agent may take to read the worker's first and last messages."""
AGAIN_S, LATER_AGAIN_S = 0.05, 1.0
_log = logging.getLogger(__name__)


class AgentLink:
    """The line to the agent; a thread of its own receives orders and sends heartbeats.

    Orders are put into ``orders``, each with the number of holds that came before it. If the agent has
    ended, the thread tries its socket until an agent answers, and then sends all valid messages again.
    """

    def __init__(self, environment: Environment, *, done: Callable[[], int], hold: Callable[[], None]) -> None:
        self.orders: SimpleQueue[tuple[Message, int]] = SimpleQueue()
        self.holds = 0
        """The number of holds received."""
        self.answered = 0
        """The number of holds that the main thread has answered."""
        self.late: tuple[int, int | None] = (0, None)
        """A generation, and the late rank for which its group uses a schedule; ``None``: it uses none."""
        self.phase_answered: Callable[[Message], None] = lambda _: None
        """Takes in the answers to requests for phases; called by the thread of this link."""
        self.outbox = SendQueue(done, self._wake)
        self.say = self.outbox.say
        self._environment = environment
        self._hold = hold
        self._over = threading.Event()
        """Set when the link ends. A byte wakes the thread: end of file would wait for forked processes too."""
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)  # noqa: FBT003 - as it is called
        self._line: MessageLine | None = None
        self._thread = threading.Thread(target=self._run, name="lumctl-agent", daemon=True)

    @property
    def held(self) -> bool:
        """Whether a hold has not been answered yet."""
        return self.holds != self.answered

    def start(self) -> None:
        """Introduce the worker and start to listen. Call this in the thread whose end is the worker's death."""
        path = self._environment.death_watch
        held = path is not None and death_lock.hold(path)
        self.say("hello", worker=self._environment.worker, pid=os.getpid(), death_watch=held)
        self._thread.start()

    def close(self) -> None:
        """Send unsent messages, and close. A second call does nothing."""
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
        """The link's open descriptors, which a forked process must close."""
        line = self._line
        found = [self._waker.fileno(), self._woken.fileno(), -1 if line is None else line.fileno()]
        return [each for each in found if each >= 0]

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # the buffer is full: the thread wakes up anyway
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
            if _readable(self._woken, within_s=pause) and self._ordered_to_end():
                return
            pause = min(2 * pause, LATER_AGAIN_S)

    def _ordered_to_end(self) -> bool:
        self._woken.recv(4096)
        return self._over.is_set()

    def _connected(self) -> MessageLine | None:
        """A connection to an agent that received all valid messages; ``None`` if there is no agent."""
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
        """Receive orders until the line breaks, or the link ends."""
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
                    return  # a sending thread has found the line broken
                ready = dict(poll.poll(1000 * max(0.0, beat_at - now)))
                if self._woken.fileno() in ready and self._ordered_to_end():
                    return
                self.outbox.catch_up()
                if not ready.get(heard, 0) & ~select.POLLOUT:
                    continue
            try:
                message = line.receive()
            except (OSError, BrokenLineError) as error:
                _log.warning("the connection to the agent broke: %s", error)
                return
            if message is None:
                return
            self._take_in(message)

    def _take_in(self, order: Message) -> None:
        if order.get("do") == LATE:
            # No order for the main thread, which would leave the group to follow it.
            rank = order.get("rank")
            self.late = int(order["generation"]), None if rank is None else int(rank)
            return
        if order.get("do") in {LIT, DARK}:
            self.phase_answered(order)
            return
        if order.get("do") == "hold":
            self.holds += 1
            self._hold()
        self.orders.put((order, self.holds))


def _readable(one: socket.socket, *, within_s: float) -> bool:
    poll = select.poll()
    poll.register(one, select.POLLIN)
    return bool(poll.poll(1000 * within_s))
