"""The contract of drivers of all kinds, tested with faults that the kit injects in front of the device."""

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pytest

from lumctl.devices.contained_driver import class_of
from lumctl.devices.errors import (
    DeviceError,
    OutcomeUnknownError,
)
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.interception import Fault, Interception, intercepted
from lumctl.devices.testing.readings import (
    FOLLOWS_WITHIN_S,
    MEASURED,
    listed,
    reported,
    require_sound,
    states_it,
    unknown_measures,
)
from lumctl.devices.testing.rules import broken, not_tested, one_line, proves
from lumctl.devices.testing.subjects import Subject, Write, another
from lumctl.devices.testing.time_limit import Call, closing, ended_within
from lumctl.devices.testing.writes import (
    error_of,
    prepared_write,
    require_outcome,
    require_unreachable,
    takes_effect,
    unseen_values,
    writes_of,
)
from lumctl.devices.types import Alarm, Capability

NO_CONTEXT = (
    "the driver has no attribute `context`, so the kit cannot open another driver: give `context` in the set-up"
)
NO_PASSAGE = (
    "the driver uses neither context.way, context.shell nor a connection to context.address, so the kit cannot inject "
    "faults between it and its device"
)
LONGEST_S = 4.0
"""Approximate seconds for the faults of one write; if all take longer, an even selection is tried."""
LEAST = 4
GRACE_S = 0.5
LEAST_TIMEOUT_S, TIMES = 0.4, 10


class CommonContract:
    """The common part of all contracts; each subclass gives the fixture ``subject``."""

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

    @proves("readings", "units", "numbering")
    def test_readings_are_what_the_device_measures(self, subject: Subject) -> None:
        """Values have the unit of the contract, and come from the port, lane or outlet that was requested."""
        reads = {"read_temperature", "read_powers", *MEASURED} & {read.call for read in subject.readings()}
        if not reads:
            pytest.skip("the driver declares no reading of a measured value")
        if subject.reading is None:
            not_tested(f"the set-up gives no `reading`, so only the driver states what {listed(reads)} should return")
        unknown = unknown_measures(subject, reads, subject.reading())
        if unknown:
            not_tested(f"`reading` in the set-up does not give {listed(unknown)}")

    @proves("units", "types", "numbering")
    def test_answers_are_of_the_types_and_units_of_the_contract(self, subject: Subject) -> None:
        """Every reading is correct, on the device as it is and after a write."""
        if subject.context is None:
            not_tested(NO_CONTEXT)
        self._require_sound(subject)
        with suppress(Exception):  # other tests check writes
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
                broken(
                    "numbering",
                    f"{read.call}() returns {answer}, but the device holds {subject.true_reads[read.call]()}",
                )

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
            # Ages may be whole seconds (lldpd's are), so one may grow by a second at once.
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
        """A driver contacts nothing when constructed: a command constructs all drivers of an inventory and uses few."""
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
                        with suppress(DeviceError):  # without a device, there is nothing to remember
                            read.of(driver)
                    between.set(between.gone())
                    require_unreachable(read.call, partial(read.of, driver))
                    between.heal()

    @proves("unreachable")
    def test_a_device_that_is_gone_is_not_written(self, subject: Subject, between: Interception) -> None:
        """Every write raises DeviceUnreachableError, and nothing changes."""
        for write in subject.writes:
            with closing(subject.opens(between.context)) as driver:
                act = prepared_write(write, driver)
                between.set(between.gone())
                require_unreachable(write.call, act)
                between.heal()
                if write.held is not None and write.held() != write.before:
                    broken("unreachable", f"{write.call} raised unreachable, but the device changed: {write.held()}")

    @proves("errors")
    def test_spoilt_answers_raise_device_errors_only(self, subject: Subject, between: Interception) -> None:
        """If an answer is cut, garbled or missing, a reading returns a correct value or raises an error."""
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
            broken("unreachable", f"{fault.text}: {read.call}() returns {answer}, which the device does not hold")

    @proves("outcome", "half-applied", "atomic")
    def test_the_outcome_of_a_spoilt_write_is_the_truth(self, subject: Subject, between: Interception) -> None:
        """If a request is truncated or an answer is lost, the error states the truth about the device."""
        if not subject.writes:
            pytest.skip("the driver declares no call that changes the device")
        unseen = [write.call for write in subject.writes if write.held is None]
        for write in subject.writes:
            self._spoil(subject, write, between)
        if unseen:
            not_tested(f"only the driver can read the device's state after {', '.join(unseen)}: give `truth`")

    def _spoil(self, subject: Subject, write: Write, between: Interception) -> None:
        began = time.monotonic()
        with closing(subject.opens(between.unhurried)) as driver:
            faults = between.faults_of(prepared_write(write, driver), sending=True)
            if write.held is not None and not takes_effect(write, (write.after,)):
                broken("commit", f"{write.call} returned, but the device holds {write.held()}, not {write.after}")
        for fault in _spread(faults, time.monotonic() - began):
            with closing(subject.opens(between.context)) as driver:
                act = prepared_write(write, driver)
                between.set(fault)
                error = error_of(act)
                between.heal()
                require_outcome(subject, write, fault, error)

    @proves("read-back", "read-afresh")
    def test_a_write_shows_to_another_driver(self, subject: Subject) -> None:
        """A write of one driver is read by another, in both directions: neither driver returns remembered values."""
        writes = [write for write in writes_of(subject) if write.shown is not None]
        if not writes:
            pytest.skip("the driver reads none of the values that it writes")
        with closing(another(subject)) as other:
            for write in writes:
                if write.shown is not None:
                    for wanted, seen in unseen_values(write, subject.driver, partial(write.shown, other)):
                        broken("read-back", f"{write.call} wrote {wanted}, but another driver reads {seen}")
                    for wanted, seen in unseen_values(write, other, partial(write.shown, subject.driver)):
                        broken(
                            "read-afresh", f"{write.call} of another driver wrote {wanted}, but the driver reads {seen}"
                        )

    @proves("read-back", "commit")
    def test_a_write_is_what_the_device_holds(self, subject: Subject) -> None:
        """A driver may use the same wrong port, lane or outlet for reading and writing."""
        writes = writes_of(subject)
        for write in writes:
            if write.truth is not None:
                for wanted, seen in unseen_values(write, subject.driver, write.truth):
                    broken("read-back", f"{write.call} wrote {wanted}, but the device holds {seen}")
        if unknown := [write.call for write in writes if write.truth is None]:
            not_tested(f"the set-up gives no `truth`: only the driver reports the effect of {', '.join(unknown)}")

    @proves("deadline")
    def test_every_call_ends_in_its_time(self, subject: Subject, between: Interception) -> None:
        """A call ends in time even if the device accepts the connection and stays silent, or its answer never ends."""
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
                # Releases the calls that still wait, and waits for them: their bytes would count for the next fault.
                between.way.over.set()
                if between.shell is not None:
                    between.shell.hung = None
                for _, call in late:
                    ended_within(call, 2 * timeout_s + GRACE_S)
                between.way.over.clear()
            if overdue:
                broken("deadline", (
                    f"{fault.text}: {overdue[0]} had not ended {limit_s:.1f} s after its call, although timeout_s is "
                    f"{timeout_s:.1f}"
                ))  # fmt: skip

    @staticmethod
    def _acts(subject: Subject, context: Any, opened: ExitStack) -> Iterator[tuple[str, Callable[[], object]]]:
        """The calls, each on a separate driver, so that all wait at the same time."""
        drivers = [opened.enter_context(closing(subject.opens(context))) for _ in (*subject.reads, *subject.writes)]
        # All are prepared before the first is given, because a write cannot be prepared during a fault.
        prepared = [prepared_write(write, driver) for write, driver in zip(subject.writes, drivers, strict=False)]
        for write, act in zip(subject.writes, prepared, strict=True):
            yield write.call, act
        for read, driver in zip(subject.reads, drivers[len(prepared) :], strict=True):
            yield read.call, partial(read.of, driver)


class AlarmsContract:
    """A part of ``MeshContract`` and ``SwitchContract``: alarms, and changes that continue after the answer."""

    @proves("alarms")
    def test_alarms_are_those_of_the_device(self, subject: Subject) -> None:
        """Each alarm is reported with its source, severity and time, and no longer reported when it has ended."""
        if Capability.READ_ALARMS not in subject.driver.capabilities:
            pytest.skip("the driver does not declare read-alarms")
        if not subject.alarms:
            not_tested("the set-up gives no `alarms`, which makes the device raise alarms")
        told: list[tuple[Alarm, Alarm]] = [reported(subject.driver, raises) for raises in subject.alarms]
        untested = []
        for name in ("source", "severity", "since"):
            if any(getattr(raised, name) and not states_it(name, raised, shown) for raised, shown in told):
                untested.append(
                    f"read_alarms() returns no {name} that the kit knows, only none or the device's own words"
                )
            elif len({getattr(raised, name) for raised, _ in told}) == 1 and getattr(told[0][0], name):
                untested.append(f"`alarms` in the set-up all have the same {name}, so a constant would pass")
        if untested:
            not_tested("; ".join(untested))

    @proves("progress")
    def test_a_change_in_progress_is_reported(self, subject: Subject) -> None:
        """Progress is reported from the device's answer until the change is complete, but not by an idle device."""
        driver: Any = subject.driver
        if Capability.PROGRESS not in driver.capabilities:
            pytest.skip("the driver does not declare progress")
        write = subject.writes[0]
        act = write.prepare(driver)
        if not becomes_true(lambda: driver.read_progress() is None, FOLLOWS_WITHIN_S):
            broken("progress", f"read_progress() returns {driver.read_progress()} for a device that is idle")
        if subject.completes_late is None:
            not_tested(
                "the set-up gives no `completes_late`, which makes the device complete a change after its answer"
            )
        if write.truth is None:
            not_tested("the set-up gives no `truth`, so the kit cannot see whether a change is complete")
        with subject.completes_late():
            with suppress(OutcomeUnknownError):
                act()
            progress = driver.read_progress()
            if write.truth() == write.after:
                not_tested("inside `completes_late` of the set-up, the device completed a change before its answer")
            if progress is None:
                broken("progress", f"read_progress() returns None, but the device still holds {write.truth()}")
        if not becomes_true(lambda: driver.read_progress() is None, FOLLOWS_WITHIN_S):
            broken("progress", f"the change is complete, but read_progress() still returns {driver.read_progress()}")
        if write.truth() != write.after:
            broken("progress", f"read_progress() returns None, but the device holds {write.truth()}, not {write.after}")


def _timeout_s(subject: Subject) -> float:
    """A time limit as short as the device allows, so that faults cost little time: many times one reading."""
    slowest = 0.0
    for read in subject.reads:
        began = time.monotonic()
        with suppress(DeviceError):
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
