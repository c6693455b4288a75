"""The protocol between the processes of a job: the environment variables of a worker, and JSON messages in lines."""

import contextlib
import hmac
import json
import select
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from lumctl.json_lines import ByteStream

Message = dict[str, Any]
Reply = Callable[[Mapping[str, Any]], None]
"""Sends the one answer to a request."""

JOB = "LUMCTL_JOB"
WORKER = "LUMCTL_JOB_WORKER"
ACCELERATOR = "LUMCTL_JOB_ACCELERATOR"
SOCKET = "LUMCTL_JOB_SOCKET"
"""The path of the agent's socket; only processes that an agent started have this variable."""
FOLDER = "LUMCTL_JOB_FOLDER"
BEAT_S = "LUMCTL_JOB_BEAT_S"
DEATH_WATCH = "LUMCTL_JOB_DEATH_WATCH"
"""The path of the lock through which the agent notices that the worker dies."""
ADDRESS = "LUMCTL_JOB_ADDRESS"
"""The address at which the worker's servers listen."""
TOKEN = "LUMCTL_JOB_TOKEN"  # noqa: S105 - the name of a variable, not a secret
"""The secret that all workers of the job share."""

COLLECTIVES = "collectives"
"""In ``stepped``: for each group of ranks their numbers as text (empty: all), how many they are, the times at which the
worker entered and left the step's collectives, and pairs of bytes and seconds: one for each size of its all-reduces."""

REPLICATED, UNIQUE = "replicated", "unique"
"""The layouts of a job's state: the same on every rank, or a different one on each rank."""

LATE = "late"
"""The order that tells rank 0 for which late rank to use a schedule."""
SCHEDULED_FOR = "scheduled_for"
"""The field of a step in which a schedule was agreed on: for which late rank."""

WANTS, LIT, DARK = "wants", "lit", "dark"
"""A rank wants a phase; the answers: the phase has light, or cannot have it."""
NO_PHASE = ""
"""In place of a phase: the rank needs no light until its next request, which has no answer."""
PHASES = "phases"
"""In ``stepped`` of a job with phases: the changes of phase that the rank waited for (``changes``), the seconds waited
(``wait_s``), the seconds that asking ahead hid (``hidden_s``), the longest wait (``worst_s``), and ``boundaries``: rows
of the phases left and entered, the mode, and whether this mode is faster (null before that is decided), and
``traffic``: rows as :class:`lumctl.training.phase_traffic.Traffic`. In ``join``: the pairs of ranks of each phase, and
the hosts of the ranks."""


def phase_mac(token: str, worker: str, generation: int, number: int, phase: str) -> str:
    """Proves, by the secret of the job, which worker wants a phase; hexadecimal."""
    said = json.dumps([worker, generation, number, phase]).encode()
    return hmac.new(token.encode(), said, "sha256").hexdigest()


MOST_BYTES = 4 * 1024 * 1024
"""The longest line that is read."""
LONGEST_SHOWN = 240
"""The most characters shown of a line that another process has written."""


def printable_line(text: str, longest: int = LONGEST_SHOWN) -> str:
    """Text of another process as one line that is safe to show: without control characters, of limited length."""
    # Cut first: the text may have megabytes.
    words = " ".join(text[: 4 * longest].split())
    shown = "".join(sign for sign in words if sign.isprintable())
    return shown if len(shown) <= longest else f"{shown[:longest]}..."


class BrokenLineError(ValueError):
    """The received bytes are not a valid message."""


class StreamLine:
    """Messages over a byte stream. One thread may receive while others send."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._received = bytearray()
        self._sending = threading.Lock()
        self.spoke = False
        """Whether anything was received by :meth:`read`."""

    @property
    def pending(self) -> bool:
        """Whether a complete message is buffered."""
        return b"\n" in self._received

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message.

        Raises:
            OSError: the connection is closed, or the peer does not read.
        """
        self.send_bytes(encoded(message))

    def send_bytes(self, data: bytes) -> None:
        """Send the bytes of messages; see :meth:`send`."""
        with self._sending:
            self._send(data)

    def _send(self, data: bytes) -> None:
        self._stream.sendall(data)

    def send_now(self, data: bytes | bytearray) -> int:
        """Send as many of these bytes as possible without waiting; return their number. Raises ``OSError``."""
        del data
        return 0

    def read(self) -> bool:
        """Buffer what has arrived, without waiting; return false at the end of the stream.

        Raises:
            BrokenLineError: the received line is too long.
            OSError: the connection broke.
        """
        try:
            chunk = self._receive_now(65536)
        except BlockingIOError:
            return True
        self._received += chunk
        self.spoke = self.spoke or bool(chunk)
        if len(self._received) > MOST_BYTES and not self.pending:
            raise BrokenLineError("a line without an end")
        return bool(chunk)

    def _receive_now(self, most: int) -> bytes:
        return self._stream.recv(most)

    def why_ended(self) -> str:
        """Why the line has ended. Raises ``OSError``."""
        return "it closed the connection"

    def fileno(self) -> int:
        """A descriptor that is readable when messages have arrived."""
        raise NotImplementedError

    def receive(self) -> Message | None:
        """The next message; ``None`` when the peer has closed.

        Raises:
            BrokenLineError: the received line is not a message.
            OSError: the connection broke.
        """
        while True:
            end = self._received.find(b"\n")
            if end >= 0:
                line = bytes(self._received[:end])
                del self._received[: end + 1]
                return decoded(line)
            if len(self._received) > MOST_BYTES:
                raise BrokenLineError("a line without an end")
            chunk = self._stream.recv(65536)
            if not chunk:
                return None
            self._received += chunk

    def hang_up(self) -> None:
        """End the line: the thread that reads it sees its end, and closes it."""
        self.close()

    def close(self) -> None:
        """Close the line."""
        self._stream.close()


class MessageLine(StreamLine):
    """Messages over a socket. A send fails after ``patience_s`` if the peer does not read."""

    def __init__(self, connection: socket.socket, *, patience_s: float = 5.0) -> None:
        super().__init__(connection)
        self._connection = connection
        self._patience_s = patience_s

    def fileno(self) -> int:
        """The socket's descriptor; a message may be buffered already, see :meth:`pending`."""
        return self._connection.fileno()

    def send_now(self, data: bytes | bytearray) -> int:
        """Send as many of these bytes as possible without waiting; return their number. Raises ``OSError``."""
        try:
            return self._connection.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0

    def _receive_now(self, most: int) -> bytes:
        return self._connection.recv(most, socket.MSG_DONTWAIT)

    def _send(self, data: bytes) -> None:
        # Not settimeout: that would also limit the thread that receives.
        left = memoryview(data)
        while left:
            try:
                left = left[self._connection.send(left, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._connection, select.POLLOUT)
                if not poll.poll(1000 * self._patience_s):
                    raise TimeoutError(f"the peer has read none of our messages for {self._patience_s:g} s") from None

    def hang_up(self) -> None:
        """End the line: the thread that reads it sees its end, and closes it."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the line; :meth:`receive` in another thread returns ``None``."""
        self.hang_up()
        self._connection.close()


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as the bytes of one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decoded(line: bytes) -> Message:
    """The message of one line.

    Raises:
        BrokenLineError: it is not a message.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BrokenLineError(f"no JSON: {line[:80]!r}") from error
    if not isinstance(found, dict):
        raise BrokenLineError(f"no object: {line[:80]!r}")
    return found
