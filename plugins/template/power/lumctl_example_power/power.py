"""The driver: one outlet of a power strip, by HTTPS with a user and a password.

Its API, made up: ``GET /outlets/3`` is answered by ``{"on": true, "watts": 412.5}``, ``PUT /outlets/3`` takes
``{"on": false}``, ``POST /outlets/3/restart`` switches it off and on again. An outlet knows nothing of the operating
system that runs on it, so switching off without force is refused.
"""

import math
from typing import ClassVar

from lumctl.devices.base import BasePower
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, InconsistentError, after_sending
from lumctl.devices.http import HttpClient
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, PowerReading


class ExamplePower(BasePower):
    """One outlet; ``context.component`` is its number, as the inventory writes ``power: strip1/3``."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.SET_POWER, Capability.RESET})
    proven: ClassVar[str] = "twin; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._http = HttpClient(context)

    def identify(self) -> str:
        """Say which outlet this is; reading it proves that it is there."""
        self.read_power()
        return f"example power strip, outlet {self.context.component}"

    def read_power(self) -> PowerReading:
        """Whether the outlet is on, and the power that it delivers."""
        taken_at = self.context.now()
        outlet = self._http.get_json(self._path)
        on = outlet.get("on") if isinstance(outlet, dict) else None
        if not isinstance(on, bool):
            raise DeviceUnreachableError(f"{self.context.device}: its answer does not mention an outlet")
        watts = outlet.get("watts")
        told = isinstance(watts, int | float) and not isinstance(watts, bool) and 0 <= watts < math.inf
        return PowerReading(taken_at, on, watts=float(watts) if told else None, model="example power strip")

    def set_power(self, on: bool, *, force: bool = False) -> None:
        """Switch the outlet unless it is there already, and read it back."""
        with self._http.call():
            if self.read_power().on is on:
                return
            if not on and not force:
                raise DeviceRefusedError(
                    f"{self.context.device}: an outlet cannot ask the operating system to stop",
                    hint="shut the machine down first, or switch it off at once, with force",
                )
            self._http.send("PUT", self._path, {"on": on})
            with after_sending():
                if self.read_power().on is not on:
                    raise InconsistentError(f"{self.context.device}: the outlet did not change when told to")

    def reset(self) -> None:
        """Switch the outlet off and on again."""
        with self._http.call():
            self.read_power()  # an outlet that is not there is refused before anything is sent
            self._http.send("POST", f"{self._path}/restart")

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    @property
    def _path(self) -> str:
        if not self.context.component.isdecimal():
            raise DeviceRefusedError(
                f"{self.context.device}: {self.context.component!r} is not the number of an outlet",
                hint=f"power: {self.context.device}/3, for outlet 3",
            )
        return f"/outlets/{self.context.component}"
