"""What passes between the program and a device: states, readings with units, the difference of a change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class PucState(StrEnum):
    """State of a programmable unit cell. The values are the marks of the mesh controller's line protocol."""

    BAR = "="
    CROSS = "x"

    @property
    def word(self) -> str:
        """The state as a person writes it: ``bar`` or ``cross``."""
        return "bar" if self is PucState.BAR else "cross"


class Capability(StrEnum):
    """What a driver can do beyond the least that its kind asks for."""

    READ_STATES = "read-states"
    CONFIRM_TIMER = "confirm-timer"
    READ_POWERS = "read-powers"
    READ_TEMPERATURE = "read-temperature"
    READ_OPTICS = "read-optics"
    READ_NEIGHBOURS = "read-neighbours"
    SET_TRANSMIT = "set-transmit"


@dataclass(frozen=True, slots=True)
class PucChange:
    """One cell of one device, from a state to another. ``before`` is ``None`` where it was not known."""

    puc: int
    before: PucState | None
    after: PucState


@dataclass(frozen=True, slots=True)
class Staged:
    """A change that a driver has checked and not yet written. ``token`` is the driver's own."""

    changes: tuple[PucChange, ...]
    token: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """A change that a device has taken. ``revert_armed``: the device itself goes back unless confirmed in time."""

    staged: Staged
    revert_armed: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class OpticsReading:
    """One transponder's module as read. Powers in dBm, ``None`` where the module states none; ``-inf`` is no light.

    ``thresholds`` are the module's own, named ``rx_power_low_alarm``, ``rx_power_low_warning``,
    ``rx_power_high_warning``, ``rx_power_high_alarm`` (and ``tx_power_``, ``bias_``, ``temperature_`` alike), in the
    unit of their reading. ``optical`` is false for copper, which has no optics and is no fault.
    ``pre_fec_ber`` is the worst lane's bit error rate before correction. ``module_state`` (``ModuleReady``) and
    ``module_fault`` are a CMIS module's own words.
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


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Whom a receiver hears, from LLDP: the transmitting host and interface.

    ``age_s`` counts from the last frame that said something new: the same frame again does not make it younger.
    ``mark`` is what the transmitter was last told to say (see ``TransponderDriver.announce``), in hexadecimal.
    """

    system: str
    port: str
    age_s: float
    mark: str | None = None
