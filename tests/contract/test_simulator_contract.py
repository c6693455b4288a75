"""The contract suite against the simulator: all mesh drivers, and the transponder driver over real SSH."""

import math
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sim_devices import devices_of, fleet_of, simulated
from sim_truth import truths

from lumctl.devices.drivers import load
from lumctl.devices.testing import MeshContract, MeshUnderTest, TransponderContract, TransponderUnderTest
from lumctl.devices.types import PucState
from lumctl.fabric import changes, mesh, route
from lumctl.sim.client import ask

RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-3]
    accelerators:
      - id: "{host}-gpu0"
        model: X100
        memory_gib: 80
        pci: 0000:17:00.0
devices:
  - id: line
    kind: mesh
    driver: smartlight
    address: line.example:65432
    geometry: {columns: 3, rows: 2}
  - id: whole
    kind: mesh
    driver: sim-mesh
    address: whole.example:65432
    geometry: {columns: 3, rows: 2}
  - id: object
    kind: mesh
    driver: smartlight-object
    address: object.example:65432
    geometry: {columns: 3, rows: 2}
  - id: down
    kind: mesh
    driver: smartlight
    address: down.example:65432
    geometry: {columns: 3, rows: 2}
  - id: object-down
    kind: mesh
    driver: smartlight-object
    address: object-down.example:65432
    geometry: {columns: 3, rows: 2}
transponders:
  - id: h[1-3]-gpu0-a
    accelerator: h[1-3]-gpu0
    interface: eth2
    device: whole
    port: [0, 4, 8]
"""
SHAPE = mesh(3, 2)


@pytest.fixture(scope="module")
def simulator():
    """A running simulator in which one mesh is down and one host does not answer."""
    with simulated(RACK) as running:
        running.inject("down", "mesh-down")
        running.inject("object-down", "device-down")
        running.inject("h3", "unreachable")
        yield running


@pytest.fixture
def devices(simulator):
    with fleet_of(simulator) as fleet, devices_of(simulator, fleet) as opened:
        yield opened


def held_by(simulator, device):
    marks = ask(simulator.control, "mesh-read", device=device)["states"]
    return {puc: PucState(mark) for puc, mark in enumerate(marks)}


def stopped_midway(simulator, device):
    @contextmanager
    def halving():
        simulator.inject(device, "device-half")
        yield
        simulator.clear(device)

    return halving


def under_test(devices, simulator, device, **more) -> MeshUnderTest:
    driver = devices.mesh(device)
    made = load(simulator.inventory.devices[device].driver)
    return MeshUnderTest(
        driver=driver,
        puc_count=SHAPE.puc_count,
        truth=lambda: held_by(simulator, device),
        other=made(driver.context),
        wrong_size=made(replace(driver.context, puc_count=SHAPE.puc_count + 1)),
        stops_midway=stopped_midway(simulator, device),
        **truths(simulator, device, kind="mesh", ports=(0, 1, 2, 4)),
        **more,
    )


class TestSmartlight(MeshContract):
    @pytest.fixture
    def mesh(self, devices, simulator) -> MeshUnderTest:
        return under_test(devices, simulator, "line", unreachable=devices.mesh("down"))


class TestSmartlightObject(MeshContract):
    @pytest.fixture
    def mesh(self, devices, simulator) -> MeshUnderTest:
        return under_test(devices, simulator, "object", unreachable=devices.mesh("object-down"))


class TestSimMesh(MeshContract):
    @pytest.fixture
    def mesh(self, devices, simulator) -> MeshUnderTest:
        return under_test(devices, simulator, "whole")


class TestHostPort(TransponderContract):
    """Port 0 is joined to port 4, so h1 and h2 hear each other."""

    @pytest.fixture
    def transponder(self, devices) -> TransponderUnderTest:
        dark = dict.fromkeys(range(SHAPE.puc_count), PucState.BAR)
        joined = dark | changes(dark, route(SHAPE, [(0, 4)], states=dark))
        between = devices.mesh("whole")
        between.commit(between.stage(joined))
        return TransponderUnderTest(
            driver=devices.transponder("h2-gpu0-a"),
            heard=("h1", "eth2"),
            truth=lambda: self.lights(devices),
            unreachable=devices.transponder("h3-gpu0-a"),
        )

    @staticmethod
    def lights(devices) -> bool:
        """Whether light of h2 leaves the mesh where h1 listens."""
        return devices.mesh("whole").read_powers((0,))[0] > -math.inf

    @pytest.fixture(autouse=True)
    def announced(self, transponder, devices) -> None:
        """What h2 hears is what h1 said last."""
        transponder.driver.set_transmit(enabled=True)
        devices.transponder("h1-gpu0-a").announce("0a")
