"""The loop on a simulated host: reads the program, sends the greeting, and answers requests until its input ends.

It acts like the program in a real shell, and never blocks: if the tool of a lane hangs or is slow, the lane waits while
the other lanes continue.
"""

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lumctl.sim.hosts.host import HostOutput, SimHost
from lumctl.sim.hosts.shell import Program, read_program, split_program

# At the end of its input the program ends its whole process group with `kill -9 0`.
_KILLED = 137
_USAGE = 2
_LOST = 255
_TIMER_SLACK_S = 0.001
_MOST_WAITING = 1024
_MOST_LINE = 64 * 1024


class Pipe(Protocol):
    """The input and the output of the loop."""

    def read(self) -> bytes | None:
        """The received bytes, without waiting: ``None`` if there are none yet, ``b""`` at the end of the input."""

    def write(self, data: bytes) -> None:
        """Send all bytes; raises ``OSError`` or ``EOFError`` if the reader has disconnected."""

    def close(self, exit_status: int) -> None:
        """Close the pipe after the loop has ended."""


@dataclass(slots=True)
class _Asked:
    """A request for one probe: when it arrived and, once its tool was started, the answer and when that is ``due``."""

    request: str
    number: str
    at: float
    output: HostOutput | None = None
    due: float = math.inf


class HostLoop:
    """One run of the program.

    ``start`` runs a function soon in another thread; ``after`` runs one after some seconds. Turns of the loop never
    overlap. ``clock`` returns monotonic seconds.
    """

    def __init__(
        self,
        host: SimHost,
        pipe: Pipe,
        start: Callable[[Callable[[], None]], object],
        *,
        after: Callable[[float, Callable[[], None]], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ended = False
        self._host = host
        self._pipe = pipe
        self._start = start
        self._after = after or _after
        self._clock = clock
        self._lock = threading.Lock()
        self._running = self._woken = self._try_again = self._cut = False
        self._received = b""
        self._program: Program | None = None
        self._waiting: dict[str, deque[_Asked]] = {}
        self._sent: dict[str, bytes] = {}

    def wake(self) -> None:
        """Check for work: new input, or an answer that is due."""
        with self._lock:
            self._woken = True
            if self._running or self.ended:
                return
            self._running = True
        with contextlib.suppress(RuntimeError):  # the simulator is ending
            self._start(self._run)

    def go_on(self) -> None:
        """Let hanging tools continue."""
        self._try_again = True
        self.wake()

    def cut(self) -> None:
        """End the loop because its host is lost."""
        self._cut = True
        self.wake()

    def _run(self) -> None:
        while self._has_work():
            try:
                status = self._turn()
            except (OSError, EOFError, ValueError):
                status = _USAGE
            if status is not None:
                with self._lock:
                    self.ended = True
                self._pipe.close(status)
                return

    def _has_work(self) -> bool:
        with self._lock:
            # A wake-up during a turn has set the flag, so what arrived then gets another turn.
            self._running, self._woken = self._woken, False
            return self._running

    def _turn(self) -> int | None:
        """Take the input, and send all answers that are due at once; return the exit status if the loop has ended."""
        if self._cut:
            return _LOST
        said: list[bytes] = []
        while (data := self._pipe.read()) is not None:
            self._take(data, said)
            if not data:
                break
        if self._try_again:
            self._try_again = False
            self._forget_hung()
        for waiting in self._waiting.values():
            self._answer(waiting, said)
        if said:
            self._pipe.write(b"".join(said))
        return _KILLED if data == b"" else None

    def _take(self, data: bytes, said: list[bytes]) -> None:
        self._received += data
        if self._program is None:
            found = split_program(self._received)
            if found is None:
                return
            self._program = read_program(found[0].decode(errors="replace"))
            self._received = found[1]
            said.append(self._host.hello())
        *lines, self._received = self._received.split(b"\n")
        if len(self._received) > _MOST_LINE:
            raise ValueError("a request without an end")
        for line in lines:
            request, *numbers = line.decode(errors="replace").split() or [""]
            # After > a request asks for the answer straight from the tool; here every answer comes from the loop.
            for number in (number.partition(">")[0] for number in numbers):
                waiting = self._waiting.setdefault(self._program.lanes.get(number, ""), deque())
                if len(waiting) >= _MOST_WAITING:
                    raise ValueError("too many requests")
                waiting.append(_Asked(request, number, self._clock()))

    def _forget_hung(self) -> None:
        for waiting in self._waiting.values():
            # Only the first request of a lane can hang; the others wait behind it.
            if waiting and waiting[0].due == math.inf:
                waiting[0].output = None

    def _answer(self, waiting: deque[_Asked], said: list[bytes]) -> None:
        """Answer the requests of a lane that can be answered now, in the order in which they arrived."""
        while waiting:
            asked = waiting[0]
            now = self._clock()
            if asked.output is None:
                asked.output = self._output(asked.number)
                asked.due = asked.at + asked.output.delay_s
                if now < asked.due < math.inf:
                    self._after(asked.due - now, self.wake)
            if asked.due > now:
                return
            waiting.popleft()
            said.append(self._worded(asked.request, asked.number, asked.output))

    def _output(self, number: str) -> HostOutput:
        row = self._program.rows.get(number) if self._program else None
        return self._host.output(row)

    def _worded(self, request: str, number: str, output: HostOutput) -> bytes:
        """The answer: the whole output, only its new part, or that it has not changed."""
        before = self._sent.get(number)
        content = output.content
        self._sent[number] = content
        if content == before:
            return f"~ {number} {request} {output.status}\n".encode()
        mark = "="
        # Whole new lines only: a last line that has grown makes the whole output new.
        if output.grows and before and content.startswith(before + b"\n"):
            mark, content = "+", content[len(before) + 1 :]
        return f"{mark} {number} {request} {output.status} {len(content)}\n".encode() + content + b"\n"


def _after(seconds: float, run: Callable[[], None]) -> None:
    # A timer that fires even slightly too early would find no answer due, and no other timer would follow.
    timer = threading.Timer(seconds + _TIMER_SLACK_S, run)
    timer.daemon = True
    timer.name = "slow answer"
    timer.start()
