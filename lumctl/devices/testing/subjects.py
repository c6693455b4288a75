"""A driver of any kind in the form that the tests of faults, units and deadlines use."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lumctl.devices.contained_driver import class_of
from lumctl.devices.errors import DeviceError, InconsistentError, UnsupportedError
from lumctl.devices.protocols import Driver, DriverContext
from lumctl.devices.testing.faults import FaultyWay, Trouble, WayFault
from lumctl.devices.testing.interception import Opens
from lumctl.devices.testing.mesh_under_test import MeshUnderTest
from lumctl.devices.testing.power_under_test import PowerUnderTest
from lumctl.devices.testing.rules import broken, not_tested, one_line
from lumctl.devices.testing.switch_under_test import SwitchUnderTest
from lumctl.devices.testing.transponder_under_test import TransponderUnderTest
from lumctl.devices.types import Capability, PucState
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

    ``prepare`` brings the device to ``before`` and returns the call for a driver. ``held`` returns what the device
    holds from the best source available, ``None`` without one. The device may take ``follows_within_s`` to follow.
    """

    call: str
    prepare: Callable[[Any], Callable[[], object]]
    before: object
    after: object
    held: Callable[[], object] | None
    follows_within_s: float = 0.0


@dataclass(frozen=True)
class Subject:
    """A driver, how to open another one, and its readings and writes."""

    driver: Driver
    context: DriverContext | None
    opens: Opens
    reads: tuple[Read, ...]
    writes: tuple[Write, ...]
    true_reads: Mapping[str, Callable[[], object]] = field(default_factory=dict)

    def readings(self) -> Iterator[Read]:
        """The readings that it supports; powers only if these ports have monitors."""
        for read in self.reads:
            if read.call == "read_powers":
                try:
                    read.of(self.driver)
                except UnsupportedError:
                    continue
            yield read

    @property
    def atomic(self) -> bool:
        """Whether it declares atomic changes."""
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

    def held() -> object:
        seen = mesh.truth() if mesh.truth is not None else driver.read_states()
        return {puc: seen.get(puc) for puc in before}

    witness = held if mesh.truth is not None or mesh.readable else None
    context = _context(driver, mesh.context)
    ports = tuple(range(min(4, context.port_count))) if context is not None and context.port_count else (0, 1)
    states = (Read("read_states"),) if mesh.readable else ()
    truth = mesh.truth
    return Subject(
        driver,
        context,
        mesh.opens or class_of(driver),
        (Read("identify"), *states, *_readings(driver, ports)),
        (Write("commit", prepare, before, after, witness),),
        {"read_states": lambda: dict(truth())} if truth is not None else {},
    )


def of_switch(switch: SwitchUnderTest) -> Subject:
    """A switch: three joins are made on ports without joins."""
    driver = switch.driver
    joins = dict(zip(switch.inputs[:_JOINS], switch.outputs[:_JOINS], strict=False))

    def prepare(other: Any) -> Callable[[], object]:
        switch.write(dict.fromkeys(switch.held()) | dict(switch.foreign))
        staged = other.stage(joins)
        return lambda: other.commit(staged)

    ports = (Read("read_ports"),) if Capability.READ_PORTS in driver.capabilities else ()
    return Subject(
        driver,
        _context(driver, switch.context),
        switch.opens or class_of(driver),
        (Read("identify"), Read("read_circuits"), *ports, *_readings(driver, tuple(range(min(4, switch.port_count))))),
        (Write("commit", prepare, switch.foreign, switch.foreign | joins, switch.held),),
        {"read_circuits": switch.held} if switch.truth is not None else {},
    )


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
    if Capability.SET_TRANSMIT in able:
        writes.append(_setting("set_transmit", *_OFF_ON, driver, transponder.truth or driver.transmitting))
    told, optics = transponder.told, Capability.READ_OPTICS in able
    if Capability.SET_CHANNEL in able:
        shown = (lambda: told()[0]) if told else (lambda: driver.read_optics().frequency_mhz) if optics else None
        writes.append(_setting("set_channel", *transponder.channels_mhz, driver, shown))
    if Capability.SET_OUTPUT_POWER in able:
        power = (lambda: told()[1]) if told else (lambda: driver.read_optics().target_power_dbm) if optics else None
        rounded = (lambda: round(power() or 0.0, 1)) if power is not None else None
        writes.append(_setting("set_output_power", *transponder.powers_dbm, driver, rounded))
    context = _context(driver, transponder.context)
    return Subject(driver, context, transponder.opens or class_of(driver), tuple(reads), tuple(writes))


def _setting(call: str, before: Any, after: Any, driver: Any, held: Callable[[], object] | None) -> Write:
    def prepare(other: Any) -> Callable[[], object]:
        getattr(driver, call)(before)
        return lambda: getattr(other, call)(after)

    return Write(call, prepare, before, after, held)


def of_power(power: PowerUnderTest) -> Subject:
    """A machine: it is switched off at once."""
    driver = power.driver

    def prepare(other: Any) -> Callable[[], object]:
        # Switch off first: a command that was lost may still take effect, and must not do so between the two below.
        if not (power.switched(on=False, force=True) and power.switched(on=True)):
            raise AssertionError("the machine does not follow its orders")
        return lambda: other.set_power(on=False, force=True)

    held: Callable[[], object] = power.truth or (lambda: driver.read_power().on)
    off = Write("set_power", prepare, before=True, after=False, held=held, follows_within_s=power.follows_within_s)
    return Subject(
        driver,
        _context(driver, power.context),
        power.opens or class_of(driver),
        (Read("identify"), Read("read_power")),
        (off,) if Capability.SET_POWER in driver.capabilities else (),
    )


def another(subject: Subject) -> Any:
    """A second driver of the device under test; the test is skipped if the kit cannot open one."""
    if subject.context is None:
        not_tested("the set-up gives no `other`, and the driver keeps no `context`")
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
        not_tested("the set-up gives no `wrong_size`, and the driver keeps no `context`")
    driver = subject.opens(replace(subject.context, **sizes))  # type: ignore[arg-type]  # they are size fields of the context
    try:
        driver.identify()
    except InconsistentError:
        return
    except DeviceError as error:
        broken("identity", f"given another size, identify() raised {type(error).__name__}: {one_line(error)}")
    finally:
        driver.close()
    if subject.driver.capabilities & {Capability.READ_STATES, Capability.READ_PORTS}:
        broken("identity", f"given another size ({sizes}), identify() accepts it")
    not_tested(
        "identify() accepts another size: compare it with the device's size if that can be read, or give `wrong_size`"
    )
