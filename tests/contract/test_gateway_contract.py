"""The contract suite through a gateway: whatever is behind it, a program sees no difference."""

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from gateways import serving, through

from lumctl.devices.errors import UnsupportedError
from lumctl.devices.gateway.racks import GatewayMeans
from lumctl.devices.registry import DeviceSet
from lumctl.devices.testing import (
    MeshContract,
    MeshUnderTest,
    PowerContract,
    PowerUnderTest,
    SwitchContract,
    SwitchUnderTest,
    TransponderContract,
    TransponderUnderTest,
)
from lumctl.devices.types import Capability, PucState
from lumctl.fabric import changes, mesh, route
from lumctl.fleet.fleet import Fleet
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import PartOf
from lumctl.sim.client import ask
from lumctl.sim.launch import launch

RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-3]
    power: bmcs/slot-[1-3]
    accelerators:
      - {id: "{host}-gpu0", model: X100, memory_gib: 80, pci: "0000:17:00.0"}
devices:
  - {id: chip, kind: mesh, driver: sim-mesh, address: "a.example:1", geometry: {columns: 3, rows: 2}}
  - {id: line, kind: mesh, driver: smartlight, address: "b.example:1", geometry: {columns: 3, rows: 2}}
  - {id: down, kind: mesh, driver: smartlight, address: "c.example:1", geometry: {columns: 3, rows: 2}}
  - {id: ocs, kind: switch, driver: polatis-netconf, address: "d.example:830", port_count: 16}
  - {id: ocs-down, kind: switch, driver: polatis-netconf, address: "e.example:830", port_count: 16}
  - {id: shelf, kind: chassis, driver: sim-transponder, address: "f.example:830"}
  - {id: bmcs, kind: power, driver: sim-power, address: "g.example:443"}
transponders:
  - {id: "h[1-2]-a", accelerator: "h[1-2]-gpu0", interface: eth2, device: chip, port: [0, 4]}
  - {id: h3-a, accelerator: h3-gpu0, interface: eth2, device: chip, port: 8, module: shelf/och-3}
"""
SHAPE = mesh(3, 2)


@pytest.fixture(scope="module")
def simulator():
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:  # a short path: sockets lie in it
        path = Path(folder) / "rack.yaml"
        path.write_text(RACK)
        with launch(load_inventory(path), folder=Path(folder) / "sim", tied=True) as running:
            for device in ("down", "ocs-down"):
                running.inject(device, "device-down")
            yield running


@pytest.fixture(scope="module")
def gateway(simulator):
    """Where it listens; a lease has been given, with the number 1."""
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:
        socket, store = Path(folder) / "r1.sock", f"{folder}/store"
        with serving(simulator.inventory, simulator.endpoints(), store, socket) as context:
            assert context.store("r1").leases.acquire("r1", "the suite", term_s=600.0, now=time.time()).fence == 1
            yield socket


@pytest.fixture
def opened(simulator):
    """Opens sets of drivers."""
    fleet = Fleet(simulator.inventory, simulator.endpoints(), connect_timeout_s=2.0)
    sets = []

    def open_set(endpoints):
        sets.append(
            DeviceSet(
                simulator.inventory,
                endpoints,
                shell_of=fleet.shell,
                way_of=fleet.way,
                known_states=lambda _device: {},
                now=time.time,
                gateways=GatewayMeans(lambda _rack: 1),
            )
        )
        return sets[-1]

    yield open_set
    for each in sets:
        each.close()
    fleet.close()


@pytest.fixture
def direct(opened, simulator):
    return opened(simulator.endpoints())


@pytest.fixture
def devices(opened, simulator, gateway):
    return opened(through(simulator.endpoints(), gateway))


def held_by(simulator, device):
    marks = ask(simulator.control, "mesh-read", device=device)["states"]
    return {puc: PucState(mark) for puc, mark in enumerate(marks)}


def stopping(simulator, device):
    @contextmanager
    def halving():
        simulator.inject(device, "device-half")
        yield
        simulator.clear(device)

    return halving


class TestMeshThatIsRead(MeshContract):
    @pytest.fixture
    def mesh(self, devices, direct, simulator) -> MeshUnderTest:
        return MeshUnderTest(
            devices.mesh("chip"),
            puc_count=SHAPE.puc_count,
            truth=lambda: held_by(simulator, "chip"),
            other=direct.mesh("chip"),
            stops_midway=stopping(simulator, "chip"),
        )


class TestMeshWithoutReadBack(MeshContract):
    @pytest.fixture
    def mesh(self, devices, direct, simulator) -> MeshUnderTest:
        return MeshUnderTest(
            devices.mesh("line"),
            puc_count=SHAPE.puc_count,
            truth=lambda: held_by(simulator, "line"),
            other=direct.mesh("line"),
            unreachable=devices.mesh("down"),
            stops_midway=stopping(simulator, "line"),
        )


class TestSwitch(SwitchContract):
    @pytest.fixture
    def switch(self, devices, direct, simulator) -> SwitchUnderTest:
        return SwitchUnderTest(
            devices.switch("ocs"),
            port_count=16,
            input_count=8,
            truth=lambda: dict(ask(simulator.control, "switch-read", device="ocs")["joins"]),
            other=direct.switch("ocs"),
            unreachable=devices.switch("ocs-down"),
            stops_midway=stopping(simulator, "ocs"),
            dark=5,
        )


class TestTransponder(TransponderContract):
    @pytest.fixture
    def transponder(self, devices) -> TransponderUnderTest:
        dark = dict.fromkeys(range(SHAPE.puc_count), PucState.BAR)
        chip = devices.mesh("chip")
        chip.commit(chip.stage(dark | changes(dark, route(SHAPE, [(0, 4)], states=dark))))
        devices.transponder("h1-a").announce("0a")
        return TransponderUnderTest(devices.transponder("h2-a"), heard=("h1", "eth2"))


class TestTransponderInAChassis(TransponderContract):
    @pytest.fixture
    def transponder(self, devices) -> TransponderUnderTest:
        dark = dict.fromkeys(range(SHAPE.puc_count), PucState.BAR)
        chip = devices.mesh("chip")
        chip.commit(chip.stage(dark | changes(dark, route(SHAPE, [(0, 8)], states=dark))))
        devices.transponder("h1-a").announce("0a")
        return TransponderUnderTest(devices.transponder("h3-a"), heard=("h1", "eth2"))


class TestPower(PowerContract):
    @pytest.fixture
    def power(self, devices, simulator) -> PowerUnderTest:
        driver = devices.power(PartOf("bmcs", "slot-2"))
        yield PowerUnderTest(
            driver,
            truth=lambda: ask(simulator.control, "power-read", device="bmcs", component="slot-2")["on"],
        )
        driver.set_power(on=True)


def test_what_a_driver_declares_is_declared(devices, direct):
    for name in ("chip", "line", "ocs"):
        ours, theirs = devices.changing(name), direct.changing(name)
        assert (ours.kind, ours.capabilities, ours.proven) == (theirs.kind, theirs.capabilities, theirs.proven)
    ours, theirs = devices.transponder("h3-a"), direct.transponder("h3-a")
    assert (ours.capabilities, ours.proven) == (theirs.capabilities, theirs.proven)


def test_a_capability_that_is_lacking_is_refused_as_by_the_driver(devices):
    line = devices.mesh("line")
    assert Capability.READ_STATES not in line.capabilities
    with pytest.raises(UnsupportedError, match="line: its driver has no read-back of states"):
        line.read_states()
