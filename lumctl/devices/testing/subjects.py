"""A driver of any kind in the form that the tests of faults, units and deadlines use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lumctl.devices.contained_driver import class_of
from lumctl.devices.errors import DeviceError, InconsistentError, UnsupportedError
from lumctl.devices.protocols import Driver, DriverContext
from lumctl.devices.testing.faults import FaultyWay, Trouble, WayFault
from lumctl.devices.testing.interception import Opens
from lumctl.devices.testing.rules import broken, not_tested, one_line
from lumctl.devices.testing.under_test import MeshUnderTest, PowerUnderTest, SwitchUnderTest, TransponderUnderTest
from lumctl.devices.types import (
    Alarm,
    Capability,
    DeviceReading,
    OpticsReading,
    PowerReading,
    PucState,
)
from lumctl.devices.ways import Direct

_HALF_OF = 6
"""PUCs of a change: enough to show which half of it was made."""
_JOINS = 3
_OFF_ON = (False, True)


@dataclass(frozen=True)
class Read:
    """A call that changes nothing, and its arguments by name."""

    call: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def of(self, driver: Any) -> Any:
        """Make the call on a driver."""
        return getattr(driver, self.call)(**self.arguments)


@dataclass(frozen=True)
class Write:
    """A call that changes the device from ``before`` to ``after``.

    ``prepare`` brings the device to ``before`` and returns the call for a driver. ``truth`` returns the state of the
    device, read independently of ``driver``, and ``shown`` the state that a driver reads; either is ``None`` if there
    is none. The device may take ``follows_within_s`` to carry out a write.
    """

    call: str
    prepare: Callable[[Any], Callable[[], object]]
    before: object
    after: object
    driver: Any
    truth: Callable[[], object] | None
    shown: Callable[[Any], object] | None
    follows_within_s: float = 0.0

    @property
    def held(self) -> Callable[[], object] | None:
        """The device's state: from ``truth``, else as ``driver`` reads it, ``None`` if it cannot be read."""
        return self.truth or (None if self.shown is None else partial(self.shown, self.driver))


@dataclass(frozen=True)
class Subject:
    """A driver, how to open another one, its readings and writes, and what the set-up knows about its device.

    ``settings`` are further writes, which are tested without faults.
    """

    driver: Driver
    context: DriverContext | None
    opens: Opens
    reads: tuple[Read, ...]
    writes: tuple[Write, ...]
    true_reads: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    settings: tuple[Write, ...] = ()
    other: Any = None
    reading: Callable[[], DeviceReading | OpticsReading | PowerReading] | None = None
    alarms: Sequence[Callable[[], AbstractContextManager[Alarm]]] = ()
    completes_late: Callable[[], AbstractContextManager[object]] | None = None

    def readings(self) -> Iterator[Read]:
        """The supported readings; powers only if these ports have monitors."""
        for read in self.reads:
            if read.call == "read_powers":
                try:
                    read.of(self.driver)
                except UnsupportedError:
                    continue
            yield read

    @property
    def atomic(self) -> bool:
        """Whether the driver declares atomic changes."""
        return Capability.ATOMIC in self.driver.capabilities


def _context(driver: Any, given: DriverContext | None) -> DriverContext | None:
    found = given if given is not None else getattr(driver, "context", None)
    if not isinstance(found, DriverContext) or found.address.startswith("replay:"):
        return None  # a recording answers only the calls that it contains
    return found


def _readings(driver: Driver, ports: tuple[int, ...]) -> tuple[Read, ...]:
    able = driver.capabilities
    return tuple(
        read
        for capability, read in (
            (Capability.READ_POWERS, Read("read_powers", {"ports": ports})),
            (Capability.READ_TEMPERATURE, Read("read_temperature")),
            (Capability.READ_ALARMS, Read("read_alarms")),
            (Capability.PROGRESS, Read("read_progress")),
        )
        if capability in able
    )


def of_mesh(mesh: MeshUnderTest) -> Subject:
    """A mesh: its PUCs 0 to 5 are changed from bar to cross."""
    driver = mesh.driver
    before = dict.fromkeys(range(_HALF_OF), PucState.BAR)
    after = dict.fromkeys(range(_HALF_OF), PucState.CROSS)

    def prepare(other: Any) -> Callable[[], object]:
        mesh.write(before)
        staged = other.stage(after)
        return lambda: other.commit(staged)

    def of(states: Mapping[int, PucState]) -> object:
        return {puc: states.get(puc) for puc in before}

    truth = mesh.truth
    true = (lambda: of(truth())) if truth is not None else None
    shown = (lambda other: of(other.read_states())) if mesh.readable else None
    context = _context(driver, mesh.context)
    ports = tuple(range(min(4, context.port_count))) if context is not None and context.port_count else (0, 1)
    states = (Read("read_states"),) if mesh.readable else ()
    return Subject(
        driver,
        context,
        mesh.opens or class_of(driver),
        (Read("identify"), *states, *_readings(driver, ports)),
        (Write("commit", prepare, before, after, driver, true, shown),),
        {"read_states": lambda: dict(truth())} if truth is not None else {},
        other=mesh.other,
        reading=mesh.reading,
        alarms=mesh.alarms,
        completes_late=mesh.completes_late,
    )


def of_switch(switch: SwitchUnderTest) -> Subject:
    """A switch: three joins are made on ports without joins."""
    driver = switch.driver
    joins = dict(zip(switch.inputs[:_JOINS], switch.outputs[:_JOINS], strict=False))

    def prepare(other: Any) -> Callable[[], object]:
        # Removes every join (None), except those of other users.
        switch.write(dict.fromkeys(switch.held()) | dict(switch.foreign))
        staged = other.stage(joins)
        return lambda: other.commit(staged)

    ports = (Read("read_ports"),) if Capability.READ_PORTS in driver.capabilities else ()
    truth = switch.truth
    true = (lambda: dict(truth())) if truth is not None else None
    before = switch.foreign
    commit = Write("commit", prepare, before, before | joins, driver, true, lambda other: dict(other.read_circuits()))
    return Subject(
        driver,
        _context(driver, switch.context),
        switch.opens or class_of(driver),
        (Read("identify"), Read("read_circuits"), *ports, *_readings(driver, tuple(range(min(4, switch.port_count))))),
        (commit,),
        {"read_circuits": switch.held} if switch.truth is not None else {},
        tuple(_port_settings(switch)),
        other=switch.other,
        reading=switch.reading,
        alarms=switch.alarms,
        completes_late=switch.completes_late,
    )


def _port_settings(switch: SwitchUnderTest) -> Iterator[Write]:
    """Writes that switch on a port and remove a label."""
    driver, ports, port = switch.driver, switch.ports, switch.outputs[1]
    for capability, call, name, before, after in (
        (Capability.SET_PORTS, "set_port", "enabled", *_OFF_ON),
        (Capability.SET_LABELS, "set_label", "label", "kit", ""),
    ):
        if capability not in driver.capabilities:
            continue

        def prepare(other: Any, call: str = call, before: Any = before, after: Any = after) -> Callable[[], object]:
            getattr(driver, call)(port, before)
            return lambda: getattr(other, call)(port, after)

        def shown(other: Any, name: str = name) -> object:
            return getattr(other.read_ports()[port], name)

        def true(name: str = name) -> object:
            return getattr(ports()[port], name) if ports is not None else None

        yield Write(
            call, prepare, before, after, driver, None if ports is None else true,
            shown if Capability.READ_PORTS in driver.capabilities else None,
        )  # fmt: skip


def of_transponder(transponder: TransponderUnderTest) -> Subject:
    """A transponder: each setting that it declares is changed from one value to another."""
    driver, able = transponder.driver, transponder.driver.capabilities
    reads = [
        Read(call)
        for capability, call in (
            (Capability.READ_OPTICS, "read_optics"),
            (Capability.SET_TRANSMIT, "transmitting"),
            (Capability.READ_NEIGHBOURS, "neighbours"),
        )
        if capability in able
    ]
    writes = []
    truth, told, optics = transponder.truth, transponder.told, Capability.READ_OPTICS in able
    if Capability.SET_TRANSMIT in able:
        writes.append(_setting("set_transmit", *_OFF_ON, driver, truth, lambda other: other.transmitting()))
    if Capability.SET_CHANNEL in able:
        true: Callable[[], object] | None = (lambda: told()[0]) if told else None
        shown = (lambda other: other.read_optics().frequency_mhz) if optics else None
        writes.append(_setting("set_channel", *transponder.channels_mhz, driver, true, shown))
    if Capability.SET_OUTPUT_POWER in able:
        # Modules state powers in steps of 0.1 dB.
        true = (lambda: round(told()[1] or 0.0, 1)) if told else None
        shown = (lambda other: round(other.read_optics().target_power_dbm or 0.0, 1)) if optics else None
        writes.append(_setting("set_output_power", *transponder.powers_dbm, driver, true, shown))
    context = _context(driver, transponder.context)
    return Subject(
        driver,
        context,
        transponder.opens or class_of(driver),
        tuple(reads),
        tuple(writes),
        reading=transponder.reading,
    )


def _setting(
    call: str,
    before: Any,
    after: Any,
    driver: Any,
    truth: Callable[[], object] | None,
    shown: Callable[[Any], object] | None,
) -> Write:
    def prepare(other: Any) -> Callable[[], object]:
        getattr(driver, call)(before)
        return lambda: getattr(other, call)(after)

    return Write(call, prepare, before, after, driver, truth, shown)


def of_power(power: PowerUnderTest) -> Subject:
    """A machine: it is switched off at once."""
    driver = power.driver

    def prepare(other: Any) -> Callable[[], object]:
        # Switch off first: a command that was lost may still take effect, and must not do so between the two below.
        if not (power.switched(on=False, force=True) and power.switched(on=True)):
            raise AssertionError("the machine does not follow its orders")
        return lambda: other.set_power(on=False, force=True)

    off = Write(
        "set_power", prepare, True, False, driver,  # noqa: FBT003 - the values before and after
        power.truth, lambda other: other.read_power().on, power.follows_within_s,
    )  # fmt: skip
    return Subject(
        driver,
        _context(driver, power.context),
        power.opens or class_of(driver),
        (Read("identify"), Read("read_power")),
        (off,) if Capability.SET_POWER in driver.capabilities else (),
        reading=power.reading,
    )


def another(subject: Subject) -> Any:
    """A second driver of the device under test; the test is skipped if there is none and the kit cannot open one."""
    if subject.other is not None:
        return subject.other
    if subject.context is None:
        not_tested("the set-up gives no `other`, and the driver has no attribute `context`")
    return subject.opens(subject.context)


def gone(subject: Subject) -> Any:
    """A driver for an address where nothing answers; the test is skipped if the kit cannot open one."""
    if subject.context is None or subject.context.shell is not None or not isinstance(subject.context.way, Direct):
        not_tested("the set-up gives no `unreachable`")
    way = FaultyWay(subject.context.way)
    way.trouble = Trouble(WayFault.REFUSED)
    return subject.opens(replace(subject.context, way=way))


def require_size_found_out(subject: Subject, **sizes: int) -> None:
    """Check that identify() of a driver with a wrong size in its context raises InconsistentError.

    Raises:
        ContractBrokenError: it raised another error than ``InconsistentError``.
    """
    if subject.context is None:
        not_tested("the set-up gives no `wrong_size`, and the driver has no attribute `context`")
    driver = subject.opens(replace(subject.context, **sizes))  # type: ignore[arg-type]  # they are size fields of the context
    try:
        driver.identify()
    except InconsistentError:
        return
    except DeviceError as error:
        broken("identity", f"with another size, identify() raised {type(error).__name__}: {one_line(error)}")
    finally:
        driver.close()
    if subject.driver.capabilities & {Capability.READ_STATES, Capability.READ_PORTS}:
        broken("identity", f"with another size ({sizes}), identify() succeeds")
    not_tested(
        "identify() accepts another size: compare it with the device's size if that can be read, or give `wrong_size`"
    )
