"""The private folder of a job on this machine: the coordinator's socket and lock, the token, the last status."""

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import RefusedError, UsageError
from lumctl.files import make_private

COORDINATOR, TOKEN, LOCK = "c.sock", "token", "lock"
STATUS = "last.json"
SCHEMA = "lumctl/job-kept/v1"
TIMES = "collectives.json"
TIMES_SCHEMA = "lumctl/job-collectives-kept/v1"
ENDED, STOPPED = "ended", "stopped"
FINAL_STATES = frozenset({ENDED, STOPPED})
"""States of a job after which nothing follows."""
_DIGEST = 8
_TOKEN_BYTES = 32


def job_folder(inventory: Path, target: str, job: str) -> Path:
    """The folder of a job on this machine, for one inventory file.

    Its name is short, because the path of a Unix socket has 108 bytes at most.
    """
    named = hashlib.sha256(f"{inventory.resolve()}\0{target}\0{job}".encode()).hexdigest()[:_DIGEST]
    return private_runtime_folder() / "jobs" / named


def coordinator_socket(inventory: Path, target: str, job: str) -> Path:
    """The path of the coordinator's socket."""
    return job_folder(inventory, target, job) / COORDINATOR


@contextmanager
def claimed(folder: Path, job: str) -> Iterator[None]:
    """Be the only coordinator of a job on this machine, for the duration of the context.

    Raises:
        RefusedError: another coordinator runs the job.
    """
    make_private(folder)
    # The kernel releases this lock when the process ends, however that happens.
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 32, 0).decode(errors="replace").strip()
            raise RefusedError(
                f"another lumctl already runs job {job} (pid {pid})", hint=f"see: lumctl job status {job}"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)


def token_of(folder: Path) -> str:
    """The secret that the workers of a job share. It is created once and lasts as long as the folder.

    Raises:
        RefusedError: the file contains no token.
        UsageError: it cannot be written.
    """
    path = folder / TOKEN
    if not path.exists():
        _write_token(path, secrets.token_hex(_TOKEN_BYTES))
    if len(token := path.read_text(errors="replace").strip()) != 2 * _TOKEN_BYTES:
        raise RefusedError(
            f"{path} contains no token: its workers would accept any connection",
            hint="stop the job if its processes are running, remove the file, and run the job again",
        )
    return token


def _write_token(path: Path, token: str) -> None:
    """Write a token atomically; keep an existing one."""
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.") as beside:
            beside.write(token)
            beside.flush()
            os.fsync(beside.fileno())
            with suppress(FileExistsError):
                # Not a rename: that would replace a token that another process has written meanwhile.
                os.link(beside.name, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="free space there") from error


def save_status(folder: Path, document: Mapping[str, Any]) -> None:
    """Save the status of a job atomically, readable by this user only.

    Raises:
        OSError: it cannot be written.
    """
    _save(folder / STATUS, {"schema": SCHEMA, "status": document})


def save_collectives(folder: Path, document: Mapping[str, Any]) -> None:
    """Save the record of a job's collectives, as :func:`save_status` does. Raises ``OSError``."""
    _save(folder / TIMES, {"schema": TIMES_SCHEMA, "collectives": document})


def _save(path: Path, document: Mapping[str, Any]) -> None:
    made: Path | None = None
    try:
        prefix = f".{path.name}."
        with NamedTemporaryFile("w", dir=path.parent, prefix=prefix, delete=False, encoding="utf-8") as beside:
            made = Path(beside.name)
            json.dump(document, beside)
        # No fsync: a power failure ends the job's processes and removes this folder as well.
        made.replace(path)
    except BaseException:
        if made is not None:
            with suppress(OSError):
                made.unlink()
        raise


def saved_status(folder: Path) -> dict[str, Any] | None:
    """The last saved status of a job; ``None`` if none can be read."""
    return _saved(folder / STATUS, SCHEMA, "status")


def saved_collectives(folder: Path) -> dict[str, Any] | None:
    """The record of a job's collectives that its last lumctl left; ``None`` if none can be read."""
    return _saved(folder / TIMES, TIMES_SCHEMA, "collectives")


def _saved(path: Path, schema: str, key: str) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("schema") != schema or not isinstance(found.get(key), dict):
        return None
    document: dict[str, Any] = found[key]
    return document


def earlier_recoveries(folder: Path) -> tuple[dict[str, Any], ...]:
    """The recoveries in the saved status of a job that has not ended, for the lumctl that takes it over."""
    status = saved_status(folder)
    return tuple(status["recoveries"]) if status is not None and status["state"] not in FINAL_STATES else ()


def ended_status(folder: Path) -> dict[str, Any] | None:
    """The saved status of a job that has ended; ``None`` if there is none."""
    status = saved_status(folder)
    return status if status is not None and status["state"] in FINAL_STATES else None
