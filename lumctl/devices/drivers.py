"""Drivers that are installed, found by their entry points; listing them imports none, naming one imports it alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lumctl.devices.protocols import PROTOCOLS, Driver
from lumctl.devices.types import Capability
from lumctl.errors import UsageError
from lumctl.inventory.hints import nearest

GROUP = "lumctl.drivers"
API_VERSION = 1
KINDS = tuple(PROTOCOLS)


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """What a package says of a driver it offers. ``target`` is ``module:attribute``; nothing of it was imported."""

    name: str
    target: str
    distribution: str
    version: str

    @property
    def origin(self) -> str:
        """The package and its version, as an error names them."""
        return f"{self.distribution} {self.version}"


_METHODS = {
    kind: {name for name in dir(protocol) if not name.startswith("_") and callable(getattr(protocol, name))}
    for kind, protocol in PROTOCOLS.items()
}


def installed() -> tuple[DriverInfo, ...]:
    """Every driver that some installed package offers, by name, from package metadata alone."""
    found = {_info(point) for point in entry_points(group=GROUP)}
    return tuple(sorted(found, key=lambda info: (info.name, info.distribution)))


def load(name: str) -> type[Driver]:
    """Import the driver of that name and check that this program can use it.

    Raises:
        UsageError: there is none of that name, two packages offer it, it does not import, or it is not a driver.
    """
    # Only what offers it: to read what every package says of itself takes many times as long.
    offers = sorted({_info(point) for point in entry_points(group=GROUP, name=name)}, key=lambda i: i.distribution)
    if not offers:
        raise _unknown(name)
    if len(offers) > 1:
        origins = " and ".join(info.origin for info in offers)
        raise UsageError(f"driver {name!r} is offered twice, by {origins}", hint="uninstall one of them")
    return _imported(offers[0])


def _imported(info: DriverInfo) -> type[Driver]:
    """Import one driver; whatever a plug-in raises becomes one line that says whose fault it is."""
    try:
        found = EntryPoint(info.name, info.target, GROUP).load()
    except (Exception, SystemExit) as error:  # a plug-in may raise anything at import
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(
            f"driver {info.name!r} of {info.origin} does not import: {reason}",
            hint=f"install what it needs, or uninstall {info.distribution}",
        ) from error
    wrong = _complaint(found)
    if wrong:
        raise UsageError(
            f"driver {info.name!r} of {info.origin} {wrong}", hint=f"upgrade {info.distribution} or lumctl"
        )
    driver: type[Driver] = found
    return driver


def _complaint(found: object) -> str | None:
    if not isinstance(found, type):
        return "is not a class"
    version = getattr(found, "api_version", None)
    if version != API_VERSION:
        return f"is made for driver API {version}, this program has {API_VERSION}"
    kind = getattr(found, "kind", None)
    if kind not in KINDS:
        return f"is of kind {kind!r}, which is none of: {', '.join(KINDS)}"
    capabilities: Any = getattr(found, "capabilities", None)
    if not isinstance(capabilities, frozenset) or not all(isinstance(each, Capability) for each in capabilities):
        return "does not declare its capabilities as a frozenset of Capability"
    missing = sorted(name for name in _METHODS[kind] if not callable(getattr(found, name, None)))
    return f"lacks {', '.join(missing)}" if missing else None


def _unknown(name: str) -> UsageError:
    names = [info.name for info in installed()]
    near = nearest(name, names)
    meant = f"did you mean {near}? " if near else ""
    return UsageError(f"no driver {name!r} is installed", hint=f"{meant}installed: {_listed(names)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _info(point: EntryPoint) -> DriverInfo:
    package = point.dist
    return DriverInfo(
        name=point.name,
        target=point.value,
        distribution=package.name if package else "unknown",
        version=package.version if package else "unknown",
    )
