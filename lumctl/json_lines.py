"""JSON lines over a stream, and the client of the Unix-domain sockets where lumctl's processes answer.

Each line is one JSON object. An incomplete line is ignored, so a sender who could not send the whole line knows
that nothing was done. The server is :class:`lumctl.sockets.LineServer`.
"""

import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

MAX_BYTES = 16 * 1024 * 1024
"""Maximum length of a line; a change of a hundred thousand PUCs fits."""
_PIECE = 65536


class ByteStream(Protocol):
    """The methods of a socket that are used here; a channel of an SSH session has them too."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Limit each of the following calls."""

    def sendall(self, data: bytes, /) -> None:
        """Send all of it."""

    def recv(self, most: int, /) -> bytes:
        """Some bytes; none when the other side has closed."""

    def close(self) -> None:
        """Hang up."""


class JsonLines:
    """Lines over a stream. One thread at a time."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._pending = bytearray()

    def send(self, message: Mapping[str, Any], within_s: float | None, body: bytes = b"") -> None:
        """Send a line, and after it bytes that are not JSON.

        Raises:
            OSError: not all of it was sent.
        """
        self.stream.settimeout(within_s)
        self.stream.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n" + body)

    def receive(self, within_s: float | None, *, begins_within_s: float | None = 0.0) -> dict[str, Any]:
        """The next line, which must be complete within ``within_s`` (``None``: no limit).

        ``begins_within_s`` is a separate limit for the first byte (``None``: no limit); ``within_s`` then starts with
        that byte.

        Raises:
            OSError: the line did not arrive in time, or the other side has closed.
            ValueError: the line is too long, or not a JSON object.
        """
        # ``begins_within_s`` of 0.0 means no separate limit; ``within_s`` then counts from here.
        deadline = _deadline(within_s)
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            # Each piece is searched once: from the start each time, the work would grow with the square of the length.
            searched = len(self._pending)
            if len(self._pending) > MAX_BYTES:
                raise ValueError(f"a line of more than {MAX_BYTES} bytes")
            waits_to_begin = not self._pending and begins_within_s != 0.0
            self._pending += self._piece(begins_within_s if waits_to_begin else _left(deadline))
            if waits_to_begin:
                deadline = _deadline(within_s)
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        try:
            message = json.loads(line)
        # ``json.loads`` raises this for deeply nested input; it must not end the thread of a server.
        except RecursionError:
            message = None
        if not isinstance(message, dict):
            raise ValueError("expected a JSON object")  # noqa: TRY004 - what came is wrong, not who called
        return message

    def read(self, length: int, within_s: float) -> bytes:
        """The bytes after a line, sent as the ``body`` of :meth:`send`.

        Raises:
            OSError: they did not arrive in time, or the other side has closed.
        """
        deadline = _deadline(within_s)
        while len(self._pending) < length:
            self._pending += self._piece(_left(deadline), most=1 << 20)
        found = bytes(self._pending[:length])
        del self._pending[:length]
        return found

    def close(self) -> None:
        """Hang up."""
        self.stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _piece(self, within_s: float | None, most: int = _PIECE) -> bytes:
        self.stream.settimeout(within_s)
        piece = self.stream.recv(most)
        if not piece:
            raise ConnectionError("the other side has closed")
        return piece


def connect(path: Path, within_s: float | None) -> socket.socket:
    """Connect to the process that answers at a Unix-domain socket.

    Raises:
        OSError: no process answers there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(within_s)
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def ask(path: Path, request: Mapping[str, Any], within_s: float) -> dict[str, Any]:
    """The answer of the process at a Unix-domain socket to one request.

    Raises:
        OSError: no process answers there in time.
        ValueError: the answer is not a JSON object.
    """
    with JsonLines(connect(path, within_s)) as lines:
        lines.send(request, within_s)
        return lines.receive(within_s)


def _deadline(within_s: float | None) -> float | None:
    return None if within_s is None else time.monotonic() + within_s


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        # A socket takes a timeout of 0 for "do not wait at all", and a negative one for an error.
        raise TimeoutError("timed out")
    return left
