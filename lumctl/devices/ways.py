"""The connection paths to a device: plain TCP, or a channel of an SSH session to the device or to a host near it.

A driver never opens a socket by itself: it uses its context's way. So a device without authentication can be reached
through a host (``via:`` in the inventory), and host keys are checked in one place.
"""

import socket
from typing import Protocol

from lumctl import tcp
from lumctl.devices.errors import DeviceUnreachableError, UnsupportedError
from lumctl.devices.permission import require_permission


class Stream(Protocol):
    """A connected byte stream: a socket, or a channel of an SSH session."""

    def settimeout(self, seconds: float | None, /) -> None:
        """Limit the time of each of the following calls."""
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
    """The standard input and output of a command on a host."""

    def fileno(self) -> int:
        """A descriptor for ``select``: readable when output has arrived or ended."""
        ...

    def recv_now(self, count: int, /) -> bytes:
        """As ``recv``; does not wait if the descriptor is readable. Raises ``BlockingIOError`` without output."""
        ...

    def complaint(self) -> str:
        """The last line of the command's standard error; call this after its output has ended. Raises ``OSError``."""
        ...


class Way(Protocol):
    """How one device is reached."""

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Connect to the device's address; ``default_port`` applies if the inventory states no port.

        Raises:
            OSError: nothing answers there.
            DeviceUnreachableError: the intermediate host cannot be reached.
        """
        ...

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Open an SSH session to the device, check its host key, and open a subsystem such as ``netconf``.

        Raises:
            DeviceUnreachableError: nothing answers, the host key is unknown or changed, or no such subsystem.
            DeviceLoginError: the device accepts neither our keys nor the secret of its login.
        """
        ...


class Direct:
    """Direct TCP to an address; SSH is not supported."""

    def __init__(self, address: str) -> None:
        self._address = address

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Connect."""
        return _Permitted(tcp.connect(*host_and_port(self._address, default_port), timeout_s))

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Not supported."""
        del default_port, timeout_s
        raise UnsupportedError(f"{self._address}: there is no SSH session in which to open {name}")


class _Permitted:
    """A socket as a stream that sends only while that is permitted."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.settimeout = connected.settimeout
        self.recv = connected.recv
        self.close = connected.close

    def sendall(self, data: bytes, /) -> None:
        require_permission()
        self._socket.sendall(data)


class Nowhere:
    """The connection path of a device that has no address of its own."""

    def tcp(self, default_port: int, timeout_s: float) -> Stream:
        """Not supported."""
        del default_port, timeout_s
        raise DeviceUnreachableError("the device has no address of its own")

    def subsystem(self, name: str, default_port: int, timeout_s: float) -> Stream:
        """Not supported."""
        del name, default_port, timeout_s
        raise DeviceUnreachableError("the device has no address of its own")


def host_and_port(address: str, default_port: int) -> tuple[str, int]:
    """Split ``host``, ``host:port``, ``v6``, ``[v6]:port``, also after ``http://``; without a port, the default one."""
    address = address.rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    # In `[::1]` the last part ends with a bracket, so it is not taken for a port; in `::1` it belongs to the address.
    if not colon or not port.isdecimal() or (":" in host and not host.endswith("]")):
        return address.strip("[]"), default_port
    return host.strip("[]"), int(port)
