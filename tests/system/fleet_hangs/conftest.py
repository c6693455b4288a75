"""Hosts that misbehave on purpose: SSH servers on loopback whose loop is a test's script instead of a shell."""

# ruff: noqa: ARG002 - the signatures of a server's methods are paramiko's

import contextlib
import dataclasses
import itertools
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest

from lumctl.devices.endpoints import Endpoints, HostEndpoint
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.probes import probes_for
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import SshSettings
from lumctl.inventory.probe_times import PROBE_TIMES

CONNECT_S, DEADLINE_S = 1.0, 0.4
PATIENCE_S = 20.0
TIMES = {kind: dataclasses.replace(times, deadline_s=DEADLINE_S) for kind, times in PROBE_TIMES.items()}
ASKED = ("gpu", "nvlink", "kernel", "net")
PROBES = tuple(probe for probe in probes_for(("eno1",), sudo=False, times=TIMES) if probe.name in ASKED)
"""Two in one lane, one in a lane of its own, and one that the loop itself answers."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The limits here are short: a machine that is busy with other tests would be called hung."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker(pytest.mark.timed)


ANSWERS = {
    "gpu": (127, b"sh: 1: nvidia-smi: not found"),
    "nvlink": (127, b"sh: 1: nvidia-smi: not found"),
    "kernel": (0, b""),
    "net": (0, b"/sys/class/net/lo/operstate:unknown\n/sys/class/net/eno1/operstate:up"),
}
GREETING = b"lumctl-loop 2 0d5e7fb1-7a7e-4d43-9e0f-4f4f0b1a2c3d 100.00\n"


class Loop:
    """The host's end of a channel that runs ``exec sh``."""

    def __init__(self, twin: "Twin", channel: paramiko.Channel) -> None:
        self.twin = twin
        self.channel = channel
        self._lines = channel.makefile("rb")

    def begin(self) -> None:
        """Take the program and greet."""
        self.take_program()
        self.say(GREETING)

    def take_program(self) -> None:
        for line in self._lines:
            if line == b"main; exit\n":
                return

    def asked(self) -> Iterator[tuple[str, int, int]]:
        """What is asked for: the probe by name, the number of the request, the number of the probe."""
        for line in self._lines:
            request, *numbers = map(int, line.split())
            for number in numbers:
                self.twin.asked.append(PROBES[number].name)
                yield PROBES[number].name, request, number

    def say(self, data: bytes) -> None:
        self.channel.sendall_stderr(data)

    def answer(self, name: str, request: int, number: int) -> None:
        self.say(frame(name, request, number))

    def serve(self) -> None:
        """Be well from here on."""
        for asked in self.asked():
            self.answer(*asked)


def frame(name: str, request: int, number: int) -> bytes:
    status, text = ANSWERS[name]
    return b"= %d %d %d %d\n%s\n" % (number, request, status, len(text), text)


def well(loop: Loop) -> None:
    loop.begin()
    loop.serve()


class Wire:
    """A socket that tells when the server is about to read on: what it had to answer before is sent by then.

    From the byte ``mute_from`` on, what the server sends is lost. Without ``hears`` it takes in nothing more.
    """

    def __init__(self, sock: socket.socket, mute_from: float) -> None:
        self._sock = sock
        self._left = mute_from
        self.hears = threading.Event()
        self.hears.set()
        self.then: list[Callable[[], None]] = []

    def recv(self, size: int) -> bytes:
        while self.then:
            threading.Thread(target=self.then.pop(0), daemon=True).start()
        data = self._sock.recv(size)
        self.hears.wait(PATIENCE_S)
        return data

    def send(self, data: bytes) -> int:
        if self._left < len(data):
            if self._left > 0:
                self._sock.sendall(data[: int(self._left)])
            self._left = 0
            return len(data)
        sent = self._sock.send(data)
        self._left -= sent
        return sent

    def __getattr__(self, name: str) -> object:
        return getattr(self._sock, name)


class Server(paramiko.ServerInterface):
    """Lets everybody in."""

    def __init__(self, twin: "Twin", wire: Wire) -> None:
        self.twin = twin
        self.wire = wire

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        self.twin.freeze("login")
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind, chanid):
        self.twin.freeze("open")
        return self.twin.opens

    def check_channel_exec_request(self, channel, command):
        words = command.decode()
        self.twin.commands.append(words)
        self.twin.freeze("exec")
        self.twin.channels.append(channel)
        if self.twin.runs:
            self.wire.then.append(lambda: self._act(channel, words))
        return self.twin.runs

    def _act(self, channel, words):
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            if words == "exec sh":
                self.twin.script(Loop(self.twin, channel))
            else:
                self.twin.act(channel, words)


def reply(channel, _words, text="up\n", status=0):
    channel.sendall(text.encode())
    channel.send_exit_status(status)
    channel.close()


class Twin:
    """One host. A test sets how it behaves; :meth:`heal` makes it well again."""

    def __init__(self, name, folder):
        self.name = name
        self.key = paramiko.ECDSAKey.generate()
        self.let_go = threading.Event()
        self.commands, self.asked, self.connects = [], [], []
        self.channels, self.transports, self.wires = [], [], []
        self._sockets = []
        self.heal()
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        known = folder / f"{name}.known"
        known.write_text(f"[127.0.0.1]:{port} {self.key.get_name()} {self.key.get_base64()}\n")
        settings = SshSettings(user="u", port=port, key_file=folder / "key", config_file=folder / "config")
        self.endpoint = HostEndpoint(name, "127.0.0.1", settings, known)
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def heal(self):
        """From now on: whoever comes is served well, and what was frozen continues."""
        self.script, self.act = well, reply
        self.opens, self.runs = paramiko.OPEN_SUCCEEDED, True
        self.mute_from = math.inf
        self.greets: Callable[[socket.socket], None] | None = None
        self.frozen: str | None = None
        self.reached = threading.Event()
        self.let_go.set()
        self.let_go = threading.Event()
        for wire in self.wires:
            wire.hears.set()

    def freeze(self, where):
        """Hold the server here if that is what a test wants."""
        if self.frozen == where:
            self.reached.set()
            self.let_go.wait(PATIENCE_S)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock = self._listener.accept()[0]
                self.connects.append(time.monotonic())
                self._sockets.append(sock)
                if self.greets:
                    threading.Thread(target=self._greet, args=(sock,), daemon=True).start()
                    continue
                wire = Wire(sock, self.mute_from)
                transport = paramiko.Transport(wire)
                transport.daemon = True
                transport.add_server_key(self.key)
                self.wires.append(wire)
                self.transports.append(transport)
                transport.start_server(event=threading.Event(), server=Server(self, wire))

    def _greet(self, sock):
        with contextlib.suppress(OSError):
            self.greets(sock)

    def cut(self):
        """Every connection is lost, and the client learns of it."""
        # Of those that are there now: the client may be back before the last of them is cut.
        for sock in tuple(self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def begin_new_keys(self):
        """Ask for new keys, and then take no part in agreeing on them."""
        self.wires[-1].hears.clear()
        with contextlib.suppress(paramiko.SSHException, EOFError):
            self.transports[-1].renegotiate_keys()

    def close(self):
        self.heal()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(5)
        self.cut()
        for transport in self.transports:
            transport.close()
            # paramiko's watch over a handshake has a thread that outlives the connection.
            transport.packetizer.complete_handshake()
            transport.join(5)
        for sock in self._sockets:
            sock.close()


@pytest.fixture
def twins(tmp_path):
    """Make hosts."""
    paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / "key"))
    (tmp_path / "config").touch()
    made: list[Twin] = []

    def make(count: int = 1) -> list[Twin]:
        new = [Twin(f"h{len(made) + at}", tmp_path) for at in range(count)]
        made.extend(new)
        return new

    yield make
    for twin in made:
        twin.close()


@pytest.fixture
def fleet_of():
    """A fleet of some hosts, closed after the test."""
    inventory = load_inventory(example("prototype"))
    opened: list[Fleet] = []

    def of(*hosts: Twin) -> Fleet:
        at = Endpoints("rack", {twin.name: twin.endpoint for twin in hosts}, {})
        opened.append(Fleet(inventory, at, connect_timeout_s=CONNECT_S, probes_of=lambda _: PROBES))
        return opened[-1]

    yield of
    for each in opened:
        each.close()


@pytest.fixture
def twin(twins):
    return twins()[0]


@pytest.fixture
def fleet(fleet_of, twin):
    return fleet_of(twin)


@pytest.fixture
def read(fleet, twin):
    """Read the one host: what it is, and what became of one probe."""

    def read(probe="net", **how):
        host = fleet.collect(probes=[probe], **how).hosts[twin.name]
        return host, host.probes.get(probe)

    return read


@pytest.fixture
def until():
    """Look again until something holds."""

    def until(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
        ends = time.monotonic() + within_s
        for _ in itertools.takewhile(lambda _: time.monotonic() < ends, itertools.count()):
            if holds():
                return True
            threading.Event().wait(0.01)
        return False

    return until
