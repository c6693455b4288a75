"""The settings that there are: how each is typed, which capability it needs, how it is read and written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lumctl.change import values
from lumctl.change.values import Value
from lumctl.devices.types import Capability, PortReading

RESET, FORCE_OFF = "reset", "force-off"
_POWER_WORDS = ("on", "off", FORCE_OFF, RESET)

# A driver's class was checked to be of the kind that a table is for: hence `Any`.
Read = Callable[[Any, int], Value | None]
Write = Callable[[Any, int, Any], None]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of one kind of component. ``form`` says how a value is typed.

    ``read`` gives ``None`` where the device does not tell; ``follows_s`` is how long a device may take to show a value
    after it has accepted it.
    """

    name: str
    form: str
    capability: Capability
    parse: Callable[[str], Value]
    read: Read
    write: Write
    follows_s: Mapping[Value, float] = field(default_factory=dict)

    def needs(self, value: Value | None = None) -> Capability:
        """What a driver must offer so that this value can be set."""
        return Capability.RESET if value == RESET and self.name == "power" else self.capability

    def shown(self, value: Value | None) -> str:
        """A value as it is typed."""
        if self.name == "enabled" and isinstance(value, bool):
            return "true" if value else "false"
        return values.shown(value)

    def shows(self, value: Value) -> Value:
        """What the device shows once a value is in force."""
        return {FORCE_OFF: "off", RESET: "on"}.get(str(value), value) if self.name == "power" else value

    def reversible(self, value: Value) -> bool:
        """Whether writing what was before takes the value back."""
        return not (self.name == "power" and value == RESET)


def _port(driver: Any, number: int, of: Callable[[PortReading], Value | None]) -> Value | None:
    if Capability.READ_PORTS not in driver.capabilities:
        return None
    port = driver.read_ports().get(number)
    return of(port) if port is not None else None


def _optics(driver: Any, _number: int, name: str) -> Value | None:
    if Capability.READ_OPTICS not in driver.capabilities:
        return None
    found: Value | None = getattr(driver.read_optics(), name)
    return found


def _read_power(driver: Any, _number: int) -> Value | None:
    return {True: "on", False: "off", None: None}[driver.read_power().on]


def _write_power(driver: Any, _number: int, value: Any) -> None:
    if value == RESET:
        driver.reset()
    else:
        driver.set_power(value == "on", force=value == FORCE_OFF)


PORT = (
    Setting(
        "enabled",
        "true|false",
        Capability.SET_PORTS,
        values.switched,
        partial(_port, of=lambda port: port.enabled),
        lambda driver, number, value: driver.set_port(number, value),
    ),
    Setting(
        "label",
        "TEXT",
        Capability.SET_LABELS,
        values.label,
        partial(_port, of=lambda port: port.label),
        lambda driver, number, value: driver.set_label(number, value),
    ),
)
TRANSPONDER = (
    Setting(
        "transmit",
        "on|off",
        Capability.SET_TRANSMIT,
        values.switched,
        lambda driver, _: driver.transmitting(),
        lambda driver, _, value: driver.set_transmit(value),
    ),
    Setting(
        "frequency_mhz",
        "MHZ",
        Capability.SET_CHANNEL,
        values.frequency_mhz,
        partial(_optics, name="frequency_mhz"),
        lambda driver, _, value: driver.set_channel(value),
    ),
    Setting(
        "output_power_dbm",
        "DBM",
        Capability.SET_OUTPUT_POWER,
        values.dbm,
        partial(_optics, name="target_power_dbm"),
        lambda driver, _, value: driver.set_output_power(value),
    ),
)
POWER = (
    Setting(
        "power",
        "|".join(_POWER_WORDS),
        Capability.SET_POWER,
        partial(values.one_of, words=_POWER_WORDS),
        _read_power,
        _write_power,
        {"on": 60.0, "off": 180.0, FORCE_OFF: 30.0, RESET: 60.0},
    ),
)
