"""The drivers that an inventory names, and those of them that are not installed."""

from collections.abc import Iterable

from lumctl.devices.drivers import installed
from lumctl.inventory.folding import fold
from lumctl.inventory.hints import nearest
from lumctl.inventory.model import Inventory

_FEW = 3


def users_of_drivers(inventory: Inventory) -> dict[str, list[str]]:
    """The devices and transponders that use each driver."""
    users: dict[str, list[str]] = {}
    for device in inventory.devices.values():
        users.setdefault(device.driver, []).append(device.id)
    for lane in inventory.transponders.values():
        users.setdefault(lane.driver, []).append(lane.id)
    return users


def not_installed(inventory: Inventory) -> dict[str, tuple[str, str]]:
    """By name each driver that is not installed: who wants it, in words, and what to do."""
    there = sorted({info.name for info in installed()})
    missing = {}
    for driver, users in users_of_drivers(inventory).items():
        if driver not in there:
            near = nearest(driver, there)
            advice = (f"did you mean {near}? " if near else "") + f"installed: {', '.join(there) or 'none'}"
            missing[driver] = (f"{inventory.path} names it for {few(users)}, and it is not installed here", advice)
    return missing


def few(names: Iterable[str]) -> str:
    """Names, folded, and no more than a few of them."""
    folded = fold(names)
    return ", ".join(folded[:_FEW]) + (f" and {len(folded) - _FEW} more" if len(folded) > _FEW else "")
