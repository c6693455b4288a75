"""What every driver of a transponder must do."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from lumctl.devices.errors import DeviceUnreachableError, UnsupportedError
from lumctl.devices.protocols import TransponderDriver
from lumctl.devices.testing.checks import supported
from lumctl.devices.types import Capability

RX_LIMITS = ("low_alarm", "low_warning", "high_warning", "high_alarm")


@dataclass(frozen=True)
class TransponderUnderTest:
    """A driver and its transponder, lit and cabled so that its receiver hears ``heard`` (host, interface).

    ``truth`` tells whether the laser is really on, seen apart from the driver.
    """

    driver: TransponderDriver
    heard: tuple[str, str] | None = None
    truth: Callable[[], bool] | None = None
    unreachable: TransponderDriver | None = None


class TransponderContract:
    """Subclass it and override the fixture ``transponder``."""

    @pytest.fixture
    def transponder(self) -> TransponderUnderTest:
        """Give the driver under test; override this."""
        pytest.fail("override the fixture `transponder`")

    def test_it_declares_itself(self, transponder: TransponderUnderTest) -> None:
        """Version, kind, capabilities and proof are there for `plugin list`."""
        driver = type(transponder.driver)
        assert (driver.api_version, driver.kind) == (1, "transponder")
        assert all(isinstance(each, Capability) for each in driver.capabilities)
        assert driver.proven
        assert isinstance(transponder.driver, TransponderDriver)

    def test_optics_are_read_or_refused_as_declared(self, transponder: TransponderUnderTest) -> None:
        """A reading carries its time; thresholds are ordered where the module states them."""
        driver = transponder.driver
        if not supported(driver, Capability.READ_OPTICS, driver.read_optics):
            return
        first, second = driver.read_optics(), driver.read_optics()
        assert first.taken_at <= second.taken_at
        limits = [first.thresholds.get(f"rx_power_{name}") for name in RX_LIMITS]
        stated = [limit for limit in limits if limit is not None]
        assert stated == sorted(stated)

    def test_the_transmitter_is_switched_and_read_back(self, transponder: TransponderUnderTest) -> None:
        """Off and on, each twice: switching is idempotent."""
        driver = transponder.driver
        if not supported(driver, Capability.SET_TRANSMIT, driver.transmitting):
            with pytest.raises(UnsupportedError):
                driver.set_transmit(enabled=True)
            return
        for wanted in (False, False, True, True):
            driver.set_transmit(wanted)
            assert driver.transmitting() is wanted
            assert transponder.truth is None or transponder.truth() is wanted

    def test_neighbours_are_heard_or_refused_as_declared(self, transponder: TransponderUnderTest) -> None:
        """The freshest comes first; announcing is allowed at any time."""
        driver = transponder.driver
        if not supported(driver, Capability.READ_NEIGHBOURS, driver.neighbours):
            with pytest.raises(UnsupportedError):
                driver.announce("0a")
            return
        driver.announce("0a")
        driver.announce("0b0c")
        ages = [neighbour.age_s for neighbour in driver.neighbours()]
        assert ages == sorted(ages)
        if transponder.heard is not None:
            assert transponder.heard in [(n.system, n.port) for n in driver.neighbours()]

    def test_a_host_that_does_not_answer_is_unreachable(self, transponder: TransponderUnderTest) -> None:
        """Nothing was sent, and the error says so."""
        driver = transponder.unreachable
        if driver is None:
            return
        calls: dict[Capability, Callable[[], object]] = {
            Capability.READ_OPTICS: driver.read_optics,
            Capability.SET_TRANSMIT: driver.transmitting,
            Capability.READ_NEIGHBOURS: driver.neighbours,
        }
        for call in [call for capability, call in calls.items() if capability in driver.capabilities]:
            with pytest.raises(DeviceUnreachableError):
                call()

    def test_closing_twice_is_harmless(self, transponder: TransponderUnderTest) -> None:
        """The second call does nothing."""
        transponder.driver.close()
        transponder.driver.close()
