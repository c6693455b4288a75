"""What goes wrong with a store."""

from lumctl.errors import ExitCode, LumctlError


class StoreError(LumctlError):
    """The store cannot be read or written: it is damaged, gone, or held too long, or the disk is full.

    Who meets one has done nothing: what a run had done by then is taken back, or said to be half done.
    """

    exit_code = ExitCode.REFUSED


class StoreUnreachableError(StoreError):
    """The database server does not answer, or the connection to it was lost; the next call tries again."""

    exit_code = ExitCode.UNREACHABLE
