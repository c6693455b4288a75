"""SCPI over TCP: each line gets one line as answer, on a persistent session; one deadline covers a whole driver call.

Commands that write have no answer. So ``*OPC?`` follows them: the switch answers it when it is done. Its error queue
and its state then show what the commands did.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Stream
from lumctl.tcp import reason
from lumctl_polatis.words import complaint, quoted, without_done

DEFAULT_PORT = 5025
ANSWER_LIMIT = 65536
"""Bytes of the longest line that is accepted: ten times the answer of all ports of the largest switch."""
_DONE = "*OPC?"

Clock = Callable[[], float]
T = TypeVar("T")


class ScpiClient:
    """A client of one switch. Calls of several threads run one after the other."""

    def __init__(self, context: DriverContext, *, clock: Clock = time.monotonic) -> None:
        self._context = context
        self._clock = clock
        self._lock = threading.Lock()
        self._stream: Stream | None = None

    @contextlib.contextmanager
    def turn(self) -> Iterator["Turn"]:
        """Reserve the session for all queries and commands of one driver call; close it if answers may be outstanding.

        Raises:
            DeviceUnreachableError: no connection, or another call takes all the time; nothing was sent.
        """
        deadline = self._clock() + self._context.timeout_s
        if not self._lock.acquire(timeout=self._context.timeout_s):
            raise DeviceUnreachableError(f"{self._name}: another call is still in progress; nothing was sent")
        try:
            turn = Turn(self._name, self._connected(deadline), deadline, self._clock)
            try:
                yield turn
            finally:
                if turn.out_of_step:
                    self._drop()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection; the next call connects again."""
        with self._lock:
            self._drop()

    @property
    def _name(self) -> str:
        return f"{self._context.device} at {self._context.address}"

    def _connected(self, deadline: float) -> Stream:
        if self._stream is not None and not _lives(self._stream):
            self._drop()
        if self._stream is None:
            try:
                self._stream = self._context.way.tcp(DEFAULT_PORT, max(deadline - self._clock(), 0.001))
            except OSError as error:
                raise DeviceUnreachableError(f"{self._name}: {reason(error)}; nothing was sent") from error
        return self._stream

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class Turn:
    """One call's use of the session."""

    def __init__(self, name: str, stream: Stream, deadline: float, clock: Clock) -> None:
        self._waiting = False
        self._pending = b""
        self._name = name
        self._stream = stream
        self._deadline = deadline
        self._clock = clock
        self._wrote = False

    @property
    def out_of_step(self) -> bool:
        """Whether an answer to this call may still arrive, or unexpected text has arrived."""
        return self._waiting or bool(self._pending)

    def ask(self, query: str, understood: Callable[[str], T]) -> T:
        """Send a query and parse its answer by ``understood``, which raises ``ValueError`` for an invalid answer.

        Raises:
            DeviceUnreachableError: no answer, or an invalid one; nothing was written in this call.
            OutcomeUnknownError: the same, after this call has written.
        """
        return self._understood(query, self._exchange(query), understood)

    def ask_if_known(self, query: str, understood: Callable[[str], T]) -> T | None:
        """As :meth:`ask`, for a query that some models do not know and do not answer; then ``None``."""
        # A model that does not know the query is silent about it, but answers *OPC? in any case.
        line = f"{query};{_DONE}"
        answers = self._exchange(line)
        if without_done(answers) is None:
            # Some switches put each answer on its own line. The standard says otherwise, but it is as clear.
            answers = f"{answers};{self._line(line)}"
        answer = without_done(answers)
        if answer is None:
            self._fail(f"{_shown(query)} was answered with {quoted(answers)}")
        return self._understood(query, answer, understood) if answer and not _complains(answer) else None

    def write(self, commands: str) -> str:
        """Send commands, wait until the switch is done, and return its complaint, which is empty if it has none.

        Raises:
            OutcomeUnknownError: no clear answer came.
        """
        # *CLS empties the error queue first: old errors would be taken for errors of these commands.
        line = f"*CLS;{commands};{_DONE}"
        self._understood(line, self._exchange(line, writes=True), _done)
        return self.ask(":syst:err:all?", complaint)

    def _exchange(self, line: str, *, writes: bool = False) -> str:
        if self._pending:
            self._fail(f"it sent more than was requested: {quoted(repr(self._pending))}")
        self._waiting = True
        try:
            self._stream.settimeout(self._left())
            # Before sending: a send that fails may have reached the switch.
            self._wrote |= writes
            self._stream.sendall(f"{line}\n".encode())
        except OSError as error:
            self._fail(f"{_shown(line)} was being sent, then {reason(error)}")
        return self._line(line)

    def _line(self, sent: str) -> str:
        """Receive the next line, without its line end."""
        self._waiting = True
        try:
            while b"\n" not in self._pending:
                self._receive()
        except OSError as error:
            self._fail(f"{_shown(sent)} was sent, then {reason(error)}")
        self._waiting = False
        line, _, self._pending = self._pending.partition(b"\n")
        text = line.decode(errors="replace").strip()
        if not text.isascii() or not text.isprintable():
            self._fail(f"{_shown(sent)} was answered with something that is not text")
        return text

    def _receive(self) -> None:
        self._stream.settimeout(self._left())
        piece = self._stream.recv(4096)
        if not piece:
            raise ConnectionError("the connection was closed")
        self._pending += piece
        if len(self._pending) > ANSWER_LIMIT:
            raise ConnectionError(f"it sent more than {ANSWER_LIMIT} bytes")

    def _understood(self, query: str, answer: str, understood: Callable[[str], T]) -> T:
        try:
            return understood(answer)
        except ValueError:
            self._fail(f"{_shown(query)} was answered with {quoted(answer)}")

    def _left(self) -> float:
        left = self._deadline - self._clock()
        if left <= 0:
            raise TimeoutError
        return left

    def _fail(self, what: str) -> NoReturn:
        self._waiting = True
        if self._wrote:
            raise OutcomeUnknownError(f"{self._name}: {what}; its ports may or may not have changed")
        raise DeviceUnreachableError(
            f"{self._name}: {what}; nothing was written", hint="check the address: it may be another service"
        )


def _complains(answer: str) -> bool:
    """Whether an answer is really an entry of the error queue."""
    try:
        return bool(complaint(answer))
    except ValueError:
        return False


def _done(answer: str) -> None:
    if without_done(answer) != "":
        raise ValueError


def _lives(stream: Stream) -> bool:
    """Whether a persistent session is usable: no unread data, and the other side has not closed it."""
    try:
        stream.settimeout(0)
        stream.recv(1)
    except (BlockingIOError, TimeoutError):
        return True
    except OSError:
        return False
    return False


def _shown(line: str) -> str:
    return quoted(line, most=60)
