"""A rack, opened: its inventory aimed at the rack or the simulator, with sessions, drivers and store behind it."""

from typing import TYPE_CHECKING, Any

from lumctl.site.observation import Observation, current_role, place_of

if TYPE_CHECKING:
    from lumctl.site.site import Site

__all__ = ["Observation", "Site", "current_role", "place_of"]


def __getattr__(name: str) -> Any:
    """``Site``, when it is first asked for: whoever only reads what another process saw needs neither SSH nor SQL."""
    if name != "Site":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lumctl.site.site import Site  # noqa: PLC0415 - as the docstring says

    return Site
