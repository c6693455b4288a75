"""Devices on loopback: mesh controllers that say what a test wants them to say, and a real NETCONF server.

``serve_netconf("MODULE", ..., module_paths=(FOLDER,))`` starts netconfd with YANG modules, for the tests of a module of
tests; ``serve_netconf().context("d1")`` is what a driver for it is given.
"""

import contextlib
import socket
import threading
from ast import literal_eval
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from netconfd import Netconfd

from lumctl.devices.types import PucState

Script = Callable[[socket.socket], None]


class Server:
    """Runs a script for each connection, one after the other, until it is closed."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._serving: socket.socket | None = None
        self.address = "{}:{}".format(*self._listener.getsockname())
        self.failures: list[Exception] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        # A closed listener, or a client that has gone, ends the wait: both are how tests end.
        with contextlib.suppress(OSError):
            while True:
                self._serving, _ = self._listener.accept()
                with self._serving, contextlib.suppress(OSError):
                    self._script(self._serving)

    def close(self) -> None:
        for each in (self._listener, self._serving):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
        self._thread.join()


@pytest.fixture
def serve() -> Iterator[Callable[[Script], str]]:
    """Start a scripted server and give its address."""
    servers: list[Server] = []

    def start(script: Script) -> str:
        servers.append(Server(script))
        return servers[-1].address

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def nobody() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return "{}:{}".format(*listener.getsockname())


class Twin:
    """A controller that does what it is told: the greeting, one line, its answer, the end.

    While it is ``halving`` it stops in the middle of each change, and says so.
    """

    def __init__(self, puc_count: int, *, piece: int = 4096, greeting: str = "mesh controller ready") -> None:
        self.states = dict.fromkeys(range(puc_count), PucState.BAR)
        self.lines: list[str] = []
        self.is_halving = False
        self._piece = piece
        self._greeting = greeting

    def __call__(self, connection: socket.socket) -> None:
        self._say(connection, f"{self._greeting}\n")
        with connection.makefile("r") as lines:
            line = lines.readline()
        if not line.endswith("\n"):
            return  # cut in the middle: a line that is not whole is no request
        self.lines.append(line)
        wanted = {puc: PucState(mark) for puc, mark in literal_eval(line)}
        if self.is_halving:
            self.states |= dict(list(wanted.items())[: len(wanted) // 2])
            self._say(connection, "error: stopped in the middle\n")
        elif wanted.keys() <= self.states.keys():
            self.states |= wanted
            self._say(connection, f"ok {len(wanted)} cells set\n")
        else:
            self._say(connection, "error: no such cell\n")

    @contextlib.contextmanager
    def halving(self) -> Iterator[None]:
        self.is_halving = True
        yield
        self.is_halving = False

    def restart(self) -> None:
        """Forget everything, as a controller without a memory does when its power was cut."""
        self.states = dict.fromkeys(self.states, PucState.BAR)

    def _say(self, connection: socket.socket, text: str) -> None:
        for start in range(0, len(text), self._piece):
            connection.sendall(text[start : start + self._piece].encode())


@pytest.fixture
def make_twin() -> type[Twin]:
    return Twin


@pytest.fixture(scope="module")
def serve_netconf(require_program) -> Iterator[Callable[..., Netconfd]]:
    """Start netconfd behind sshd; with no module named, with one of joins."""
    with contextlib.ExitStack() as running:

        def start(*modules: str, **options: Any) -> Netconfd:
            server = Netconfd(require_program, modules or ("lumctl-joins",), **options)
            running.callback(server.close)
            return server

        yield start
