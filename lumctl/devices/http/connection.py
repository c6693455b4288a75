"""The bytes of one connection: TLS over the device's route, one deadline, and a memory limit."""

import io
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from lumctl.devices.protocols import DriverContext
from lumctl.devices.ways import Stream, Way, host_and_port

Clock = Callable[[], float]
T = TypeVar("T")

_PIECE = 16 * 1024
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class HttpPlace:
    """Where a device answers, and whether it uses TLS. ``origin`` is the start of its URLs."""

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


def place_of(context: DriverContext) -> HttpPlace:
    """Parse an address: TLS unless it begins with ``http://``."""
    secure = not context.address.startswith("http://")
    host, port = host_and_port(context.address, _PORTS["https" if secure else "http"])
    return HttpPlace(host, port, secure, context.way)


class CallDeadline:
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


class HttpConnection:
    """A connection with the socket methods that ``http.client`` needs. Only :meth:`hang_up` closes it."""

    def __init__(self, place: HttpPlace, tls: ssl.SSLContext | None, deadline: CallDeadline, most_bytes: int) -> None:
        self._stream = _Bounded(place.way.tcp(place.port, deadline.left()), deadline, most_bytes)
        self._spoken: _Bounded | _Tls = self._stream
        if tls is not None:
            try:
                self._spoken = _Tls(self._stream, tls, place.host)
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
        return self._spoken.recv(count)

    def makefile(self, mode: str, buffering: int = -1) -> io.BufferedReader:
        """What ``http.client`` reads answers from."""
        del mode, buffering
        return _Lines(_Reader(self), _PIECE)

    def close(self) -> None:
        """Do nothing: the answer may not be read yet."""

    def hang_up(self) -> None:
        """Close the connection."""
        self._stream.close()


class _Tls:
    """TLS over a stream that need not be a socket: an SSH channel has no file descriptor."""

    def __init__(self, stream: "_Bounded", context: ssl.SSLContext, host: str) -> None:
        self._stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._done(self._object.do_handshake)

    def sendall(self, data: bytes) -> None:
        self._done(lambda: self._object.write(data))

    def recv(self, count: int) -> bytes:
        try:
            return self._done(lambda: self._object.read(count))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _done(self, act: Callable[[], T]) -> T:
        """Transfer bytes both ways until an OpenSSL operation completes."""
        while True:
            try:
                done = act()
            except ssl.SSLWantReadError:
                self._flush()
                piece = self._stream.recv(_PIECE)
                if piece:
                    self._incoming.write(piece)
                else:
                    self._incoming.write_eof()
            else:
                self._flush()
                return done

    def _flush(self) -> None:
        self._stream.sendall(self._outgoing.read())


class _Bounded:
    """The stream below TLS: every piece is waited for until the deadline only, and there are not too many of them."""

    def __init__(self, stream: Stream, deadline: CallDeadline, most_bytes: int) -> None:
        self._stream = stream
        self._deadline = deadline
        self._most = most_bytes
        self.received = 0

    def sendall(self, data: bytes) -> None:
        if data:
            self._stream.settimeout(self._deadline.left())
            self._stream.sendall(data)

    def recv(self, count: int) -> bytes:
        self._stream.settimeout(self._deadline.left())
        piece = self._stream.recv(min(count, _PIECE))
        self.received += len(piece)
        if self.received > self._most:
            raise ConnectionError(f"the answer exceeds {self._most} bytes")
        return piece

    def close(self) -> None:
        self._stream.close()


class _Reader(io.RawIOBase):
    def __init__(self, connection: HttpConnection) -> None:
        super().__init__()
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._connection.recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class _Lines(io.BufferedReader):
    """Where a line is due, the end is an error: ``http.client`` takes an answer cut in its headers for a whole one."""

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line:
            raise ConnectionError("the connection was closed")
        return line
