"""The runtime folder of one simulator: claimed by a lock that dies with its process, and emptied at the end."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lumctl.devices.endpoints import RUNTIME_FILE
from lumctl.errors import RefusedError
from lumctl.files import make_private

CONTROL_SOCKET = "control.sock"
LANES_SOCKET = "lanes.sock"
MESH_SOCKET = "mesh.sock"
"""How the names of the sockets of meshes begin that are served on one; a number follows."""
CLIENT_KEY = "client_key"
KNOWN_HOSTS = "known_hosts"
LOG = "sim.log"
_LOCK = "lock"
_OURS = (RUNTIME_FILE, CONTROL_SOCKET, LANES_SOCKET, CLIENT_KEY, KNOWN_HOSTS, LOG)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Own a folder, made if need be and freed of what a killed simulator left in it; in the end it is gone.

    Raises:
        RefusedError: a simulator runs in it, or others may enter it.
    """
    lock = _locked(folder)
    try:
        _remove(folder, _OURS)
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        yield
    finally:
        # The lock goes last: who finds the folder locked knows that what is in it is alive.
        _remove(folder, (*_OURS, _LOCK))
        with contextlib.suppress(OSError):  # another user put a file into it
            folder.rmdir()
        os.close(lock)


def clean(folder: Path) -> None:
    """Remove what a killed simulator left; does nothing while one runs."""
    with contextlib.suppress(RefusedError, FileNotFoundError):
        folder.lstat()
        with claimed(folder):
            pass


def running_pid(folder: Path) -> int | None:
    """The process that holds the folder now."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(lock)
    else:
        return None
    finally:
        os.close(lock)


def _locked(folder: Path) -> int:
    while True:
        make_private(folder)
        _require_private(folder)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _pid(lock)
            os.close(lock)
            raise RefusedError(
                f"a simulator already runs in {folder} (pid {pid})", hint="end it with lumctl sim down"
            ) from None
        # The simulator that held it before may have removed the very file that we have locked now.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), (folder / _LOCK).stat()):
                return lock
        os.close(lock)


def _require_private(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(f"{folder} is not a private folder of this user", hint=f"remove it or chmod 700 {folder}")


def _remove(folder: Path, names: tuple[str, ...]) -> None:
    for socket in folder.glob(f"{MESH_SOCKET}[0-9]*"):
        socket.unlink(missing_ok=True)
    for name in names:
        for path in (folder / name, folder / f"{name}.new"):
            path.unlink(missing_ok=True)


def _pid(lock: int) -> int | None:
    text = os.pread(lock, 32, 0)
    return int(text) if text.isdigit() else None
