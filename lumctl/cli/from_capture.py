"""``check --from-capture``: judging saved outputs of hosts, away from the rack."""

from pathlib import Path
from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation
from lumctl.errors import LumctlError

if TYPE_CHECKING:
    from lumctl.context import Observation
    from lumctl.inventory.model import Inventory


def captured(cx: Invocation, folder: Path) -> "Observation":
    """Judge a capture: by the inventory where it was named or knows a host of it, else by what the files show.

    Raises:
        UsageError: the folder or a named inventory cannot be read.
    """
    from lumctl.context.capture import observe_capture, remarks

    inventory = _inventory(cx)
    observation = observe_capture(folder, inventory)
    for remark in remarks(folder, inventory):
        cx.out.narrate(remark)
    return observation


def _inventory(cx: Invocation) -> "Inventory | None":
    """The inventory. One in a usual place must not hinder a capture from elsewhere."""
    if cx.inventory_path is not None:
        return cx.inventory
    try:
        return cx.inventory
    except LumctlError as error:
        cx.out.detail(f"judged without an inventory: {error.message}")
        return None
