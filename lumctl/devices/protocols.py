"""The kinds of drivers as Protocols. A driver declares its kind and capabilities, and implements their calls.

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
    """What a command on a host printed. ``exit_status`` is -1 if the host gave none."""

    exit_status: int
    stdout: str
    stderr: str


class HostShell(Protocol):
    """Runs a command on a host: the transport that host-side drivers receive."""

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Run ``command``.

        Raises:
            DeviceUnreachableError: no session to the host can be opened.
            OutcomeUnknownError: the command did not end in time; it may have acted.
        """
        ...


@dataclass(frozen=True, slots=True)
class DriverContext:
    """Everything that a driver receives: its device, the connection path to it, the time limit, and the clock.

    ``way`` connects to ``address`` (``host:port``, for messages; a driver that needs a URL makes it from this).
    ``component`` names the part of the device in the device's own words: an optical channel of a chassis, a system of
    a management controller. ``puc_count`` and ``port_count`` are from the inventory; light enters a switch at its first
    ``input_count`` ports. ``settle_s`` is the time after a change until the device has switched its light.
    ``shell`` and ``interface`` are set for devices behind a host. ``known_states`` is the program's record of a mesh
    that cannot be read back. ``now`` returns epoch seconds.
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
    """What every driver has: a kind, capabilities, a statement of what it was tested on, and :meth:`close`.

    ``proven`` is shown to operators unchanged (``simulator; not run on hardware``, ``firmware 7.2``).
    """

    api_version: ClassVar[int]
    kind: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    proven: ClassVar[str]

    def __init__(self, context: DriverContext) -> None:
        """Store the context; nothing is contacted before the first call."""
        ...

    def close(self) -> None:
        """Close sockets; a second call does nothing."""
        ...


class Changing(Driver, Protocol[Change]):
    """A device whose light paths can be changed: ``stage`` and ``compare`` change nothing, ``commit`` writes.

    A commit holds the device's own lock, if it has one, while it writes.
    """

    def identify(self) -> str:
        """One line in which the device describes itself; proves that it answers and has the expected size.

        Raises:
            DeviceUnreachableError: the device does not answer.
            InconsistentError: the device has another size than the inventory states.
        """
        ...

    def compare(self, staged: Staged[Change]) -> tuple[Change, ...]:
        """The difference that a commit would make now, as data; empty if the device already holds the change.

        A device that can be read is read now; a driver does not rely on earlier readings.
        """
        ...

    def commit(self, staged: Staged[Change], *, revert_after_s: float | None = None) -> Receipt[Change]:
        """Write a staged change; idempotent. ``revert_after_s`` needs :attr:`Capability.CONFIRM_TIMER`.

        Raises:
            UnsupportedError: a timer was requested, but the device has none; nothing was sent.
            DeviceUnreachableError: nothing was sent.
            DeviceBusyError: another client has locked the device; nothing changed.
            DeviceRefusedError: the device refused; nothing changed.
            InconsistentError: the device refused after it had made part of the change.
            OutcomeUnknownError: the change was sent but no answer came: read back or write all states again, never
                retry blindly.
        """
        ...

    def confirm(self, receipt: Receipt[Change]) -> None:
        """Keep a committed change: disarm the device's revert timer, if one is armed.

        Raises:
            DeviceRefusedError: the timer has run out: the device has reverted.
        """
        ...

    def roll_back(self, receipt: Receipt[Change]) -> None:
        """Write back the state before the change; this also disarms a timer. All ``before`` values must be known.

        Raises: as :meth:`commit`.
        """
        ...

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """Optical power at each port in dBm, ``-inf`` for no light. Only with :attr:`Capability.READ_POWERS`.

        For a mesh, the power that leaves the port; for a switch, the reading of its own monitor there.
        """
        ...

    def read_temperature(self) -> float:
        """Temperature in degrees Celsius. Only with :attr:`Capability.READ_TEMPERATURE`."""
        ...

    def read_alarms(self) -> tuple[Alarm, ...]:
        """The alarms that the device raises now. Only with :attr:`Capability.READ_ALARMS`."""
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
        """Check a change (PUC numbers in range) against the known or read states. Other PUCs stay unchanged.

        Raises:
            DeviceRefusedError: a number is out of range.
        """
        ...

    def read_states(self) -> dict[int, PucState]:
        """State of every PUC; a PUC between bar and cross is omitted.

        Only with :attr:`Capability.READ_STATES`; else raises :class:`UnsupportedError`.
        """
        ...


@runtime_checkable
class SwitchDriver(Changing[JoinChange], Protocol):
    """A switch that joins (connects) ingress ports to egress ports. Ports are numbered from 0."""

    def stage(self, joins: Mapping[int, int | None]) -> Staged[JoinChange]:
        """Check a change (ingress port: egress port, or ``None`` to remove the join) against the device's joins.

        A change that would take an egress port from an ingress port that it does not list is refused.

        Raises:
            DeviceRefusedError: a port is out of range, on the wrong side, in use, or listed twice.
        """
        ...

    def read_circuits(self) -> dict[int, int]:
        """Every join of the device: ingress port -> egress port."""
        ...

    def read_ports(self) -> dict[int, PortReading]:
        """Every port. Only with :attr:`Capability.READ_PORTS`."""
        ...

    def set_port(self, port: int, enabled: bool) -> None:
        """Enable or disable light through a port; idempotent, read back. Only with :attr:`Capability.SET_PORTS`."""
        ...

    def set_label(self, port: int, label: str) -> None:
        """Name a port on the device; idempotent, read back. Only with :attr:`Capability.SET_LABELS`."""
        ...


@runtime_checkable
class TransponderDriver(Driver, Protocol):
    """One transponder: its optics, its transmitter, and the neighbours that its receiver hears.

    A setting is read back before the call returns. If the device accepted it but does not show it, the call raises
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
        """Set the transmit power; idempotent, read back. Only with :attr:`Capability.SET_OUTPUT_POWER`."""
        ...

    def announce(self, mark: str) -> None:
        """Make the host announce itself on all its lanes now, with a unique mark (hexadecimal, whole bytes).

        A host with the mark and a lane's name in its neighbour table has heard that lane since then. A host is asked
        once, through the driver of one lane: the call must reach its other lanes too. With READ_NEIGHBOURS.
        """
        ...

    def neighbours(self) -> tuple[Neighbour, ...]:
        """The neighbours that the receiver hears, freshest first. Only with :attr:`Capability.READ_NEIGHBOURS`."""
        ...


@runtime_checkable
class PowerDriver(Driver, Protocol):
    """The electrical power of one machine, out of band: its management controller, or a switched outlet."""

    def identify(self) -> str:
        """One line in which the controller describes itself and the machine."""
        ...

    def read_power(self) -> PowerReading:
        """Whether the machine is on, and what the controller reports about it."""
        ...

    def set_power(self, on: bool, *, force: bool = False) -> None:
        """Switch the machine on, or off: by its operating system, or (``force``) at once. Idempotent.

        Returns when the controller has accepted the command; :meth:`read_power` shows whether the machine followed.
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
"""The kinds of drivers, and the calls that each must have, even if only to refuse with ``UnsupportedError``."""
