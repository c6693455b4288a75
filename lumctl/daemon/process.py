"""What every daemon process needs: a lock that names it, notifications to systemd, and a log of its own errors."""

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
    """Hold a lock file while inside; the lock ends with the process.

    The file stays: one that is removed could be locked twice.

    Raises:
        RefusedError: another process holds it; the message names the process.
        UsageError: the file cannot be made.
    """
    try:
        make_private(lock.parent)
        # O_NOFOLLOW: a link that another user put there would have us overwrite the file it names.
        held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UsageError(f"cannot make {lock}: {error.strerror}") from error
    try:
        _take(held, f"{already} {what}")
        with suppress(OSError):  # on a full disk the lock still holds, but does not name its process
            os.ftruncate(held, 0)
            os.pwrite(held, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(held)


def lock_holder(lock: Path) -> int | None:
    """The process that holds a lock file now; ``None`` if none does or it cannot be determined."""
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
    """Send ``READY=1``, ``WATCHDOG=1`` or ``STOPPING=1`` to systemd, if it started this process and asked for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(state.encode(), address.replace("@", "\0", 1) if address.startswith("@") else address)


class ErrorLog:
    """The daemon's own errors: reported once for each kind until it is over, counted each time. Thread-safe."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._open: Counter[tuple[str, str]] = Counter()
        self._counts: Counter[tuple[str, str]] = Counter()

    def record(self, where: str, error: Exception) -> None:
        """Count an error; report the first of its kind."""
        kind = type(error).__name__
        with self._lock:
            self._counts[where, kind] += 1
            self._open[where, kind] += 1
            first = self._open[where, kind] == 1
        if first:
            self._say(f"{where}: {_one_line(error)}")

    def resolve(self, where: str) -> None:
        """Report that errors in this place are over."""
        with self._lock:
            over = {key: count for key, count in self._open.items() if key[0] == where}
            for key in over:
                del self._open[key]
        if over:
            self._say(f"{where}: ok again after {sum(over.values())} failures")

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
