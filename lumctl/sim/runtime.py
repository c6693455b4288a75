"""The runtime folder of one simulator: claimed by a lock that ends with its process, and removed at the end."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lumctl.devices.endpoints import RUNTIME_FILE, require_private
from lumctl.errors import RefusedError
from lumctl.files import make_private

CONTROL_SOCKET = "control.sock"
LANES_SOCKET = "lanes.sock"
MESH_SOCKET = "mesh.sock"
"""The prefix of the socket names of meshes that are served on a socket; a number follows."""
CLIENT_KEY = "client_key"
KNOWN_HOSTS = "known_hosts"
LOG = "sim.log"
_LOCK = "lock"
_OURS = (RUNTIME_FILE, CONTROL_SOCKET, LANES_SOCKET, CLIENT_KEY, KNOWN_HOSTS, LOG)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Claim a folder: create it if needed, remove leftovers of a killed simulator, and delete it at the end.

    Raises:
        RefusedError: a simulator runs in the folder, or other users may access it.
    """
    lock = _locked(folder)
    try:
        _remove(folder, _OURS)
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        yield
    finally:
        # The lock is removed last: as long as the folder is locked, its files belong to a running simulator.
        _remove(folder, (*_OURS, _LOCK))
        with contextlib.suppress(OSError):  # another user put a file into it
            folder.rmdir()
        os.close(lock)


def clean(folder: Path) -> None:
    """Remove the leftovers of a killed simulator; do nothing while a simulator runs."""
    with contextlib.suppress(RefusedError, FileNotFoundError):
        folder.lstat()
        with claimed(folder):
            pass


def running_pid(folder: Path) -> int | None:
    """The id of the process that holds the folder now; ``None`` if none does."""
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
        require_private(folder)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _pid(lock)
            os.close(lock)
            raise RefusedError(
                f"a simulator already runs in {folder} (pid {pid}), with the inventory as it was when it was started",
                hint="use it with --target sim; or end it with lumctl sim down and start another",
            ) from None
        # The simulator that held the lock before may have removed the file that is locked here.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), (folder / _LOCK).stat()):
                return lock
        os.close(lock)


def _remove(folder: Path, names: tuple[str, ...]) -> None:
    for socket in folder.glob(f"{MESH_SOCKET}[0-9]*"):
        socket.unlink(missing_ok=True)
    for name in names:
        for path in (folder / name, folder / f"{name}.new"):
            path.unlink(missing_ok=True)


def _pid(lock: int) -> int | None:
    text = os.pread(lock, 32, 0)
    return int(text) if text.isdigit() else None
