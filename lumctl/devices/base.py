"""Base classes of drivers, one for each kind: an optional call is refused unless the driver implements it."""

from typing import ClassVar, NoReturn

from lumctl.devices.errors import UnsupportedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Alarm, Capability, Neighbour, OpticsReading, PortReading, Progress, PucState


class _Base:
    """A driver that stores its context and supports no optional call."""

    api_version: ClassVar[int]  # each driver states its own: an inherited one would change with lumctl
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    proven: ClassVar[str] = "not stated"

    def __init__(self, context: DriverContext) -> None:
        """Store the context; nothing is contacted before the first call."""
        self.context = context

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _lacks(self, what: str) -> NoReturn:
        raise UnsupportedError(f"{self.context.device}: its driver has no {what}")


class _ChangingBase(_Base):
    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """Not supported."""
        del ports
        self._lacks("power readings")

    def read_temperature(self) -> float:
        """Not supported."""
        self._lacks("temperature reading")

    def read_alarms(self) -> tuple[Alarm, ...]:
        """Not supported."""
        self._lacks("alarms")

    def read_progress(self) -> Progress | None:
        """Not supported."""
        self._lacks("progress of changes")


class BaseMesh(_ChangingBase):
    """A mesh from which nothing can be read."""

    kind: ClassVar[str] = "mesh"

    def read_states(self) -> dict[int, PucState]:
        """Not supported."""
        self._lacks("read-back of states")


class BaseSwitch(_ChangingBase):
    """A switch on which only connections can be read and set."""

    kind: ClassVar[str] = "switch"

    def read_ports(self) -> dict[int, PortReading]:
        """Not supported."""
        self._lacks("reading of ports")

    def set_port(self, port: int, enabled: bool) -> None:
        """Not supported."""
        del port, enabled
        self._lacks("switching of ports")

    def set_label(self, port: int, label: str) -> None:
        """Not supported."""
        del port, label
        self._lacks("labels")


class BaseTransponder(_Base):
    """A transponder that supports no call."""

    kind: ClassVar[str] = "transponder"

    def read_optics(self) -> OpticsReading:
        """Not supported."""
        self._lacks("optics")

    def set_transmit(self, enabled: bool) -> None:
        """Not supported."""
        del enabled
        self._lacks("switching of the transmitter")

    def transmitting(self) -> bool:
        """Not supported."""
        self._lacks("switching of the transmitter")

    def set_channel(self, frequency_mhz: int) -> None:
        """Not supported."""
        del frequency_mhz
        self._lacks("tuning")

    def set_output_power(self, dbm: float) -> None:
        """Not supported."""
        del dbm
        self._lacks("setting of the output power")

    def announce(self, mark: str) -> None:
        """Not supported."""
        del mark
        self._lacks("neighbours")

    def neighbours(self) -> tuple[Neighbour, ...]:
        """Not supported."""
        self._lacks("neighbours")


class BasePower(_Base):
    """A management controller that reports its machine's power and accepts no command."""

    kind: ClassVar[str] = "power"

    def set_power(self, on: bool, *, force: bool = False) -> None:
        """Not supported."""
        del on, force
        self._lacks("switching of power")

    def reset(self) -> None:
        """Not supported."""
        self._lacks("reset")
