"""The network interface of one transponder: its carrier, its light, its neighbours in lldpd, and what it shows."""

import math
from dataclasses import dataclass, field

from lumctl.devices.errors import DeviceRefusedError
from lumctl.inventory.model import Transponder
from lumctl.sim.world.light import Light

# The defaults of lldpd: a frame every 30 s, and a time to live of four intervals.
LLDP_INTERVAL_S = 30.0
LLDP_TTL_S = 120.0
ANCHOR_MHZ = 193_100_000
"""The base frequency of the grid of ITU-T G.694.1, and a module's initial frequency."""
# The C band, which tunable modules cover.
CHANNELS_MHZ = (191_300_000, 196_100_000)
POWERS_DBM = (-15.0, 6.0)
"""The range of a simulated module's launch power."""


@dataclass(slots=True)
class Heard:
    """One neighbour's entry: when a frame last had new content, when the last frame arrived, and its content."""

    changed_at: float
    last_at: float
    mark: str


@dataclass(slots=True)
class SimulatedLink:
    """The state of one interface. ``faulty_down``: a fault holds its link down, even if light arrives.

    ``laser_on``, ``frequency_mhz`` and ``target_power_dbm`` are settings of its module, independent of the interface.
    ``carried_s`` are the seconds with carrier in earlier periods; the present period began at ``up_since``.
    """

    transponder: Transponder
    admin_up: bool = True
    faulty_down: bool = False
    carrier: bool = False
    carrier_changes: int = 0
    carried_s: float = 0.0
    up_since: float = 0.0
    light: Light | None = None
    heard: dict[str, Heard] = field(default_factory=dict)
    laser_on: bool = True
    frequency_mhz: int = ANCHOR_MHZ
    target_power_dbm: float = field(init=False)

    def __post_init__(self) -> None:
        self.target_power_dbm = self.transponder.tx_power_dbm

    def renew(self) -> None:
        """Reset the settings of the interface and its module, and its neighbours."""
        self.admin_up = self.laser_on = True
        self.frequency_mhz, self.target_power_dbm = ANCHOR_MHZ, self.transponder.tx_power_dbm
        self.carrier, self.light = False, None
        self.heard.clear()

    def tune(self, frequency_mhz: int) -> None:
        """Send at another frequency.

        Raises:
            DeviceRefusedError: the frequency is outside the module's range.
        """
        least, most = CHANNELS_MHZ
        if not least <= frequency_mhz <= most:
            raise DeviceRefusedError(f"{self.transponder.id}: {frequency_mhz} MHz is outside {least} to {most} MHz")
        self.frequency_mhz = frequency_mhz

    def send_with(self, dbm: float) -> None:
        """Send with another power.

        Raises:
            DeviceRefusedError: the power is outside the module's range.
        """
        least, most = POWERS_DBM
        if not (math.isfinite(dbm) and least <= dbm <= most):
            raise DeviceRefusedError(f"{self.transponder.id}: {dbm:g} dBm is outside {least:g} to {most:g} dBm")
        self.target_power_dbm = dbm

    def settle(self, light: Light | None, now: float, mark: str) -> None:
        """Take the arriving light. ``mark`` is what the transmitter's lldpd announces in addition to its name.

        Both ends of a link come up at the same time, and lldpd announces itself on every interface that comes up. So a
        frame arrives with the carrier. A lost carrier empties the neighbour table. If light is switched from one
        transmitter to another without a gap, neither happens: the old neighbour stays until its time to live expires.
        """
        self.heard = self.neighbours(now)
        self.light = light
        lit = light is not None and light.power_dbm >= self.transponder.rx_sensitivity_dbm
        carrier = lit and self.admin_up and not self.faulty_down
        if carrier == self.carrier:
            return
        self.carrier = carrier
        self.carrier_changes += 1
        if carrier:
            self.up_since = now
            self.frame(now, mark)
        else:
            self.carried_s += now - self.up_since
            self.heard.clear()

    def frame(self, at: float, mark: str) -> None:
        """Receive a frame of the present transmitter, if the link is up.

        As in lldpd, the age of an entry counts from the last frame with new content.
        """
        if not self.carrier or self.light is None:
            return
        entry = self.heard.get(self.light.source)
        if entry is None:
            self.heard[self.light.source] = Heard(at, at, mark)
            return
        entry.last_at = max(entry.last_at, at)
        if mark != entry.mark:
            entry.mark, entry.changed_at = mark, entry.last_at

    def carried_until(self, now: float) -> float:
        """The seconds with carrier so far."""
        return self.carried_s + (now - self.up_since if self.carrier else 0.0)

    def neighbours(self, now: float) -> dict[str, Heard]:
        """The transponders in the neighbour table whose time to live is not over."""
        return {source: entry for source, entry in self.heard.items() if now - entry.last_at <= LLDP_TTL_S}


Neighbours = tuple[tuple[Transponder, float, str], ...]
"""Transmitter, age (s) and mark of each entry of an interface's neighbour table."""


@dataclass(frozen=True, slots=True)
class InterfaceView:
    """One interface as its host's kernel sees it. ``carried_s``: seconds with carrier since the world was created."""

    transponder: Transponder
    admin_up: bool
    carrier: bool
    carrier_changes: int
    carried_s: float


@dataclass(frozen=True, slots=True)
class LinkView(InterfaceView):
    """One interface as its host sees it. Powers in dBm.

    ``laser_on``, ``frequency_mhz`` and ``target_power_dbm`` are the module's settings.
    """

    tx_power_dbm: float
    rx_power_dbm: float
    temperature_c: float
    neighbours: Neighbours
    laser_on: bool
    frequency_mhz: int
    target_power_dbm: float
