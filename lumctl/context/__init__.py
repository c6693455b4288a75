"""A rack, opened: its inventory aimed at the rack or the simulator, with sessions, drivers and store behind it."""

from typing import TYPE_CHECKING, Any

from lumctl.health.observation import Observation, current_role, place_of

if TYPE_CHECKING:
    from lumctl.context.context import Context

__all__ = ["Context", "Observation", "current_role", "place_of"]


def __getattr__(name: str) -> Any:
    """``Context``, on first use: who only reads what another process saw needs neither SSH nor SQL."""
    if name != "Context":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lumctl.context.context import Context  # noqa: PLC0415 - as the docstring says

    return Context
