"""Finding the component that an operator means, or the nearest one."""

import re
from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from lumctl.context import Context
    from lumctl.inventory.model import Inventory
    from lumctl.inventory.wiring import Circuit


def circuits(context: "Context") -> "tuple[Circuit, ...]":
    """The circuits that jobs need where they run now; no host or device is asked."""
    from lumctl.inventory.wiring import circuits_of

    return circuits_of(context.inventory, context.assignment())


def rack_of_named(inventory: "Inventory", name: str, among: "tuple[Circuit, ...]") -> str:
    """The rack of a component, a circuit or a rack.

    Raises:
        UsageError: there is none of that name.
    """
    from lumctl.health.observation import rack_of

    rack = rack_of(inventory, name, among)
    if rack is None and name in inventory.jobs:
        raise UsageError(f"{name} is a job: name one of its components", hint=f"see: lumctl job show {name}")
    if rack is None:
        groups = (inventory.accelerators, inventory.hosts, inventory.transponders, inventory.devices, inventory.racks)
        names = [*(known for group in groups for known in group), *(c.id for c in among)]
        # h3-gpu2 is h03-gpu2 before it is h13-gpu2, and a cell of a mesh is looked for at the mesh.
        alike = (known for known in names if _unpadded(known) == _unpadded(name) or name.startswith(f"{known}/"))
        near = next(alike, None) or nearest(name, names)
        raise UsageError(
            f"no component {name!r} in {inventory.path}",
            hint=f"did you mean {near}?" if near else "see: lumctl status -o wide",
        )
    return rack


def _unpadded(name: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", name)


def one_rack(inventory: "Inventory", named: str | None) -> str:
    """The rack that was named, or the only one there is.

    Raises:
        UsageError: there is none of that name, or there are several and none was named.
    """
    racks = list(inventory.racks)
    if named is None and len(racks) == 1:
        return racks[0]
    if named is None:
        raise UsageError("the inventory has several racks", hint=f"name one: {', '.join(racks)}")
    if named not in racks:
        near = nearest(named, racks)
        raise UsageError(
            f"the inventory has no rack {named!r}",
            hint=f"did you mean {near}?" if near else f"it has {', '.join(racks)}",
        )
    return named
