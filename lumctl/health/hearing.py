"""From an LLDP neighbour to the transponder it speaks for."""

from lumctl.devices.types import Neighbour
from lumctl.inventory.model import Inventory


def heard_transponder(inventory: Inventory, neighbour: Neighbour) -> str | None:
    """The transponder behind a neighbour's host and interface; ``None`` if the inventory knows no such lane.

    Hosts announce a short or a fully qualified name, as their administrator chose; both are recognised.
    """
    system = neighbour.system.split(".")[0].lower()
    for transponder in inventory.transponders.values():
        if transponder.interface == neighbour.port and _short(inventory, transponder.host) == system:
            return transponder.id
    return None


def _short(inventory: Inventory, host: str) -> str:
    return inventory.hosts[host].name.split(".")[0].lower()
