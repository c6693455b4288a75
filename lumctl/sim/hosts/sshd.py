"""The SSH server of one simulated host: paramiko's server side, one key, the commands of a host, and its loop."""

import contextlib
import math
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

import paramiko

from lumctl.sim.hosts.commands import CommandAnswer
from lumctl.sim.hosts.host import SimHost
from lumctl.sim.hosts.loop import HostLoop, Pipe
from lumctl.sim.hosts.shell import is_shell
from lumctl.sim.service import SimulatedService
from lumctl.sim.ssh import SshLogin, ssh_transport, start_server

_MOST_CONNECTIONS = 48
_MOST_COMMANDS = 32
_SEND_PATIENCE_S = 30.0
_MOST_READ = 64 * 1024
_MOST_AT_ONCE = 4 * 1024


class HostServer:
    """Serves one host; the threads of ``workers`` answer the requests."""

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
        """Open a shell of this host that waits for its program. The caller wakes it whenever data arrives."""
        loop = HostLoop(self.host, pipe, self.workers.submit)
        with self._lock:
            self._loops = [*(each for each in self._loops if not each.ended), loop]
        return loop

    def hang(self, answer: Callable[[], None]) -> None:
        """Store a command that hangs; its channel stays open until the command continues or the client times out."""
        with self._lock:
            self._hanging.append(answer)

    def go_on(self) -> None:
        """Let hanging commands continue: answer every command whose client still waits."""
        with self._lock:
            loops = list(self._loops)
            waiting, self._hanging = self._hanging, []
        for loop in loops:
            loop.go_on()
        for answer in waiting:
            self.workers.submit(answer)

    def cut(self) -> None:
        """Treat the host as lost: refuse and cut its connections, and end its loops that run behind another sshd."""
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

        transport = ssh_transport(connection, login, key=self.key, name=f"ssh {self.host.name}", closed=closed)
        start_server(transport, login)


class _ChannelPipe:
    """A channel as the input and output of a loop; the output is the error stream."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def read(self) -> bytes | None:
        # The end is checked first, so that data that arrived before it is read before it is reported.
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


class _Login(SshLogin):
    """What one connection may do: log in with the one key, run commands, and run the loop."""

    def __init__(self, server: HostServer) -> None:
        super().__init__(server.client_key)
        self._server = server
        self._waiting: list[tuple[paramiko.Channel, str]] = []
        self._loops: list[tuple[paramiko.Channel, HostLoop]] = []

    def dispatch(self) -> None:
        """Start the requested commands; their requests have been granted by now, as clients expect."""
        for channel, loop in self._loops:
            if channel.recv_ready() or channel.eof_received or channel.closed:
                loop.wake()
        waiting, self._waiting = self._waiting, []
        for channel, command in waiting:
            self._take_channel()
            if is_shell(command):
                loop = self._server.open_loop(_ChannelPipe(channel))
                self._loops = [*(each for each in self._loops if not each[1].ended), (channel, loop)]
                loop.wake()
                continue
            self._answer(channel, command)

    def wake_loops(self) -> None:
        """Wake the loops of a closed connection, so that they end."""
        for _, loop in self._loops:
            loop.wake()

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if len(self._open_channels()) >= _MOST_COMMANDS:
            return False
        self._hold(channel)
        self._waiting.append((channel, command.decode(errors="replace")))
        return True

    def _answer(self, channel: paramiko.Channel, command: str) -> None:
        answer = self._server.host.answer(command)
        if answer.delay_s == 0:
            if len(answer.stdout) + len(answer.stderr) <= _MOST_AT_ONCE:
                self._reply(channel, answer)
                return
            # Sending more than the client's window may block until the client reads. This thread receives from the
            # client, so it must not block.
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
