"""A lock that dies with its process and names it: one daemon for each inventory and target, for each store."""

import fcntl
import os
import socket
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.files import make_private


@contextmanager
def exclusive_lock(lock: Path, what: str, *, already: str = "a daemon already watches") -> Iterator[None]:
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


def lock_holder(lock: Path) -> int | None:
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


def notify_systemd(state: str) -> None:
    """Send ``READY=1``, ``WATCHDOG=1`` or ``STOPPING=1`` to whoever started us, if they asked for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), address.replace("@", "\0", 1) if address.startswith("@") else address)


class ErrorLog:
    """Kinds of trouble by where they arose. May be used from any thread."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._open: Counter[tuple[str, str]] = Counter()
        self._counts: Counter[tuple[str, str]] = Counter()

    def arose(self, where: str, error: Exception) -> None:
        """Count an error; the first of its kind since all was well is told."""
        kind = type(error).__name__
        with self._lock:
            self._counts[where, kind] += 1
            self._open[where, kind] += 1
            first = self._open[where, kind] == 1
        if first:
            self._say(f"{where}: {_one_line(error)}")

    def passed(self, where: str) -> None:
        """What was in trouble here is well again."""
        with self._lock:
            over = {key: count for key, count in self._open.items() if key[0] == where}
            for key in over:
                del self._open[key]
        if over:
            self._say(f"{where}: well again after {sum(over.values())} failures")

    def counts(self) -> dict[tuple[str, str], int]:
        """How often each kind of error arose, by place and kind."""
        with self._lock:
            return dict(self._counts)


def _one_line(error: Exception) -> str:
    if os.environ.get("LUMCTL_TRACEBACK"):
        return "".join(traceback.format_exception(error))
    if isinstance(error, LumctlError):
        return f"{error.message} (hint: {error.hint})" if error.hint else error.message
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"unexpected {type(error).__name__}: {error}{place}"
