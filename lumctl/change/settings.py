"""Single settings of devices: how each is typed, read and written. ``Do.SET`` steps use them.

PUC states and connections of a switch are not single settings: they are programmed (``Do.PROGRAM``) together with all
cells on which their light depends.
"""

import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lumctl.devices.errors import DeviceError, InconsistentError, OutcomeUnknownError, UnsupportedError
from lumctl.devices.protocols import Driver
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import Capability, PortReading
from lumctl.errors import UsageError
from lumctl.inventory.components import Component, Part, find_component
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.inventory.problems import nearest

Value = bool | int | float | str

LEAST_MHZ, MOST_MHZ = 150_000_000, 400_000_000
"""Frequencies of light that fibres can carry, in MHz: wavelengths from 2 micrometres to 750 nanometres."""
LEAST_DBM, MOST_DBM = -60.0, 30.0
LONGEST_LABEL = 128
_SWITCHED = {"on": True, "true": True, "off": False, "false": False}
_WITH_UNIT = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
_IN_MHZ = {"thz": 1e6, "ghz": 1e3, "mhz": 1.0}


def switched(text: str) -> bool:
    """Parse on or off."""
    if text.lower() not in _SWITCHED:
        raise UsageError(f"found {text!r}, expected on or off (or true or false)")
    return _SWITCHED[text.lower()]


def label(text: str) -> str:
    """Parse the label of a port; an empty one removes it."""
    if len(text) > LONGEST_LABEL or not text.isprintable():
        raise UsageError(f"a label is one line of at most {LONGEST_LABEL} printable characters")
    return text


def frequency_mhz(text: str) -> int:
    """Parse a whole number of MHz. The error for another unit gives the value in MHz."""
    unit = _WITH_UNIT.fullmatch(text)
    if unit and unit[2].lower() in _IN_MHZ:
        mhz = round(float(unit[1]) * _IN_MHZ[unit[2].lower()])
        raise UsageError(f"found {text!r}, expected a whole number of MHz", hint=f"that is {mhz}")
    try:
        number = float(text)
    except ValueError:
        raise UsageError(f"found {text!r}, expected a whole number of MHz", hint="such as 193100000") from None
    if not number.is_integer() or not LEAST_MHZ <= number <= MOST_MHZ:
        raise UsageError(
            f"found {text}, expected a whole number of MHz from {LEAST_MHZ} to {MOST_MHZ}", hint=_other_unit(number)
        )
    return int(number)


def _other_unit(number: float) -> str | None:
    for unit, scale in (("THz", 1e6), ("GHz", 1e3)):
        if LEAST_MHZ <= number * scale <= MOST_MHZ:
            return f"{number:g} {unit} is {round(number * scale)}"
    return None


def dbm(text: str) -> float:
    """Parse a power in dBm."""
    unit = _WITH_UNIT.fullmatch(text)
    try:
        number = float(text)
    except ValueError:
        hint = f"write the number alone: {unit[1]}" if unit and unit[2].lower() == "dbm" else "such as -3.5"
        raise UsageError(f"found {text!r}, expected a number of dBm", hint=hint) from None
    if not math.isfinite(number) or not LEAST_DBM <= number <= MOST_DBM:
        raise UsageError(f"found {text}, expected {LEAST_DBM:g} to {MOST_DBM:g} dBm")
    return number


def one_of(text: str, words: tuple[str, ...]) -> str:
    """Parse one of several words."""
    if text.lower() not in words:
        raise UsageError(f"found {text!r}, expected {', '.join(words[:-1])} or {words[-1]}")
    return text.lower()


def shown(value: Value | None) -> str:
    """A value as shown in messages and as typed."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


RESET, FORCE_OFF = "reset", "force-off"
_POWER_WORDS = ("on", "off", FORCE_OFF, RESET)

# `Any`: each table is used only with drivers whose class was checked to be of its kind.
Read = Callable[[Any, int], Value | None]
Write = Callable[[Any, int, Any], None]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of one kind of component. ``form`` gives how a value is typed.

    ``read`` returns ``None`` if the device does not report the value. ``follows_s`` is, by value, the time that a
    device may take to show the value after accepting it.
    """

    name: str
    form: str
    capability: Capability
    parse: Callable[[str], Value]
    read: Read
    write: Write
    follows_s: Mapping[Value, float] = field(default_factory=dict)

    def needs(self, value: Value | None = None) -> Capability:
        """The capability that a driver needs to set this value."""
        return Capability.RESET if value == RESET and self.name == "power" else self.capability

    def shown(self, value: Value | None) -> str:
        """A value as typed."""
        if self.name == "enabled" and isinstance(value, bool):
            return "true" if value else "false"
        return shown(value)

    def shows(self, value: Value) -> Value:
        """What the device reports once the value is in force."""
        return {FORCE_OFF: "off", RESET: "on"}.get(str(value), value) if self.name == "power" else value

    def reversible(self, value: Value) -> bool:
        """Whether writing the earlier value undoes this one."""
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
        switched,
        partial(_port, of=lambda port: port.enabled),
        lambda driver, number, value: driver.set_port(number, value),
    ),
    Setting(
        "label",
        "TEXT",
        Capability.SET_LABELS,
        label,
        partial(_port, of=lambda port: port.label),
        lambda driver, number, value: driver.set_label(number, value),
    ),
)
TRANSPONDER = (
    Setting(
        "transmit",
        "on|off",
        Capability.SET_TRANSMIT,
        switched,
        lambda driver, _: driver.transmitting(),
        lambda driver, _, value: driver.set_transmit(value),
    ),
    Setting(
        "frequency_mhz",
        "MHZ",
        Capability.SET_CHANNEL,
        frequency_mhz,
        partial(_optics, name="frequency_mhz"),
        lambda driver, _, value: driver.set_channel(value),
    ),
    Setting(
        "output_power_dbm",
        "DBM",
        Capability.SET_OUTPUT_POWER,
        dbm,
        partial(_optics, name="target_power_dbm"),
        lambda driver, _, value: driver.set_output_power(value),
    ),
)
POWER = (
    Setting(
        "power",
        "|".join(_POWER_WORDS),
        Capability.SET_POWER,
        partial(one_of, words=_POWER_WORDS),
        _read_power,
        _write_power,
        {"on": 60.0, "off": 180.0, FORCE_OFF: 30.0, RESET: 60.0},
    ),
)


NEAR_DB = 0.05
"""Powers that differ by less count as equal, because devices round."""
POLL_S = 0.5


@dataclass(frozen=True)
class Settable:
    """One setting of one component of an inventory, with the drivers to reach it."""

    inventory: Inventory
    devices: DeviceSet
    component: Component
    setting: Setting

    def require(self, value: Value | None = None) -> None:
        """Require that the driver can set this.

        Raises:
            UnsupportedError: it cannot; the hint lists what it can set.
        """
        driver, needed = self._driver(), self.setting.needs(value)
        if needed in driver.capabilities:
            return
        every = settings_of(self.inventory, self.component).values()
        able = ["joined"] if self.component.part is Part.PORT else []  # no capability: every switch can
        able += [each.name for each in every if each.capability in driver.capabilities]
        raise UnsupportedError(
            f"{self.component.id}: its driver cannot {self._words(value)} (it does not have {needed})",
            hint=f"it supports: {', '.join(able)}" if able else "it has no settings",
        )

    def read(self) -> Value | None:
        """The value now; ``None`` if the device does not report a value.

        Raises:
            DeviceError: it cannot be read.
        """
        return self.setting.read(self._driver(), self.component.number)

    def write(self, value: Value) -> Value:
        """Set a value and read it back; return what the component shows.

        Raises:
            DeviceUnreachableError, DeviceRefusedError: nothing changed.
            OutcomeUnknownError: the value was sent and the outcome is unknown.
            InconsistentError: the component accepted the value but shows another one.
        """
        self.setting.write(self._driver(), self.component.number, value)
        return self._followed(value)

    def _followed(self, value: Value) -> Value:
        """Read until the component shows the new value, for as long as that may take."""
        wanted, patience_s = self.setting.shows(value), self.setting.follows_s.get(value, 0.0)
        ends = time.monotonic() + patience_s
        while not same(found := self._read_back(value), wanted):
            if found is None and not patience_s:
                break  # not readable: its driver has made sure that the value is set
            if time.monotonic() >= ends:
                raise InconsistentError(
                    f"{self.component.id} accepted {self.text(value)}, but reports {self.setting.shown(found)}"
                    + (f" after {patience_s:.0f} s" if patience_s else ""),
                    hint="its operating system may block the shutdown: power=force-off" if value == "off" else None,
                )
            threading.Event().wait(POLL_S)  # no event reports that a machine has powered off
        return wanted

    def _read_back(self, value: Value) -> Value | None:
        try:
            return self.read()
        except DeviceError as error:
            raise OutcomeUnknownError(
                f"{self.component.id} accepted {self.text(value)}, but cannot be read back: {error.message}",
                hint=error.hint,
            ) from error

    def text(self, value: Value | None) -> str:
        """A setting and its value, as typed."""
        return f"{self.setting.name}={self.setting.shown(value)}"

    def _words(self, value: Value | None) -> str:
        return f"set {self.setting.name}" if value is None else f"do {self.text(value)}"

    def _driver(self) -> Driver:
        if self.component.part is Part.TRANSPONDER:
            return self.devices.transponder(self.component.id)
        if self.component.part is Part.PORT:
            return self.devices.switch(str(self.component.device))
        power = self.inventory.hosts[str(self.component.host)].power
        assert power is not None  # noqa: S101 - a component of this kind has one
        return self.devices.power(power)


def settable(inventory: Inventory, devices: DeviceSet, component: str, name: str) -> Settable:
    """One setting of one component.

    Raises:
        UsageError: there is no such component, or it has no setting of that name.
    """
    found = find_component(inventory, component)
    return Settable(inventory, devices, found, setting_of(inventory, found, name))


def same(one: Value | None, other: Value | None) -> bool:
    """Whether two values of a setting are equal within the precision of devices."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and abs(float(one) - float(other)) < NEAR_DB
    return one == other


def setting_of(inventory: Inventory, component: Component, name: str) -> Setting:
    """The setting of that name.

    Raises:
        UsageError: such a component has no setting of that name.
    """
    known = settings_of(inventory, component)
    if name in known:
        return known[name]
    raise no_setting(inventory, component, name, {each.name: each.form for each in known.values()})


def settings_of(inventory: Inventory, component: Component) -> Mapping[str, Setting]:
    """The settings that a component of this kind may have; its driver decides which ones it supports."""
    found: tuple[Setting, ...] = ()
    if component.part is Part.TRANSPONDER:
        found = TRANSPONDER
    elif component.part is Part.POWER:
        found = POWER
    elif component.part is Part.PORT and inventory.devices[str(component.device)].kind is DeviceKind.SWITCH:
        found = PORT
    return {each.name: each for each in found}


def no_setting(inventory: Inventory, component: Component, name: str, forms: Mapping[str, str]) -> UsageError:
    """The error for a setting that a component lacks; ``forms`` gives how its own settings are typed."""
    near = nearest(name, forms)
    hint = f"did you mean {near}={forms[near]}?" if near else None
    if forms and hint is None:
        hint = f"its settings: {', '.join(f'{known}={form}' for known, form in forms.items())}"
    return UsageError(f"{component.id} is {kind_in_words(inventory, component)}: it has no setting {name!r}", hint=hint)


def kind_in_words(inventory: Inventory, component: Component) -> str:
    """What a component is, in words."""
    if component.part is Part.TRANSPONDER:
        return "a transponder"
    if component.part is Part.POWER:
        return "the power of a host"
    kind = inventory.devices[str(component.device)].kind
    return f"a {kind}" if component.part is Part.DEVICE else f"a {component.part} of a {kind}"
