"""A chassis with two transponders whose lanes face each other, alone on loopback, and drivers for it."""

import importlib.util
import io
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
import pytest
from lumctl_openconfig import OpenConfigTransponder

from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.types import PucState
from lumctl.fabric import changes, mesh, route
from lumctl.inventory.load import load_inventory
from lumctl.sim import ssh
from lumctl.sim.chassis.chassis import Chassis, modules_of
from lumctl.sim.netconf import NetconfServer
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.world import World

RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-2]
    accelerators:
      - id: "{host}-gpu0"
        model: X100
        memory_gib: 80
        pci: 0000:17:00.0
devices:
  - id: chip
    kind: mesh
    driver: smartlight
    address: chip.example:65432
    geometry: {columns: 3, rows: 2}
  - id: shelf
    kind: chassis
    driver: openconfig
    address: shelf.example:830
transponders:
  - id: h[1-2]-gpu0-a
    accelerator: h[1-2]-gpu0
    interface: eth2
    device: chip
    port: [0, 4]
    module: shelf/och-[1-2]
"""
SHAPE = mesh(3, 2)


class Login:
    """A way that logs in with a key and asks for nothing else."""

    def __init__(self, port, private_key):
        self._port = port
        self.streams = []
        self._key = paramiko.Ed25519Key(file_obj=io.StringIO(private_key))

    def tcp(self, _default_port, _timeout_s):
        raise AssertionError("the driver speaks NETCONF only")

    def subsystem(self, name, default_port, timeout_s):
        assert (name, default_port) == ("netconf", 830)
        transport = paramiko.Transport(socket.create_connection(("127.0.0.1", self._port), timeout=timeout_s))
        try:
            transport.start_client(timeout=timeout_s)
            transport.auth_publickey("lumctl", self._key)
            channel = transport.open_session(timeout=timeout_s)
            channel.invoke_subsystem(name)
        except BaseException as error:
            transport.close()
            if isinstance(error, paramiko.SSHException | EOFError):
                raise OSError(str(error)) from error
            raise
        self.streams.append(Stream(transport, channel))
        return self.streams[-1]


@dataclass
class Stream:
    transport: paramiko.Transport
    channel: paramiko.Channel

    def settimeout(self, seconds):
        self.channel.settimeout(seconds)

    def recv(self, count):
        return self.channel.recv(count)

    def sendall(self, data):
        try:
            self.channel.sendall(data)
        except EOFError as error:
            raise ConnectionError("the connection was lost") from error

    def close(self):
        self.transport.close()
        self.transport.join(5)


@dataclass
class Shelf:
    """A world with one chassis in it, served. ``conduct`` and ``spoil`` are what tests make it do."""

    world: World
    private_key: str
    candidate: bool = True
    conduct: Misbehaviour = field(default_factory=Misbehaviour)
    operations: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.spoil = lambda _operation, answer: answer
        self.server = NetconfServer(
            "shelf",
            Chassis(self.world, modules_of(self.world.inventory, "shelf")),
            key=ssh.loaded(ssh.new_private_key()),
            client_key=ssh.loaded(self.private_key),
            candidate=self.candidate,
            conduct=lambda: self.conduct,
        )
        self.server.spoil = self._sent
        self.server.service.open()
        self.ways = []
        self._drivers = []

    def _sent(self, operation, answer):
        self.operations.append(operation)
        return self.spoil(operation, answer)

    def driver(self, component="och-1", *, timeout_s=5.0):
        port = self.server.service.port
        way = Login(port, self.private_key)
        self.ways.append(way)
        context = DriverContext(
            device=f"shelf/{component}",
            address=f"127.0.0.1:{port}",
            way=way,
            component=component,
            timeout_s=timeout_s,
            now=time.time,
        )
        self._drivers.append(OpenConfigTransponder(context))
        return self._drivers[-1]

    def cut(self):
        """Cut every session, and see that the drivers' ends have been told."""
        self.server.service.cut()
        streams = [stream for way in self.ways for stream in way.streams]
        assert becomes_true(lambda: not any(stream.transport.is_active() for stream in streams))

    def module(self, number=1):
        return self.world.module(f"h{number}-gpu0-a")

    def close(self):
        for driver in self._drivers:
            driver.close()
        self.server.close()


@pytest.fixture
def make_shelf(tmp_path):
    shelves = []

    def make(*, candidate=True):
        path = tmp_path / "rack.yaml"
        path.write_text(RACK)
        world = World(load_inventory(path), seed=0, now=time.time)
        dark = dict.fromkeys(range(SHAPE.puc_count), PucState.BAR)
        world.meshes.write("chip", changes(dark, route(SHAPE, [(0, 4)], states=dark)))
        shelves.append(Shelf(world, ssh.new_private_key(), candidate))
        return shelves[-1]

    yield make
    for shelf in shelves:
        shelf.close()


@pytest.fixture
def shelf(make_shelf):
    return make_shelf()


@pytest.fixture(scope="session")
def netconfd_class():
    path = Path(__file__).parents[1] / "netconfd.py"
    spec = importlib.util.spec_from_file_location("netconfd", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded.Netconfd
