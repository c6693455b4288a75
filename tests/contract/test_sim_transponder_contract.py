"""The contract suite over simulated modules: as their chassis, and as chassis and host together."""

import math
import time

import pytest
from sim_devices import devices_of, fleet_of, simulated

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, InconsistentError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import TransponderContract, TransponderUnderTest
from lumctl.devices.types import Capability, OpticsReading, PucState
from lumctl.fabric import changes, mesh, route
from lumctl.sim.chassis.driver import SimTransponder
from lumctl.sim.client import ask

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
    driver: sim-mesh
    address: chip.example:65432
    geometry: {columns: 3, rows: 2}
  - id: shelf
    kind: chassis
    driver: sim-transponder
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


@pytest.fixture(scope="module")
def simulator():
    """Ports 0 and 4 are joined, so h1 and h2 hear each other."""
    with simulated(RACK) as running:
        dark = dict.fromkeys(range(SHAPE.puc_count), PucState.BAR)
        joined = dark | changes(dark, route(SHAPE, [(0, 4)], states=dark))
        marks = {puc: state.value for puc, state in joined.items()}
        ask(running.control, "mesh-write", device="chip", changes=marks, receipt="")
        yield running


@pytest.fixture(autouse=True)
def well(simulator):
    yield
    ask(simulator.control, "clear")
    ask(simulator.control, "transponder-laser", device="h2-gpu0-a", on=True)


@pytest.fixture
def devices(simulator):
    with fleet_of(simulator) as fleet, devices_of(simulator, fleet) as opened:
        yield opened


def module(simulator, device="h2-gpu0-a", **more):
    address = f"unix:{simulator.control}"
    return SimTransponder(DriverContext(**{"device": device, "address": address, "now": time.time, **more}))


def leaving(simulator):
    """Power of h2's light where it leaves the chip for h1."""
    return ask(simulator.control, "mesh-powers", device="chip", ports=[0])["dbm"]["0"]


def told(simulator):
    shown = ask(simulator.control, "transponder-read", device="h2-gpu0-a")
    return shown["frequency_mhz"], shown["target_power_dbm"]


def measured(simulator):
    """What the module of h2 measures, as the simulator has it."""
    shown = ask(simulator.control, "transponder-read", device="h2-gpu0-a")
    names = ("rx_power_dbm", "tx_power_dbm", "bias_ma", "temperature_c", "voltage_v", "pre_fec_ber", "post_fec_ber")
    return OpticsReading(0.0, **{name: shown.get(name) for name in names})


class TestSimTransponder(TransponderContract):
    @pytest.fixture
    def transponder(self, simulator) -> TransponderUnderTest:
        ask(simulator.control, "transponder-announce", device="h1-gpu0-a", mark="0a")
        return TransponderUnderTest(
            driver=module(simulator, component="och-2"),
            heard=("h1", "eth2"),
            truth=lambda: leaving(simulator) is not None,
            told=lambda: told(simulator),
            reading=lambda: measured(simulator),
            unreachable=module(simulator, address="unix:/nonexistent/control.sock"),
            wrong=module(simulator, component="och-1"),
        )


class TestChassisAndHost(TransponderContract):
    """As the inventory has it: the chassis is asked for everything that it can do, and here it can do everything."""

    @pytest.fixture
    def transponder(self, simulator, devices) -> TransponderUnderTest:
        devices.transponder("h1-gpu0-a").announce("0a")
        return TransponderUnderTest(
            driver=devices.transponder("h2-gpu0-a"),
            heard=("h1", "eth2"),
            truth=lambda: leaving(simulator) is not None,
            told=lambda: told(simulator),
            reading=lambda: measured(simulator),
        )


def test_the_power_it_is_told_is_the_power_that_arrives(simulator):
    driver = module(simulator)
    arrived = []
    for dbm in (-6.0, -1.0):
        driver.set_output_power(dbm)
        arrived.append(leaving(simulator))
        assert driver.read_optics().tx_power_dbm == pytest.approx(dbm, abs=0.2)
    assert arrived[1] - arrived[0] == pytest.approx(5.0, abs=0.3)


def test_what_the_module_does_not_reach_is_refused_and_nothing_changes(simulator):
    driver = module(simulator)
    before = told(simulator)
    for call in (
        lambda: driver.set_channel(186_000_000),
        lambda: driver.set_output_power(30.0),
        lambda: driver.set_output_power(-math.inf),
        lambda: driver.set_output_power(math.nan),
    ):
        with pytest.raises(DeviceRefusedError):
            call()
    assert told(simulator) == before


def test_an_unknown_transponder_is_refused(simulator):
    with pytest.raises(DeviceRefusedError, match="no transponder 'h9'"):
        module(simulator, device="h9").read_optics()


def test_a_dark_module_says_so(simulator):
    driver = module(simulator)
    driver.set_transmit(enabled=False)
    optics = driver.read_optics()
    assert (optics.transmitting, optics.tx_power_dbm, optics.bias_ma) == (False, -math.inf, 0.0)
    assert module(simulator, device="h1-gpu0-a").read_optics().rx_los


@pytest.mark.parametrize(
    ("fault", "error", "changed"),
    [
        ("device-refuse", DeviceRefusedError, False),
        ("device-lying", InconsistentError, False),
        ("device-half", InconsistentError, True),
        ("device-down", DeviceUnreachableError, False),
        ("device-cut", DeviceUnreachableError, False),
    ],
)
def test_a_chassis_that_misbehaves(simulator, fault, error, changed):
    driver = module(simulator)
    driver.set_channel(193_100_000)
    ask(simulator.control, "fault", component="shelf", kind=fault)
    with pytest.raises(error):
        driver.set_channel(193_400_000)
    ask(simulator.control, "clear")
    assert told(simulator)[0] == (193_400_000 if changed else 193_100_000)


def test_the_module_goes_before_its_host(devices):
    driver = devices.transponder("h1-gpu0-a")
    assert driver.capabilities >= {Capability.SET_CHANNEL, Capability.READ_NEIGHBOURS}
    assert "simulator" in driver.proven
