"""The driver ``sim-transponder``: a simulated module over its simulator's control socket, with every capability.

It is for a chassis that manages its modules: a device of ``kind: chassis`` with this driver, which a transponder names
under ``module``.
"""

import math
from typing import Any, ClassVar

from lumctl.devices.base import BaseTransponder
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.devices.types import Capability, Neighbour, OpticsReading
from lumctl.sim.client import ask_simulator, dbm_from_json, read_simulator


class SimTransponder(BaseTransponder):
    """One simulated transponder. ``context.address`` is ``unix:`` and the path of the control socket."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.READ_OPTICS,
            Capability.READ_NEIGHBOURS,
            Capability.SET_TRANSMIT,
            Capability.SET_CHANNEL,
            Capability.SET_OUTPUT_POWER,
        }
    )
    proven: ClassVar[str] = "simulator"

    def read_optics(self) -> OpticsReading:
        """The module's readings and thresholds."""
        taken_at = self.context.now()
        said = self._read("transponder-read")
        # A reading is about light, not about the switch: a laser that is on may send none.
        del said["laser_on"]
        sent, received = (dbm_from_json(said.pop(f"{side}_power_dbm")) for side in ("tx", "rx"))
        return OpticsReading(taken_at, transmitting=sent > -math.inf, tx_power_dbm=sent, rx_power_dbm=received, **said)

    def set_transmit(self, enabled: bool) -> None:
        """Switch the laser."""
        self._write("transponder-laser", "on", "laser_on", enabled)

    def transmitting(self) -> bool:
        """Whether the laser is switched on."""
        return bool(self._read("transponder-read")["laser_on"])

    def set_channel(self, frequency_mhz: int) -> None:
        """Tune the laser."""
        self._write("transponder-channel", "frequency_mhz", "frequency_mhz", frequency_mhz)

    def set_output_power(self, dbm: float) -> None:
        """Set the launch power."""
        self._write("transponder-power", "dbm", "target_power_dbm", dbm)

    def announce(self, mark: str) -> None:
        """Make the host's lldpd announce the mark now."""
        ask_simulator(self.context, "transponder-announce", component=self.context.component, mark=mark)

    def neighbours(self) -> tuple[Neighbour, ...]:
        """The transmitters that the receiver hears, freshest first."""
        return tuple(Neighbour(**heard) for heard in self._read("transponder-neighbours")["neighbours"])

    def _write(self, do: str, argument: str, shown_as: str, wanted: float) -> None:
        """Change a setting of the module, and check that it shows the new value, or after a refusal the old one."""
        device = self.context.device
        before = self._read("transponder-read")[shown_as]
        try:
            ask_simulator(self.context, do, component=self.context.component, **{argument: wanted})
        except DeviceRefusedError as refusal:
            if self._told(shown_as) != before:
                raise InconsistentError(f"{refusal.message}; but {shown_as} was changed") from refusal
            raise
        shown = self._told(shown_as)
        if shown != wanted:
            raise InconsistentError(f"{device}: {shown_as} was set to {wanted} but is {shown}")

    def _read(self, do: str) -> dict[str, Any]:
        return read_simulator(self.context, do, component=self.context.component)

    def _told(self, what: str) -> Any:
        """The value that the module shows just after a change.

        Raises:
            OutcomeUnknownError: the module does not answer, so the result of the change is unknown.
        """
        try:
            return self._read("transponder-read")[what]
        except DeviceUnreachableError as error:
            raise OutcomeUnknownError(f"{error.message}; a write was sent to it just before") from error
