"""A driver and its device, as input to the contract: one class for each kind of driver."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from lumctl.devices.protocols import DriverContext, MeshDriver, PowerDriver, SwitchDriver, TransponderDriver
from lumctl.devices.testing.checks import becomes_true
from lumctl.devices.testing.rules import broken
from lumctl.devices.types import (
    Alarm,
    Capability,
    DeviceReading,
    JoinChange,
    OpticsReading,
    PortReading,
    PowerReading,
    PucChange,
    PucState,
    Receipt,
)


@dataclass(frozen=True)
class MeshUnderTest:
    """A driver and its mesh, which has at least eight PUCs.

    ``truth`` returns the states that the chip really holds, read independently of the driver; without it the tests use
    ``read_states``, or else the driver's own ``compare``. ``other`` is a second driver of the same mesh,
    ``unreachable`` a driver for an address where nothing answers, ``wrong_size`` one with a number of PUCs that the
    device does not have. ``put_between`` sets a PUC between bar and cross. Within ``stops_midway``, the device stops in
    the middle of a change and reports that in its own protocol. ``context`` and ``opens`` (by default the driver's
    ``context`` and class) open more drivers of the device, so that the kit can inject faults between them and the
    device.

    ``reading`` returns the temperature and the power at some ports, ``None`` if unknown, read independently of the
    driver; two ports next to each other must have different powers. Each of ``alarms`` returns a context manager:
    inside it, the device raises the alarm that entering it returns. Within ``completes_late``, the device answers a
    change before it has completed it, and completes it only at the end.
    """

    driver: MeshDriver
    puc_count: int
    truth: Callable[[], Mapping[int, PucState]] | None = None
    unreachable: MeshDriver | None = None
    other: MeshDriver | None = None
    wrong_size: MeshDriver | None = None
    put_between: Callable[[int], object] | None = None
    stops_midway: Callable[[], AbstractContextManager[object]] | None = None
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None
    reading: Callable[[], DeviceReading] | None = None
    alarms: Sequence[Callable[[], AbstractContextManager[Alarm]]] = ()
    completes_late: Callable[[], AbstractContextManager[object]] | None = None

    @property
    def readable(self) -> bool:
        """Whether the state of the device can be read back."""
        return Capability.READ_STATES in self.driver.capabilities

    def holds(self, states: Mapping[int, PucState]) -> bool:
        """Whether the mesh is in these states, according to ``truth`` or the next best source."""
        if self.truth is None and not self.readable:
            return not self.driver.compare(self.driver.stage(states))
        seen = self.truth() if self.truth is not None else self.driver.read_states()
        return all(seen[puc] is state for puc, state in states.items())

    def write(self, states: Mapping[int, PucState]) -> Receipt[PucChange]:
        """Stage, commit and confirm."""
        receipt = self.driver.commit(self.driver.stage(states))
        if not isinstance(receipt, Receipt):
            broken("types", f"commit() returned {receipt!r:.100}, which is not a Receipt")
        self.driver.confirm(receipt)
        return receipt

    def everywhere(self, state: PucState) -> dict[int, PucState]:
        """Every PUC in one state."""
        return dict.fromkeys(range(self.puc_count), state)


_THEIRS = 2
"""How many joins of a switch belong to other users."""


@dataclass(frozen=True)
class SwitchUnderTest:
    """A driver and its switch, which has at least six inputs and six outputs, none of which carries traffic.

    ``truth`` returns the joins that the switch really holds, read independently of the driver; without it the tests use
    the driver's ``read_circuits``. ``ports`` likewise returns the reading of each port. ``other`` is a second
    driver of the same switch, ``unreachable`` a driver for an address where nothing answers, ``wrong_size`` one with a
    size that the switch does not have. Within ``stops_midway``, the switch stops in the middle of each change. ``dark``
    is a port without light, ``lit`` a port with light. ``context``, ``opens``, ``reading``, ``alarms`` and
    ``completes_late`` are as in :class:`lumctl.devices.testing.MeshUnderTest`.
    """

    driver: SwitchDriver
    port_count: int
    input_count: int
    truth: Callable[[], Mapping[int, int]] | None = None
    other: SwitchDriver | None = None
    unreachable: SwitchDriver | None = None
    wrong_size: SwitchDriver | None = None
    stops_midway: Callable[[], AbstractContextManager[object]] | None = None
    dark: int | None = None
    lit: int | None = None
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None
    ports: Callable[[], Mapping[int, PortReading]] | None = None
    reading: Callable[[], DeviceReading] | None = None
    alarms: Sequence[Callable[[], AbstractContextManager[Alarm]]] = ()
    completes_late: Callable[[], AbstractContextManager[object]] | None = None

    @property
    def any_to_any(self) -> bool:
        """Whether any port may be joined to any other."""
        return self.input_count == self.port_count

    @property
    def inputs(self) -> list[int]:
        """Ports that the tests use as ingress."""
        return list(range(self._first_output))[:-_THEIRS]

    @property
    def outputs(self) -> list[int]:
        """Ports that the tests use as egress."""
        return list(range(self._first_output, self.port_count))[:-_THEIRS]

    @property
    def foreign(self) -> dict[int, int]:
        """Joins that belong to other users."""
        last = range(1, _THEIRS + 1)
        return {self._first_output - at: self.port_count - at for at in last}

    @property
    def _first_output(self) -> int:
        return self.port_count // 2 if self.any_to_any else self.input_count

    def held(self) -> dict[int, int]:
        """Every join, according to ``truth`` or else to the driver."""
        return dict(self.truth() if self.truth is not None else self.driver.read_circuits())

    def holds(self, joins: Mapping[int, int]) -> bool:
        """Whether these and the foreign joins are all joins of the switch."""
        return self.held() == {**self.foreign, **joins}

    def write(self, joins: Mapping[int, int | None]) -> Receipt[JoinChange]:
        """Stage, commit and confirm."""
        receipt = self.driver.commit(self.driver.stage(joins))
        if not isinstance(receipt, Receipt):
            broken("types", f"commit() returned {receipt!r:.100}, which is not a Receipt")
        self.driver.confirm(receipt)
        return receipt


@dataclass(frozen=True)
class TransponderUnderTest:
    """A driver and its transponder, lit and cabled so that its receiver hears ``heard`` (host, interface).

    ``truth`` returns whether the laser is really on, ``told`` the frequency (MHz) and power (dBm) that the transmitter
    received, both read independently of the driver; ``sent`` counts what has reached the device. ``reading`` returns
    what the module really measures, ``None`` where that is unknown.
    ``channels_mhz`` and ``powers_dbm`` are two valid settings each. ``unreachable`` is a driver for an address where
    nothing answers, ``wrong`` one for a component that the device lacks. ``context`` and ``opens`` are as in
    :class:`lumctl.devices.testing.MeshUnderTest`.
    """

    driver: TransponderDriver
    heard: tuple[str, str] | None = None
    truth: Callable[[], bool] | None = None
    unreachable: TransponderDriver | None = None
    wrong: TransponderDriver | None = None
    told: Callable[[], tuple[int | None, float | None]] | None = None
    sent: Callable[[], int] | None = None
    channels_mhz: tuple[int, int] = (193_100_000, 193_400_000)
    powers_dbm: tuple[float, float] = (-2.0, -1.0)
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None
    reading: Callable[[], OpticsReading] | None = None

    def calls_of(self, driver: TransponderDriver) -> dict[Capability, tuple[Callable[[], object], ...]]:
        """All optional calls, by the capability that they need."""
        return {
            Capability.READ_OPTICS: (driver.read_optics,),
            Capability.SET_TRANSMIT: (driver.transmitting, lambda: driver.set_transmit(enabled=True)),
            Capability.SET_CHANNEL: (lambda: driver.set_channel(self.channels_mhz[0]),),
            Capability.SET_OUTPUT_POWER: (lambda: driver.set_output_power(self.powers_dbm[0]),),
            Capability.READ_NEIGHBOURS: (driver.neighbours, lambda: driver.announce("0a")),
        }


@dataclass(frozen=True)
class PowerUnderTest:
    """A driver and an idle machine: the tests switch it off and on and restart it.

    ``truth`` returns whether the machine is really on, read independently of the driver; ``reading`` what it really
    draws while it is on, and ``others`` the state of the other machines of the controller. ``orders`` returns how many
    switch and restart commands the controller has received. The machine acts within ``follows_within_s``.
    ``unreachable`` is a driver for an address where nothing answers, ``nobody`` one for a machine that the controller
    lacks. ``context`` and ``opens`` are as in :class:`lumctl.devices.testing.MeshUnderTest`.
    """

    driver: PowerDriver
    truth: Callable[[], bool] | None = None
    orders: Callable[[], int] | None = None
    follows_within_s: float = 10.0
    unreachable: PowerDriver | None = None
    nobody: PowerDriver | None = None
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None
    reading: Callable[[], PowerReading] | None = None
    others: Callable[[], object] | None = None

    def becomes(self, *, on: bool) -> bool:
        """Whether the machine reaches the state in time, according to the driver and to ``truth``."""
        return becomes_true(
            lambda: self.driver.read_power().on is on and (self.truth is None or self.truth() is on),
            self.follows_within_s,
        )

    def switched(self, *, on: bool, force: bool = False) -> bool:
        """Switch the machine; return whether it follows."""
        self.driver.set_power(on, force=force)
        return self.becomes(on=on)
