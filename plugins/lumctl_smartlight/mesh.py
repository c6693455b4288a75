"""The mesh driver. The controller has no read-back; a record of the last written states replaces it."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from lumctl.devices.base import BaseMesh
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucChange, PucState, Receipt, Staged
from lumctl.devices.ways import Stream, Way
from lumctl.tcp import reason

_BETWEEN_PARTS = re.compile(r"[,;|()\[\]]")
_COUNT = re.compile(r"(?:(?P<first>[0-9]{1,6}) ?PUCs?|PUCs? ?[:=] ?(?P<last>[0-9]{1,6}))", re.IGNORECASE)


def stated_puc_count(greeting: str) -> int | None:
    """The number of PUCs that the controller's greeting states; ``None`` if the greeting is not clear.

    A count is a part of the line between punctuation that consists of a number and the word only (``72 PUCs``,
    ``PUCs: 72``). ``3 PUCs stuck``, ``PUC 7``, a version or an address is not a count. Two different counts are not
    clear: a controller must not be locked out because of a number with another meaning.
    """
    parts = (part.strip(" \t.!") for part in _BETWEEN_PARTS.split(greeting))
    found = [match for part in parts if (match := _COUNT.fullmatch(part))]
    counts = {int(match["first"] or match["last"]) for match in found}
    return counts.pop() if len(counts) == 1 else None


DEFAULT_PORT = 65432
GREETING_LIMIT = 4096
ANSWER_LIMIT = 65536
# The protocol has no form for errors, so these words at the beginning of a line count as one.
COMPLAINT = re.compile(r"^[^\w\n]*(\w*error|\w*exception|traceback|invalid|fail)", re.IGNORECASE | re.MULTILINE)
_FIRST_WORDS = ("error", "exception", "traceback", "invalid", "fail")
QUOTED = 160
"""Most characters of an answer that an error quotes."""

Clock = Callable[[], float]


class LineClient:
    """A client of one controller. One time limit covers connecting and the greeting, another one the answer."""

    def __init__(self, context: DriverContext, *, clock: Clock = time.monotonic) -> None:
        self._name = f"{context.device} at {context.address}"
        self._way = context.way
        self._timeout_s = context.timeout_s
        self._clock = clock
        self._puc_count = context.puc_count

    def greet(self) -> str:
        """Connect, read the greeting line, and disconnect.

        Raises:
            DeviceUnreachableError: no connection, or no greeting line in time.
            InconsistentError: the greeting states another number of PUCs than the inventory.
        """
        connection, greeting = self._connect()
        connection.close()
        return greeting

    def request(self, line: str) -> str:
        """Send one line and return the answer: all text until the server closes the connection.

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
            raise self._unknown(f"then {reason(error)}") from error
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
            raise DeviceUnreachableError(f"{self._name}: {when}{reason(error)}; nothing was sent") from error
        if not greeting:
            connection.close()
            raise DeviceUnreachableError(
                f"{self._name}: the program there does not greet with a line of text; nothing was sent",
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
            hint="it cannot be read back: write the known states again before you rely on them",
        )


class _Connection:
    """A socket whose reads and writes share one deadline, even if data arrive in small pieces."""

    def __init__(self, way: Way, timeout_s: float, clock: Clock) -> None:
        self._clock = clock
        self.renew(timeout_s)
        self._socket: Stream = way.tcp(DEFAULT_PORT, timeout_s)
        self._pending = b""

    def renew(self, timeout_s: float) -> None:
        self._deadline = self._clock() + timeout_s

    def send(self, data: bytes) -> None:
        # Text between the greeting line and the request is not an answer.
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
            raise ConnectionError(f"it sent more than {limit} bytes")
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
    """Whether the last line was truncated in the first word of an error message."""
    last = answer.rpartition(b"\n")[2].decode(errors="replace").strip().lower()
    return last != "" and any(word.startswith(last) for word in _FIRST_WORDS)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    line = _in_one_line(text)
    return line if len(line) <= QUOTED else f"{line[: QUOTED - 1]}…"


class SmartlightMesh(BaseMesh):
    """One mesh behind the line protocol.

    Calls of several threads run one after the other, because it is unknown whether the controller serves two
    connections at once. The record begins with ``context.known_states`` and follows the writes of this driver. A PUC
    whose write had no clear outcome is unknown until it is written again: ``stage`` shows it without a ``before``, and
    ``roll_back`` refuses to restore it.

    The record holds only what was requested and acknowledged. It does not show that a controller acknowledges falsely,
    has lost its states in a restart, or was written by another client. So callers that rely on it must check the light;
    a commit of known states writes them again.
    """

    api_version: ClassVar[int] = 1
    proven: ClassVar[str] = "twin; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._device = context.device
        self._puc_count = context.puc_count
        self._client = LineClient(context)
        self._record = dict(context.known_states)
        self._turn = threading.Lock()

    def identify(self) -> str:
        """The greeting line.

        Raises:
            DeviceUnreachableError: no connection, or no greeting line in time.
            InconsistentError: the greeting states another number of PUCs than the inventory. A greeting without a
                number is accepted.
        """
        with self._turn:
            return self._client.greet()

    def stage(self, changes: Mapping[int, PucState]) -> Staged[PucChange]:
        """Check that every PUC exists; ``before`` is ``None`` where the record does not know the state.

        Raises:
            DeviceRefusedError: a PUC number is out of range.
        """
        self._require_in_range(changes)
        with self._turn:
            staged = tuple(PucChange(puc, self._record.get(puc), after) for puc, after in sorted(changes.items()))
        return Staged(staged, token=self._device)

    def compare(self, staged: Staged[PucChange]) -> tuple[PucChange, ...]:
        """The staged changes that the record does not show as done."""
        with self._turn:
            now = {change.puc: self._record.get(change.puc) for change in staged.changes}
        return tuple(
            PucChange(change.puc, now[change.puc], change.after)
            for change in staged.changes
            if now[change.puc] is not change.after
        )

    def commit(self, staged: Staged[PucChange], *, revert_after_s: float | None = None) -> Receipt[PucChange]:
        """Write all staged states, including those that the record shows as done.

        Raises:
            UnsupportedError: a revert timer was requested; the controller has none.
            DeviceRefusedError: the change was staged for another device.
            DeviceUnreachableError: no connection, or no greeting; nothing was sent.
            InconsistentError: the greeting states another number of PUCs; nothing was sent.
            OutcomeUnknownError: the states were sent; no answer came, or one that looks like an error message.
        """
        if revert_after_s is not None:
            raise UnsupportedError(f"{self._device}: a controller of the line protocol has no revert timer")
        if staged.token != self._device:
            raise DeviceRefusedError(f"{self._device}: the change was staged for {staged.token or 'no device'}")
        answer = self._write({change.puc: change.after for change in staged.changes})
        return Receipt(staged, revert_armed=False, text=answer)

    def confirm(self, receipt: Receipt[PucChange]) -> None:
        """Do nothing: no timer is ever armed."""

    def roll_back(self, receipt: Receipt[PucChange]) -> None:
        """Write back the states from before the change.

        Raises:
            DeviceRefusedError: some of them are unknown; nothing was sent.
            DeviceUnreachableError: no connection, or no greeting; nothing was sent.
            InconsistentError: the greeting states another number of PUCs; nothing was sent.
            OutcomeUnknownError: the states were sent; no answer came, or one that looks like an error message.
        """
        before = {change.puc: change.before for change in receipt.staged.changes}
        known = {puc: state for puc, state in before.items() if state is not None}
        if len(known) < len(before):
            unknown = ", ".join(str(puc) for puc in before if puc not in known)
            raise DeviceRefusedError(
                f"{self._device}: the earlier states of these PUCs are unknown: {unknown}; nothing was sent",
                hint="program the mesh again from the inventory: lumctl fabric apply",
            )
        self._require_in_range(known)
        self._write(known)

    def _write(self, states: Mapping[int, PucState]) -> str:
        """Send one line with all states. They count as unknown until a clean answer comes or nothing was sent."""
        if not states:
            return ""
        # The protocol's request is a list in Python's syntax.
        line = repr([(puc, state.value) for puc, state in sorted(states.items())])
        with self._turn:
            held = self._record
            self._record = {puc: state for puc, state in held.items() if puc not in states}
            try:
                answer = self._client.request(line)
            except (DeviceUnreachableError, InconsistentError):  # from a request, both mean that nothing was sent
                self._record = held
                raise
            self._record |= states
        return answer

    def _require_in_range(self, pucs: Mapping[int, PucState]) -> None:
        strange = sorted(puc for puc in pucs if not 0 <= puc < self._puc_count)
        if strange:
            named = ", ".join(map(str, strange))
            raise DeviceRefusedError(f"{self._device} has no PUC {named}: valid numbers are 0 to {self._puc_count - 1}")
