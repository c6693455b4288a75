"""The contract of every driver of a switch."""

import math
import random
from collections.abc import Iterator, Mapping

import pytest

from lumctl.devices.contained_driver import class_of
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import SwitchDriver
from lumctl.devices.testing.checks import CONFIRMED_AFTER_S, becomes_true, stays, supported
from lumctl.devices.testing.common_contract import AlarmsContract, CommonContract
from lumctl.devices.testing.rules import not_tested, proves
from lumctl.devices.testing.subjects import Subject, another, gone, of_switch, require_size_found_out
from lumctl.devices.testing.under_test import SwitchUnderTest
from lumctl.devices.types import Alarm, Capability, JoinChange


class SwitchPortsContract:
    """A part of ``SwitchContract``, which defines the fixture ``ready``."""

    @proves("numbering")
    def test_ports_are_read_or_refused_as_declared(self, ready: SwitchUnderTest) -> None:
        """Every port is reported, under its own number."""
        driver = ready.driver
        if supported(driver, Capability.READ_PORTS, driver.read_ports):
            ports = driver.read_ports()
            assert list(ports) == list(range(ready.port_count))
            assert all(reading.port == port for port, reading in ports.items())

    @proves("units")
    def test_powers_are_read_or_refused_as_declared(self, ready: SwitchUnderTest) -> None:
        """Powers are in dBm, for the requested ports; minus infinity is no light."""
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
            assert driver.read_alarms() == driver.read_alarms(), "a reading does not remove alarms"
            assert all(isinstance(alarm, Alarm) and alarm.text for alarm in driver.read_alarms())

    @proves("read-back")
    def test_a_port_is_switched_and_read_back(self, ready: SwitchUnderTest) -> None:
        """A port is switched off and on, each twice: switching is idempotent and changes no join."""
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
        """A label can be empty or have special characters of XML and shells; other labels stay."""
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


ROUNDS = 12
"""Number of random changes that are compared with a model, one after the other."""


class SwitchContract(SwitchPortsContract, AlarmsContract, CommonContract):
    """Subclass it and define the fixture ``switch``, the driver under test."""

    @pytest.fixture
    def subject(self, switch: SwitchUnderTest) -> Subject:
        """The set-up in the form that the common tests use."""
        return of_switch(switch)

    @pytest.fixture
    def ready(self, switch: SwitchUnderTest) -> Iterator[SwitchUnderTest]:
        """The switch with only the joins of other users, which every test must leave alone."""
        switch.write(dict.fromkeys(switch.held()) | dict(switch.foreign))
        assert switch.held() == switch.foreign
        yield switch
        assert {ingress: switch.held().get(ingress) for ingress in switch.foreign} == switch.foreign

    @proves("declaration")
    def test_it_declares_itself(self, switch: SwitchUnderTest) -> None:
        """Version, kind, capabilities and ``proven`` are stated for `plugin list`."""
        driver = class_of(switch.driver)
        assert (driver.api_version, driver.kind) == (1, "switch")
        assert all(isinstance(each, Capability) for each in driver.capabilities)
        assert driver.proven
        assert isinstance(switch.driver, SwitchDriver)

    @proves("identity")
    def test_it_identifies_itself_in_one_line(self, switch: SwitchUnderTest) -> None:
        """The line proves that the device answers."""
        assert len(switch.driver.identify().splitlines()) == 1

    @proves("identity")
    def test_a_switch_of_another_size_is_found_out(self, switch: SwitchUnderTest, subject: Subject) -> None:
        """A switch of another size is refused: the inventory's port numbers would mean other ports on it."""
        if switch.wrong_size is None:
            require_size_found_out(subject, port_count=switch.port_count + 2, input_count=switch.input_count + 1)
            return
        with pytest.raises(InconsistentError):
            switch.wrong_size.identify()

    @proves("commit")
    def test_a_commit_writes_what_was_staged_and_nothing_else(self, ready: SwitchUnderTest) -> None:
        """Joins that are not listed stay."""
        (a, b), (x, y) = ready.inputs[:2], ready.outputs[:2]
        ready.write({a: x})
        assert ready.driver.read_circuits() == {**ready.foreign, a: x}
        ready.write({b: y})
        assert ready.holds({a: x, b: y})

    @proves("staging")
    def test_staging_and_comparing_touch_nothing(self, ready: SwitchUnderTest) -> None:
        """Only a commit writes."""
        (a, b), (x, y) = ready.inputs[:2], ready.outputs[:2]
        ready.write({a: x})
        staged = ready.driver.stage({a: x, b: y})
        assert ready.driver.compare(staged) == (JoinChange(b, None, y),)
        assert ready.holds({a: x})

    @proves("staging")
    def test_staging_states_what_was_before(self, ready: SwitchUnderTest) -> None:
        """An undo writes these joins."""
        (a, b), (x, y) = ready.inputs[:2], ready.outputs[:2]
        ready.write({a: x})
        assert ready.driver.stage({b: y, a: None}).changes == (JoinChange(a, x, None), JoinChange(b, None, y))

    @proves("read-afresh")
    def test_comparing_reads_the_switch_afresh(self, ready: SwitchUnderTest, subject: Subject) -> None:
        """Another driver removes the join; the driver must not rely on its own record."""
        a, x = ready.inputs[0], ready.outputs[0]
        receipt = ready.write({a: x})
        assert ready.driver.compare(receipt.staged) == ()
        other = another(subject)
        other.confirm(other.commit(other.stage({a: None})))
        assert ready.driver.compare(receipt.staged) == (JoinChange(a, None, x),)

    @proves("idempotent")
    def test_committing_again_is_harmless(self, ready: SwitchUnderTest) -> None:
        """A repeated write is harmless: the engine writes the state again that it assumes."""
        a, x = ready.inputs[0], ready.outputs[0]
        staged = ready.driver.stage({a: x})
        ready.driver.confirm(ready.driver.commit(staged))
        ready.driver.confirm(ready.driver.commit(staged))
        assert ready.holds({a: x})

    @proves("commit")
    def test_an_empty_change_is_no_error(self, ready: SwitchUnderTest) -> None:
        """A comparison changes nothing."""
        ready.write({})
        assert ready.holds({})

    @proves("commit")
    def test_a_join_is_taken_away_and_taking_away_nothing_is_harmless(self, ready: SwitchUnderTest) -> None:
        """``None`` removes a join."""
        (a, b), x = ready.inputs[:2], ready.outputs[0]
        ready.write({a: x})
        ready.write({a: None, b: None})
        ready.write({a: None})
        assert ready.holds({})

    @proves("refused")
    def test_a_port_that_does_not_exist_is_refused_whole(self, ready: SwitchUnderTest) -> None:
        """One wrong number stops the whole change."""
        (a, b), x = ready.inputs[:2], ready.outputs[0]
        for wrong in ({-1: x}, {ready.port_count: x}, {b: -1}, {b: ready.port_count}):
            with pytest.raises(DeviceRefusedError):
                ready.driver.stage({a: ready.outputs[1], **wrong})
        assert ready.holds({})

    @proves("refused")
    def test_a_port_is_of_one_side(self, ready: SwitchUnderTest) -> None:
        """If inputs and outputs are separate, neither is accepted for the other; no port is joined to itself."""
        (a, b), x = ready.inputs[:2], ready.outputs[0]
        with pytest.raises(DeviceRefusedError):
            ready.driver.stage({a: a})
        if not ready.any_to_any:
            for wrong in ({a: b}, {x: a}, {x: None}):
                with pytest.raises(DeviceRefusedError):
                    ready.driver.stage(wrong)

    @proves("refused")
    def test_an_egress_is_named_once(self, ready: SwitchUnderTest) -> None:
        """Two inputs cannot share one output."""
        (a, b), x = ready.inputs[:2], ready.outputs[0]
        with pytest.raises(DeviceRefusedError):
            ready.driver.stage({a: x, b: x})

    @proves("foreign")
    def test_nothing_is_taken_from_others(self, ready: SwitchUnderTest) -> None:
        """An egress that a join outside the change uses is refused, both by stage and by commit."""
        (a, b), x = ready.inputs[:2], ready.outputs[0]
        theirs = next(iter(ready.foreign.values()))
        with pytest.raises(DeviceRefusedError):
            ready.driver.stage({a: theirs})
        late = ready.driver.stage({a: x})
        ready.write({b: x})
        with pytest.raises(DeviceRefusedError):
            ready.driver.commit(late)
        assert ready.holds({b: x})

    @proves("commit")
    def test_an_egress_moves_together_with_its_ingress(self, ready: SwitchUnderTest) -> None:
        """The change lists both, so no other join is lost."""
        (a, b), (x, y) = ready.inputs[:2], ready.outputs[:2]
        ready.write({a: x})
        ready.write({a: None, b: x})
        assert ready.holds({b: x})
        ready.write({a: x, b: y})
        assert ready.holds({a: x, b: y})

    @proves("commit")
    def test_two_joins_are_swapped_in_one_change(self, ready: SwitchUnderTest) -> None:
        """Two ingress ports exchange their egress ports."""
        (a, b), (x, y) = ready.inputs[:2], ready.outputs[:2]
        ready.write({a: x, b: y})
        receipt = ready.write({a: y, b: x})
        assert ready.holds({a: y, b: x})
        ready.driver.roll_back(receipt)
        assert ready.holds({a: x, b: y})

    @proves("roll-back")
    def test_rolling_back_restores_what_was_before(self, ready: SwitchUnderTest) -> None:
        """An undo restores the earlier joins, even if other joins were made in between."""
        (a, b, c), (x, y, z) = ready.inputs[:3], ready.outputs[:3]
        ready.write({a: x})
        receipt = ready.driver.commit(ready.driver.stage({a: y, b: x}))
        ready.write({c: z})
        ready.driver.roll_back(receipt)
        assert ready.holds({a: x, c: z})

    @proves("foreign")
    def test_rolling_back_takes_nothing_from_others_either(self, ready: SwitchUnderTest) -> None:
        """An egress that was free when the change was made may be in use now."""
        (a, b), x = ready.inputs[:2], ready.outputs[0]
        ready.write({a: x})
        receipt = ready.write({a: None})
        ready.write({b: x})
        with pytest.raises(DeviceRefusedError):
            ready.driver.roll_back(receipt)
        assert ready.holds({b: x})

    @proves("commit")
    def test_random_changes_leave_what_a_model_says(self, ready: SwitchUnderTest) -> None:
        """Commits and undos in any order give the joins of a dictionary."""
        dice = random.Random(72)  # noqa: S311 - the same changes in every run
        model: dict[int, int] = {}
        for _ in range(ROUNDS):
            named = dice.sample(ready.inputs, k=dice.randint(1, len(ready.inputs)))
            free = set(ready.outputs) - {x for a, x in model.items() if a not in named}
            egresses = [*dice.sample(sorted(free), k=min(len(free), len(named))), *[None] * len(named)]
            change = {a: dice.choice([x, None]) for a, x in zip(named, egresses, strict=False)}
            receipt = ready.write(change)
            if dice.random() < 0.5:  # noqa: PLR2004 - a coin
                ready.driver.roll_back(receipt)
            else:
                model = {a: x for a, x in (model | change).items() if x is not None}
            assert ready.holds(model)

    @proves("revert-timer")
    def test_a_revert_timer_is_armed_or_refused(self, ready: SwitchUnderTest) -> None:
        """Without the capability a timer is refused at once; with it the device reverts by itself."""
        a, x = ready.inputs[0], ready.outputs[0]
        staged = ready.driver.stage({a: x})
        if Capability.CONFIRM_TIMER not in ready.driver.capabilities:
            with pytest.raises(UnsupportedError):
                ready.driver.commit(staged, revert_after_s=0.2)
            assert ready.holds({})
            return
        assert ready.driver.commit(staged, revert_after_s=0.2).revert_armed
        assert becomes_true(lambda: ready.holds({}))

    @proves("confirm")
    def test_a_confirmed_change_stays(self, ready: SwitchUnderTest) -> None:
        """Confirming disarms the timer, and is harmless without one."""
        a, x = ready.inputs[0], ready.outputs[0]
        timed = Capability.CONFIRM_TIMER in ready.driver.capabilities
        stays(
            lambda: ready.driver.commit(
                ready.driver.stage({a: x}), revert_after_s=CONFIRMED_AFTER_S if timed else None
            ),
            ready.driver.confirm,
            lambda: ready.holds({a: x}),
            timed=timed,
        )

    @proves("half-applied")
    def test_stopping_midway_is_no_refusal(self, ready: SwitchUnderTest) -> None:
        """A refusal would mean that nothing changed, but here half of the change was made."""
        if ready.stops_midway is None:
            not_tested("the set-up gives no `stops_midway`, which makes the device stop in the middle of a change")
        (a, b), (x, y) = ready.inputs[:2], ready.outputs[:2]
        staged = ready.driver.stage({a: x, b: y})
        with ready.stops_midway(), pytest.raises((InconsistentError, OutcomeUnknownError)):
            ready.driver.commit(staged)
        assert not ready.holds({a: x, b: y})
        ready.driver.confirm(ready.driver.commit(staged))
        assert ready.holds({a: x, b: y})

    @proves("unreachable")
    def test_a_device_that_does_not_answer_is_unreachable(self, switch: SwitchUnderTest, subject: Subject) -> None:
        """Both reading and staging raise, because staging reads the switch."""
        driver = switch.unreachable
        if driver is None:
            driver = gone(subject)
        change: Mapping[int, int | None] = {switch.inputs[0]: switch.outputs[0]}
        for call in (driver.identify, driver.read_circuits, lambda: driver.stage(change)):
            with pytest.raises(DeviceUnreachableError):
                call()

    @proves("closing")
    def test_closing_twice_is_harmless(self, switch: SwitchUnderTest) -> None:
        """The second call does nothing."""
        switch.driver.identify()
        switch.driver.close()
        switch.driver.close()
