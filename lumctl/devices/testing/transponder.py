"""The contract of every driver of a transponder."""

import pytest

from lumctl.devices.errors import DeviceError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.protocols import TransponderDriver
from lumctl.devices.testing.checks import supported
from lumctl.devices.testing.common_contract import CommonContract
from lumctl.devices.testing.rules import not_tested, proves
from lumctl.devices.testing.subjects import Subject, gone, of_transponder
from lumctl.devices.testing.under_test import TransponderUnderTest
from lumctl.devices.types import Capability

RX_LIMITS = ("low_alarm", "low_warning", "high_warning", "high_alarm")
HALF_STEP_DBM = 0.05
"""Modules state powers in steps of 0.1 dB at the coarsest."""


class TransponderContract(CommonContract):
    """Subclass it and define the fixture ``transponder``, the driver under test."""

    @pytest.fixture
    def subject(self, transponder: TransponderUnderTest) -> Subject:
        """The set-up in the form that the common tests use."""
        return of_transponder(transponder)

    @proves("declaration")
    def test_it_declares_itself(self, transponder: TransponderUnderTest) -> None:
        """Version, kind, capabilities and ``proven`` are stated for `plugin list`."""
        driver = transponder.driver
        assert (driver.api_version, driver.kind) == (1, "transponder")
        assert all(isinstance(each, Capability) for each in driver.capabilities)
        assert driver.proven
        assert isinstance(transponder.driver, TransponderDriver)

    @proves("undeclared")
    def test_optics_are_read_or_refused_as_declared(self, transponder: TransponderUnderTest) -> None:
        """A reading has its time; thresholds are ordered if the module states them."""
        driver = transponder.driver
        if not supported(driver, Capability.READ_OPTICS, driver.read_optics):
            return
        first, second = driver.read_optics(), driver.read_optics()
        assert first.taken_at <= second.taken_at
        limits = [first.thresholds.get(f"rx_power_{name}") for name in RX_LIMITS]
        stated = [limit for limit in limits if limit is not None]
        assert stated == sorted(stated)

    @proves("read-back")
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

    @proves("read-back")
    def test_the_channel_is_set_and_read_back(self, transponder: TransponderUnderTest) -> None:
        """One channel is set twice, then another: the reading shows the last one."""
        driver, first = transponder.driver, transponder.channels_mhz[0]
        if not supported(driver, Capability.SET_CHANNEL, lambda: driver.set_channel(first)):
            return
        for wanted in (first, first, transponder.channels_mhz[1]):
            driver.set_channel(wanted)
            if Capability.READ_OPTICS in driver.capabilities:
                assert driver.read_optics().frequency_mhz == wanted
            assert transponder.told is None or transponder.told()[0] == wanted

    @proves("read-back")
    def test_the_output_power_is_set_and_read_back(self, transponder: TransponderUnderTest) -> None:
        """The output power is set like the channel, which must not change."""
        driver, first = transponder.driver, transponder.powers_dbm[0]
        if not supported(driver, Capability.SET_OUTPUT_POWER, lambda: driver.set_output_power(first)):
            return
        before = transponder.told() if transponder.told is not None else None
        for wanted in (first, first, transponder.powers_dbm[1]):
            driver.set_output_power(wanted)
            if Capability.READ_OPTICS in driver.capabilities:
                assert driver.read_optics().target_power_dbm == pytest.approx(wanted, abs=HALF_STEP_DBM)
            if transponder.told is not None and before is not None:
                channel, power = transponder.told()
                assert channel == before[0]
                assert power == pytest.approx(wanted, abs=HALF_STEP_DBM)

    @proves("undeclared")
    def test_what_is_not_declared_is_refused_before_anything_is_sent(self, transponder: TransponderUnderTest) -> None:
        """The change engine relies on the error to learn which capabilities a device lacks."""
        driver = transponder.driver
        before = transponder.sent() if transponder.sent is not None else None
        for capability, calls in transponder.calls_of(driver).items():
            for call in calls if capability not in driver.capabilities else ():
                with pytest.raises(UnsupportedError):
                    call()
        assert transponder.sent is None or transponder.sent() == before

    @proves("undeclared")
    def test_neighbours_are_heard_or_refused_as_declared(self, transponder: TransponderUnderTest) -> None:
        """The neighbour that was heard last comes first; announcing is allowed at any time."""
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

    @proves("unreachable")
    def test_a_host_that_does_not_answer_is_unreachable(
        self, transponder: TransponderUnderTest, subject: Subject
    ) -> None:
        """Both reading and setting raise; nothing was sent."""
        driver = transponder.unreachable
        if driver is None:
            driver = gone(subject)
        for capability, calls in transponder.calls_of(driver).items():
            for call in calls if capability in driver.capabilities else ():
                with pytest.raises(DeviceUnreachableError):
                    call()

    @proves("refused")
    def test_a_component_that_is_not_there_is_an_error(self, transponder: TransponderUnderTest) -> None:
        """A wrong component gives no reading, and no other component is set instead."""
        driver = transponder.wrong
        if driver is None:
            not_tested("the set-up gives no `wrong`: a driver for a component that the device lacks")
        before = transponder.told() if transponder.told is not None else None
        for capability, calls in transponder.calls_of(driver).items():
            for call in calls if capability in driver.capabilities else ():
                with pytest.raises(DeviceError):
                    call()
        assert transponder.told is None or transponder.told() == before

    @proves("closing")
    def test_closing_twice_is_harmless(self, transponder: TransponderUnderTest) -> None:
        """The second call does nothing."""
        transponder.driver.close()
        transponder.driver.close()
