"""The driver ``sim-power``: the power of a simulated host over its simulator's control socket."""

from typing import ClassVar

from lumctl.devices.base import BasePower
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, InconsistentError, OutcomeUnknownError
from lumctl.devices.types import Capability, PowerReading
from lumctl.sim.client import ask_simulator, read_simulator

_MODEL = "lumctl simulated machine"


class SimPower(BasePower):
    """One simulated machine. ``context.address`` is ``unix:`` and the path of the control socket."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.SET_POWER, Capability.RESET})
    proven: ClassVar[str] = "simulator"

    def identify(self) -> str:
        """The model, and the simulator's name for the machine."""
        said = read_simulator(self.context, "power-read", component=self.context.component)
        return f"{_MODEL}, {said['name']}"

    def read_power(self) -> PowerReading:
        """The machine's power state and draw in the simulated world."""
        taken_at = self.context.now()
        said = read_simulator(self.context, "power-read", component=self.context.component)
        return PowerReading(taken_at, bool(said["on"]), health="OK", watts=float(said["watts"]), model=_MODEL)

    def set_power(self, on: bool, *, force: bool = False) -> None:
        """Switch the machine; a simulated operating system never hangs, so ``force`` makes no difference.

        Raises:
            InconsistentError: the controller refused, but switched the machine.
        """
        del force
        try:
            ask_simulator(self.context, "power-switch", component=self.context.component, on=on)
        except DeviceRefusedError as refusal:
            if self._is_on_after(refusal) is on:
                raise InconsistentError(f"{refusal.message}; but the change was made") from refusal
            raise

    def reset(self) -> None:
        """Restart the machine."""
        ask_simulator(self.context, "power-reset", component=self.context.component)

    def _is_on_after(self, refusal: DeviceRefusedError) -> bool:
        try:
            return self.read_power().on is True
        except DeviceUnreachableError as error:
            raise OutcomeUnknownError(f"{refusal.message}; then it was not read: {error.message}") from refusal
