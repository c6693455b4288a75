"""What a reader is shown of a simulated interface."""

from dataclasses import dataclass

from lumctl.inventory.model import Transponder

Neighbours = tuple[tuple[Transponder, float, str], ...]
"""Transmitter, age (s) and mark of each entry of an interface's neighbour table."""


@dataclass(frozen=True, slots=True)
class InterfaceView:
    """One interface as its host's kernel sees it. ``carried_s``: seconds with carrier since the world began."""

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
