"""A transponder behind two drivers: that of its chassis, and that of the host whose traffic it carries."""

from typing import ClassVar

from lumctl.devices.protocols import TransponderDriver
from lumctl.devices.types import Capability, Neighbour, OpticsReading


class Composed:
    """Asks the chassis for light, and the host for neighbours: whom it hears, and that its own lldpd says who it is.

    What one of them does not declare is asked of the other.
    """

    api_version: ClassVar[int] = 1
    kind: ClassVar[str] = "transponder"

    def __init__(self, chassis: TransponderDriver, host: TransponderDriver) -> None:
        self._chassis = chassis
        self._host = host
        self.capabilities = chassis.capabilities | host.capabilities
        self.proven = f"{chassis.proven}; its host: {host.proven}"

    def read_optics(self) -> OpticsReading:
        """The module's readings."""
        return self._of(Capability.READ_OPTICS).read_optics()

    def set_transmit(self, enabled: bool) -> None:
        """Switch the transmitter."""
        self._of(Capability.SET_TRANSMIT).set_transmit(enabled)

    def transmitting(self) -> bool:
        """Whether the transmitter is on."""
        return self._of(Capability.SET_TRANSMIT).transmitting()

    def set_channel(self, frequency_mhz: int) -> None:
        """Tune the transmitter."""
        self._of(Capability.SET_CHANNEL).set_channel(frequency_mhz)

    def set_output_power(self, dbm: float) -> None:
        """Set the power to send with."""
        self._of(Capability.SET_OUTPUT_POWER).set_output_power(dbm)

    def announce(self, mark: str) -> None:
        """Have the host say who it is."""
        self._hearing.announce(mark)

    def neighbours(self) -> tuple[Neighbour, ...]:
        """Whom the receiver hears."""
        return self._hearing.neighbours()

    def close(self) -> None:
        """Close both."""
        self._chassis.close()
        self._host.close()

    @property
    def _hearing(self) -> TransponderDriver:
        return self._host if Capability.READ_NEIGHBOURS in self._host.capabilities else self._chassis

    def _of(self, capability: Capability) -> TransponderDriver:
        return self._chassis if capability in self._chassis.capabilities else self._host
