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
        """Scheme, host and port; the port is omitted if it is the default port."""
        scheme = "https" if self.secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}" if self.port == _PORTS[scheme] else f"{scheme}://{host}:{self.port}"


def place_of(context: DriverContext) -> HttpPlace:
    """Parse an address: TLS unless it begins with ``http://``."""
    secure = not context.address.startswith("http://")
    host, port = host_and_port(context.address, _PORTS["https" if secure else "http"])
    return HttpPlace(host, port, secure, context.way)


class CallDeadline:
    """The deadline of a whole call."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._at = clock() + seconds

    def left(self) -> float:
        """Seconds left until the deadline.

        Raises:
            TimeoutError: the deadline has passed.
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
        """Reset the count of received bytes: the limit applies to each answer."""
        self._stream.received = 0

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        self._spoken.sendall(data)

    def recv(self, count: int) -> bytes:
        """Up to ``count`` bytes; none at the end, whether or not the other side closed properly."""
        return self._spoken.recv(count)

    def makefile(self, mode: str, buffering: int = -1) -> io.BufferedReader:
        """The file from which ``http.client`` reads answers."""
        del mode, buffering
        return _Lines(_Reader(self), _PIECE)

    def close(self) -> None:
        """Do nothing: the answer may not have been read yet."""

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
                # The device answers only what it has received: send before waiting for its bytes.
                self._flush()
                piece = self._stream.recv(_PIECE)
                if piece:
                    self._incoming.write(piece)
                else:
                    # OpenSSL then raises an error; without this it would ask for more bytes for ever.
                    self._incoming.write_eof()
            else:
                self._flush()
                return done

    def _flush(self) -> None:
        self._stream.sendall(self._outgoing.read())


class _Bounded:
    """The stream below TLS: it waits for data until the deadline only, and limits the number of bytes."""

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
        # Set again for each piece, so that a device that sends slowly cannot extend the deadline.
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
    """Raises an error if the data ends where a line is due: ``http.client`` accepts answers cut in their headers."""

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line:
            raise ConnectionError("the connection was closed")
        return line
