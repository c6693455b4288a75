"""The SSH server of one simulated host: paramiko's server side, one key, and the commands of :mod:`.commands`."""

import contextlib
import logging
import math
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_SUCCEEDED,
)

from lumctl.sim.commands import Answer
from lumctl.sim.service import Service

_MOST_CONNECTIONS = 48
_MOST_COMMANDS = 32
_LOGIN_TICK_S, _LOGIN_TICKS = 1.0, 20
_IDLE_TICK_S = 600.0
_SEND_PATIENCE_S = 30.0
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)

# A client that goes away in the middle of a handshake is everyday life here and no news.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


class HostServer:
    """Serves one host. ``run`` answers a command; ``workers`` do the answering."""

    def __init__(
        self,
        host: str,
        key: paramiko.PKey,
        client_key: paramiko.PKey,
        run: Callable[[str], Answer],
        workers: Executor,
    ) -> None:
        self.key = key
        self.client_key = client_key
        self.run = run
        self.workers = workers
        self._host = host
        self._hanging: list[Callable[[], None]] = []
        self.service = Service(f"ssh {host}", self._serve, most=_MOST_CONNECTIONS)

    def hang(self, answer: Callable[[], None]) -> None:
        """Keep a command that hangs; its channel stays open until it goes on, or the client gives it up."""
        self._hanging.append(answer)

    def go_on(self) -> None:
        """What hung hangs no more: every command that is still waited for is answered."""
        waiting, self._hanging = self._hanging, []
        for answer in waiting:
            self.workers.submit(answer)

    def _serve(self, connection: socket.socket) -> None:
        login = _Login(self)
        wire = _Wire(connection, on_read=login.dispatch, on_close=lambda: self.service.done_with(connection))
        transport = paramiko.Transport(wire)  # type: ignore[arg-type]  # it takes any object with a socket's methods
        transport.daemon = True
        transport.name = f"ssh {self._host}"
        transport.local_version = "SSH-2.0-lumctl_sim"
        transport.add_server_key(self.key)
        wire.logged_in = transport.is_authenticated
        login.transport = transport
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
            # With an event this returns at once; the handshake goes on in the transport's own thread.
            transport.start_server(event=threading.Event(), server=login)


class _Wire:
    """A socket for paramiko that waits in the kernel instead of waking ten times a second.

    ``on_read`` is called whenever paramiko is about to wait for the client, that is: when the replies to all that
    came before are sent. Before the login is done the wait is bounded.
    """

    def __init__(self, connection: socket.socket, on_read: Callable[[], None], on_close: Callable[[], None]) -> None:
        self._socket = connection
        self._on_read = on_read
        self._on_close = on_close
        self._closed = False  # paramiko reads this attribute of a socket
        self._ticks_left = _LOGIN_TICKS
        self.logged_in: Callable[[], bool] = lambda: False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def recv(self, count: int) -> bytes:
        self._on_read()
        logged_in = self.logged_in()
        if _QUICKACK is not None:
            # A client that leaves Nagle's algorithm on waits for our acknowledgement; Linux forgets this option.
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        self._socket.settimeout(_IDLE_TICK_S if logged_in else _LOGIN_TICK_S)
        try:
            return self._socket.recv(count)
        except TimeoutError:
            if not logged_in:
                self._ticks_left -= 1
                if self._ticks_left <= 0:
                    return b""
            raise

    def send(self, data: bytes) -> int:
        return self._socket.send(data)

    def settimeout(self, _seconds: float | None) -> None:
        """Paramiko's wish for a short time-out is not followed: see above."""

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 0)

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a recv() that waits in another thread
        self._on_close()


class _Login(paramiko.ServerInterface):
    """What one connection may do: log in with the one key and run commands."""

    def __init__(self, server: HostServer) -> None:
        self._server = server
        self._waiting: list[tuple[paramiko.Channel, str]] = []
        # paramiko itself holds channels by weak references only.
        self._open: list[paramiko.Channel] = []
        self.transport: paramiko.Transport | None = None

    def dispatch(self) -> None:
        """Start the commands that were asked for; their requests have been granted by now, as clients expect."""
        waiting, self._waiting = self._waiting, []
        for channel, command in waiting:
            if self.transport is not None:
                # Takes a channel off a list that would only grow. Of several it may be another than this one, and
                # its command is still to come: it is held, or it would be collected as garbage, which closes it.
                self._hold(self.transport.accept(0))
            with contextlib.suppress(RuntimeError):  # the simulator is ending
                self._server.workers.submit(self._answer, channel, command)

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002 - the signature is paramiko's
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:  # noqa: ARG002
        return AUTH_SUCCESSFUL if key == self._server.client_key else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        if kind != "session":
            return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._open = [each for each in self._open if not each.closed]
        if len(self._open) >= _MOST_COMMANDS:
            return False
        self._hold(channel)
        self._waiting.append((channel, command.decode(errors="replace")))
        return True

    def _hold(self, channel: paramiko.Channel | None) -> None:
        if channel is not None and channel not in self._open:
            self._open.append(channel)

    def _answer(self, channel: paramiko.Channel, command: str) -> None:
        answer = self._server.run(command)
        if answer.delay_s == 0:
            self._reply(channel, answer)
        elif answer.delay_s < math.inf:
            timer = threading.Timer(answer.delay_s, self._reply, (channel, answer))
            timer.daemon = True
            timer.name = "slow answer"
            timer.start()
        else:
            self._server.hang(partial(self._answer, channel, command))

    def _reply(self, channel: paramiko.Channel, answer: Answer) -> None:
        try:
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                channel.settimeout(_SEND_PATIENCE_S)
                channel.sendall(answer.stdout.encode())
                channel.sendall_stderr(answer.stderr.encode())
                channel.send_exit_status(answer.exit_status)
        finally:
            channel.close()
