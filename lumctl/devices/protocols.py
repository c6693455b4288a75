"""The capabilities of devices as small Protocols. A driver declares its kind and capabilities and implements those.

Every call takes its deadline from the :class:`DriverContext` it was opened with and raises only the errors of
:mod:`lumctl.devices.errors`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from lumctl.devices.types import Capability, Neighbour, OpticsReading, PucChange, PucState, Receipt, Staged


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
    """All that a driver is given: whom it drives, where, how long it may take, and its clock.

    ``address`` is ``host:port``; ``puc_count`` and ``port_count`` are what the inventory states, ``settle_s`` how
    long the device needs before light is where it should be; ``shell`` and ``interface`` are set for devices behind
    a host; ``known_states`` is the program's record of a device that cannot be read back.
    """

    device: str
    address: str = ""
    puc_count: int = 0
    port_count: int = 0
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


@runtime_checkable
class MeshDriver(Driver, Protocol):
    """A mesh of PUCs. ``stage`` and ``compare`` touch nothing; ``commit`` writes."""

    def identify(self) -> str:
        """One line that the device says of itself; proves that it answers."""
        ...

    def stage(self, changes: Mapping[int, PucState]) -> Staged:
        """Check a change (PUC numbers in range) against the known or read states. PUCs not named stay as they are."""
        ...

    def compare(self, staged: Staged) -> tuple[PucChange, ...]:
        """The difference that committing would make now, as data; empty if the device is already there."""
        ...

    def commit(self, staged: Staged, *, revert_after_s: float | None = None) -> Receipt:
        """Write a staged change; idempotent. ``revert_after_s`` needs :attr:`Capability.CONFIRM_TIMER`.

        Raises:
            DeviceUnreachableError: nothing was sent.
            DeviceRefusedError: the device said no; nothing changed.
            OutcomeUnknownError: it was sent and no answer came: read back or re-assert, never retry blindly.
        """
        ...

    def confirm(self, receipt: Receipt) -> None:
        """Keep a committed change: disarm the device's revert timer, if one is armed."""
        ...

    def roll_back(self, receipt: Receipt) -> None:
        """Write back the states from before the change. Every ``before`` must be known."""
        ...

    def read_states(self) -> dict[int, PucState]:
        """State of every PUC. Only with :attr:`Capability.READ_STATES`; else raises :class:`UnsupportedError`."""
        ...

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """Optical power that leaves each port, in dBm. Only with :attr:`Capability.READ_POWERS`."""
        ...

    def read_temperature(self) -> float:
        """Chip temperature in degrees Celsius. Only with :attr:`Capability.READ_TEMPERATURE`."""
        ...


@runtime_checkable
class TransponderDriver(Driver, Protocol):
    """One transponder: its optics, its transmitter, and whom its receiver hears."""

    def read_optics(self) -> OpticsReading:
        """The module's readings with its own thresholds. Only with :attr:`Capability.READ_OPTICS`."""
        ...

    def set_transmit(self, enabled: bool) -> None:
        """Switch the transmitter on or off; idempotent, read back. Only with :attr:`Capability.SET_TRANSMIT`."""
        ...

    def transmitting(self) -> bool:
        """Whether the transmitter is on. Only with :attr:`Capability.SET_TRANSMIT`."""
        ...

    def announce(self, mark: str) -> None:
        """Make the host say who it is on this lane now, with a mark (hexadecimal, whole bytes) that only it says.

        Whoever has the mark in its neighbour table has heard this transmitter since. With READ_NEIGHBOURS.
        """
        ...

    def neighbours(self) -> tuple[Neighbour, ...]:
        """Whom the receiver hears, freshest first. Only with :attr:`Capability.READ_NEIGHBOURS`."""
        ...
