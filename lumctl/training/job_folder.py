"""The private folder of a running job on this machine: the coordinator's socket, its lock and the workers' token."""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import RefusedError, UsageError
from lumctl.files import make_private

COORDINATOR, TOKEN, LOCK = "c.sock", "token", "lock"
_DIGEST = 8
_TOKEN_BYTES = 32


def job_folder(inventory: Path, target: str, job: str) -> Path:
    """The folder of a job of an inventory's file on this machine.

    Its name is short: the path of a Unix socket has 108 bytes at most.
    """
    named = hashlib.sha256(f"{inventory.resolve()}\0{target}\0{job}".encode()).hexdigest()[:_DIGEST]
    return private_runtime_folder() / "jobs" / named


def coordinator_socket(inventory: Path, target: str, job: str) -> Path:
    """The path of the coordinator's socket."""
    return job_folder(inventory, target, job) / COORDINATOR


@contextmanager
def claimed(folder: Path, job: str) -> Iterator[None]:
    """Be the only coordinator of a job on this machine.

    Raises:
        RefusedError: there is another.
    """
    make_private(folder)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 32, 0).decode(errors="replace").strip()
            raise RefusedError(
                f"job {job} is run by another lumctl already (pid {pid})", hint=f"see: lumctl job status {job}"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def token_of(folder: Path) -> str:
    """The secret that the workers of a job share: made once, kept as long as the folder exists.

    Raises:
        RefusedError: the file holds no token.
        UsageError: it cannot be written.
    """
    path = folder / TOKEN
    if not path.exists():
        _keep(path, secrets.token_hex(_TOKEN_BYTES))
    if len(token := path.read_text(errors="replace").strip()) != 2 * _TOKEN_BYTES:
        raise RefusedError(
            f"{path} holds no token: its workers would let anybody in",
            hint="stop the job if its processes live, remove the file, and run the job again",
        )
    return token


def _keep(path: Path, token: str) -> None:
    """Write a token atomically; an existing one stays."""
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.") as beside:
            beside.write(token)
            beside.flush()
            os.fsync(beside.fileno())
            with suppress(FileExistsError):
                os.link(beside.name, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="make room for it there") from error
