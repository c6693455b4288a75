"""From a route to an authenticated SSH connection, or to one line that says why there is none."""

import logging
import os
import socket
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.formats.complaint import first_line
from lumctl.errors import LumctlError
from lumctl.fleet.ssh.connection import Client, SshConnection
from lumctl.fleet.ssh.credentials import Credentials
from lumctl.fleet.ssh.fast_client import FastClient
from lumctl.fleet.ssh.host_keys import HostKey, KnownHosts, KnownHostsCache
from lumctl.fleet.ssh.paramiko_internals import missing
from lumctl.fleet.ssh.plain_client import PlainClient
from lumctl.fleet.ssh.routes import SshRoute

T = TypeVar("T")

PLAIN_VARIABLE = "LUMCTL_PLAIN_SSH"

_RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, "no answer within {timeout_s:g} s"),
    (socket.gaierror, "this address is not known"),
    (ConnectionRefusedError, "connection refused"),
    (paramiko.ChannelException, "the jump host cannot reach it"),
    (EOFError, "the connection was closed before SSH began"),
    (IncompatiblePeer, "it has no SSH algorithm in common with us"),
)

# paramiko reports a failed handshake to its own log as well; without a handler that ends up on the user's screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


def plain_reason() -> str | None:
    """Why hosts are read over paramiko's public API alone, or ``None`` if they are not."""
    if os.environ.get(PLAIN_VARIABLE, "") not in {"", "0"}:
        return f"{PLAIN_VARIABLE} is set"
    if lacking := missing():
        return f"paramiko {paramiko.__version__} lacks {', '.join(lacking)}"
    return None


class Connector:
    """Connects; keys, known hosts and jump hosts are shared by all its connections."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._client: Client = FastClient() if plain_reason() is None else PlainClient()
        self._credentials = Credentials(self._client.agent_key)
        self._known_hosts = KnownHostsCache()
        self._lock = Lock()
        self._jumps: dict[SshRoute, tuple[Lock, list[SshConnection]]] = {}

    def known_hosts(self, route: SshRoute) -> KnownHosts:
        """The known-hosts files of a route, as they are now."""
        return self._known_hosts.of(route.known_hosts)

    def connect(
        self,
        route: SshRoute,
        *,
        password: Callable[[], str] | None = None,
        over: paramiko.Channel | None = None,
        timeout_s: float | None = None,
    ) -> SshConnection:
        """Connect, check the host's key, authenticate.

        ``password`` is fetched only if it is asked for. ``over`` is a channel that leads there already; it is
        closed with the connection, or if there is none.

        Raises:
            HostKeyError: the key is unknown or changed.
            AuthenticationFailedError: the host lets us in with none of our keys, and not with the password.
            DeviceUnreachableError: nobody answers, or not in time, or not in SSH.
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        connection, shown = self._negotiate(route, deadline, timeout_s, over)
        try:
            self.known_hosts(route).check(route.key_name, route.label, shown)
            where = f"{route.label}: {route.address} port {route.port}"
            transport = connection.transport
            _or_unreachable(
                where, timeout_s, lambda: self._credentials.authenticate(transport, route, deadline, password)
            )
        except BaseException:
            connection.close()
            raise
        connection.end_timeouts()
        return connection

    def shown_key(self, route: SshRoute) -> HostKey:
        """The key that a host shows now, whether it is known or not. Nothing is authenticated, nothing is sent.

        Raises:
            DeviceUnreachableError: nobody answers; or a jump host on the way is not known itself.
        """
        connection, shown = self._negotiate(route, time.monotonic() + self._timeout_s, self._timeout_s)
        connection.close()
        return shown

    def close(self) -> None:
        """Hang up on the jump hosts."""
        with self._lock:
            jumps, self._jumps = self._jumps, {}
        for _, held in jumps.values():
            for connection in held:
                connection.close()

    def _negotiate(
        self, route: SshRoute, deadline: float, timeout_s: float, over: paramiko.Channel | None = None
    ) -> tuple[SshConnection, HostKey]:
        where = f"{route.label}: {route.address} port {route.port}"
        connection = _or_unreachable(where, timeout_s, lambda: self._open(route, deadline, over))
        transport = connection.transport
        try:
            # Our own deadline comes first, and says what it is.
            transport.banner_timeout = transport.handshake_timeout = _left(deadline) + 1.0
            self._prefer(transport, route)
            key = _or_unreachable(where, timeout_s, lambda: _shake_hands(transport, deadline))
        except BaseException:
            connection.close()
            raise
        return connection, HostKey(key.get_name(), key.asbytes())

    def _open(self, route: SshRoute, deadline: float, over: paramiko.Channel | None) -> SshConnection:
        if over is not None:
            return self._client.over_channel(over)
        if route.jump:
            jump = self._jump(route.jump)
            target, source = (route.address, route.port), ("127.0.0.1", 0)
            return self._client.over_channel(
                jump.transport.open_channel("direct-tcpip", target, source, timeout=_left(deadline))
            )
        if route.proxy_command:
            return self._client.over_command(route.proxy_command)
        return self._client.over_tcp(route.address, route.port, _left(deadline))

    def _jump(self, route: SshRoute) -> SshConnection:
        """The one connection to a jump host that all hosts behind it share."""
        with self._lock:
            lock, held = self._jumps.setdefault(route, (Lock(), []))
        with lock:
            if held and not held[-1].alive():
                held.pop().close()
            if not held:
                held.append(self.connect(route))
            return held[-1]

    def _prefer(self, transport: paramiko.Transport, route: SshRoute) -> None:
        """Ask first for the kind of key that is known: a host has several, and another one would look changed."""
        options = transport.get_security_options()
        kinds = {
            signature
            for known in self.known_hosts(route).keys_of(route.key_name)
            for signature in (_RSA_SIGNATURES if known.key.kind == "ssh-rsa" else (known.key.kind,))
        }
        options.key_types = sorted(options.key_types, key=lambda kind: kind not in kinds)
        # Authenticated encryption in one pass of hardware-supported code: less work per packet for both ends.
        options.ciphers = sorted(options.ciphers, key=lambda cipher: "gcm" not in cipher)


def _shake_hands(transport: paramiko.Transport, deadline: float) -> paramiko.PKey:
    transport.start_client(timeout=_left(deadline))
    # start_client returns when its time is over, too; then there is no key yet, and asking for it says so.
    if time.monotonic() >= deadline:
        raise TimeoutError
    return transport.get_remote_server_key()


def _left(deadline: float) -> float:
    return max(0.05, deadline - time.monotonic())


def _or_unreachable(where: str, timeout_s: float, call: Callable[[], T]) -> T:
    try:
        return call()
    except LumctlError:
        raise
    except Exception as error:  # noqa: BLE001 - the transport's thread died of it, and hostile bytes can cause anything
        raise DeviceUnreachableError(f"{where}: {_reason(error, timeout_s)}") from None


def _reason(error: Exception, timeout_s: float) -> str:
    """What went wrong, in words an operator knows."""
    for kind, words in _REASONS:
        if isinstance(error, kind):
            return words.format(timeout_s=timeout_s)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, paramiko.SSHException) and "banner" in str(error):
        return "no SSH server answers there"
    return first_line(str(error)) or type(error).__name__
