"""The capabilities of devices as small Protocols. A driver declares its kind and capabilities and implements those.

Every call takes its deadline from the :class:`DriverContext` it was opened with and raises only the errors of
:mod:`lumctl.devices.errors`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from lumctl.devices.logins import Login
from lumctl.devices.types import (
    Alarm,
    Capability,
    Change,
    JoinChange,
    Neighbour,
    OpticsReading,
    PortReading,
    PowerReading,
    Progress,
    PucChange,
    PucState,
    Receipt,
    Staged,
)
from lumctl.devices.ways import Nowhere, Way


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command on a host printed. ``exit_status`` is -1 when the host gave none."""

    exit_status: int
    stdout: str
    stderr: str


class HostShell(Protocol):
    """Runs a command on a host: the transport that host-side drivers are handed."""

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Run ``command``.

        Raises:
            DeviceUnreachableError: there is no session to the host.
            OutcomeUnknownError: the command did not end in time; it may have acted.
        """
        ...


@dataclass(frozen=True, slots=True)
class DriverContext:
    """All that a driver is given: whom it drives, the way there, how long it may take, and its clock.

    ``way`` leads to ``address`` (``host:port``, for messages; a driver that needs a URL makes it from this).
    ``component`` is which part of the device is meant, in the device's own words: an optical channel of a chassis, a
    system of a management controller. ``puc_count`` and ``port_count`` are what the inventory states, the first
    ``input_count`` ports of a switch are those that light enters; ``settle_s`` is how long the device needs before
    light is where it should be. ``shell`` and ``interface`` are set for devices behind a host; ``known_states`` is the
    program's record of a mesh that cannot be read back. ``now`` gives epoch seconds.
    """

    device: str
    address: str = ""
    way: Way = field(default_factory=Nowhere)
    login: Login = field(default_factory=Login)
    component: str = ""
    puc_count: int = 0
    port_count: int = 0
    input_count: int = 0
    settle_s: float = 0.0
    timeout_s: float = 5.0
    shell: HostShell | None = None
    interface: str = ""
    sudo: bool = False
    known_states: Mapping[int, PucState] = field(default_factory=dict)
    now: Callable[[], float] = field(default=lambda: 0.0)


class Driver(Protocol):
    """What every driver has: a kind, what it can do, on what that was proven, and an end.

    ``proven`` is shown to operators as it stands (``simulator; not run on hardware``, ``firmware 7.2``).
    """

    api_version: ClassVar[int]
    kind: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    proven: ClassVar[str]

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        ...

    def close(self) -> None:
        """Give back sockets; a second call does nothing."""
        ...


class Changing(Driver, Protocol[Change]):
    """A device whose light paths are changed: ``stage`` and ``compare`` touch nothing, ``commit`` writes.

    A commit holds the device's own lock for as long as it writes, where there is one.
    """

    def identify(self) -> str:
        """One line that the device says of itself; proves that it answers, and is of the size that is expected.

        Raises:
            DeviceUnreachableError: it does not answer.
            InconsistentError: it is of another size than the inventory states.
        """
        ...

    def compare(self, staged: Staged[Change]) -> tuple[Change, ...]:
        """The difference that committing would make now, as data; empty if the device is already there.

        Where the device can be read, it is read: nothing that was remembered is believed.
        """
        ...

    def commit(self, staged: Staged[Change], *, revert_after_s: float | None = None) -> Receipt[Change]:
        """Write a staged change; idempotent. ``revert_after_s`` needs :attr:`Capability.CONFIRM_TIMER`.

        Raises:
            UnsupportedError: a timer was asked for, and the device has none; nothing was sent.
            DeviceUnreachableError: nothing was sent.
            DeviceBusyError: somebody else has locked the device; nothing changed.
            DeviceRefusedError: the device said no; nothing changed.
            InconsistentError: the device said no when it had taken some of it.
            OutcomeUnknownError: it was sent and no answer came: read back or re-assert, never retry blindly.
        """
        ...

    def confirm(self, receipt: Receipt[Change]) -> None:
        """Keep a committed change: disarm the device's revert timer, if one is armed.

        Raises:
            DeviceRefusedError: the timer ran out before: the device has gone back.
        """
        ...

    def roll_back(self, receipt: Receipt[Change]) -> None:
        """Write back what was before the change, which also disarms a timer. Every ``before`` must be known.

        Raises: as :meth:`commit`.
        """
        ...

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """Optical power at each port in dBm, ``-inf`` for no light. Only with :attr:`Capability.READ_POWERS`.

        Of a mesh: the power that leaves the port. Of a switch: what its own monitor sees there.
        """
        ...

    def read_temperature(self) -> float:
        """Temperature in degrees Celsius. Only with :attr:`Capability.READ_TEMPERATURE`."""
        ...

    def read_alarms(self) -> tuple[Alarm, ...]:
        """What the device complains of now. Only with :attr:`Capability.READ_ALARMS`."""
        ...

    def read_progress(self) -> Progress | None:
        """Progress of an earlier change that the device is still making; ``None``: no change is in progress.

        Only with :attr:`Capability.PROGRESS`. ``commit`` and ``roll_back`` of such a driver may return, or raise
        OutcomeUnknownError, while the device still works: lumctl polls until this returns ``None`` and reads the device
        only then. The class states the time limit in ``slow_calls``, in seconds by call.
        """
        ...


@runtime_checkable
class MeshDriver(Changing[PucChange], Protocol):
    """A mesh of PUCs."""

    def stage(self, changes: Mapping[int, PucState]) -> Staged[PucChange]:
        """Check a change (PUC numbers in range) against the known or read states. PUCs not named stay as they are.

        Raises:
            DeviceRefusedError: a number is out of range.
        """
        ...

    def read_states(self) -> dict[int, PucState]:
        """State of every PUC; one that stands between bar and cross is left out.

        Only with :attr:`Capability.READ_STATES`; else raises :class:`UnsupportedError`.
        """
        ...


@runtime_checkable
class SwitchDriver(Changing[JoinChange], Protocol):
    """A switch that joins ingress ports to egress ports. Ports are numbered from 0, whatever the device calls them."""

    def stage(self, joins: Mapping[int, int | None]) -> Staged[JoinChange]:
        """Check a change (ingress port: egress port, or ``None`` to take the join away) against what the device holds.

        Nothing is taken from anybody: an egress port that is joined to an ingress port which the change does not name
        is refused.

        Raises:
            DeviceRefusedError: a port is out of range, or not of the side it is named for, or in use, or named twice.
        """
        ...

    def read_circuits(self) -> dict[int, int]:
        """Every join of the device: ingress port -> egress port."""
        ...

    def read_ports(self) -> dict[int, PortReading]:
        """Every port. Only with :attr:`Capability.READ_PORTS`."""
        ...

    def set_port(self, port: int, enabled: bool) -> None:
        """Let light through a port or not; idempotent, read back. Only with :attr:`Capability.SET_PORTS`."""
        ...

    def set_label(self, port: int, label: str) -> None:
        """Name a port on the device; idempotent, read back. Only with :attr:`Capability.SET_LABELS`."""
        ...


@runtime_checkable
class TransponderDriver(Driver, Protocol):
    """One transponder: its optics, its transmitter, and whom its receiver hears.

    What is set is read back before the call returns; a device that took it and does not show it is
    :class:`~lumctl.devices.errors.InconsistentError`.
    """

    def read_optics(self) -> OpticsReading:
        """The module's readings with its own thresholds. Only with :attr:`Capability.READ_OPTICS`."""
        ...

    def set_transmit(self, enabled: bool) -> None:
        """Switch the transmitter on or off; idempotent, read back. Only with :attr:`Capability.SET_TRANSMIT`."""
        ...

    def transmitting(self) -> bool:
        """Whether the transmitter is on. Only with :attr:`Capability.SET_TRANSMIT`."""
        ...

    def set_channel(self, frequency_mhz: int) -> None:
        """Tune the transmitter; idempotent, read back. Only with :attr:`Capability.SET_CHANNEL`."""
        ...

    def set_output_power(self, dbm: float) -> None:
        """Set the power to send with; idempotent, read back. Only with :attr:`Capability.SET_OUTPUT_POWER`."""
        ...

    def announce(self, mark: str) -> None:
        """Make the host say who it is on this lane now, with a mark (hexadecimal, whole bytes) that only it says.

        Whoever has the mark in its neighbour table has heard this transmitter since. With READ_NEIGHBOURS.
        """
        ...

    def neighbours(self) -> tuple[Neighbour, ...]:
        """Whom the receiver hears, freshest first. Only with :attr:`Capability.READ_NEIGHBOURS`."""
        ...


@runtime_checkable
class PowerDriver(Driver, Protocol):
    """The electrical power of one machine, out of band: its management controller, or a switched outlet."""

    def identify(self) -> str:
        """One line that the controller says of itself and the machine."""
        ...

    def read_power(self) -> PowerReading:
        """Whether the machine is on, and what the controller says of it."""
        ...

    def set_power(self, on: bool, *, force: bool = False) -> None:
        """Switch the machine on, or off: by its operating system, or (``force``) at once. Idempotent.

        Returns when the controller has accepted it; whether the machine followed is for :meth:`read_power` to say.
        Only with :attr:`Capability.SET_POWER`.
        """
        ...

    def reset(self) -> None:
        """Restart the machine at once. Not idempotent. Only with :attr:`Capability.RESET`."""
        ...


PROTOCOLS: Mapping[str, type] = {
    "mesh": MeshDriver,
    "switch": SwitchDriver,
    "transponder": TransponderDriver,
    "power": PowerDriver,
}
"""The kinds of drivers and what each must be able to be asked, be it to refuse with ``UnsupportedError``."""
