"""The API version of a plug-in: its author states it, and lumctl checks it before it uses the plug-in.

A version inherited from another package proves nothing: it changes when that package is upgraded, although the plug-in
has not changed. So a class must state ``api_version`` itself or inherit it from its own package.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Adapter = Callable[[type], type]
"""Adapts a class written for an older version to the current one."""


class Misfit(NamedTuple):
    """Why a plug-in cannot be used, and what to do. ``{package}`` in the hint is replaced by its distribution."""

    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class Api:
    """One plug-in API. ``adapters`` maps each older version that is still supported to its adapter."""

    name: str
    version: int
    page: str
    adapters: Mapping[int, Adapter] = field(default_factory=dict)

    def fitted(self, found: type) -> type[Any] | Misfit:
        """The class, adapted if necessary, or why it cannot be used."""
        stated = _stated(found)
        if stated is None:
            return Misfit(
                f"does not state its {self.name} version: {found.__module__}.{found.__qualname__} has no api_version "
                "of its own",
                "install another version of {package}, or ask its author to write "
                f"`api_version: ClassVar[int] = {self.version}` in that class, see {self.page}",
            )
        # A bool is an int in Python: ``api_version = True`` would pass for version 1.
        if isinstance(stated, bool) or not isinstance(stated, int):
            return Misfit(
                f"states {self.name} version {str(stated)[:40]!r}, which is not a whole number",
                f"ask the author of {{package}} to correct api_version, see {self.page}",
            )
        if stated == self.version:
            return found
        if stated in self.adapters:
            return self.adapters[stated](found)
        text = f"was written for {self.name} version {stated}; lumctl has version {self.version}"
        if stated > self.version:
            return Misfit(text, "upgrade lumctl, or install an older version of {package}")
        return Misfit(text, "upgrade {package}: pip install --upgrade {package}")


def _stated(found: type) -> object:
    """The version stated by the class or a base class of its own package; ``None`` if only other packages state one."""
    package = found.__module__.partition(".")[0]
    # The first class that states a version decides, even a foreign one: it overrides those after it.
    for each in found.__mro__:
        if "api_version" in vars(each):
            own = each is found or each.__module__.partition(".")[0] == package
            return vars(each)["api_version"] if own else None
    return None
