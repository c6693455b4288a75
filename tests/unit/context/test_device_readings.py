"""What a look asks of a device: what its driver declares, no more often than needed, and not on after a silence."""

import math

import pytest

from lumctl.context.device_answers import DeviceReader, ports_in_use, read_device
from lumctl.devices.errors import (
    DeviceError,
    DeviceRefusedError,
    DeviceUnreachableError,
    DriverFaultError,
    GatewayUnreachableError,
    OutcomeUnknownError,
    WrongGatewayError,
)
from lumctl.devices.types import Alarm, Capability, Obstacle
from lumctl.inventory.load import example, load_inventory

ALARM = Alarm("power supply 1 has failed", "CRITICAL")
EVERYTHING = frozenset({Capability.READ_ALARMS, Capability.READ_TEMPERATURE, Capability.READ_POWERS})


class Driver:
    """Says what a test arranged; an error is raised."""

    def __init__(self, capabilities=EVERYTHING, **said):
        self.capabilities = capabilities
        self.said = {"identify": "here", "alarms": (ALARM,), "temperature": 31.0, "powers": {0: -3.0, 1: -4.0}} | said
        self.asked = []

    def answer(self, name):
        self.asked.append(name)
        said = self.said[name]
        if isinstance(said, Exception):
            raise said
        return said

    def identify(self):
        return self.answer("identify")

    def read_alarms(self):
        return self.answer("alarms")

    def read_temperature(self):
        return self.answer("temperature")

    def read_powers(self, ports):
        found = self.answer("powers")
        return {port: found[port] for port in ports if port in found}


@pytest.fixture
def reader(collected):
    """Read the first device of an example with a driver, at a time that the test moves."""

    class Reader:
        def __init__(self):
            self.now = 100.0
            self.driver = Driver()
            self.inventory = collected("rack64").inventory
            self.device = self.inventory.light_devices[0].id
            self.driver.said["powers"] = dict.fromkeys(ports_in_use(self.inventory, self.device), -3.0)
            self.read = DeviceReader(self.inventory, lambda _device: self.driver, lambda: self.now)

        def __call__(self, after=1.0):
            self.now += after
            self.driver.asked.clear()
            return self.read(self.device)

    return Reader()


def test_everything_that_is_declared_is_read():
    read = read_device(Driver(), (0, 1), 5.0)
    assert (read.alarms, read.temperature_c, read.powers_dbm) == ((ALARM,), 31.0, {0: -3.0, 1: -4.0})
    assert (read.taken_at, read.read_at, read.problem, read.unread) == (5.0, 5.0, None, {})


def test_what_is_not_declared_is_not_asked_and_is_not_missed():
    driver = Driver(frozenset({Capability.READ_TEMPERATURE}))
    read = read_device(driver, (0, 1), 5.0)
    assert driver.asked == ["temperature"]
    assert (read.alarms, read.powers_dbm, read.unread) == (None, None, {})


@pytest.mark.parametrize("error", [DeviceRefusedError("not now"), DeviceError("broken")])
def test_a_call_that_is_refused_is_told_and_the_others_are_made(error):
    read = read_device(Driver(alarms=error), (0, 1), 5.0)
    assert read.unread == {"alarms": str(error)}
    assert (read.alarms, read.temperature_c) == (None, 31.0)


@pytest.mark.parametrize("error", [DeviceUnreachableError("cut off"), OutcomeUnknownError("no answer in 5 s")])
def test_a_device_that_hangs_costs_one_time_limit(error):
    driver = Driver(alarms=error)
    read = read_device(driver, (0, 1), 5.0)
    assert driver.asked == ["alarms"]
    assert read.unread["alarms"] == str(error)
    assert read.unread.keys() == {"alarms", "temperature", "powers"}


def test_a_device_that_is_too_slow_is_asked_nothing_more():
    driver = Driver()
    read = read_device(driver, (0, 1), 5.0, deadline=-math.inf)
    assert driver.asked == []
    assert all("too slowly" in why for why in read.unread.values())
    assert read.unread.keys() == {"alarms", "temperature", "powers"}


def test_a_power_that_was_asked_for_and_is_not_given_is_missed():
    read = read_device(Driver(powers={0: -3.0}), (0, 1), 5.0)
    assert read.powers_dbm == {0: -3.0}
    assert "port 1" in read.unread["powers"]


def test_only_ports_of_lanes_are_asked_for_and_of_a_mesh_only_those_at_which_light_leaves():
    switched, meshed = (load_inventory(example(name)) for name in ("switched", "prototype"))
    assert ports_in_use(switched, "ocs") == (*range(8), *range(16, 24))
    (mesh,) = meshed.light_devices
    assert ports_in_use(meshed, mesh.id) == tuple(sorted(t.lane.rx for t in meshed.transponders.values()))
    driver = Driver()
    read_device(driver, (), 5.0)
    assert "powers" not in driver.asked


def test_a_device_that_does_not_answer_is_asked_nothing_more(reader):
    reader.driver.said["identify"] = DeviceUnreachableError("gone")
    read = reader()
    assert (read.problem, read.alarms, reader.driver.asked) == ("gone", None, ["identify"])


@pytest.mark.parametrize(
    ("error", "obstacle"),
    [
        (DeviceUnreachableError, None),
        (DeviceRefusedError, None),
        (DriverFaultError, Obstacle.DRIVER),
        (GatewayUnreachableError, Obstacle.GATEWAY),
        (WrongGatewayError, Obstacle.GATEWAY),
    ],
)
def test_a_reading_names_what_kept_the_device_from_being_asked(reader, error, obstacle):
    reader.driver.said["identify"] = error("no answer")
    assert reader().obstacle is obstacle


def test_looks_in_a_row_read_alarms_only_now_and_then(reader):
    reader.read.every_s = 5.0
    assert "alarms" in (reader(), reader.driver.asked)[1]
    first = reader.now
    reader.driver.said["alarms"] = ()
    again = reader(4.0)
    assert reader.driver.asked == ["identify"]
    assert (again.taken_at, again.read_at, again.alarms) == (reader.now, first, (ALARM,))
    assert reader(1.0).alarms == ()
    reader.read.every_s = 0.0
    assert "alarms" in (reader(0.1), reader.driver.asked)[1], "a look of its own reads everything"


def test_a_clock_that_is_set_back_does_not_keep_old_readings(reader):
    reader.read.every_s = 5.0
    reader()
    assert "alarms" in (reader(-3600.0), reader.driver.asked)[1]
