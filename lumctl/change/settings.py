"""Reading and writing single settings of devices; ``Do.SET`` steps are made of these.

PUC states and joins are no single settings: they are programmed (``Do.PROGRAM``), with all that light depends on.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from lumctl.change import settables
from lumctl.change.settables import Setting
from lumctl.change.values import Value
from lumctl.devices.errors import DeviceError, InconsistentError, OutcomeUnknownError, UnsupportedError
from lumctl.devices.protocols import Driver
from lumctl.devices.registry import DeviceSet
from lumctl.errors import UsageError
from lumctl.inventory.components import Component, Part, find_component
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.inventory.problems import nearest

NEAR_DB = 0.05
"""Powers that differ by less are the same: devices round."""
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
            UnsupportedError: it cannot; the hint says what it can.
        """
        driver, needed = self._driver(), self.setting.needs(value)
        if needed in driver.capabilities:
            return
        every = settings_of(self.inventory, self.component).values()
        able = ["joined"] if self.component.part is Part.PORT else []  # no capability: every switch can
        able += [each.name for each in every if each.capability in driver.capabilities]
        raise UnsupportedError(
            f"{self.component.id}: its driver cannot {self._words(value)} (it does not have {needed})",
            hint=f"what can be set: {', '.join(able)}" if able else "nothing of it can be set",
        )

    def read(self) -> Value | None:
        """What the component shows now; ``None`` where it does not tell.

        Raises:
            DeviceError: it cannot be asked.
        """
        return self.setting.read(self._driver(), self.component.number)

    def write(self, value: Value) -> Value:
        """Set, and read back; gives what the component shows.

        Raises:
            DeviceUnreachableError, DeviceRefusedError: nothing changed.
            OutcomeUnknownError: it was sent, and nobody knows what came of it.
            InconsistentError: the component took it and shows something else.
        """
        self.setting.write(self._driver(), self.component.number, value)
        return self._followed(value)

    def _followed(self, value: Value) -> Value:
        """Read until the component shows what was set, for as long as that may take."""
        wanted, patience_s = self.setting.shows(value), self.setting.follows_s.get(value, 0.0)
        ends = time.monotonic() + patience_s
        while not same(found := self._read_back(value), wanted):
            if found is None and not patience_s:
                break  # it does not tell; its driver has made sure
            if time.monotonic() >= ends:
                raise InconsistentError(
                    f"{self.component.id} took {self.text(value)} and shows {self.setting.shown(found)}"
                    + (f" after {patience_s:.0f} s" if patience_s else ""),
                    hint="its operating system may not let go: power=force-off" if value == "off" else None,
                )
            threading.Event().wait(POLL_S)  # nothing tells when a machine has gone off
        return wanted

    def _read_back(self, value: Value) -> Value | None:
        try:
            return self.read()
        except DeviceError as error:
            raise OutcomeUnknownError(
                f"{self.component.id} took {self.text(value)} and cannot be read back: {error.message}", hint=error.hint
            ) from error

    def text(self, value: Value | None) -> str:
        """The setting with a value, as it is typed."""
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
    """Whether two values of a setting are the same, as far as devices tell."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and abs(float(one) - float(other)) < NEAR_DB
    return one == other


def setting_of(inventory: Inventory, component: Component, name: str) -> Setting:
    """The setting of that name.

    Raises:
        UsageError: such a component has none of that name.
    """
    known = settings_of(inventory, component)
    if name in known:
        return known[name]
    raise no_setting(inventory, component, name, {each.name: each.form for each in known.values()})


def settings_of(inventory: Inventory, component: Component) -> Mapping[str, Setting]:
    """The settings that a component of this kind may have; whether this one has them is for its driver to say."""
    found: tuple[Setting, ...] = ()
    if component.part is Part.TRANSPONDER:
        found = settables.TRANSPONDER
    elif component.part is Part.POWER:
        found = settables.POWER
    elif component.part is Part.PORT and inventory.devices[str(component.device)].kind is DeviceKind.SWITCH:
        found = settables.PORT
    return {each.name: each for each in found}


def no_setting(inventory: Inventory, component: Component, name: str, forms: Mapping[str, str]) -> UsageError:
    """The error for a setting that a component does not have; ``forms`` says how those that it has are typed."""
    near = nearest(name, forms)
    hint = f"did you mean {near}={forms[near]}?" if near else None
    if forms and hint is None:
        hint = f"what it has: {', '.join(f'{known}={form}' for known, form in forms.items())}"
    return UsageError(f"{component.id} is {described(inventory, component)}: it has no setting {name!r}", hint=hint)


def described(inventory: Inventory, component: Component) -> str:
    """What a component is, in words."""
    if component.part is Part.TRANSPONDER:
        return "a transponder"
    if component.part is Part.POWER:
        return "the power of a host"
    kind = inventory.devices[str(component.device)].kind
    return f"a {kind}" if component.part is Part.DEVICE else f"a {component.part} of a {kind}"
