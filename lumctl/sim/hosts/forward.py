"""Let a real sshd serve a simulated host: ``ForceCommand python -m lumctl.sim.hosts.forward CONTROL_SOCKET HOST``."""

import os
import select
import socket
import sys
from pathlib import Path

from lumctl.errors import LumctlError
from lumctl.sim.client import ask, open_loop
from lumctl.sim.hosts.shell import is_shell

_LOST = 255
_KILLED = 137
_MOST_READ = 64 * 1024


def forward(control: Path, host: str, command: str) -> int:
    """Run one command on a simulated host: print what it prints and return its exit status."""
    if is_shell(command):
        return _forward_shell(control, host)
    try:
        given = ask(control, "answer", host=host, command=command)
    except LumctlError as error:
        sys.stderr.write(f"{error.message}\n")
        return _LOST
    if given["delay_s"] != 0 and _client_gone_within(given["delay_s"]):
        return _LOST
    sys.stdout.write(given["stdout"])
    sys.stdout.flush()
    sys.stderr.write(given["stderr"])
    return int(given["exit_status"])


def _forward_shell(control: Path, host: str) -> int:
    """Connect stdin and stderr to the loop of a simulated host until either side ends."""
    try:
        connection = open_loop(control, host)
    except LumctlError as error:
        sys.stderr.write(f"{error.message}\n")
        return _LOST
    with connection:
        try:
            return _carry(connection, sys.stdin.fileno(), sys.stderr.fileno())
        except OSError:  # one side closed the connection during a transfer
            return _LOST


def _carry(connection: socket.socket, source: int, sink: int) -> int:
    poll = select.poll()
    poll.register(source, select.POLLIN)
    poll.register(connection, select.POLLIN)
    poll.register(sink, 0)  # a hang-up is always reported
    status = _LOST
    while True:
        ready = dict(poll.poll())
        if sink in ready:
            return status
        if connection.fileno() in ready:
            data = connection.recv(_MOST_READ)
            if not data:
                return status
            _write(sink, data)
        if source in ready:
            data = os.read(source, _MOST_READ)
            if data:
                connection.sendall(data)
            else:
                # The end of the input ends the loop; its remaining output is still forwarded.
                connection.shutdown(socket.SHUT_WR)
                poll.unregister(source)
                status = _KILLED


def _write(sink: int, data: bytes) -> None:
    while data:
        data = data[os.write(sink, data) :]


def _client_gone_within(seconds: float | None) -> bool:
    """Whether sshd closes our output within some seconds (``None``: no limit): then the client disconnected."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # a hang-up is always reported
    return bool(poll.poll(None if seconds is None else seconds * 1000))


if __name__ == "__main__":
    sys.exit(forward(Path(sys.argv[1]), sys.argv[2], os.environ.get("SSH_ORIGINAL_COMMAND", "")))
