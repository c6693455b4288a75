"""Make an authenticated SSH connection from a route, or raise an error that states the reason in one line."""

import logging
import os
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from lumctl import tcp
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.formats.complaint import first_line
from lumctl.errors import LumctlError
from lumctl.fleet.ssh.connection import Client, SshConnection, time_left_s
from lumctl.fleet.ssh.credentials import Credentials
from lumctl.fleet.ssh.fast_client import FastClient
from lumctl.fleet.ssh.host_keys import HostKey, KnownHosts, KnownHostsCache
from lumctl.fleet.ssh.paramiko_internals import missing
from lumctl.fleet.ssh.plain_client import PlainClient
from lumctl.fleet.ssh.routes import SshRoute

T = TypeVar("T")

PLAIN_VARIABLE = "LUMCTL_PLAIN_SSH"

# known_hosts says ssh-rsa for every RSA key, but a handshake names the signature. ssh-rsa itself means SHA-1 there,
# which current servers refuse.
_RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, "no answer within {timeout_s:g} s"),
    (ConnectionRefusedError, "connection refused"),
    (paramiko.ChannelException, "the jump host cannot reach it"),
    (EOFError, "the connection was closed before SSH began"),
    (IncompatiblePeer, "it and lumctl have no SSH algorithm in common"),
)

# paramiko also reports a failed handshake to its own log. Without a handler, that report appears on the user's screen.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


def plain_reason() -> str | None:
    """Why only paramiko's public API is used (the plain client), or ``None`` if the fast client is used."""
    if os.environ.get(PLAIN_VARIABLE, "") not in {"", "0"}:
        return f"{PLAIN_VARIABLE} is set"
    if lacking := missing():
        return f"paramiko {paramiko.__version__} lacks {', '.join(lacking)}"
    return None


class Connector:
    """Makes connections that share keys, known hosts and jump hosts."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._client: Client = FastClient() if plain_reason() is None else PlainClient()
        self._credentials = Credentials(self._client.agent_key)
        self._known_hosts = KnownHostsCache()
        self._lock = Lock()
        # A lock for each jump host: a slow login to one must not hold up the hosts behind another.
        self._jumps: dict[SshRoute, tuple[Lock, list[SshConnection]]] = {}

    def known_hosts(self, route: SshRoute) -> KnownHosts:
        """The present contents of a route's known-hosts files."""
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

        ``password`` is called only if a password is needed. ``over`` is a channel that already leads to the host. It is
        closed with the connection, or if no connection can be made.

        Raises:
            HostKeyError: the key is unknown or changed.
            AuthenticationFailedError: the host accepts none of our keys, and not the password.
            DeviceUnreachableError: there is no answer, or not in time, or the answer is not SSH.
        """
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        connection, shown = self._negotiate(route, deadline, timeout_s, over)
        try:
            # Before the login: a password must not go to a host that only pretends to be this one.
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
        """The key that a host presents now, whether it is known or not. No login is attempted.

        Raises:
            DeviceUnreachableError: there is no answer, or the key of a jump host is unknown.
        """
        connection, shown = self._negotiate(route, time.monotonic() + self._timeout_s, self._timeout_s)
        connection.close()
        return shown

    def close(self) -> None:
        """Close the connections to jump hosts."""
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
            # Our own deadline passes before paramiko's limits, so that its error message is shown.
            transport.banner_timeout = transport.handshake_timeout = time_left_s(deadline) + 1.0
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
            # The source is the client for whom the channel is opened (RFC 4254). There is none here.
            target, source = (route.address, route.port), ("127.0.0.1", 0)
            return self._client.over_channel(
                jump.transport.open_channel("direct-tcpip", target, source, timeout=time_left_s(deadline))
            )
        if route.proxy_command:
            return self._client.over_command(route.proxy_command)
        return self._client.over_tcp(route.address, route.port, time_left_s(deadline))

    def _jump(self, route: SshRoute) -> SshConnection:
        """The connection to a jump host, shared by all hosts behind it."""
        with self._lock:
            lock, held = self._jumps.setdefault(route, (Lock(), []))
        with lock:
            if held and not held[-1].alive():
                held.pop().close()
            if not held:
                held.append(self.connect(route))
            return held[-1]

    def _prefer(self, transport: paramiko.Transport, route: SshRoute) -> None:
        """Prefer the known kinds of host key: a host has several keys, and one of another kind would look changed."""
        options = transport.get_security_options()
        kinds = {
            signature
            for known in self.known_hosts(route).keys_of(route.key_name)
            for signature in (_RSA_SIGNATURES if known.key.kind == "ssh-rsa" else (known.key.kind,))
        }
        # Other kinds stay allowed: otherwise a host with a new kind of key has no algorithm in common with us, and no
        # message says that its key has changed.
        options.key_types = sorted(options.key_types, key=lambda kind: kind not in kinds)
        # GCM encrypts and authenticates in one pass with hardware support: less work per packet for both ends.
        options.ciphers = sorted(options.ciphers, key=lambda cipher: "gcm" not in cipher)


def _shake_hands(transport: paramiko.Transport, deadline: float) -> paramiko.PKey:
    transport.start_client(timeout=time_left_s(deadline))
    # start_client also returns when its time is over. Then there is no key yet, and asking for the key would raise.
    if time.monotonic() >= deadline:
        raise TimeoutError
    return transport.get_remote_server_key()


def _or_unreachable(where: str, timeout_s: float, call: Callable[[], T]) -> T:
    try:
        return call()
    except LumctlError:
        raise
    except Exception as error:  # noqa: BLE001 - it ended the transport's thread; hostile bytes can cause any error
        raise DeviceUnreachableError(f"{where}: {_reason(error, timeout_s)}") from None


def _reason(error: Exception, timeout_s: float) -> str:
    """The reason for an error, in the operator's words."""
    for kind, words in _REASONS:
        if isinstance(error, kind):
            return words.format(timeout_s=timeout_s)
    # After the table, because TimeoutError and ConnectionRefusedError are OSErrors too.
    if isinstance(error, OSError) and error.strerror:
        return tcp.reason(error)
    if isinstance(error, paramiko.SSHException) and "banner" in str(error):
        return "no SSH server answers there"
    return first_line(str(error)) or type(error).__name__
