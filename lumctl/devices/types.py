"""Values that the program and drivers exchange: states, readings with units, the differences in a change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar


class PucState(StrEnum):
    """State of a programmable unit cell. The values are the marks of the mesh controller's line protocol."""

    BAR = "="
    CROSS = "x"

    @property
    def word(self) -> str:
        """The state as a word: ``bar`` or ``cross``."""
        return "bar" if self is PucState.BAR else "cross"


class Capability(StrEnum):
    """What a driver can do beyond the calls that its kind requires."""

    READ_STATES = "read-states"
    """A mesh's cells are read back from the device itself. (A switch without read-back is not supported.)"""
    ATOMIC = "atomic"
    """The device makes a change as a whole or not at all."""
    CONFIRM_TIMER = "confirm-timer"
    """The device reverts a change by itself unless it is confirmed in time."""
    READ_POWERS = "read-powers"
    READ_TEMPERATURE = "read-temperature"
    READ_ALARMS = "read-alarms"
    PROGRESS = "progress"
    """The device reports whether it is still making a change; a write may continue after its answer or without one."""
    READ_PORTS = "read-ports"
    SET_PORTS = "set-ports"
    SET_LABELS = "set-labels"
    READ_OPTICS = "read-optics"
    READ_NEIGHBOURS = "read-neighbours"
    SET_TRANSMIT = "set-transmit"
    SET_CHANNEL = "set-channel"
    SET_OUTPUT_POWER = "set-output-power"
    SET_POWER = "set-power"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class PucChange:
    """A change of one PUC from a state to another. ``before`` is ``None`` if it was unknown."""

    puc: int
    before: PucState | None
    after: PucState


@dataclass(frozen=True, slots=True)
class JoinChange:
    """A change of one ingress port of a switch from one egress port to another; ``None``: no egress port."""

    ingress: int
    before: int | None
    after: int | None


Change = TypeVar("Change", PucChange, JoinChange)


def cell_of(change: PucChange | JoinChange) -> int:
    """The number of the cell that a change is about: a PUC of a mesh, or an ingress port of a switch."""
    return change.ingress if isinstance(change, JoinChange) else change.puc


@dataclass(frozen=True, slots=True)
class Staged(Generic[Change]):
    """A change that a driver has checked but not yet written. Only the driver uses ``token``."""

    changes: tuple[Change, ...]
    token: str


@dataclass(frozen=True, slots=True)
class Receipt(Generic[Change]):
    """A change that a device has accepted. ``revert_armed``: the device reverts it unless it is confirmed in time.

    ``complete``: the device's answer reported that it has finished the change. A driver with
    :attr:`Capability.PROGRESS` that sets it saves one poll; otherwise lumctl asks for the progress before it reads the
    device.
    """

    staged: Staged[Change]
    revert_armed: bool
    text: str = ""
    complete: bool = False


@dataclass(frozen=True, slots=True)
class PortReading:
    """One port of a switch. ``enabled`` is ``None`` if the device does not report it; ``failed`` is its own verdict."""

    port: int
    enabled: bool | None = None
    failed: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that a device raises, in the device's words. ``since`` is in epoch seconds, if the device gives it.

    ``severity`` is the device's own word, empty if it has none. Health knows the usual words (``critical``, ``major``,
    ``minor``, ``warning``, ``cleared``, and those of TL1 and syslog); any other word makes the device degraded.
    ``source`` is the affected part: ``port/3`` for a port, which lets health relate the alarm to light lost there.
    """

    text: str
    severity: str = ""
    source: str = ""
    since: float | None = None


class Obstacle(StrEnum):
    """The reason why a device could not be read."""

    DRIVER = "driver"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One reading of a mesh or a switch. ``problem`` says why it did not answer; ``None``: it did, at ``taken_at``.

    ``obstacle``: its driver or its rack's gateway failed, and the device was perhaps not asked at all.

    ``alarms``, ``temperature_c`` and ``powers_dbm`` (by port, ``-inf`` for no light) were read at ``read_at``. Each is
    ``None`` if the driver does not support it or the reading failed; ``unread`` then gives the reason of a failure, by
    reading (``alarms``, ``temperature``, ``powers``). Times are epoch seconds.
    """

    taken_at: float
    problem: str | None = None
    read_at: float | None = None
    alarms: tuple[Alarm, ...] | None = None
    temperature_c: float | None = None
    powers_dbm: Mapping[int, float] | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a change that a device is still making, in cells if the device counts them."""

    done: int | None = None
    total: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class PowerReading:
    """A machine's electrical power, from its management controller. ``on`` is ``None`` while it is neither on nor off.

    ``health`` is the controller's own word (``OK``, ``Warning``, ``Critical``); ``watts`` is the power that it draws.
    """

    taken_at: float
    on: bool | None
    health: str = ""
    watts: float | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class OpticsReading:
    """One reading of a transponder's module. Powers in dBm, ``None`` if the module states none; ``-inf`` is no light.

    ``thresholds`` are the module's own, named ``rx_power_low_alarm``, ``rx_power_low_warning``,
    ``rx_power_high_warning``, ``rx_power_high_alarm`` (and ``tx_power_``, ``bias_``, ``temperature_`` alike), in the
    unit of their reading. ``optical`` is false for copper, which has no optics; that is not a fault.
    ``pre_fec_ber`` is the worst lane's bit error rate before correction, ``post_fec_ber`` after it;
    ``fec_uncorrectable`` counts the blocks that could not be corrected. ``module_state`` (``ModuleReady``) and
    ``module_fault`` are a CMIS module's own words. ``frequency_mhz`` and ``target_power_dbm`` are the settings of a
    tunable transmitter.
    """

    taken_at: float
    optical: bool = True
    transmitting: bool | None = None
    rx_power_dbm: float | None = None
    tx_power_dbm: float | None = None
    bias_ma: float | None = None
    temperature_c: float | None = None
    voltage_v: float | None = None
    vendor: str | None = None
    part: str | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    pre_fec_ber: float | None = None
    module_state: str | None = None
    module_fault: str | None = None
    post_fec_ber: float | None = None
    fec_uncorrectable: int | None = None
    rx_los: bool | None = None
    tx_fault: bool | None = None
    frequency_mhz: int | None = None
    target_power_dbm: float | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour that a receiver hears, from LLDP: the transmitting host and interface.

    ``age_s`` counts from the last frame with new content: a repeated frame does not reset it. ``mark`` is the last mark
    that the transmitter was made to send (see ``TransponderDriver.announce``), in hexadecimal.
    """

    system: str
    port: str
    age_s: float
    mark: str | None = None
