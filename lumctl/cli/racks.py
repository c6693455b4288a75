"""Which rack a command means that is about one."""

from typing import TYPE_CHECKING

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory


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
