"""From an LLDP neighbour to the transponder it speaks for."""

from lumctl.devices.types import Neighbour
from lumctl.inventory.model import Inventory


def heard_transponder(inventory: Inventory, neighbour: Neighbour) -> str | None:
    """The transponder behind a neighbour's host and interface; ``None`` if the inventory knows no such lane.

    Hosts announce a short or a fully qualified name, as their administrator chose; both are recognised.
    """
    system = _short(neighbour.system)
    for transponder in inventory.transponders.values():
        if transponder.interface == neighbour.port and _short(transponder.host) == system:
            return transponder.id
    return None


def speaks_for_a_host(inventory: Inventory, neighbour: Neighbour) -> bool:
    """Whether a neighbour is a host of the inventory, whatever it calls its port."""
    return any(_short(host) == _short(neighbour.system) for host in inventory.hosts)


def _short(name: str) -> str:
    return name.partition(".")[0].lower()
