"""Common parts of daemon processes: a lock that names the process, notifications to systemd, and an error log."""

import fcntl
import os
import socket
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.files import make_private

_ATTEMPTS, _PAUSE_S = 100, 0.01
"""How often a lock is tried while others ask who holds it, and how long after each attempt (seconds)."""


@contextmanager
def exclusive_lock(
    lock: Path,
    what: str,
    *,
    already: str = "a daemon already watches",
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[None]:
    """Hold a lock file within the block; the lock ends with the process.

    The file is not removed: two processes could lock a file that is removed and created again.

    Raises:
        RefusedError: another process holds the lock; the message names the process.
        UsageError: the file cannot be created.
    """
    try:
        make_private(lock.parent)
        # O_NOFOLLOW: with a link made by another user, we would overwrite the file that it names.
        held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UsageError(f"cannot make {lock}: {error.strerror}") from error
    try:
        _take(held, f"{already} {what}", pause)
        with suppress(OSError):  # on a full disk the lock still holds, but does not name its process
            os.ftruncate(held, 0)
            os.pwrite(held, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(held)


def lock_holder(lock: Path) -> int | None:
    """The process that holds a lock file now; ``None`` if there is none or it cannot be determined."""
    with suppress(OSError, ValueError), lock.open("rb") as opened:
        try:
            # A shared lock: two processes that ask at once must not take each other for the holder.
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(opened.read(32))
    return None


def _take(held: int, taken: str, pause: Callable[[float], object]) -> None:
    for _ in range(_ATTEMPTS):
        if _lock(held, fcntl.LOCK_EX):
            return
        if not _lock(held, fcntl.LOCK_SH):
            break
        # No process has it: some only ask who does (see lock_holder), each for a moment.
        fcntl.flock(held, fcntl.LOCK_UN)
        pause(_PAUSE_S)
    # Empty while the holder has not written its number yet.
    pid = os.pread(held, 32, 0).decode(errors="replace")
    raise RefusedError(f"{taken} (pid {pid or 'unknown'})", hint=f"stop that daemon first: kill {pid or 'PID'}")


def _lock(held: int, kind: int) -> bool:
    """Whether the lock could be taken without waiting."""
    try:
        fcntl.flock(held, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def notify_systemd(state: str) -> None:
    """Send ``READY=1``, ``WATCHDOG=1`` or ``STOPPING=1`` to systemd, if it started this process and requested that."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        # systemd writes the zero byte that begins an abstract address as @.
        channel.sendto(state.encode(), address.replace("@", "\0", 1) if address.startswith("@") else address)


class ErrorLog:
    """The daemon's own errors. Each kind is reported once until it has ended, and counted each time. Thread-safe."""

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
        """Report that errors in this place have ended."""
        with self._lock:
            over = {key: count for key, count in self._open.items() if key[0] == where}
            for key in over:
                del self._open[key]
        if over:
            self._say(f"{where}: ok again after {sum(over.values())} failures")

    def counts(self) -> dict[tuple[str, str], int]:
        """How often each kind of error occurred, by place and kind."""
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
