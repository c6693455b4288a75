"""Installed drivers, found by their entry points. Listing imports none; loading one imports only that one."""

from collections.abc import Iterable, Mapping
from typing import Any

from lumctl.api_versions import Api, Misfit
from lumctl.containment import Culprit
from lumctl.devices.protocols import PROTOCOLS, Driver
from lumctl.devices.types import Capability
from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import Inventory
from lumctl.inventory.problems import nearest
from lumctl.offers import Offer as DriverInfo
from lumctl.offers import offered, the_offer, usable

__all__ = ["API_VERSION", "GROUP", "KINDS", "DriverInfo", "culprit", "installed", "load"]
GROUP = "lumctl.drivers"
API_VERSION = 1
API = Api("driver API", API_VERSION, "lumctl-driver(7)")
"""Adapters of older versions belong here; there is no older version yet."""
KINDS = tuple(PROTOCOLS)
_UPGRADE = "upgrade {package} or lumctl"
_LATER = {"read_progress": Capability.PROGRESS}
"""Calls that were added to this API later: only drivers that declare the capability must have them."""
_METHODS = {
    kind: {name for name in dir(protocol) if not name.startswith("_") and callable(getattr(protocol, name))}
    for kind, protocol in PROTOCOLS.items()
}
_FEW = 3


def installed() -> tuple[DriverInfo, ...]:
    """Every driver that an installed package offers, sorted by name, from package metadata alone."""
    return offered(GROUP)


def load(name: str) -> type[Driver]:
    """Import the driver of that name and check that this program can use it.

    Raises:
        UsageError: no driver has that name, two packages offer it, it does not import, or it is not a driver.
    """
    driver: type[Driver] = usable(GROUP, name, "driver", _fitted)
    return driver


def culprit(name: str) -> Culprit:
    """The name of a driver as error messages show it."""
    return the_offer(GROUP, name, "driver").culprit("driver")


def _fitted(found: object) -> type | Misfit:
    if not isinstance(found, type):
        return Misfit("is not a class", _UPGRADE)
    fitted = API.fitted(found)
    if isinstance(fitted, Misfit):
        return fitted
    wrong = _complaint(fitted)
    return Misfit(wrong, _UPGRADE) if wrong else fitted


def _complaint(found: type) -> str | None:
    kind = getattr(found, "kind", None)
    if kind not in KINDS:
        return f"has kind {kind!r}, which is not one of: {', '.join(KINDS)}"
    capabilities: Any = getattr(found, "capabilities", None)
    if not isinstance(capabilities, frozenset) or not all(isinstance(each, Capability) for each in capabilities):
        return "does not declare its capabilities as a frozenset of Capability"
    slow = getattr(found, "slow_calls", {})
    if not isinstance(slow, Mapping) or not all(isinstance(each, int | float) for each in slow.values()):
        return "does not state slow_calls as a mapping from call names to seconds"
    unasked = {call for call, capability in _LATER.items() if capability not in capabilities}
    missing = sorted(name for name in _METHODS[kind] - unasked if not callable(getattr(found, name, None)))
    return f"lacks {', '.join(missing)}" if missing else None


def users_of_drivers(inventory: Inventory) -> dict[str, list[str]]:
    """The devices and transponders that use each driver."""
    users: dict[str, list[str]] = {}
    for device in inventory.devices.values():
        users.setdefault(device.driver, []).append(device.id)
    for lane in inventory.transponders.values():
        users.setdefault(lane.driver, []).append(lane.id)
    return users


def not_installed(inventory: Inventory) -> dict[str, tuple[str, str]]:
    """Each driver that is not installed, by name: what needs it, in words, and what to do."""
    there = sorted({info.name for info in installed()})
    missing = {}
    for driver, users in users_of_drivers(inventory).items():
        if driver not in there:
            near = nearest(driver, there)
            advice = (f"did you mean {near}? " if near else "") + f"installed: {', '.join(there) or 'none'}"
            missing[driver] = (f"{inventory.path} uses it for {few(users)}, but it is not installed here", advice)
    return missing


def few(names: Iterable[str]) -> str:
    """The first few of these names, folded, and the number of the others."""
    folded = fold(names)
    return ", ".join(folded[:_FEW]) + (f" and {len(folded) - _FEW} more" if len(folded) > _FEW else "")
