"""Messages between the processes of a job: JSON objects, one a line, over a stream socket."""

import contextlib
import json
import select
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Message = dict[str, Any]

MOST_BYTES = 4 * 1024 * 1024
"""The longest line that is read; whoever sends more is not one of ours."""


LONGEST_TOLD = 240
"""Characters of a line that is told to a person though another process has written it."""


def told_line(text: str, longest: int = LONGEST_TOLD) -> str:
    """Text of another process as one line that is safe to show: no control characters, limited length."""
    words = " ".join(text[: 4 * longest].split())
    shown = "".join(sign for sign in words if sign.isprintable())
    return shown if len(shown) <= longest else f"{shown[:longest]}..."


class BrokenLineError(ValueError):
    """What was received is not a message."""


class MessageLine:
    """One connection. One thread may receive while others send.

    A peer that does not read must not block the sender: a send that takes longer than ``patience_s`` fails.
    """

    def __init__(self, connection: socket.socket, *, patience_s: float = 5.0) -> None:
        self._connection = connection
        self._patience_s = patience_s
        self._received = bytearray()
        self._sending = threading.Lock()

    def fileno(self) -> int:
        """The socket's descriptor; something to receive may already be in our buffer (see :meth:`pending`)."""
        return self._connection.fileno()

    @property
    def pending(self) -> bool:
        """Whether a whole message is here already."""
        return b"\n" in self._received

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message.

        Raises:
            OSError: the peer is gone, or does not read.
        """
        data = memoryview(encoded(message))
        with self._sending:
            self._send(data)

    def _send(self, data: memoryview) -> None:
        # Not settimeout: it would hold for the thread that receives too.
        while data:
            try:
                data = data[self._connection.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._connection, select.POLLOUT)
                if not poll.poll(1000 * self._patience_s):
                    raise TimeoutError(f"nothing was read from us for {self._patience_s:g} s") from None

    def receive(self) -> Message | None:
        """The next message; ``None`` when the peer has closed.

        Raises:
            BrokenLineError: what came is no message.
            OSError: the connection broke.
        """
        return _received(self._connection.recv, self._received)

    def close(self) -> None:
        """Close it; a thread that receives wakes up with ``None``."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def _received(receive: Callable[[int], bytes], buffer: bytearray) -> Message | None:
    while True:
        end = buffer.find(b"\n")
        if end >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            return decoded(line)
        if len(buffer) > MOST_BYTES:
            raise BrokenLineError("a line without end")
        chunk = receive(65536)
        if not chunk:
            return None
        buffer += chunk


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as it goes over a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decoded(line: bytes) -> Message:
    """The message of one line.

    Raises:
        BrokenLineError: it is no message.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BrokenLineError(f"no JSON: {line[:80]!r}") from error
    if not isinstance(found, dict):
        raise BrokenLineError(f"no object: {line[:80]!r}")
    return found


class ByteStream(Protocol):
    """A connected byte stream that is no socket, such as a channel of an SSH session."""

    def recv(self, count: int, /) -> bytes:
        """Up to ``count`` bytes; none at its end. Raises ``OSError``."""
        ...

    def sendall(self, data: bytes, /) -> None:
        """Send everything. Raises ``OSError``."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class StreamLine:
    """The same line over a stream that is no socket."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._received = bytearray()
        self._sending = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. Raises ``OSError``."""
        with self._sending:
            self._stream.sendall(encoded(message))

    def receive(self) -> Message | None:
        """The next message; ``None`` when the peer has closed. Raises as that of :class:`MessageLine`."""
        return _received(self._stream.recv, self._received)

    def close(self) -> None:
        """Close it."""
        self._stream.close()
