"""What a command works on: an inventory, the target (rack or simulator), sessions, drivers and stores."""

from typing import TYPE_CHECKING, Any

from lumctl.health.observation import Observation, current_role, place_of

if TYPE_CHECKING:
    from lumctl.context.context import Context

__all__ = ["Context", "Observation", "current_role", "place_of"]


def __getattr__(name: str) -> Any:
    """Import ``Context`` on first use: code that only reads another process's observation needs no SSH and no SQL."""
    if name != "Context":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lumctl.context.context import Context  # noqa: PLC0415 - as the docstring says

    return Context
