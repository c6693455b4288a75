"""Plug-ins of installed packages, found by entry points. Listing imports nothing; loading one imports only that one."""

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lumctl.api_versions import Misfit
from lumctl.containment import Culprit, LateError, MisbehavedError, contained, in_turn
from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest

JOB_KINDS = "lumctl.jobs"
"""The entry point group of kinds of job control."""
PROBES = "lumctl.probes"
"""The entry point group of probes of accelerators."""
SHARING = "lumctl.sharing"
"""The entry point group of sharing policies."""
IMPORT_WITHIN_S = 5.0

_hanging: dict[tuple[str, str], Future[Any]] = {}
"""Imports that were abandoned; another attempt would wait for the same import lock."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The metadata of one offered plug-in. ``target`` is ``module:attribute``, which was not imported."""

    name: str
    target: str
    distribution: str
    version: str

    def culprit(self, what: str) -> Culprit:
        """The plug-in as errors name it; ``what`` is its category (``driver``)."""
        return Culprit(what, self.name, self.origin)

    @property
    def origin(self) -> str:
        """The package and its version, as an error names them."""
        return f"{self.distribution} {self.version}"


def offered(group: str) -> tuple[Offer, ...]:
    """All offers of installed packages in a group, sorted by name, from package metadata alone."""
    found = {_offer(point) for point in entry_points(group=group)}
    return tuple(sorted(found, key=lambda offer: (offer.name, offer.distribution)))


def the_offer(group: str, name: str, what: str) -> Offer:
    """The one offer of that name; ``what`` is its category in errors.

    Raises:
        UsageError: no plug-in has that name, or two packages offer it.
    """
    offers = _offers_of(group, name, tuple(sys.path))
    if not offers:
        names = [offer.name for offer in offered(group)]
        near = nearest(name, names)
        meant = f"did you mean {near}? " if near else ""
        raise UsageError(f"no {what} {name!r} is installed", hint=f"{meant}installed: {_listed(names)}")
    if len(offers) > 1:
        origins = " and ".join(offer.origin for offer in offers)
        raise UsageError(f"{what} {name!r} is offered twice, by {origins}", hint="uninstall one of them")
    return offers[0]


@cache
def _offers_of(group: str, name: str, _path: tuple[str, ...]) -> tuple[Offer, ...]:
    """The offers of a name, read once for each ``sys.path``: each device of a rack that is opened asks for its own."""
    # Read only the packages that offer this name: the metadata of all packages takes many times as long.
    found = {_offer(point) for point in entry_points(group=group, name=name)}
    return tuple(sorted(found, key=lambda offer: offer.distribution))


def imported(group: str, offer: Offer, what: str) -> object:
    """Import an offered plug-in; any error that it raises becomes one line that names the plug-in.

    Raises:
        UsageError: the plug-in does not import.
    """
    key = (group, offer.target)
    hangs = _hanging.get(key)
    try:
        if hangs is not None and not hangs.done():
            raise LateError(offer.culprit(what), "its import", IMPORT_WITHIN_S, hangs)
        found: object = contained(offer.culprit(what), "its import", lambda: _loaded(group, offer), IMPORT_WITHIN_S)
    except MisbehavedError as error:
        if isinstance(error, LateError):
            _hanging[key] = error.late
        raise UsageError(
            f"{what} {offer.name!r} of {offer.origin} does not import: {error.what.removeprefix('raised ')}",
            hint=f"install what it needs, or uninstall {offer.distribution}",
        ) from error
    return found


def _loaded(group: str, offer: Offer) -> object:
    package = offer.target.partition(":")[0].partition(".")[0]
    # If modules import each other, two threads that import them at once may each see a half-imported module.
    with in_turn(package):
        return EntryPoint(offer.name, offer.target, group).load()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _offer(point: EntryPoint) -> Offer:
    package = point.dist
    return Offer(
        name=point.name,
        target=point.value,
        distribution=package.name if package else "unknown",
        version=package.version if package else "unknown",
    )


def usable(group: str, name: str, what: str, fitted: Callable[[object], type | Misfit]) -> Any:
    """Import the plug-in of a name; ``fitted`` returns the object to use, or why it cannot be used.

    Raises:
        UsageError: no plug-in has that name, two packages offer it, it does not import, or it does not fit.
    """
    offer = the_offer(group, name, what)
    declared = imported(group, offer, what)
    try:
        # Contained as well: reading attributes of a plug-in's class may run code of the plug-in.
        found = contained(offer.culprit(what), "its declaration", lambda: fitted(declared), IMPORT_WITHIN_S)
    except MisbehavedError as error:
        raise UsageError(error.message, hint=f"uninstall {offer.distribution}") from error
    if isinstance(found, Misfit):
        raise UsageError(
            f"{what} {offer.name!r} of {offer.origin} {found.text}",
            hint=found.hint.replace("{package}", offer.distribution),
        )
    return found
