"""A transponder driver and its transponder, as input to the contract."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lumctl.devices.protocols import DriverContext, TransponderDriver
from lumctl.devices.types import Capability, OpticsReading


@dataclass(frozen=True)
class TransponderUnderTest:
    """A driver and its transponder, lit and cabled so that its receiver hears ``heard`` (host, interface).

    ``truth`` returns whether the laser is really on, ``told`` the frequency (MHz) and power (dBm) that the transmitter
    received, both read independently of the driver; ``sent`` counts what has reached the device. ``reading`` returns
    what the module really measures, ``None`` where that is not known.
    ``channels_mhz`` and ``powers_dbm`` are two valid settings each. ``unreachable`` is a driver for an address where
    nothing answers, ``wrong`` one for a component that the device lacks. ``context`` and ``opens`` are as in
    :class:`lumctl.devices.testing.MeshUnderTest`.
    """

    driver: TransponderDriver
    heard: tuple[str, str] | None = None
    truth: Callable[[], bool] | None = None
    unreachable: TransponderDriver | None = None
    wrong: TransponderDriver | None = None
    told: Callable[[], tuple[int | None, float | None]] | None = None
    sent: Callable[[], int] | None = None
    channels_mhz: tuple[int, int] = (193_100_000, 193_400_000)
    powers_dbm: tuple[float, float] = (-2.0, -1.0)
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None
    reading: Callable[[], OpticsReading] | None = None

    def calls_of(self, driver: TransponderDriver) -> dict[Capability, tuple[Callable[[], object], ...]]:
        """Every optional call by the capability that it needs."""
        return {
            Capability.READ_OPTICS: (driver.read_optics,),
            Capability.SET_TRANSMIT: (driver.transmitting, lambda: driver.set_transmit(enabled=True)),
            Capability.SET_CHANNEL: (lambda: driver.set_channel(self.channels_mhz[0]),),
            Capability.SET_OUTPUT_POWER: (lambda: driver.set_output_power(self.powers_dbm[0]),),
            Capability.READ_NEIGHBOURS: (driver.neighbours, lambda: driver.announce("0a")),
        }
