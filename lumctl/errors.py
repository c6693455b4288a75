"""Every error that a user may see, with its exit code.

A domain error is one line (``message``) and optionally a ``hint`` that says what to do. The command line
prints both and exits with ``exit_code``; a traceback on a user's screen is a bug.
"""

import re
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of commands, as a shell script reads them from ``$?``."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    UNREACHABLE = 3
    UNHEALTHY = 4
    REFUSED = 5
    ROLLED_BACK = 6
    HALF_DONE = 7
    INTERRUPTED = 130


class LumctlError(Exception):
    """The root of all domain errors."""

    exit_code: ExitCode = ExitCode.UNEXPECTED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(LumctlError):
    """The command, the inventory or the configuration is wrong."""

    exit_code = ExitCode.USAGE


class UnreachableError(LumctlError):
    """A host, a device or the simulator could not be reached."""

    exit_code = ExitCode.UNREACHABLE


class RefusedError(LumctlError):
    """Nothing was done: a precondition, a stale plan, a lock or a policy forbids it."""

    exit_code = ExitCode.REFUSED


class RunError(LumctlError):
    """A run did not end as planned; ``run`` is its id."""

    def __init__(self, message: str, *, run: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.run = run


class RolledBackError(RunError):
    """A change failed and everything it did was undone: the rack is as before."""

    exit_code = ExitCode.ROLLED_BACK


class HalfDoneError(RunError):
    """A change stopped half way and could not be undone: an operator must check the rack."""

    exit_code = ExitCode.HALF_DONE


def unresolved(host: str) -> str:
    """The reason of a failed connection whose name has no address, so that nothing was asked."""
    return f"name {host!r} cannot be resolved"


def is_unresolved(reason: str) -> bool:
    """Whether a reason is :func:`unresolved`; devices say that other things cannot be resolved."""
    return re.search(r"\bname (['\"]).*\1 cannot be resolved", reason) is not None
