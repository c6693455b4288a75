"""The contract kit catches every deliberately wrong driver, and its failure names the broken rule."""

import contextlib
import inspect
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from wrong_drivers import INPUTS, PORTS, RIGHT, WRONG
from wrong_drivers.device import MeshTwin, PowerTwin, SwitchTwin, TransponderTwin

from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import (
    MeshContract,
    MeshUnderTest,
    PowerContract,
    PowerUnderTest,
    SwitchContract,
    SwitchUnderTest,
    TransponderContract,
    TransponderUnderTest,
    mesh,
)
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.interception import intercepted
from lumctl.devices.testing.rules import NOT_TESTED, RULES, ContractBrokenError
from lumctl.devices.testing.subjects import of_mesh, of_power, of_switch, of_transponder
from lumctl.devices.types import Alarm, Capability, DeviceReading, PowerReading
from lumctl.devices.ways import Direct

TYPES = "answers_are_of_the_types_and_units_of_the_contract"
SPOILT_READ, SPOILT_WRITE = "spoilt_answers_raise_device_errors_only", "the_outcome_of_a_spoilt_write_is_the_truth"
IN_TIME, NOT_READ = "every_call_ends_in_its_time", "a_device_that_is_gone_is_not_read"
WRONG_PUC, WRONG_PORT = "a_puc_that_does_not_exist_is_refused_whole", "a_port_that_does_not_exist_is_refused_whole"
READINGS, ALARMS = "readings_are_what_the_device_measures", "alarms_are_those_of_the_device"
PROGRESS, WRITTEN = "a_change_in_progress_is_reported", "a_write_is_what_the_device_holds"
SHOWN = "a_write_shows_to_another_driver"
TIMER, AGAIN = "a_revert_timer_is_armed_or_refused", "what_is_so_already_is_not_ordered_again"

CAUGHT = {
    "milliwatts": (TYPES, "units", "look like mW"),
    "kelvin": (TYPES, "units", "304.65"),
    "no-power-is-none": (TYPES, "types", "None"),
    "text-for-states": (TYPES, "types", "read_states"),
    "list-of-states": (TYPES, "types", "a list"),
    "beyond-puc-count": (TYPES, "numbering", "PUC 12"),
    "pucs-from-one": (TYPES, "numbering", "PUC 12"),
    "alarms-are-text": (TYPES, "types", "fan 2 is slow"),
    "alarms-of-the-future": (TYPES, "units", "milliseconds"),
    "value-error-for-refused": (WRONG_PUC, "errors", "ValueError"),
    "os-error-for-unreachable": (NOT_READ, "errors", "ConnectionRefusedError"),
    "random-states": (NOT_READ, "unreachable", "read_states returned"),
    "parser-error": (SPOILT_READ, "errors", "IndexError"),
    "one-by-one-but-atomic": (SPOILT_WRITE, "atomic", "OutcomeUnknownError"),
    "half-and-refused": (SPOILT_WRITE, "half-applied", "DeviceRefusedError"),
    "lost-answer-is-unreachable": (SPOILT_WRITE, "outcome", "raised DeviceUnreachableError"),
    "lost-answer-is-success": (SPOILT_WRITE, "outcome", "commit returned"),
    "writes-twice": (SPOILT_WRITE, "outcome", "raised DeviceRefusedError"),
    "commit-only-queues": ("a_commit_returns_when_the_device_holds_it", "commit", ""),
    "staging-writes": ("staging_and_comparing_touch_nothing", "staging", ""),
    "compares-memory": ("what_is_read_is_read_afresh", "read-afresh", ""),
    "commit-toggles": ("committing_again_is_harmless", "idempotent", ""),
    "roll-back-does-nothing": ("rolling_back_restores_the_states_before", "roll-back", ""),
    "roll-back-of-half": ("rolling_back_to_the_unknown_is_refused_whole", "roll-back", "DID NOT RAISE"),
    "confirm-does-nothing": ("a_confirmed_change_stays", "confirm", "reverted it"),
    "no-timer-armed": (TIMER, "revert-timer", ""),
    "timer-ignored": (TIMER, "revert-timer", "DID NOT RAISE"),
    "bool-for-receipt": ("committing_again_is_harmless", "types", "not a Receipt"),
    "never-times-out": (IN_TIME, "deadline", "read_states had not ended"),
    "time-of-each-byte": (IN_TIME, "deadline", "the answer never ends"),
    "retries-past-deadline": (IN_TIME, "deadline", "identify had not ended"),
    "prints": ("nothing_is_printed", "silence", "DEBUG"),
    "two-lines": (TYPES, "identity", "firmware"),
    "close-fails-twice": ("closing_twice_is_harmless", "closing", "closed already"),
    "connects-at-once": ("opening_contacts_nothing", "opening", ""),
    "any-size": ("a_mesh_of_another_size_is_found_out", "identity", "identify() succeeds"),
    "undeclared": (TYPES, "errors", "NotImplementedError"),
    "ports-from-one": (TYPES, "numbering", "port 12"),
    "steals": ("nothing_is_taken_from_others", "foreign", "DID NOT RAISE"),
    "joins-as-text": (TYPES, "types", "read_circuits"),
    "beyond-port-count": (TYPES, "numbering", "port 98"),
    "switch-milliwatts": (TYPES, "units", "look like mW"),
    "switch-in-turn": (SPOILT_WRITE, "atomic", "commit raised"),
    "switch-key-error": (WRONG_PORT, "errors", "KeyError"),
    "switch-blind-commit": (SPOILT_WRITE, "outcome", "commit returned"),
    "transmit-not-read-back": (SPOILT_WRITE, "outcome", "set_transmit returned"),
    "transmit-forgets": ("the_transmitter_is_switched_and_read_back", "read-back", ""),
    "optics-milliwatts": (TYPES, "units", "looks like mW"),
    "optics-kelvin": (TYPES, "units", "314.65"),
    "optics-dict": (TYPES, "types", "a dict"),
    "optics-no-time": (TYPES, "units", "context.now()"),
    "channel-in-terahertz": (TYPES, "types", "OpticsReading"),
    "ages-in-milliseconds": ("ages_grow_by_seconds", "units", "milliseconds"),
    "ages-are-times": (TYPES, "units", "looks like a time"),
    "old-neighbours": (NOT_READ, "unreachable", "neighbours returned"),
    "sets-anyway": ("what_is_not_declared_is_refused_before_anything_is_sent", "undeclared", "DID NOT RAISE"),
    "watts-as-text": (TYPES, "types", "PowerReading"),
    "negative-watts": (TYPES, "units", "-312 W"),
    "power-is-text": (TYPES, "types", "PowerReading"),
    "off-when-silent": (NOT_READ, "unreachable", "read_power returned"),
    "orders-twice": (AGAIN, "idempotent", ""),
    "power-lost-is-done": (SPOILT_WRITE, "outcome", "set_power returned"),
    "fahrenheit": (READINGS, "units", "returns 88.7, but the device has 31.5 C: this looks like Fahrenheit"),
    "remembers-temperature": (NOT_READ, "unreachable", "read_temperature returned 31.5"),
    "next-powers": (READINGS, "numbering", "for port 0, which has -6 dBm: that is the power of port 1"),
    "switch-next-powers": (READINGS, "numbering", "-inf dBm for port 0, which has -6 dBm: that is the power of port 3"),
    "switch-milliwatts-of-light": (READINGS, "units", "read_powers() returns 0.25"),
    "never-in-progress": (PROGRESS, "progress", "returns None, but the device still holds"),
    "always-in-progress": (PROGRESS, "progress", "a device that is idle"),
    "no-alarms": (ALARMS, "alarms", "read_alarms() returns ()"),
    "alarms-from-one": (ALARMS, "alarms", "source 'port/3' for an alarm of 'port/2'"),
    "alarms-since-now": (ALARMS, "alarms", "since"),
    "alarms-since-ever": (ALARMS, "alarms", "since 1 for"),
    "alarms-are-warnings": (ALARMS, "alarms", "severity 'warning' for an alarm that is 'critical'"),
    "alarms-stay": (ALARMS, "alarms", "when the alarm has ended"),
    "label-forgets": (SHOWN, "read-back", "set_label wrote kit, but another driver reads"),
    "next-port": (WRITTEN, "read-back", "set_port wrote False, but the device holds True"),
    "optics-fahrenheit": (READINGS, "readings", "temperature_c 106.7, but the device has 41.5"),
    "sent-milliwatts": (READINGS, "readings", "tx_power_dbm 0.63"),
    "other-lane": (READINGS, "readings", "rx_power_dbm -9.9, but the device has -3.4"),
    "tunes-other-lane": (WRITTEN, "read-back", "set_channel wrote 193400000, but the device holds 193100000"),
    "channel-forgets": (SHOWN, "read-back", "set_channel wrote 193400000, but another driver reads 193100000"),
    "channel-remembers": (SHOWN, "read-afresh", "set_channel of another driver wrote"),
    "power-setting-dropped": (SHOWN, "read-back", "set_output_power wrote"),
    "kilowatts": (READINGS, "readings", "watts 0.312, but the device has 312"),
    "remembers-power": (NOT_READ, "unreachable", "read_power returned"),
    "wrong-outlet": (WRITTEN, "read-back", "the machine does not follow its orders"),
    "both-outlets": ("the_other_machines_stay_as_they_are", "numbering", "the other machines were True"),
}
KINDS = {
    "mesh": (MeshContract, MeshUnderTest, of_mesh, MeshTwin),
    "switch": (SwitchContract, SwitchUnderTest, of_switch, SwitchTwin),
    "transponder": (TransponderContract, TransponderUnderTest, of_transponder, TransponderTwin),
    "power": (PowerContract, PowerUnderTest, of_power, PowerTwin),
}


KNOWN = (
    "truth", "told", "orders", "others", "ports", "reading", "alarms", "completes_late", "follows_within_s",
)  # fmt: skip


def run(name, test, **other) -> None:
    """Run one test of the contract, with the smallest set-up: the driver, its size and the truth of its twin.

    ``other`` replaces fields of the set-up.
    """
    kind = WRONG[name].driver.kind
    contract, under_test, subject_of, served = KINDS[kind]
    with contextlib.ExitStack() as held:
        twin = held.enter_context(served())
        sizes = {size: getattr(twin, size, 0) for size in ("puc_count", "port_count", "input_count")}
        context = DriverContext("d1", twin.address, Direct(twin.address), now=time.time, timeout_s=2.0, **sizes)
        wanted = {"mesh": ("puc_count",), "switch": ("port_count", "input_count")}.get(kind, ())
        more = {each: getattr(twin, each) for each in KNOWN if hasattr(twin, each)} | other
        ready = under_test(WRONG[name].driver(context), **{size: sizes[size] for size in wanted}, **more)
        subject = subject_of(ready)
        given = {kind: ready, "ready": ready, "subject": subject, "on": True, "beyond": -1}
        method = getattr(contract(), f"test_{test}")
        asked = inspect.signature(method).parameters
        if "between" in asked:
            between = intercepted(context, subject.opens, subject.reads[0].of)
            given["between"] = held.enter_context(between)
            given["between"].context = replace(given["between"].context, timeout_s=0.4)
            held.callback(given["between"].heal)
        if "ready" in asked:
            ready.write(dict.fromkeys(ready.held()) | dict(ready.foreign))
        method(**{each: given[each] for each in asked})


@pytest.mark.parametrize("name", WRONG)
def test_it_is_caught_by_its_rule(name, monkeypatch):
    monkeypatch.setattr(mesh, "becomes_true", lambda condition: becomes_true(condition, 1.0))  # not to wait for nothing
    test, rule, says = CAUGHT[name]
    with pytest.raises(ContractBrokenError) as caught:
        run(name, test)
    assert caught.value.rule == rule, caught.value
    assert says in caught.value.found
    assert RULES[rule].cause in str(caught.value)


UNTOLD = [
    ("fahrenheit", READINGS, {"reading": None}, "read_temperature"),
    ("fahrenheit", READINGS, {"reading": lambda: DeviceReading(0.0, powers_dbm={0: -6.0, 1: -7.5})}, "temperature_c"),
    ("next-powers", READINGS, {"reading": lambda: DeviceReading(0.0, temperature_c=31.5)}, "powers_dbm"),
    ("kilowatts", READINGS, {"reading": lambda: PowerReading(0.0, on=True)}, "watts"),
    ("alarms-are-warnings", ALARMS, {"alarms": ()}, "no `alarms`"),
    ("never-in-progress", PROGRESS, {"completes_late": None}, "no `completes_late`"),
    ("never-in-progress", PROGRESS, {"completes_late": contextlib.nullcontext}, "before its answer"),
    ("next-port", WRITTEN, {"ports": None}, "set_port"),
    ("tunes-other-lane", WRITTEN, {"told": None}, "set_channel, set_output_power"),
    ("wrong-outlet", WRITTEN, {"truth": None}, "set_power"),
    ("both-outlets", "the_other_machines_stay_as_they_are", {"others": None}, "no `others`"),
]


@pytest.mark.parametrize(("name", "test", "other", "says"), UNTOLD)
def test_without_the_truth_it_is_not_tested_and_not_passed(name, test, other, says):
    with pytest.raises(pytest.skip.Exception, match=NOT_TESTED) as skipped:
        run(name, test, **other)
    assert says in str(skipped.value)


@pytest.mark.parametrize(
    ("alarm", "says"),
    [
        (Alarm("fan 2 is slow", "critical", "port/2", since=5.0), "all have the same source"),
        (Alarm("fan 2 is slow", "critical", "", since=5.0), "all have the same severity"),
    ],
)
def test_alarms_that_do_not_differ_leave_the_driver_untested(alarm, says):
    """A driver that reports the same of every alarm would pass."""
    with SwitchTwin() as twin:
        bench = twin.device.light

        @contextlib.contextmanager
        def raised():
            bench._raised.append(alarm)
            yield alarm
            bench._raised.remove(alarm)

        context = DriverContext(
            "d1", twin.address, Direct(twin.address), port_count=PORTS, input_count=INPUTS, now=time.time
        )
        switch = SwitchUnderTest(RIGHT["right-switch"].driver(context), PORTS, INPUTS, alarms=[raised, raised])
        with pytest.raises(pytest.skip.Exception, match=says):
            SwitchContract().test_alarms_are_those_of_the_device(of_switch(switch))


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        (Alarm("it is slow", "MINOR", "fan tray", since=5.4), "no source"),
        (Alarm("it is slow", "amber", "port/2", since=5.4), "no severity"),
        (Alarm("it is slow", "MINOR", "port/2"), "no since"),
    ],
)
def test_a_word_of_the_device_itself_is_not_wrong_but_not_tested(shown, says):
    driver = SimpleNamespace(capabilities={Capability.READ_ALARMS}, read_alarms=lambda: ())

    @contextlib.contextmanager
    def raised():
        driver.read_alarms = lambda: (shown,)
        yield Alarm("it is slow", "minor", "port/2", since=5.0)
        driver.read_alarms = lambda: ()

    subject = SimpleNamespace(driver=driver, alarms=[raised])
    with pytest.raises(pytest.skip.Exception, match=says):
        SwitchContract().test_alarms_are_those_of_the_device(subject)
