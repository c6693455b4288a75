"""Jobs are paused before light moves and go on afterwards, by hooks: programs of the operator's own."""

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
