"""Find the component that an operator means, or the nearest one."""

from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest_name, require_known

if TYPE_CHECKING:
    from lumctl.context import Context
    from lumctl.inventory.model import Inventory
    from lumctl.inventory.wiring import Circuit


def circuits(context: "Context") -> "tuple[Circuit, ...]":
    """The circuits that jobs need where they run now, from the store; hosts and devices are not contacted."""
    from lumctl.inventory.wiring import circuits_of

    return circuits_of(context.inventory, context.assignment())


def rack_of_named(inventory: "Inventory", name: str, among: "tuple[Circuit, ...]") -> str:
    """The rack to which a component or a circuit belongs; for a rack's name, that rack.

    Raises:
        UsageError: nothing has that name, or it names a job.
    """
    from lumctl.health.observation import rack_of

    rack = rack_of(inventory, name, among)
    if rack is None and name in inventory.jobs:
        raise UsageError(f"{name} is a job: name one of its components", hint=f"see: lumctl job show {name}")
    if rack is None:
        groups = (inventory.accelerators, inventory.hosts, inventory.transponders, inventory.devices, inventory.racks)
        names = [*(known for group in groups for known in group), *inventory.fibres, *(c.id for c in among)]
        near = nearest_name(name, names)
        raise UsageError(
            f"no component {name!r} in {inventory.path}",
            hint=f"did you mean {near}?" if near else "see: lumctl status -o wide",
        )
    return rack


def one_rack(inventory: "Inventory", named: str | None) -> str:
    """The rack that was named; without a name, the only rack of the inventory.

    Raises:
        UsageError: no rack has that name, or there are several racks and none was named.
    """
    racks = list(inventory.racks)
    if named is None and len(racks) == 1:
        return racks[0]
    if named is None:
        raise UsageError("the inventory has several racks", hint=f"name one: {', '.join(racks)}")
    require_known("rack", [named], racks)
    return named
