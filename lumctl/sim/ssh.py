"""What the SSH servers of simulated hosts and devices have in common: keys, a socket for paramiko, and the login."""

import contextlib
import io
import logging
import socket
import threading
from collections.abc import Callable

import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_SUCCEEDED,
)

# Clients that disconnect during the handshake are normal here, so paramiko's messages are not logged.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


def new_private_key() -> str:
    """Create an ephemeral ed25519 key; returns the text of its file in OpenSSH's format."""
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def loaded(private_key: str) -> paramiko.PKey:
    """Load a key from the text of its file."""
    return paramiko.Ed25519Key(file_obj=io.StringIO(private_key))


def known_host(address: str, port: int, key: paramiko.PKey) -> str:
    """The line of a ``known_hosts`` file for a server."""
    return f"[{address}]:{port} {key.get_name()} {key.get_base64()}\n"


_LOGIN_TICK_S, _LOGIN_TICKS = 1.0, 20
_IDLE_TICK_S = 600.0
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class Wire:
    """A socket for paramiko that waits in the kernel instead of waking ten times a second.

    ``on_read`` is called whenever paramiko is about to wait for the client: then the replies to everything that arrived
    before are sent. Until the login is complete the wait is bounded.
    """

    def __init__(self, connection: socket.socket, on_read: Callable[[], None], on_close: Callable[[], None]) -> None:
        self._socket = connection
        self._on_read = on_read
        self._on_close = on_close
        self._ticks_left = _LOGIN_TICKS
        self.logged_in: Callable[[], bool] = lambda: False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def recv(self, count: int) -> bytes:
        """Wait for data; ``b""`` when a client takes too long to log in."""
        self._on_read()
        logged_in = self.logged_in()
        if _QUICKACK is not None:
            # A client with Nagle's algorithm waits for our acknowledgement. Linux resets this option, so set it again.
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        self._socket.settimeout(_IDLE_TICK_S if logged_in else _LOGIN_TICK_S)
        try:
            return self._socket.recv(count)
        except TimeoutError:
            if not logged_in:
                self._ticks_left -= 1
                if self._ticks_left <= 0:
                    return b""
            # paramiko takes this as "nothing yet", and asks again.
            raise

    def send(self, data: bytes) -> int:
        """Send some of the bytes; returns how many."""
        return self._socket.send(data)

    def settimeout(self, _seconds: float | None) -> None:
        """Ignore the short time-out that paramiko requests: this class waits in the kernel."""

    def getpeername(self) -> tuple[str, int]:
        """An address, for logs only."""
        return ("127.0.0.1", 0)

    def __getattr__(self, name: str) -> object:
        """Other attributes that paramiko uses, from the socket itself."""
        return getattr(self._socket, name)

    def close(self) -> None:
        """Close the socket; may be called from any thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a recv() that waits in another thread
        self._on_close()


class SshLogin(paramiko.ServerInterface):
    """What one connection may do: log in with the one key, and open sessions."""

    def __init__(self, client_key: paramiko.PKey) -> None:
        self._client_key = client_key
        # paramiko itself holds channels by weak references only.
        self._open: list[paramiko.Channel] = []
        self.transport: paramiko.Transport | None = None

    def dispatch(self) -> None:
        """Start what was requested; the requests have been granted by now, as clients expect."""
        raise NotImplementedError

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002 - the signature is paramiko's
        """Only keys."""
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:  # noqa: ARG002
        """Accept the one key, with any user name."""
        return AUTH_SUCCESSFUL if key == self._client_key else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        """Accept sessions, and no forwarding."""
        return OPEN_SUCCEEDED if kind == "session" else OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def _open_channels(self) -> list[paramiko.Channel]:
        self._open = [each for each in self._open if not each.closed]
        return self._open

    def _hold(self, channel: paramiko.Channel | None) -> None:
        if channel is not None and channel not in self._open:
            self._open.append(channel)

    def _take_channel(self) -> None:
        """Take a channel off paramiko's list, which would otherwise only grow.

        It may be another channel, whose request is still to come. It is held, because garbage collection would close
        it.
        """
        if self.transport is not None:
            self._hold(self.transport.accept(0))


def ssh_transport(
    connection: socket.socket, login: SshLogin, *, key: paramiko.PKey, name: str, closed: Callable[[], None]
) -> paramiko.Transport:
    """A server's side of a connection, ready for :func:`start_server`; ``closed`` is called at its end."""
    wire = Wire(connection, on_read=login.dispatch, on_close=closed)
    transport = paramiko.Transport(wire)  # type: ignore[arg-type]  # it takes any object with a socket's methods
    transport.daemon = True
    transport.name = name
    transport.local_version = "SSH-2.0-lumctl_sim"
    transport.add_server_key(key)
    wire.logged_in = transport.is_authenticated
    login.transport = transport
    return transport


def start_server(transport: paramiko.Transport, login: SshLogin) -> None:
    """Begin the handshake, and return at once."""
    with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
        # With an event this returns at once; the handshake continues in the transport's own thread.
        transport.start_server(event=threading.Event(), server=login)
