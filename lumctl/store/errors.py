"""The errors of a store."""

from lumctl.errors import ExitCode, LumctlError
from lumctl.processes import ProcessState


class StoreError(LumctlError):
    """The store cannot be read or written: it is damaged, missing, or locked too long, or the disk is full.

    A command that fails with it has changed nothing. A run that fails with it is undone, or reported as half done.
    """

    exit_code = ExitCode.REFUSED

    remedy: str | None = None
    """What makes the store writable again, if that is known; nothing else can be done before that."""


class StoreFullError(StoreError):
    """The disk has no room."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message, hint=remedy)
        self.remedy = remedy


class StoreHeldError(StoreError):
    """Another process held the write lock for too long: ``process``, if it is known and runs on this machine."""

    def __init__(self, message: str, *, remedy: str, process: ProcessState | None = None) -> None:
        super().__init__(message, hint=f"{remedy}, then repeat this command")
        self.remedy = remedy
        self.process = process


class StoreUnreachableError(StoreError):
    """The database server does not answer, or the connection to it was lost; the next call tries again."""

    exit_code = ExitCode.UNREACHABLE
