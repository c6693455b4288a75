"""The ways to a device: plain TCP, or what an SSH session to it or to a host near it offers.

A driver never opens a socket by itself: it asks its context's way, so that a device without authentication can be
reached through a host (``via:`` in the inventory), and that host keys are checked in one place.
"""

import socket
from typing import Protocol

from lumctl.devices.errors import DeviceUnreachableError, UnsupportedError
from lumctl.devices.permission import require_permission


class Stream(Protocol):
    """A connected byte stream: a socket, or a channel of an SSH session."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Bound each of the calls below."""
        ...

    def recv(self, count: int, /) -> bytes:
        """Up to ``count`` bytes; none at the end of the stream. Raises ``OSError``."""
        ...

    def sendall(self, data: bytes, /) -> None:
        """Send everything. Raises ``OSError``."""
        ...

    def close(self) -> None:
        """Close; a second call does nothing."""
        ...


class CommandStream(Stream, Protocol):
    """What a command on a host reads and writes."""

    def complaint(self) -> str:
        """The last line that it has written beside its output; asked once that has ended. Raises ``OSError``."""
        ...


class Way(Protocol):
    """How one device is reached."""

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Connect to the device's address; ``default_port`` where the inventory writes none.

        Raises:
            OSError: nobody answers there.
            DeviceUnreachableError: the host that leads there cannot be reached.
        """
        ...

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Open an SSH session to the device, its key checked, and a subsystem of it, such as ``netconf``.

        Raises:
            DeviceUnreachableError: nobody answers, the key is unknown or changed, or no such subsystem.
            DeviceLoginError: the device lets us in with none of our keys, and with no secret of its login.
        """
        ...


class Direct:
    """TCP straight to an address; there is no SSH this way."""

    def __init__(self, address: str) -> None:
        self._address = address

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Connect."""
        connected = socket.create_connection(host_and_port(self._address, default_port), timeout=timeout_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _Permitted(connected)

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Not this way."""
        del default_port, timeout_s
        raise UnsupportedError(f"{self._address}: there is no SSH session to open {name} in")


class _Permitted:
    """A socket as a stream, which sends while that is permitted."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.settimeout = connected.settimeout
        self.recv = connected.recv
        self.close = connected.close

    def sendall(self, data: bytes, /) -> None:
        require_permission()
        self._socket.sendall(data)


class Nowhere:
    """The way of a device that has no address of its own."""

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Not this way."""
        del default_port, timeout_s
        raise DeviceUnreachableError("the device has no address of its own")

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Not this way."""
        del name, default_port, timeout_s
        raise DeviceUnreachableError("the device has no address of its own")


def host_and_port(address: str, default_port: int) -> tuple[str, int]:
    """Split ``host``, ``host:port``, ``[v6]:port``, also after ``http://``; without a port, the default one."""
    address = address.rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        return address.strip("[]"), default_port
    return host.strip("[]"), int(port)
