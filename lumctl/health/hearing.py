"""From an LLDP neighbour to the transponder it speaks for."""

from lumctl.devices.types import Neighbour
from lumctl.inventory.model import Inventory


class Lanes:
    """The lanes of an inventory by what their hosts announce.

    Hosts announce a short or a fully qualified name, as their administrator chose; both are recognised.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._hosts = {_short(host) for host in inventory.hosts}
        self._lanes: dict[tuple[str, str], str] = {}
        for transponder in inventory.transponders.values():
            self._lanes.setdefault((_short(transponder.host), transponder.interface), transponder.id)

    def transponder(self, neighbour: Neighbour) -> str | None:
        """The transponder behind a neighbour's host and interface; ``None`` if the inventory knows no such lane."""
        return self._lanes.get((_short(neighbour.system), neighbour.port))

    def knows_host(self, neighbour: Neighbour) -> bool:
        """Whether a neighbour is a host of the inventory, whatever it calls its port."""
        return _short(neighbour.system) in self._hosts


def heard_transponder(inventory: Inventory, neighbour: Neighbour) -> str | None:
    """The transponder behind one neighbour; whoever asks for many makes :class:`Lanes` once."""
    return Lanes(inventory).transponder(neighbour)


def _short(name: str) -> str:
    return name.partition(".")[0].lower()
