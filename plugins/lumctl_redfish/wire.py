"""The bytes of one connection: TLS over whatever way leads to the controller, one deadline, and a bound on memory."""

import io
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from urllib3.util.ssltransport import SSLTransport

from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Direct, Stream, Way, host_and_port

Clock = Callable[[], float]

MOST_BYTES = 2 * 1024 * 1024
"""How much a controller may say in one answer, with its headers. A large system resource has some 50 kB."""
_PIECE = 16 * 1024
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a controller answers, and whether by TLS. ``origin`` is the beginning of its URLs."""

    host: str
    port: int
    secure: bool
    way: Way

    @property
    def origin(self) -> str:
        """Scheme, host and port; the port only where it is not the usual one."""
        scheme = "https" if self.secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}" if self.port == _PORTS[scheme] else f"{scheme}://{host}:{self.port}"


def place_of(context: DriverContext) -> Place:
    """The place that an address means: by TLS, unless it says ``http://`` itself, which is never led through a host."""
    scheme, _, rest = context.address.rpartition("://")
    secure = scheme != "http"
    host, port = host_and_port(rest, _PORTS["https" if secure else "http"])
    return Place(host, port, secure, Direct(rest) if scheme else context.way)


class Deadline:
    """The one moment by which all of a call must be over."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._at = clock() + seconds

    def left(self) -> float:
        """Seconds that are left.

        Raises:
            TimeoutError: none.
        """
        left = self._at - self._clock()
        if left <= 0:
            raise TimeoutError
        return left


class Wire:
    """A connection as urllib3 wants a socket. It is closed by :meth:`hang_up` alone: answers are read to their end."""

    def __init__(self, place: Place, tls: ssl.SSLContext | None, deadline: Deadline) -> None:
        self._stream = _Bounded(place.way.tcp(place.port, deadline.left()), deadline)
        self._spoken: Any = self._stream
        if tls is not None:
            try:
                self._spoken = SSLTransport(self._stream, tls, server_hostname=place.host)  # type: ignore[arg-type]
            except BaseException:
                self.hang_up()
                raise

    def renew(self) -> None:
        """Another answer may be as long again."""
        self._stream.received = 0

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        self._spoken.sendall(data)

    def recv(self, count: int) -> bytes:
        """Up to ``count`` bytes; none at the end, however the other side ended."""
        return self._spoken.recv(count) or b""

    def makefile(self, mode: str, buffering: int = -1) -> io.BufferedReader:
        """What ``http.client`` reads answers from."""
        del mode, buffering
        return _Lines(_Reader(self), _PIECE)

    def settimeout(self, seconds: float | None) -> None:
        """Do nothing: the deadline bounds everything."""

    def close(self) -> None:
        """Do nothing: the answer may not be read yet."""

    def hang_up(self) -> None:
        """Close the connection."""
        self._stream.close()


class _Bounded:
    """The stream below TLS: every piece is waited for until the deadline only, and there are not too many of them."""

    def __init__(self, stream: Stream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline
        self.received = 0

    def sendall(self, data: bytes) -> None:
        if data:
            self._stream.settimeout(self._deadline.left())
            self._stream.sendall(data)

    def recv(self, count: int) -> bytes:
        self._stream.settimeout(self._deadline.left())
        piece = self._stream.recv(min(count, _PIECE))
        self.received += len(piece)
        if self.received > MOST_BYTES:
            raise ConnectionError(f"more than {MOST_BYTES} bytes came")
        return piece

    def close(self) -> None:
        self._stream.close()


class _Reader(io.RawIOBase):
    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._wire.recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class _Lines(io.BufferedReader):
    """Where a line is due, the end is an error: ``http.client`` takes an answer cut in its headers for a whole one."""

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line:
            raise ConnectionError("the connection was closed")
        return line
