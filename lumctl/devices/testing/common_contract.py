"""What every driver must do, of any kind, tested with faults that the kit injects in front of the device."""

import contextlib
import io
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from lumctl.devices.answers import fault_of
from lumctl.devices.contained_driver import class_of
from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.interception import Fault, Interception, intercepted
from lumctl.devices.testing.readings import ReadingsContract
from lumctl.devices.testing.rules import broken, not_tested, one_line, proves
from lumctl.devices.testing.settings import SettingsContract
from lumctl.devices.testing.subjects import Subject, Write
from lumctl.devices.testing.time_limit import Call, closing, ended_within
from lumctl.devices.types import Alarm, Neighbour, OpticsReading, PowerReading
from lumctl.printable import printable

MOST_WATTS = 100_000.0
YEARS_S = 10 * 365 * 86400.0
DARK_DBM = -20.0
MHZ = (100_000_000, 300_000_000)
_NUMBERED = ("PUC", "port")
_UNITS = ("dBm", "degrees", " W", " mA", "rate", "time", "age", " V")


def require_sound(kind: str, call: str, answer: Any, arguments: Mapping[str, Any], context: DriverContext) -> None:
    """Check an answer against the contract.

    Raises:
        ContractBrokenError: the answer has a wrong type or unit, or wrong port or PUC numbers.
    """
    wrong = fault_of(kind, call, answer, arguments, context)
    if wrong:
        rule = "types" if ", expected " in wrong else _rule_of(wrong)
        broken(rule, f"{call}() {wrong}")
    if call == "identify":
        _require_line(answer)
    elif call == "read_powers":
        _require_dbm(answer)
    elif call in {"read_states", "read_ports"}:
        _require_all(call, answer, context)
    elif isinstance(answer, OpticsReading):
        _require_optics(answer, context)
    elif isinstance(answer, PowerReading):
        _require_time("read_power", answer.taken_at, context)
        if answer.watts is not None and answer.watts > MOST_WATTS:
            broken("units", f"read_power() gives {answer.watts:g} W for one machine")
    elif call == "neighbours":
        _require_ages(answer)
    elif call == "read_alarms":
        _require_alarms(answer)


def _rule_of(wrong: str) -> str:
    if any(unit in wrong for unit in _UNITS):
        return "units"
    return "numbering" if any(word in wrong for word in _NUMBERED) else "types"


def _require_line(line: str) -> None:
    if not line or len(line.splitlines()) != 1 or printable(line) != line:
        broken("identity", f"identify() gives {line!r}, which is not one printable line")


def _require_dbm(powers: Mapping[int, float]) -> None:
    if any(math.isnan(power) for power in powers.values()):
        broken("units", "read_powers() gives NaN; no light is -inf")
    if powers and all(power >= 0 for power in powers.values()):
        shown = ", ".join(f"{power:g}" for power in powers.values())
        broken("units", f"read_powers() gives {shown}: no port on a bench has 1 mW or more; these look like mW")


def _require_all(call: str, answer: Mapping[int, Any], context: DriverContext) -> None:
    count = context.puc_count if call == "read_states" else context.port_count
    missing = sorted(set(range(count)) - set(answer))
    if missing and call == "read_ports":
        broken("numbering", f"{call}() lacks {missing[0]}; numbers start at 0, and there are {count}")


def _require_optics(reading: OpticsReading, context: DriverContext) -> None:
    _require_time("read_optics", reading.taken_at, context)
    if reading.rx_power_dbm is not None and reading.rx_power_dbm >= 0:
        broken("units", f"read_optics() gives {reading.rx_power_dbm:g} dBm received: 1 mW or more looks like mW")
    tx = reading.tx_power_dbm
    if reading.transmitting is False and tx is not None and tx > DARK_DBM:
        broken("units", f"read_optics() gives {tx:g} dBm sent while the transmitter is off; no light is -inf")
    frequency = reading.frequency_mhz
    if frequency is not None and not MHZ[0] <= frequency <= MHZ[1]:
        broken("units", f"read_optics() gives {frequency:g} MHz, which is not an optical frequency")
    limits = [reading.thresholds.get(f"rx_power_{name}") for name in ("low_alarm", "high_alarm")]
    if None not in limits and limits[0] >= limits[1]:  # type: ignore[operator]  # neither is None
        broken(
            "units",
            f"read_optics() gives rx_power_low_alarm {limits[0]}, which is not below rx_power_high_alarm {limits[1]}",
        )


def _require_time(call: str, taken_at: float, context: DriverContext) -> None:
    now = context.now()
    if now and not now - 60 <= taken_at <= now + 1:
        broken("units", f"{call}() gives taken_at {taken_at:g}; context.now() is {now:g}")


def _require_ages(heard: tuple[Neighbour, ...]) -> None:
    for each in heard:
        if each.age_s > YEARS_S:
            broken("units", f"neighbours() gives an age of {each.age_s:g} s: this looks like a time or like ms")


def _require_alarms(alarms: tuple[Alarm, ...]) -> None:
    for alarm in alarms:
        if not alarm.text:
            broken("types", "read_alarms() gives an alarm without a text")
        if alarm.since is not None and alarm.since > time.time() + 86400:
            broken("units", f"read_alarms() gives an alarm since {alarm.since:g}: this looks like milliseconds")


NO_CONTEXT = "the driver keeps no `context`, so the kit cannot open another driver: give `context` in the set-up"
NO_PASSAGE = (
    "the driver uses neither context.way, context.shell nor a connection to context.address, so the kit cannot inject "
    "faults between it and its device"
)
LONGEST_S = 4.0
"""Approximate seconds for the faults of one write; if all take longer, an even selection is tried."""
LEAST = 4
GRACE_S = 0.5
LEAST_TIMEOUT_S, TIMES = 0.4, 10
BUSY_TRIES, BUSY_WAIT_S = 50, 0.1


class CommonContract(ReadingsContract, SettingsContract):
    """The part common to all contracts; each contract provides the fixture ``subject``."""

    @pytest.fixture
    def subject(self) -> Subject:
        """The driver as these tests use it; each kind overrides this."""
        pytest.fail("override the fixture `subject`")

    @pytest.fixture
    def between(self, subject: Subject) -> Iterator[Interception]:
        """Intercept traffic between drivers and the device."""
        if subject.context is None:
            not_tested(NO_CONTEXT)
        with intercepted(subject.context, subject.opens, subject.reads[0].of) as interception:
            if interception is None:
                not_tested(NO_PASSAGE)
            interception.hurry(_timeout_s(subject))
            yield interception
            interception.heal()

    @proves("units", "types", "numbering")
    def test_answers_are_of_the_types_and_units_of_the_contract(self, subject: Subject) -> None:
        """Every reading, on the device as it is and after a write."""
        if subject.context is None:
            not_tested(NO_CONTEXT)
        self._require_sound(subject)
        with contextlib.suppress(Exception):  # other tests check writes
            for write in subject.writes:
                write.prepare(subject.driver)()
        self._require_sound(subject)

    @staticmethod
    def _require_sound(subject: Subject) -> None:
        if subject.context is None:
            return
        for read in subject.readings():
            answer = read.of(subject.driver)
            require_sound(subject.driver.kind, read.call, answer, read.arguments, subject.context)
            if read.call in subject.true_reads and answer != subject.true_reads[read.call]():
                broken("numbering", f"{read.call}() gives {answer}, the device holds {subject.true_reads[read.call]()}")

    @proves("units")
    def test_ages_grow_by_seconds(self, subject: Subject) -> None:
        """An age grows between two readings by no more than the time that passed."""
        calls = [read for read in subject.reads if read.call == "neighbours"]
        for read in calls:
            began = time.monotonic()
            first = {each.system: each.age_s for each in read.of(subject.driver)}
            threading.Event().wait(0.05)  # ages in milliseconds grow by some 50
            second = {each.system: each.age_s for each in read.of(subject.driver)}
            passed = time.monotonic() - began
            grown = {name: second[name] - age for name, age in first.items() if name in second}
            wrong = {name: age for name, age in grown.items() if age > passed + 1.5}
            if wrong:
                broken("units", f"ages of neighbours grew by {wrong} in {passed:.2f} s: they look like milliseconds")

    @proves("silence")
    def test_nothing_is_printed(self, subject: Subject) -> None:
        """Neither a reading nor a write prints."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for read in subject.readings():
                read.of(subject.driver)
            for write in subject.writes:
                write.prepare(subject.driver)()
        printed = out.getvalue() + err.getvalue()
        assert not printed, f"it printed {printed[:80]!r}"

    @proves("opening")
    def test_opening_contacts_nothing(self, subject: Subject, between: Interception) -> None:
        """A command constructs a driver for each device of an inventory and never uses most of them."""
        attempts = between.attempts
        with closing(subject.opens(between.context)):
            assert between.attempts == attempts

    @proves("unreachable")
    def test_a_device_that_is_gone_is_not_read(self, subject: Subject, between: Interception) -> None:
        """Every reading raises DeviceUnreachableError; no value is invented, and none is remembered."""
        for read in subject.reads:
            for has_read in (False, True):
                with closing(subject.opens(between.context)) as driver:
                    if has_read:
                        with contextlib.suppress(DeviceError):  # without a device, there is nothing to remember
                            read.of(driver)
                    between.set(between.gone())
                    _require_unreachable(read.call, partial(read.of, driver))
                    between.heal()

    @proves("unreachable")
    def test_a_device_that_is_gone_is_not_written(self, subject: Subject, between: Interception) -> None:
        """Every write raises DeviceUnreachableError, and nothing changes."""
        for write in subject.writes:
            with closing(subject.opens(between.context)) as driver:
                act = _prepared(write, driver)
                between.set(between.gone())
                _require_unreachable(write.call, act)
                between.heal()
                if write.held is not None and write.held() != write.before:
                    broken("unreachable", f"{write.call} raised unreachable, but the device changed: {write.held()}")

    @proves("errors")
    def test_spoilt_answers_raise_device_errors_only(self, subject: Subject, between: Interception) -> None:
        """If an answer is cut, garbled or missing, a reading returns a correct value or raises."""
        for read in subject.readings():
            with closing(subject.opens(between.unhurried)) as driver:
                began = time.monotonic()
                faults = between.faults_of(partial(read.of, driver), sending=False)
            for fault in _spread(faults, time.monotonic() - began):
                with closing(subject.opens(between.context)) as driver:
                    between.set(fault)
                    self._read_under(subject, fault, read, driver)
                    between.heal()

    @staticmethod
    def _read_under(subject: Subject, fault: Fault, read: Any, driver: Any) -> None:
        try:
            answer = read.of(driver)
        except DeviceError as error:
            if isinstance(error, OutcomeUnknownError):
                broken(
                    "unreachable", f"{fault.text}: {read.call}() raised OutcomeUnknownError, though it changes nothing"
                )
            return
        except Exception as error:  # noqa: BLE001 - any error is one that the driver did not catch
            broken("errors", f"{fault.text}: {read.call}() raised {type(error).__name__}: {one_line(error)}")
        require_sound(subject.driver.kind, read.call, answer, read.arguments, subject.context)  # type: ignore[arg-type]
        if read.call in subject.true_reads and answer != subject.true_reads[read.call]():
            broken("unreachable", f"{fault.text}: {read.call}() gives {answer}, which the device does not hold")

    @proves("outcome", "half-applied", "atomic")
    def test_the_outcome_of_a_spoilt_write_is_the_truth(self, subject: Subject, between: Interception) -> None:
        """If a request is cut or an answer is lost, the error states the truth about the device."""
        if not subject.writes:
            pytest.skip("the driver declares nothing that changes the device")
        unseen = [write.call for write in subject.writes if write.held is None]
        for write in subject.writes:
            self._spoil(subject, write, between)
        if unseen:
            not_tested(f"only the driver reads what the device holds after {', '.join(unseen)}: give `truth`")

    def _spoil(self, subject: Subject, write: Write, between: Interception) -> None:
        began = time.monotonic()
        with closing(subject.opens(between.unhurried)) as driver:
            faults = between.faults_of(_prepared(write, driver), sending=True)
            if write.held is not None and not _comes(write, (write.after,)):
                broken("commit", f"{write.call} returned, but the device holds {write.held()}, not {write.after}")
        for fault in _spread(faults, time.monotonic() - began):
            with closing(subject.opens(between.context)) as driver:
                act = _prepared(write, driver)
                between.set(fault)
                error = _raised(act)
                between.heal()
                _require_outcome(subject, write, fault, error)

    @proves("deadline")
    def test_every_call_ends_in_its_time(self, subject: Subject, between: Interception) -> None:
        """Also if the device accepts the connection and stays silent, or its answer never ends."""
        timeout_s = between.context.timeout_s
        slow = getattr(class_of(subject.driver), "slow_calls", {})
        for fault in (between.silent(), between.endless()):
            with ExitStack() as opened:
                late: list[tuple[str, Call]] = []
                for name, act in self._acts(subject, between.context, opened):
                    between.set(fault)
                    if between.shell is not None:
                        between.shell.hung = between.way.over
                    late.append((name, Call(act)))
                limit_s = timeout_s * 1.2 + GRACE_S
                overdue = [name for name, call in late if not ended_within(call, max(limit_s, slow.get(name, 0.0)))]
                between.heal()
                between.way.over.set()
                if between.shell is not None:
                    between.shell.hung = None
                for _, call in late:
                    ended_within(call, 2 * timeout_s + GRACE_S)
                between.way.over.clear()
            if overdue:
                broken("deadline", f"{fault.text}: {overdue[0]} had not ended {limit_s:.1f} s after its call, "
                       f"timeout_s is {timeout_s:.1f}")  # fmt: skip

    @staticmethod
    def _acts(subject: Subject, context: Any, opened: ExitStack) -> Iterator[tuple[str, Callable[[], object]]]:
        """The calls, each on its own driver, so that all wait at the same time."""
        drivers = [opened.enter_context(closing(subject.opens(context))) for _ in (*subject.reads, *subject.writes)]
        prepared = [_prepared(write, driver) for write, driver in zip(subject.writes, drivers, strict=False)]
        for write, act in zip(subject.writes, prepared, strict=True):
            yield write.call, act
        for read, driver in zip(subject.reads, drivers[len(prepared) :], strict=True):
            yield read.call, partial(read.of, driver)


def _timeout_s(subject: Subject) -> float:
    """A time limit as short as the device allows, so that faults cost little time: many times one reading."""
    slowest = 0.0
    for read in subject.reads:
        began = time.monotonic()
        with contextlib.suppress(DeviceError):
            read.of(subject.driver)
        slowest = max(slowest, time.monotonic() - began)
    wanted = max(LEAST_TIMEOUT_S, TIMES * slowest)
    return wanted if subject.context is None else min(wanted, max(subject.context.timeout_s, LEAST_TIMEOUT_S))


def _spread(faults: list[Fault], took_s: float) -> list[Fault]:
    """An even selection of the faults that fits into the time."""
    most = max(LEAST, int(LONGEST_S / max(took_s, 0.001)))
    if len(faults) <= most:
        return faults
    return [faults[at * len(faults) // most] for at in range(most)]


def _prepared(write: Write, driver: Any) -> Callable[[], object]:
    """Prepare the device for a write; wait if it is slow or a lost session still holds its lock."""
    for _ in range(BUSY_TRIES):
        try:
            return write.prepare(driver)
        except (DeviceBusyError, DeviceUnreachableError):  # the time limit is short and the machine may be busy
            threading.Event().wait(BUSY_WAIT_S)
    return write.prepare(driver)


def _raised(act: Callable[[], object]) -> BaseException | None:
    try:
        act()
    except Exception as error:  # noqa: BLE001 - a driver may raise anything; the caller judges it
        return error
    return None


def _require_unreachable(call: str, act: Callable[[], object]) -> None:
    try:
        answer = act()
    except DeviceUnreachableError:
        return
    except DeviceError as error:
        broken("unreachable", f"the device is gone, and {call} raised {type(error).__name__}: {one_line(error)}")
    except Exception as error:  # noqa: BLE001 - any error is one that the driver did not catch
        broken("errors", f"the device is gone, and {call} raised {type(error).__name__}: {one_line(error)}")
    broken("unreachable", f"the device is gone, and {call} gave {answer!r:.200}")


def _comes(write: Write, states: tuple[object, ...]) -> bool:
    """Whether the device is in one of these states, or reaches one in its allowed time."""
    held = write.held
    return held is None or becomes_true(lambda: held() in states, write.follows_within_s)


def _require_outcome(subject: Subject, write: Write, fault: Fault, error: BaseException | None) -> None:
    said = "returned" if error is None else f"raised {type(error).__name__}"
    if error is not None and not isinstance(error, DeviceError):
        broken("errors", f"{fault.text}: {write.call} raised {type(error).__name__}: {one_line(error)}")
    if write.held is None:
        return
    unclear = isinstance(error, OutcomeUnknownError | InconsistentError)
    if subject.atomic and write.held() not in (write.before, write.after):
        broken("atomic", f"{fault.text}: {write.call} {said}, and the device holds {write.held()}")
    if error is None and not _comes(write, (write.after,)):
        broken("outcome", f"{fault.text}: {write.call} returned, and the device holds {write.held()}")
    if isinstance(error, DeviceRefusedError | DeviceUnreachableError | UnsupportedError) and not unclear:
        held = write.held()
        if held != write.before:
            rule = "outcome" if held == write.after else "half-applied"
            broken(rule, f"{fault.text}: {write.call} {said}, and the device has changed: {held}")
