"""A lock that dies with its process and names it: one daemon for each inventory and target, for each store."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lumctl.errors import RefusedError, UsageError
from lumctl.files import make_private


@contextmanager
def claimed(lock: Path, what: str, *, already: str = "a daemon already watches") -> Iterator[None]:
    """Hold a lock file; it stays behind, unlocked, for a file that is removed could be locked twice.

    Raises:
        RefusedError: another process holds it; it is named.
        UsageError: the file cannot be made.
    """
    try:
        make_private(lock.parent)
        # A link that another user left there would have the file it names overwritten.
        held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UsageError(f"cannot make {lock}: {error.strerror}") from error
    try:
        _take(held, f"{already} {what}")
        with suppress(OSError):  # a full disk: the lock holds all the same, it only names nobody
            os.ftruncate(held, 0)
            os.pwrite(held, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(held)


def held_by(lock: Path) -> int | None:
    """The process that holds a lock file now; ``None`` if nobody does, or that cannot be known."""
    with suppress(OSError, ValueError), lock.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(opened.read(32))
    return None


def _take(held: int, taken: str) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(held, 32, 0).decode(errors="replace")
        raise RefusedError(
            f"{taken} (pid {pid or 'unknown'})", hint=f"end that one first: kill {pid or 'PID'}"
        ) from None
