"""The driver: a program on the transponder's host reads the module and switches its laser.

The program, made up: ``exmodule show eth0`` prints the module as JSON, ``exmodule laser eth0 on`` switches the laser,
exits with 1 and a reason if the module refuses, and needs root.

    {"vendor": "Example", "laser": "on", "rx_mw": 0.42, "tx_mw": 1.1, "temperature_c": 41.5,
     "rx_limits_mw": {"low_alarm": 0.05, "low_warning": 0.1, "high_warning": 2.0, "high_alarm": 3.0}}
"""

import json
import math
import shlex
from typing import Any, ClassVar

from lumctl.devices.base import BaseTransponder
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
    after_sending,
)
from lumctl.devices.protocols import CommandResult
from lumctl.devices.types import Capability, OpticsReading

NO_STATUS = -1


class ExampleTransponder(BaseTransponder):
    """One module of Example & Co. The base class refuses calls that are not declared here."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.READ_OPTICS, Capability.SET_TRANSMIT})
    proven: ClassVar[str] = "twin; not run on hardware"

    def read_optics(self) -> OpticsReading:
        """The module's powers in dBm, its temperature, and its own limits."""
        taken_at = self.context.now()
        module = self._module()
        limits = module.get("rx_limits_mw")
        found = limits.items() if isinstance(limits, dict) else ()
        thresholds = {f"rx_power_{name}": dbm for name, mw in found if (dbm := _dbm(mw)) is not None}
        return OpticsReading(
            taken_at,
            transmitting=_is_on(module),
            rx_power_dbm=_dbm(module.get("rx_mw")),
            tx_power_dbm=_dbm(module.get("tx_mw")),
            temperature_c=_number(module.get("temperature_c")),
            vendor=str(module["vendor"])[:40] if "vendor" in module else None,
            thresholds=thresholds,
        )

    def transmitting(self) -> bool:
        """Whether the laser is on."""
        on = _is_on(self._module())
        if on is None:
            raise DeviceUnreachableError(f"{self.context.device}: the module does not report whether its laser is on")
        return on

    def set_transmit(self, enabled: bool) -> None:
        """Switch the laser, and read it back."""
        if self.transmitting() is enabled:
            return
        sudo = "sudo -n " if self.context.sudo else ""
        result = self._run(f"{sudo}exmodule laser {self._interface} {'on' if enabled else 'off'}")
        if result.exit_status == NO_STATUS:
            raise OutcomeUnknownError(f"{self.context.device}: the host did not report how it ended")
        with after_sending():
            follows = self.transmitting() is enabled
        if result.exit_status != 0 and not follows:
            raise DeviceRefusedError(f"{self.context.device}: {_first_line(result)}")
        if not follows:
            raise InconsistentError(f"{self.context.device}: the laser did not change when told to")

    @property
    def _interface(self) -> str:
        return shlex.quote(self.context.interface)

    def _module(self) -> dict[str, Any]:
        try:
            result = self._run(f"exmodule show {self._interface}")
        except OutcomeUnknownError as error:  # a reading leaves no doubt about the module
            raise DeviceUnreachableError(f"{self.context.device} could not be read: {error.message}") from error
        if result.exit_status != 0:
            raise DeviceUnreachableError(f"{self.context.device} could not be read: {_first_line(result)}")
        try:
            module = json.loads(result.stdout)
        except (ValueError, RecursionError):
            module = None
        if not isinstance(module, dict):
            raise DeviceUnreachableError(f"{self.context.device}: exmodule did not print a JSON object")
        return module

    def _run(self, command: str) -> CommandResult:
        if self.context.shell is None:
            raise UnsupportedError(f"{self.context.device} has no host: this driver works through one")
        return self.context.shell.run(command, timeout_s=self.context.timeout_s)


def _is_on(module: dict[str, Any]) -> bool | None:
    return {"on": True, "off": False}.get(str(module.get("laser")))


def _number(value: Any) -> float | None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if fits else None


def _dbm(milliwatts: Any) -> float | None:
    """Power in dBm; minus infinity is no light, ``None`` an invalid value."""
    value = _number(milliwatts)
    if value is None or value < 0:
        return None
    return 10 * math.log10(value) if value > 0 else -math.inf


def _first_line(result: CommandResult) -> str:
    said = (result.stderr or result.stdout).strip().splitlines()
    return said[0][:200] if said else f"exit status {result.exit_status}"
