"""Which rack a component belongs to, and so which store speaks of it."""

from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit


def rack_of(inventory: Inventory, component: str, circuits: tuple[Circuit, ...] = ()) -> str | None:
    """The rack of a component, of a circuit among those given, or of a rack itself; ``None`` if it is none of them."""
    if component in inventory.racks:
        return component
    for group in (inventory.hosts, inventory.accelerators, inventory.devices):
        if component in group:
            return group[component].rack
    if component in inventory.transponders:
        return inventory.hosts[inventory.transponders[component].host].rack
    return next((inventory.devices[c.device].rack for c in circuits if c.id == component), None)
