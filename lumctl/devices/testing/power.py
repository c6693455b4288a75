"""The contract of every driver of power."""

from collections.abc import Callable

import pytest

from lumctl.devices.contained_driver import class_of
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.protocols import PowerDriver
from lumctl.devices.testing.checks import supported
from lumctl.devices.testing.common_contract import CommonContract
from lumctl.devices.testing.rules import not_tested, proves
from lumctl.devices.testing.subjects import Subject, gone, of_power
from lumctl.devices.testing.under_test import PowerUnderTest
from lumctl.devices.types import Capability


class PowerContract(CommonContract):
    """Subclass it and define the fixture ``power``, the driver under test."""

    @pytest.fixture
    def subject(self, power: PowerUnderTest) -> Subject:
        """The set-up in the form that the common tests use."""
        return of_power(power)

    @proves("declaration")
    def test_it_declares_itself(self, power: PowerUnderTest) -> None:
        """Version, kind, capabilities and ``proven`` are stated for `plugin list`."""
        driver = class_of(power.driver)
        assert (driver.api_version, driver.kind) == (1, "power")
        assert all(isinstance(each, Capability) for each in driver.capabilities)
        assert driver.proven
        assert isinstance(power.driver, PowerDriver)

    @proves("identity")
    def test_it_identifies_itself_in_one_line(self, power: PowerUnderTest) -> None:
        """The line proves that the controller answers."""
        assert len(power.driver.identify().splitlines()) == 1

    @proves("units")
    def test_a_reading_is_of_now_and_changes_nothing(self, power: PowerUnderTest) -> None:
        """Each reading has its time; the power that a machine draws is never negative."""
        before = power.orders() if power.orders is not None else 0
        first, second = power.driver.read_power(), power.driver.read_power()
        assert first.taken_at <= second.taken_at
        assert all(each.watts is None or each.watts >= 0 for each in (first, second))
        assert power.orders is None or power.orders() == before

    @proves("commit")
    def test_it_is_switched_off_at_once_and_on_again(self, power: PowerUnderTest) -> None:
        """The reading follows the machine."""
        if self._switches(power):
            assert power.switched(on=True)
            assert power.switched(on=False, force=True)
            assert power.switched(on=True)

    @proves("commit")
    def test_it_is_switched_off_by_its_operating_system_or_that_is_refused(self, power: PowerUnderTest) -> None:
        """A controller that cannot shut down the operating system reports that, and the machine stays on."""
        if not self._switches(power):
            return
        assert power.switched(on=True)
        try:
            power.driver.set_power(on=False)
        except DeviceRefusedError:
            assert power.driver.read_power().on is True
        else:
            assert power.becomes(on=False)

    @pytest.mark.parametrize("on", [False, True], ids=["off", "on"])
    @proves("idempotent")
    def test_what_is_so_already_is_not_ordered_again(self, power: PowerUnderTest, on: bool) -> None:
        """Switching is idempotent: a second command to a machine already in that state could only do harm."""
        if not self._switches(power):
            return
        assert power.switched(on=on, force=True)
        before = power.orders() if power.orders is not None else 0
        power.driver.set_power(on, force=True)
        assert power.orders is None or power.orders() == before
        assert power.driver.read_power().on is on

    @proves("commit")
    def test_a_restart_leaves_it_on(self, power: PowerUnderTest) -> None:
        """A restart is one command, after which the machine returns by itself."""
        if supported(power.driver, Capability.RESET, power.driver.reset):
            power.driver.set_power(on=True)
            assert power.becomes(on=True)
            power.driver.reset()
            assert power.becomes(on=True)

    @proves("numbering")
    def test_the_other_machines_stay_as_they_are(self, power: PowerUnderTest) -> None:
        """Neither switching nor a restart affects the machine at the next outlet."""
        if not power.driver.capabilities & {Capability.SET_POWER, Capability.RESET}:
            pytest.skip("the driver declares nothing that changes a machine")
        if power.others is None:
            not_tested("the set-up gives no `others`: the state of the controller's other machines")
        before = power.others()
        orders: list[Callable[[], object]] = []
        if Capability.SET_POWER in power.driver.capabilities:
            orders += [lambda: power.switched(on=False, force=True), lambda: power.switched(on=True)]
        if Capability.RESET in power.driver.capabilities:
            orders.append(power.driver.reset)
        for order in orders:
            order()
            after = power.others()
            assert after == before, f"the other machines were {before} but are now {after}"

    @proves("refused")
    def test_a_machine_that_the_controller_lacks_is_refused(self, power: PowerUnderTest) -> None:
        """For a machine that does not exist, no other machine is switched."""
        driver = power.nobody
        if driver is None:
            not_tested("the set-up gives no `nobody`: a driver for a machine that the controller lacks")
        before = power.driver.read_power().on
        for call in self._calls(driver):
            with pytest.raises(DeviceRefusedError):
                call()
        assert power.driver.read_power().on is before

    @proves("unreachable")
    def test_a_controller_that_does_not_answer_is_unreachable(self, power: PowerUnderTest, subject: Subject) -> None:
        """Nothing was sent, and the error states that."""
        driver = power.unreachable
        if driver is None:
            driver = gone(subject)
        for call in self._calls(driver):
            with pytest.raises(DeviceUnreachableError):
                call()

    @proves("closing")
    def test_closing_twice_is_harmless(self, power: PowerUnderTest) -> None:
        """The second call does nothing."""
        power.driver.close()
        power.driver.close()

    @staticmethod
    def _switches(power: PowerUnderTest) -> bool:
        if Capability.SET_POWER in power.driver.capabilities:
            return True
        for on in (False, True):
            with pytest.raises(UnsupportedError):
                power.driver.set_power(on)
        return False

    @staticmethod
    def _calls(driver: PowerDriver) -> list[Callable[[], object]]:
        calls: list[Callable[[], object]] = [driver.identify, driver.read_power]
        if Capability.SET_POWER in driver.capabilities:
            calls += [lambda: driver.set_power(on=True), lambda: driver.set_power(on=False, force=True)]
        if Capability.RESET in driver.capabilities:
            calls.append(driver.reset)
        return calls
