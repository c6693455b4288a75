"""What both SSH clients run over: a TCP connection, or the standard input and output of a ``ProxyCommand``."""

import contextlib
import os
import signal
import socket
import subprocess

_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}
"""A peer that vanished without a word is noticed within half a minute, whatever waits on it."""


class ProxyProcess:
    """A running ``ProxyCommand``. ``sock`` is our end of its standard input and output."""

    def __init__(self, command: str) -> None:
        self.sock, far = socket.socketpair()
        with far:
            # The user's own ssh_config holds this line, and ssh gives it to a shell as well.
            self._process = subprocess.Popen(  # noqa: S602
                f"exec {command}",
                shell=True,
                stdin=far.fileno(),
                stdout=far.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def exit_status(self) -> int | None:
        """The exit status, or ``None`` while it runs."""
        return self._process.poll()

    def end(self) -> None:
        """Tell it to end, before ``sock`` is closed: once it has ended by that, its process group may be another's.

        The whole group is told, for the command may be a pipe of several programs.
        """
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)

    def wait(self) -> None:
        """Wait until it has ended; kill it after a second."""
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def connect_tcp(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect to an address, with small packets sent at once and dead peers noticed.

    Raises:
        OSError: the address is not known, or nobody answers there.
    """
    sock = socket.create_connection((address, port), timeout=timeout_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock
