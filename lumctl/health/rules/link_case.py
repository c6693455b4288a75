"""One transponder as its rules are asked about it."""

from dataclasses import dataclass

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import InfinibandPort, InterfaceReading, NicEvent
from lumctl.health.expectations import Expected, PortRate
from lumctl.health.trend import Trend


@dataclass(frozen=True, slots=True)
class LinkCase:
    """One transponder with the fresh readings of its interface and module.

    ``in_use`` tells whether a circuit ends here: a lane without one is rightly dark and without carrier.
    ``listed`` tells whether the host said which interfaces it has, so that one may be missed; ``stale`` says how old
    the readings are where they are too old to judge. ``rx_sensitivity_dbm`` is the inventory's. ``nic_events`` are
    what the kernel log says of its interface, ``trend`` is what is remembered of it, ``None`` where nothing is.
    ``unread`` tells that no source of its host speaks of modules.
    ``rates`` are what its ports run at; the expected ones are those of the inventory or of the rack's majority.
    """

    id: str
    name: str
    in_use: bool
    listed: bool
    stale: str | None
    interface: InterfaceReading | None
    optics: OpticsReading | None
    infiniband: tuple[InfinibandPort, ...]
    rx_sensitivity_dbm: float
    read_at: float
    now: float = 0.0
    nic_events: tuple[NicEvent, ...] = ()
    trend: Trend | None = None
    rates: tuple[PortRate, ...] = ()
    expected_rate: Expected | None = None
    expected_lanes: int | None = None
    expected_part: str | None = None
    unread: bool = False
