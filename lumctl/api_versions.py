"""The version of an API that a plug-in was written for: stated by its author, and checked before the plug-in is used.

A version that a class inherits from another package says nothing: that package moves on when it is upgraded, and the
plug-in would claim to follow. So a class states ``api_version`` itself, or inherits it from its own package.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Adapter = Callable[[type], type]
"""Makes of a class for an older version one that this program can use."""


class Misfit(NamedTuple):
    """Why a plug-in cannot be used, and what to do; ``{package}`` in the hint is the distribution that offers it."""

    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class Api:
    """One API of plug-ins. ``adapters`` hold for each older version that can still be used what makes it current."""

    name: str
    version: int
    page: str
    adapters: Mapping[int, Adapter] = field(default_factory=dict)

    def fitted(self, found: type) -> type[Any] | Misfit:
        """The class as this program can use it, or why it cannot."""
        stated = _stated(found)
        if stated is None:
            return Misfit(
                f"does not state its {self.name} version: {found.__module__}.{found.__qualname__} has no api_version "
                "of its own",
                f"its author writes `api_version: ClassVar[int] = {self.version}` in that class, see {self.page}; "
                "until then, install another version of {package}",
            )
        if isinstance(stated, bool) or not isinstance(stated, int):
            return Misfit(
                f"states {self.name} version {str(stated)[:40]!r}, which is not a whole number",
                f"its author corrects api_version, see {self.page}",
            )
        if stated == self.version:
            return found
        if stated in self.adapters:
            return self.adapters[stated](found)
        text = f"is made for {self.name} {stated}, this program has {self.version}"
        if stated > self.version:
            return Misfit(text, "upgrade lumctl, or install an older version of {package}")
        return Misfit(text, "upgrade {package}: pip install --upgrade {package}")


def _stated(found: type) -> object:
    """What the class, or a base class of its own package, states; ``None`` where only other packages state it."""
    package = found.__module__.partition(".")[0]
    for each in found.__mro__:
        if "api_version" in vars(each):
            own = each is found or each.__module__.partition(".")[0] == package
            return vars(each)["api_version"] if own else None
    return None
