"""What goes wrong with a store."""

from lumctl.errors import ExitCode, LumctlError
from lumctl.processes import ProcessState


class StoreError(LumctlError):
    """The store cannot be read or written: it is damaged, gone, or held too long, or the disk is full.

    Who meets one has done nothing: what a run had done by then is undone, or said to be half done.
    """

    exit_code = ExitCode.REFUSED

    remedy: str | None = None
    """What makes the store writable again, where that is known: it comes before anything else can be done."""


class StoreFullError(StoreError):
    """The disk has no room."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message, hint=remedy)
        self.remedy = remedy


class StoreHeldError(StoreError):
    """Another process held the write lock for too long. ``process``: which, where it is of this machine and known."""

    def __init__(self, message: str, *, remedy: str, process: ProcessState | None = None) -> None:
        super().__init__(message, hint=f"{remedy}, then repeat this command")
        self.remedy = remedy
        self.process = process


class StoreUnreachableError(StoreError):
    """The database server does not answer, or the connection to it was lost; the next call tries again."""

    exit_code = ExitCode.UNREACHABLE
