"""The power of simulated hosts: both drivers in the suite, and what becomes of a host that is switched."""

import datetime as dt
import math
import time

import pytest
from sim_devices import devices_of, fleet_of, simulated

from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.devices.testing import PowerContract, PowerUnderTest
from lumctl.inventory.model import PartOf
from lumctl.sim.client import ask

RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-2]
    power: bmcs/slot-[1-2]
    accelerators:
      - id: "{host}-gpu0"
        model: X100
        memory_gib: 80
        pci: 0000:17:00.0
  - name: h3
    power: bmc3
    accelerators:
      - id: "{host}-gpu0"
        model: X100
        memory_gib: 80
        pci: 0000:17:00.0
devices:
  - id: mesh
    kind: mesh
    driver: sim-mesh
    address: mesh.example:65432
    geometry: {columns: 3, rows: 2}
  - id: bmcs
    kind: power
    driver: redfish
    address: bmcs.example:443
  - id: bmc3
    kind: power
    driver: sim-power
    address: bmc3.example:443
transponders:
  - id: h[1-3]-gpu0-a
    accelerator: h[1-3]-gpu0
    interface: eth2
    device: mesh
    port: [0, 4, 8]
"""
HOST = {"bmcs": "h1", "bmc3": "h3"}
KERNEL_LOG = "dmesg --time-format iso"
PART = {"bmcs": PartOf("bmcs", "slot-1"), "bmc3": PartOf("bmc3")}


@pytest.fixture(scope="module")
def simulator():
    with simulated(RACK) as running:
        yield running


@pytest.fixture
def fleet(simulator):
    with fleet_of(simulator) as opened:
        yield opened


@pytest.fixture
def devices(simulator, fleet):
    with devices_of(simulator, fleet) as opened:
        yield opened
        simulator.clear()
        for part in (*PART.values(), PartOf("bmcs", "slot-2")):
            opened.power(part).set_power(on=True)


def powered(simulator, part) -> bool:
    return ask(simulator.control, "power-read", device=part.device, component=part.component)["on"]


class TestRedfishOnTheSimulator(PowerContract):
    @pytest.fixture
    def power(self, devices, simulator) -> PowerUnderTest:
        return PowerUnderTest(
            driver=devices.power(PART["bmcs"]),
            truth=lambda: powered(simulator, PART["bmcs"]),
            others=lambda: powered(simulator, PartOf("bmcs", "slot-2")),
            nobody=devices.power(PartOf("bmcs", "slot-3")),
        )


class TestSimPower(PowerContract):
    @pytest.fixture
    def power(self, devices, simulator) -> PowerUnderTest:
        return PowerUnderTest(
            driver=devices.power(PART["bmc3"]),
            truth=lambda: powered(simulator, PART["bmc3"]),
            nobody=devices.power(PartOf("bmc3", "slot-3")),
        )


@pytest.mark.parametrize("device", HOST)
class TestAHostThatIsSwitched:
    def test_off_it_does_not_answer_and_on_it_is_back(self, devices, fleet, device):
        host, driver = HOST[device], devices.power(PART[device])
        draws = driver.read_power().watts
        driver.set_power(on=False)
        assert driver.read_power().watts < draws / 5
        with pytest.raises(DeviceUnreachableError):
            fleet.shell(host).run(KERNEL_LOG, timeout_s=5)
        driver.set_power(on=True)
        assert booted_at(fleet, host) > time.time() - 10

    def test_its_light_goes_and_comes_with_its_power(self, devices, device):
        driver, mesh = devices.power(PART[device]), devices.mesh("mesh")
        lit = lights(mesh)
        driver.set_power(on=False, force=True)
        assert len(lights(mesh)) == len(lit) - 1
        driver.set_power(on=True)
        assert lights(mesh) == lit

    def test_the_other_hosts_go_on(self, devices, fleet, device):
        devices.power(PART[device]).set_power(on=False, force=True)
        assert booted_at(fleet, "h2") < time.time()
        assert devices.power(PartOf("bmcs", "slot-2")).read_power().on is True

    def test_a_reset_is_another_boot(self, devices, fleet, device):
        before, began = booted_at(fleet, HOST[device]), time.time()
        devices.power(PART[device]).reset()
        assert before < began - 0.001 <= booted_at(fleet, HOST[device])

    def test_what_is_off_cannot_be_reset(self, devices, device):
        driver = devices.power(PART[device])
        driver.set_power(on=False, force=True)
        with pytest.raises(DeviceRefusedError, match="is off"):
            driver.reset()
        assert driver.read_power().on is False

    def test_power_does_not_heal_a_host_that_cannot_be_reached(self, devices, fleet, simulator, device):
        simulator.inject(HOST[device], "unreachable")
        devices.power(PART[device]).reset()
        with pytest.raises(DeviceUnreachableError):
            fleet.shell(HOST[device]).run(KERNEL_LOG, timeout_s=5)

    @pytest.mark.parametrize(
        ("fault", "error", "on"),
        [
            ("device-down", DeviceUnreachableError, True),
            ("device-refuse", DeviceRefusedError, True),
            ("device-half", InconsistentError, False),
        ],
    )
    def test_a_controller_that_is_faulty(self, devices, simulator, device, fault, error, on):
        driver = devices.power(PART[device])
        simulator.inject(device, fault)
        with pytest.raises(error):
            driver.set_power(on=False)
        simulator.clear()
        assert driver.read_power().on is on

    def test_a_controller_that_cuts_its_answers(self, devices, simulator, device):
        driver = devices.power(PART[device])
        simulator.inject(device, "device-cut")
        with pytest.raises((DeviceUnreachableError, OutcomeUnknownError)):
            driver.set_power(on=False)
        with pytest.raises(DeviceUnreachableError):
            driver.read_power()

    def test_a_controller_that_lies_is_seen_by_reading(self, devices, simulator, device):
        driver = devices.power(PART[device])
        simulator.inject(device, "device-lying")
        driver.set_power(on=False)
        assert driver.read_power().on is True


def booted_at(fleet, host) -> float:
    """When a host was booted, by the first line of its kernel's log."""
    log = fleet.shell(host).run(KERNEL_LOG, timeout_s=5).stdout
    return dt.datetime.fromisoformat(log.split(maxsplit=1)[0].replace(",", ".")).timestamp()


def lights(mesh) -> set[int]:
    """Ports that light leaves."""
    return {port for port, power in mesh.read_powers(tuple(range(10))).items() if power > -math.inf}
