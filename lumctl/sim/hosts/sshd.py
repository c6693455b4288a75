"""The SSH server of one simulated host: paramiko's server side, one key, the commands of a host, and its loop."""

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

from lumctl.sim.hosts.commands import CommandAnswer
from lumctl.sim.hosts.host import SimHost
from lumctl.sim.hosts.loop import HostLoop, Pipe
from lumctl.sim.hosts.shell import is_shell
from lumctl.sim.service import SimulatedService, Wire

_MOST_CONNECTIONS = 48
_MOST_COMMANDS = 32
_SEND_PATIENCE_S = 30.0
_MOST_READ = 64 * 1024
_MOST_AT_ONCE = 4 * 1024

# A client that goes away in the middle of a handshake is everyday life here and no news.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


class HostServer:
    """Serves one host; ``workers`` do the answering."""

    def __init__(self, host: SimHost, key: paramiko.PKey, client_key: paramiko.PKey, workers: Executor) -> None:
        self.host = host
        self.key = key
        self.client_key = client_key
        self.workers = workers
        self._lock = threading.Lock()
        self._hanging: list[Callable[[], None]] = []
        self._loops: list[HostLoop] = []
        self.service = SimulatedService(f"ssh {host.name}", self._serve, most=_MOST_CONNECTIONS)

    def open_loop(self, pipe: Pipe) -> HostLoop:
        """A shell of this host that waits for its program. Wake it whenever something comes in."""
        loop = HostLoop(self.host, pipe, self.workers.submit)
        with self._lock:
            self._loops = [*(each for each in self._loops if not each.ended), loop]
        return loop

    def hang(self, answer: Callable[[], None]) -> None:
        """Keep a command that hangs; its channel stays open until it continues, or the client gives it up."""
        with self._lock:
            self._hanging.append(answer)

    def go_on(self) -> None:
        """Let hanging commands continue: every command with a waiting client is answered."""
        with self._lock:
            loops = list(self._loops)
            waiting, self._hanging = self._hanging, []
        for loop in loops:
            loop.go_on()
        for answer in waiting:
            self.workers.submit(answer)

    def cut(self) -> None:
        """The host is lost: refuse and cut its connections, and the loops that run behind another's sshd."""
        self.service.shut()
        with self._lock:
            loops = list(self._loops)
        for loop in loops:
            loop.cut()

    def _serve(self, connection: socket.socket) -> None:
        login = _Login(self)

        def closed() -> None:
            login.wake_loops()
            self.service.done_with(connection)

        wire = Wire(connection, on_read=login.dispatch, on_close=closed)
        transport = paramiko.Transport(wire)  # type: ignore[arg-type]  # it takes any object with a socket's methods
        transport.daemon = True
        transport.name = f"ssh {self.host.name}"
        transport.local_version = "SSH-2.0-lumctl_sim"
        transport.add_server_key(self.key)
        wire.logged_in = transport.is_authenticated
        login.transport = transport
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
            # With an event this returns at once; the handshake continues in the transport's own thread.
            transport.start_server(event=threading.Event(), server=login)


class _ChannelPipe:
    """A channel as the input and output of a loop, which speaks on the error stream."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def read(self) -> bytes | None:
        # What came before the end is read before it.
        ended = self._channel.eof_received or self._channel.closed
        if self._channel.recv_ready():
            return self._channel.recv(_MOST_READ)
        return b"" if ended else None

    def write(self, data: bytes) -> None:
        self._channel.settimeout(_SEND_PATIENCE_S)
        try:
            self._channel.sendall_stderr(data)
        except paramiko.SSHException as error:
            raise EOFError(str(error)) from None

    def close(self, exit_status: int) -> None:
        try:
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self._channel.send_exit_status(exit_status)
        finally:
            self._channel.close()


class _Login(paramiko.ServerInterface):
    """What one connection may do: log in with the one key and run commands, and the loop."""

    def __init__(self, server: HostServer) -> None:
        self._server = server
        self._waiting: list[tuple[paramiko.Channel, str]] = []
        # paramiko itself holds channels by weak references only.
        self._open: list[paramiko.Channel] = []
        self._loops: list[tuple[paramiko.Channel, HostLoop]] = []
        self.transport: paramiko.Transport | None = None

    def dispatch(self) -> None:
        """Start the requested commands; their requests have been granted by now, as clients expect."""
        for channel, loop in self._loops:
            if channel.recv_ready() or channel.eof_received or channel.closed:
                loop.wake()
        waiting, self._waiting = self._waiting, []
        for channel, command in waiting:
            if self.transport is not None:
                # Takes a channel off a list that would only grow. Of several it may be another than this one, and
                # its command is still to come: it is held, or it would be collected as garbage, which closes it.
                self._hold(self.transport.accept(0))
            if is_shell(command):
                loop = self._server.open_loop(_ChannelPipe(channel))
                self._loops = [*(each for each in self._loops if not each[1].ended), (channel, loop)]
                loop.wake()
                continue
            self._answer(channel, command)

    def wake_loops(self) -> None:
        """The connection is gone, which ends the loops."""
        for _, loop in self._loops:
            loop.wake()

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
        answer = self._server.host.answer(command)
        if answer.delay_s == 0:
            if len(answer.stdout) + len(answer.stderr) <= _MOST_AT_ONCE:
                self._reply(channel, answer)
                return
            # More than the client's window may have to wait for it, and this is the thread that hears the client.
            with contextlib.suppress(RuntimeError):  # the simulator is ending
                self._server.workers.submit(self._reply, channel, answer)
        elif answer.delay_s < math.inf:
            timer = threading.Timer(answer.delay_s, self._reply, (channel, answer))
            timer.daemon = True
            timer.name = "slow answer"
            timer.start()
        else:
            self._server.hang(partial(self._answer, channel, command))

    def _reply(self, channel: paramiko.Channel, answer: CommandAnswer) -> None:
        try:
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                channel.settimeout(_SEND_PATIENCE_S)
                channel.sendall(answer.stdout.encode())
                channel.sendall_stderr(answer.stderr.encode())
                channel.send_exit_status(answer.exit_status)
        finally:
            channel.close()
