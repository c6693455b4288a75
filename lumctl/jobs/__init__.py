"""Hooks of a job: the operator's programs, or a plug-in, that pause it before light moves and resume it afterwards."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lumctl.jobs.hooks import (
        QUIET,
        RUNNING,
        HookFailedError,
        HookRefusedError,
        Hooks,
        by_hand,
        jobs_to_resume,
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
    "jobs_to_resume",
    "passed_over",
    "require_hooks",
    "without_hook",
]


def __getattr__(name: str) -> Any:
    """Import the hooks on first use: they need the inventory, and the inventory loads the kinds of job control here."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lumctl.jobs import hooks  # noqa: PLC0415 - as the docstring says

    return getattr(hooks, name)
