"""A chassis of a running simulator: found by the runtime file, its key checked, as one with its host's driver."""

import math

import pytest
from sim_devices import devices_of, fleet_of, simulated

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, InconsistentError
from lumctl.devices.testing import TransponderContract, TransponderUnderTest
from lumctl.devices.types import Capability, PucState
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
  - id: chip
    kind: mesh
    driver: sim-mesh
    address: chip.example:65432
    geometry: {columns: 3, rows: 2}
  - id: shelf
    kind: chassis
    driver: openconfig
    address: shelf.example:830
  - id: lost
    kind: chassis
    driver: openconfig
    address: lost.example:830
transponders:
  - id: h[1-2]-gpu0-a
    accelerator: h[1-2]-gpu0
    interface: eth2
    device: chip
    port: [0, 4]
    module: shelf/och-[1-2]
  - id: h3-gpu0-a
    accelerator: h3-gpu0
    interface: eth2
    device: chip
    port: 8
    module: lost/och-1
"""
SHAPE = mesh(3, 2)


@pytest.fixture(scope="module")
def simulator():
    with simulated(RACK) as running:
        running.inject("lost", "device-down")
        running.inject("h3", "unreachable")
        yield running


@pytest.fixture
def devices(simulator):
    with fleet_of(simulator) as fleet, devices_of(simulator, fleet) as opened:
        yield opened
        simulator.clear("shelf")
        simulator.clear("h1-gpu0-a")


@pytest.fixture(autouse=True)
def joined(devices):
    """Port 0 is joined to port 4, so that h1 and h2 hear each other."""
    dark = dict.fromkeys(range(SHAPE.puc_count), PucState.BAR)
    between = devices.mesh("chip")
    between.commit(between.stage(dark | changes(dark, route(SHAPE, [(0, 4)], states=dark))))
    for transponder in ("h1-gpu0-a", "h2-gpu0-a"):
        devices.transponder(transponder).set_transmit(enabled=True)


def shown(simulator, transponder="h2-gpu0-a"):
    """What the simulator says of a module, over its own socket."""
    return ask(simulator.control, "transponder-read", device=transponder)


class TestOpenConfigInTheSimulator(TransponderContract):
    @pytest.fixture
    def transponder(self, devices, simulator) -> TransponderUnderTest:
        devices.transponder("h1-gpu0-a").announce("0a")
        return TransponderUnderTest(
            driver=devices.transponder("h2-gpu0-a"),
            heard=("h1", "eth2"),
            truth=lambda: devices.mesh("chip").read_powers((0,))[0] > -math.inf,
            told=lambda: (shown(simulator)["frequency_mhz"], shown(simulator)["target_power_dbm"]),
            unreachable=devices.transponder("h3-gpu0-a"),
        )


def test_the_chassis_and_the_host_are_one_transponder(devices):
    driver = devices.transponder("h1-gpu0-a")
    assert driver.capabilities >= {Capability.SET_CHANNEL, Capability.READ_OPTICS, Capability.READ_NEIGHBOURS}
    assert driver.read_optics().vendor == "LUMCTL-SIM"


def test_a_dark_laser_is_dark_at_the_other_end(devices, simulator):
    near, far = devices.transponder("h1-gpu0-a"), devices.transponder("h2-gpu0-a")
    near.set_transmit(enabled=False)
    assert far.read_optics().rx_power_dbm == -math.inf
    near.set_transmit(enabled=True)
    simulator.inject("h1-gpu0-a", "dark")
    assert far.read_optics().rx_power_dbm == -math.inf
    assert near.read_optics().tx_fault is True


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("device-lying", InconsistentError),
        ("device-refuse", DeviceRefusedError),
        ("device-half", InconsistentError),
        ("device-cut", DeviceUnreachableError),
        ("device-down", DeviceUnreachableError),
    ],
)
def test_faults_of_a_chassis_show_and_go(devices, simulator, kind, error):
    driver = devices.transponder("h1-gpu0-a")
    driver.set_channel(193_100_000)
    simulator.inject("shelf", kind)
    with pytest.raises(error):
        driver.set_channel(193_700_000)
    simulator.clear("shelf")
    driver.set_channel(193_400_000)
    assert driver.read_optics().frequency_mhz == shown(simulator, "h1-gpu0-a")["frequency_mhz"] == 193_400_000


def test_a_key_that_is_not_the_chassis_own_is_refused(devices, simulator):
    known = simulator.endpoints().devices["shelf"].known_hosts
    port = simulator.endpoints().devices["shelf"].address.rpartition(":")[2]
    lines = known.read_text().splitlines(keepends=True)
    own, other = (next(line for line in lines if (f":{port} " in line) is wanted) for wanted in (True, False))
    forged = f"{own.split()[0]} {' '.join(other.split()[1:])}\n"
    known.write_text("".join(forged if line == own else line for line in lines))
    try:
        devices.close()
        with pytest.raises(DeviceUnreachableError):
            devices.transponder("h1-gpu0-a").read_optics()
    finally:
        known.write_text("".join(lines))
