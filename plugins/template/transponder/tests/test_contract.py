"""The contract of lumctl's drivers on this one: subclass the suite, and give it the driver and its twin."""

import math
import time

import pytest
from lumctl_example_transponder import ExampleTransponder
from twin import Twin

from lumctl.devices.errors import DeviceError, DeviceRefusedError, InconsistentError
from lumctl.devices.protocols import DriverContext, HostShell
from lumctl.devices.testing import TransponderContract, TransponderUnderTest
from lumctl.devices.testing.shell_faults import FaultyShell, ShellFault
from lumctl.devices.types import OpticsReading


def driver_on(shell: HostShell, interface: str = "eth0") -> ExampleTransponder:
    """What lumctl would make of the driver."""
    return ExampleTransponder(DriverContext("t1", shell=shell, interface=interface, sudo=True, now=time.time))


def faulty(twin: Twin, fault: ShellFault, *, after: int = 0) -> FaultyShell:
    """A host that is lost, or lies, from the command on that comes after so many."""
    shell = FaultyShell(twin)
    shell.set(fault, after=after)
    return shell


class TestExampleTransponder(TransponderContract):
    """Every promise that lumctl relies on."""

    @pytest.fixture
    def transponder(self) -> TransponderUnderTest:
        """Give the driver on its twin."""
        twin = Twin()
        return TransponderUnderTest(
            driver=driver_on(twin),
            truth=lambda: twin.laser == "on",
            sent=lambda: len(twin.commands),
            reading=lambda: OpticsReading(0.0, rx_power_dbm=-3.77, tx_power_dbm=0.0, temperature_c=41.5),
            unreachable=driver_on(faulty(twin, ShellFault.LOST_BEFORE)),
            wrong=driver_on(twin, "eth7"),
        )


@pytest.mark.parametrize("fault", list(ShellFault))
@pytest.mark.parametrize("after", [0, 1, 2], ids=["before", "switching", "reading back"])
def test_after_a_fault_an_error_says_no_more_than_is_so(fault: ShellFault, after: int) -> None:
    """Refused and unreachable mean that the laser is as it was; a return means that it followed."""
    twin = Twin()
    try:
        driver_on(faulty(twin, fault, after=after)).set_transmit(enabled=False)
    except DeviceError as error:
        if error.__class__.__name__ in {"DeviceUnreachableError", "DeviceRefusedError"}:
            assert twin.laser == "on"
    else:
        assert twin.laser == "off"


def test_a_refusal_and_a_laser_that_does_not_follow_are_told_apart() -> None:
    """The one changed nothing, the other nobody can explain."""
    twin = Twin()
    twin.refuses = True
    with pytest.raises(DeviceRefusedError, match="permission denied"):
        driver_on(twin).set_transmit(enabled=False)
    twin.refuses, twin.sticks = False, True
    with pytest.raises(InconsistentError):
        driver_on(twin).set_transmit(enabled=False)


def test_milliwatts_become_dbm() -> None:
    """Darkness is minus infinity, and what is no power is not one."""
    twin = Twin()
    twin.rx_mw = 0.1
    assert driver_on(twin).read_optics().rx_power_dbm == pytest.approx(-10.0)
    twin.rx_mw = 0.0
    assert driver_on(twin).read_optics().rx_power_dbm == -math.inf
    twin.rx_mw = -1.0
    assert driver_on(twin).read_optics().rx_power_dbm is None
