"""What a switch driver must do with single ports and with the other readings of a switch."""

import math

import pytest

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.testing.checks import supported
from lumctl.devices.testing.rules import proves
from lumctl.devices.testing.switch_under_test import SwitchUnderTest
from lumctl.devices.types import Alarm, Capability


class SwitchPortsContract:
    """A part of ``SwitchContract``, which gives the fixture ``ready``."""

    @proves("numbering")
    def test_ports_are_read_or_refused_as_declared(self, ready: SwitchUnderTest) -> None:
        """Every port is there, under its own number."""
        driver = ready.driver
        if supported(driver, Capability.READ_PORTS, driver.read_ports):
            ports = driver.read_ports()
            assert list(ports) == list(range(ready.port_count))
            assert all(reading.port == port for port, reading in ports.items())

    @proves("units")
    def test_powers_are_read_or_refused_as_declared(self, ready: SwitchUnderTest) -> None:
        """In dBm, for the requested ports; minus infinity is no light."""
        driver = ready.driver
        asked = tuple(port for port in (ready.dark, ready.lit) if port is not None) or (0, 1)
        if not supported(driver, Capability.READ_POWERS, lambda: driver.read_powers(asked)):
            return
        powers = driver.read_powers(asked)
        assert set(powers) == set(asked)
        assert not any(math.isnan(power) for power in powers.values())
        assert ready.dark is None or powers[ready.dark] == -math.inf
        assert ready.lit is None or powers[ready.lit] > -math.inf
        assert driver.read_powers(()) == {}
        with pytest.raises(DeviceRefusedError):
            driver.read_powers((ready.port_count,))

    @proves("undeclared")
    def test_other_readings_are_given_or_refused_as_declared(self, ready: SwitchUnderTest) -> None:
        """A reading that is not declared raises UnsupportedError; a declared one answers."""
        driver = ready.driver
        if supported(driver, Capability.READ_TEMPERATURE, driver.read_temperature):
            assert isinstance(driver.read_temperature(), float)
        if supported(driver, Capability.READ_ALARMS, driver.read_alarms):
            assert driver.read_alarms() == driver.read_alarms(), "reading them takes none away"
            assert all(isinstance(alarm, Alarm) and alarm.text for alarm in driver.read_alarms())

    @proves("read-back")
    def test_a_port_is_switched_and_read_back(self, ready: SwitchUnderTest) -> None:
        """Off and on, each twice: switching is idempotent and changes no join."""
        driver, port = ready.driver, ready.outputs[0]
        if not supported(driver, Capability.SET_PORTS, lambda: driver.set_port(port, enabled=True)):
            return
        ready.write({ready.inputs[0]: port})
        for wanted in (False, False, True, True):
            driver.set_port(port, wanted)
            if Capability.READ_PORTS in driver.capabilities:
                assert driver.read_ports()[port].enabled is wanted
            assert ready.holds({ready.inputs[0]: port})
        with pytest.raises(DeviceRefusedError):
            driver.set_port(ready.port_count, enabled=True)

    @proves("read-back")
    def test_a_label_is_set_and_read_back(self, ready: SwitchUnderTest) -> None:
        """Also an empty one and one with special characters of XML and shells; other labels stay."""
        driver, (port, beside) = ready.driver, ready.inputs[:2]
        if not supported(driver, Capability.SET_LABELS, lambda: driver.set_label(port, "")):
            return
        with_ports = Capability.READ_PORTS in driver.capabilities
        driver.set_label(beside, "beside")
        for label in ("h1-gpu0 <&> \"lane\" '0'", "rail 3", "rail 3", ""):
            driver.set_label(port, label)
            if with_ports:
                ports = driver.read_ports()
                assert (ports[port].label, ports[beside].label) == (label, "beside")
        with pytest.raises(DeviceRefusedError):
            driver.set_label(ready.port_count, "nowhere")
