"""The contract suite over recordings: each test is recorded on a twin, and then passes on the recording alone."""

import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from lumctl_polatis import PolatisScpi
from lumctl_redfish import RedfishPower
from lumctl_smartlight import SmartlightMesh

from lumctl.devices.protocols import DriverContext
from lumctl.devices.recorded_calls import recording_name
from lumctl.devices.recording import record
from lumctl.devices.replay import ReplayMesh, ReplayPower, ReplaySwitch, ReplayTransponder
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
from lumctl.devices.ways import Direct
from lumctl.inventory.load import load_inventory
from lumctl.sim.chassis.driver import SimTransponder
from lumctl.sim.client import ask
from lumctl.sim.launch import launch
from lumctl.sim.meshes.driver import SimMesh
from lumctl.sim.power.redfish import RedfishTwin
from lumctl.sim.switches.scpi import ScpiSwitch
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.switch import SwitchState

PUCS, PORTS = 29, 16
RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h1
    accelerators:
      - {id: gpu0, model: X100, memory_gib: 80, pci: 0000:17:00.0}
devices:
  - {id: m1, kind: mesh, driver: sim-mesh, address: "m1.example:65432", geometry: {columns: 3, rows: 2}}
transponders:
  - {id: t1, accelerator: gpu0, interface: eth2, device: m1, port: 0}
"""


@pytest.fixture(scope="module")
def simulator():
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:
        path = Path(folder) / "rack.yaml"
        path.write_text(RACK)
        with launch(load_inventory(path), folder=Path(folder) / "sim", tied=True) as running:
            yield running


@pytest.fixture(scope="class")
def shelf(tmp_path_factory):
    """The folder in which the recordings of one class lie, one for each test."""
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(params=["recorded", "replayed"])
def taped(request, shelf):
    """Give the driver of a context: the real one, recorded, or the one that replays what was recorded just before."""
    folder = shelf / request.node.name.replace("replayed", "recorded")
    opened = []

    def tape(real, replay, context):
        if request.param == "recorded":
            folder.mkdir(exist_ok=True)
            opened.append(record(real(context), folder / recording_name(replay.kind, context)))
        else:
            assert folder.is_dir(), "select the recorded half of this test too: it makes the recording"
            # Neither an address nor a way is left, so nothing but the recording can answer.
            left = DriverContext(device=context.device, component=context.component, address=f"replay:{folder}")
            opened.append(replay(left))
        return opened[-1]

    yield tape
    for each in opened:
        each.close()


class TestSmartlight(MeshContract):
    @pytest.fixture
    def mesh(self, taped, serve, make_twin, nobody) -> MeshUnderTest:
        address = serve(make_twin(PUCS))
        context = DriverContext(device="m1", address=address, way=Direct(address), puc_count=PUCS)
        absent = replace(context, device="absent", address=nobody, way=Direct(nobody))
        return MeshUnderTest(
            driver=taped(SmartlightMesh, ReplayMesh, context),
            puc_count=PUCS,
            unreachable=taped(SmartlightMesh, ReplayMesh, absent),
        )


class TestSimMesh(MeshContract):
    """With read-back, and with a revert timer, whose end is polled for."""

    @pytest.fixture
    def mesh(self, taped, simulator) -> MeshUnderTest:
        pucs = len(ask(simulator.control, "mesh-read", device="m1")["states"])
        context = DriverContext(device="m1", address=f"unix:{simulator.control}", puc_count=pucs)
        absent = replace(context, device="absent", address="unix:/nonexistent/control.sock")
        return MeshUnderTest(
            driver=taped(SimMesh, ReplayMesh, context),
            puc_count=pucs,
            unreachable=taped(SimMesh, ReplayMesh, absent),
        )


class TestSimTransponder(TransponderContract):
    @pytest.fixture
    def transponder(self, taped, simulator) -> TransponderUnderTest:
        context = DriverContext(device="t1", address=f"unix:{simulator.control}")
        absent = replace(context, device="absent", address="unix:/nonexistent/control.sock")
        wrong = replace(context, device="wrong")
        return TransponderUnderTest(
            driver=taped(SimTransponder, ReplayTransponder, context),
            unreachable=taped(SimTransponder, ReplayTransponder, absent),
            wrong=taped(SimTransponder, ReplayTransponder, wrong),
        )


class TestPolatis(SwitchContract):
    @pytest.fixture(params=[8, PORTS], ids=["8 by 8", "any to any"])
    def switch(self, request, taped, nobody) -> Iterator[SwitchUnderTest]:
        twin = ScpiSwitch(SwitchState(PORTS, request.param).held, powers=lambda ports: dict.fromkeys(ports, -math.inf))
        twin.service.open()
        address = twin.service.address
        context = DriverContext(
            device="x1", address=address, way=Direct(address), port_count=PORTS, input_count=request.param
        )
        drivers = {
            "driver": context,
            "other": replace(context, device="other"),
            "unreachable": replace(context, device="absent", address=nobody, way=Direct(nobody)),
            "wrong_size": replace(context, device="wrong", port_count=PORTS * 2),
        }
        yield SwitchUnderTest(
            port_count=PORTS,
            input_count=request.param,
            dark=3,
            **{name: taped(PolatisScpi, ReplaySwitch, each) for name, each in drivers.items()},
        )
        twin.close()


class Machine:
    """One machine on a bench, which does as it is told."""

    names = ("1",)

    def __init__(self):
        self.on = True

    def conduct(self):
        return Misbehaviour()

    def is_on(self, name):
        return self.on and name == "1"

    def watts(self, name):
        return 500.0 if self.is_on(name) else 12.5

    def switch(self, name, *, on):
        self.on = on and name == "1"

    def restart(self, name):
        self.on = name == "1"


class TestRedfish(PowerContract):
    @pytest.fixture
    def power(self, taped, nobody) -> Iterator[PowerUnderTest]:
        twin = RedfishTwin("bmc1", Machine(), lambda _seconds: None, login=None)
        twin.service.open()
        context = DriverContext(device="bmc1", address=twin.address, way=Direct(twin.address), now=time.time)
        absent = replace(context, device="absent", address=f"http://{nobody}", way=Direct(nobody))
        yield PowerUnderTest(
            driver=taped(RedfishPower, ReplayPower, context),
            nobody=taped(RedfishPower, ReplayPower, replace(context, component="2")),
            unreachable=taped(RedfishPower, ReplayPower, absent),
        )
        twin.service.close()
