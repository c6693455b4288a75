"""Hooks of a job: it is paused before light moves and resumed afterwards, by an operator's programs or a plug-in."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lumctl.jobs.hooks import (
        QUIET,
        RUNNING,
        HookFailedError,
        HookRefusedError,
        Hooks,
        by_hand,
        passed_over,
        require_hooks,
        without_hook,
    )

__all__ = [
    "QUIET",
    "RUNNING",
    "HookFailedError",
    "HookRefusedError",
    "Hooks",
    "by_hand",
    "passed_over",
    "require_hooks",
    "without_hook",
]


def __getattr__(name: str) -> Any:
    """Import the hooks when one is first used: they need the inventory, which loads the kinds of job control here."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lumctl.jobs import hooks  # noqa: PLC0415 - as the docstring says

    return getattr(hooks, name)
