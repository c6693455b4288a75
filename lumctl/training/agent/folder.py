"""The private folder of a job on one host: the agent's socket, its lock, its records of workers, and their logs."""

import fcntl
import os
import socket
import stat
import string
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lumctl import sockets
from lumctl.errors import RefusedError, UsageError

SOCKET, LOCK, RECORDS, ERRORS = "agent", "lock", "workers.json", "errors"
LONGEST_SOCKET_BYTES = 107
"""``sun_path`` of unix(7) without the zero at its end."""
WAITING = 128
"""How many connections may wait to be accepted."""
_PLAIN = frozenset(string.ascii_letters + string.digits + "-_.#")


@dataclass(frozen=True, slots=True)
class Folder:
    """The paths of a job's files on this host."""

    path: Path

    @property
    def socket(self) -> Path:
        """The Unix socket on which coordinator and workers reach the agent."""
        return self.path / SOCKET

    @property
    def records(self) -> Path:
        """The workers that the agent has started, for its successor."""
        return self.path / RECORDS

    @property
    def errors(self) -> Path:
        """The agent's error output."""
        return self.path / ERRORS

    def log(self, worker: str) -> Path:
        """The file for a worker's output; any worker name gives a valid file name."""
        return self.path / f"{_plain(worker)}.log"

    def lifeline(self, worker: str) -> Path:
        """The lock that breaks when a worker dies."""
        return self.path / f"{_plain(worker)}.life"

    def remove(self, *names: str) -> None:
        """Remove files of this folder."""
        for name in names:
            with suppress(OSError):
                (self.path / name).unlink()


def _plain(name: str) -> str:
    return "".join(sign if sign in _PLAIN else f"%{ord(sign):02x}" for sign in name)


def private_folder(path: Path) -> Folder:
    """A folder that this user alone may enter; made if there is none.

    Raises:
        RefusedError: others may enter it, or it is somebody else's.
        UsageError: it cannot be made, or its path is too long for a socket in it.
    """
    folder = Folder(path.absolute())
    long = len(os.fsencode(folder.socket.with_name(f"{SOCKET}.new")))
    if long > LONGEST_SOCKET_BYTES:
        raise UsageError(
            f"a socket in {folder.path} would have a path of {long} bytes, and {LONGEST_SOCKET_BYTES} are possible",
            hint="give the job a folder with a shorter path",
        )
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.path.lstat()
    except OSError as error:
        raise UsageError(f"{folder.path} cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(
            f"{folder.path} is not a private folder of this user", hint=f"remove it or chmod 700 {folder.path}"
        )
    return folder


def claimed(folder: Folder) -> int:
    """The lock of a folder's one agent, as a descriptor: held until every copy of it is closed.

    Raises:
        RefusedError: another agent holds it.
    """
    while True:
        lock = os.open(folder.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 32, 0).decode(errors="replace")
            os.close(lock)
            raise RefusedError(
                f"an agent already serves {folder.path} (pid {pid or 'unknown'})",
                hint="talk to that one: python -m lumctl.training.agent bridge FOLDER",
            ) from None
        # The agent that held it before may have removed the very file that we have locked now.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), (folder.path / LOCK).stat()):
                return lock
        os.close(lock)


def holder(folder: Folder) -> int | None:
    """The process that wrote itself into the lock last; it may have ended."""
    with suppress(OSError, ValueError):
        return int((folder.path / LOCK).read_text())
    return None


def listening(folder: Folder) -> socket.socket:
    """The agent's socket; the holder of the lock replaces one that a killed agent left.

    Raises:
        UsageError: it cannot be made.
    """
    hint = f"make room in {folder.path}, or give the job another folder"
    made = sockets.listening(folder.socket, WAITING, hint=hint)
    made.setblocking(False)  # noqa: FBT003 - the socket's own vocabulary
    return made
