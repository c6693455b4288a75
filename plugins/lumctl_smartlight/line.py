"""The line protocol: one connection carries a greeting, at most one request, and text until the server closes it.

What is known of it: on connect the server sends a greeting line; a request is one line; the server then streams text
and closes the connection. There is no authentication, no version, no read-back and no acknowledgement schema. So no
answer proves that anything changed, or that nothing did: once a line was sent, either some text came that does not read
like a complaint, or the outcome is not known. What did change is for the light to prove.

That a controller has restarted and put every cell back is not to be seen either: it greets as it always did. The one
thing a greeting may give away is another mesh behind the address, where it states how many PUCs there are.
"""

import re
import time
from collections.abc import Callable

from lumctl.devices.errors import DeviceUnreachableError, InconsistentError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Stream, Way

_BETWEEN_PARTS = re.compile(r"[,;|()\[\]]")
_COUNT = re.compile(r"(?:(?P<first>[0-9]{1,6}) ?PUCs?|PUCs? ?[:=] ?(?P<last>[0-9]{1,6}))", re.IGNORECASE)


def stated_puc_count(greeting: str) -> int | None:
    """How many PUCs the controller says that its mesh has; ``None`` where it does not say so beyond doubt.

    Only a part of the line that punctuation sets off, and that is nothing but a number and the word (``72 PUCs``,
    ``PUCs: 72``), is a count. ``3 PUCs stuck``, ``PUC 7``, a version or an address is none, and two different counts
    are none either: a controller must not be locked out for a number that means something else.
    """
    parts = (part.strip(" \t.!") for part in _BETWEEN_PARTS.split(greeting))
    found = [match for part in parts if (match := _COUNT.fullmatch(part))]
    counts = {int(match["first"] or match["last"]) for match in found}
    return counts.pop() if len(counts) == 1 else None


DEFAULT_PORT = 65432
GREETING_LIMIT = 4096
ANSWER_LIMIT = 65536
COMPLAINT = re.compile(r"^[^\w\n]*(\w*error|\w*exception|traceback|invalid|fail)", re.IGNORECASE | re.MULTILINE)
_FIRST_WORDS = ("error", "exception", "traceback", "invalid", "fail")
QUOTED = 160
"""How many characters of an answer an error quotes."""

Clock = Callable[[], float]


class LineClient:
    """Talks to one controller. The time limit bounds connecting and the greeting together, and then the answer."""

    def __init__(self, context: DriverContext, *, clock: Clock = time.monotonic) -> None:
        self._name = f"{context.device} at {context.address}"
        self._way = context.way
        self._timeout_s = context.timeout_s
        self._clock = clock
        self._puc_count = context.puc_count

    def greet(self) -> str:
        """Connect, read the greeting line, and leave.

        Raises:
            DeviceUnreachableError: no connection, or no greeting line in time.
            InconsistentError: the greeting states another number of PUCs than the inventory.
        """
        connection, greeting = self._connect()
        connection.close()
        return greeting

    def request(self, line: str) -> str:
        """Send one line and return the answer: whatever text came until the server closed.

        Raises:
            DeviceUnreachableError: no connection, or no greeting line in time; the line was not sent.
            InconsistentError: the greeting states another number of PUCs than the inventory; the line was not sent.
            OutcomeUnknownError: the line was sent; no answer came, or one that reads like a complaint.
        """
        connection, _ = self._connect()
        try:
            connection.renew(self._timeout_s)
            connection.send(f"{line}\n".encode())
            answer = connection.read_all(ANSWER_LIMIT)
        except OSError as error:
            raise self._unknown(f"then {_reason(error)}") from error
        finally:
            connection.close()
        return self._judged(answer)

    def _connect(self) -> tuple["_Connection", str]:
        connection = None
        try:
            connection = _Connection(self._way, self._timeout_s, self._clock)
            greeting = _text(connection.read_line(GREETING_LIMIT))
        except OSError as error:
            if connection is not None:
                connection.close()
            when = "before its greeting line: " if connection is not None else ""
            raise DeviceUnreachableError(f"{self._name}: {when}{_reason(error)}; nothing was sent") from error
        if not greeting:
            connection.close()
            raise DeviceUnreachableError(
                f"{self._name}: what answers there does not greet with a line of text; nothing was sent",
                hint="check the address: it may be another service",
            )
        count = stated_puc_count(greeting)
        if count not in {None, self._puc_count}:
            connection.close()
            raise InconsistentError(
                f"{self._name}: its greeting states {count} PUCs, the inventory {self._puc_count}; nothing was sent",
                hint="check the address and the geometry: this may be another mesh",
            )
        return connection, _in_one_line(greeting)

    def _judged(self, answer: bytes) -> str:
        text = _text(answer)
        if text is None:
            raise self._unknown("the answer is not text")
        if not text:
            raise self._unknown("no answer came")
        if COMPLAINT.search(text) or _begins_to_complain(answer):
            raise self._unknown(f"the answer was: {_quoted(text)}")
        return text

    def _unknown(self, what: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"{self._name}: the line was sent, {what}; the cells may or may not have changed",
            hint="it cannot be read back: write the known states again before relying on it",
        )


class _Connection:
    """A socket whose reads and writes share one deadline, however small the pieces are that arrive."""

    def __init__(self, way: Way, timeout_s: float, clock: Clock) -> None:
        self._clock = clock
        self.renew(timeout_s)
        self._socket: Stream = way.tcp(DEFAULT_PORT, timeout_s)
        self._pending = b""

    def renew(self, timeout_s: float) -> None:
        self._deadline = self._clock() + timeout_s

    def send(self, data: bytes) -> None:
        # What came before the request, after the greeting line, answers nothing.
        self._pending = b""
        self._socket.settimeout(self._left())
        self._socket.sendall(data)

    def read_line(self, limit: int) -> bytes:
        while b"\n" not in self._pending:
            if not self._receive(limit):
                raise ConnectionError("the connection was closed")
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def read_all(self, limit: int) -> bytes:
        while self._receive(limit):
            pass
        return self._pending

    def _receive(self, limit: int) -> bool:
        """Take the next piece; false when the server has closed."""
        self._socket.settimeout(self._left())
        piece = self._socket.recv(4096)
        self._pending += piece
        if len(self._pending) > limit:
            raise ConnectionError(f"more than {limit} bytes came")
        return bool(piece)

    def _left(self) -> float:
        left = self._deadline - self._clock()
        if left <= 0:
            raise TimeoutError
        return left

    def close(self) -> None:
        self._socket.close()


def _text(data: bytes) -> str | None:
    """Printable text without surrounding space, or ``None`` if the bytes are anything else."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text.strip() if all(c.isprintable() or c in "\t\r\n" for c in text) else None


def _begins_to_complain(answer: bytes) -> bool:
    """Whether the last line was cut off in the first word of a complaint."""
    last = answer.rpartition(b"\n")[2].decode(errors="replace").strip().lower()
    return last != "" and any(word.startswith(last) for word in _FIRST_WORDS)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror or str(error) or type(error).__name__).lower()


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    line = _in_one_line(text)
    return line if len(line) <= QUOTED else f"{line[: QUOTED - 1]}…"
