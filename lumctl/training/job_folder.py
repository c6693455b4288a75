"""The private folder of a job on this machine: the coordinator's socket and lock, the token, the last status."""

import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from lumctl.context.job_files import save_file, saved_file
from lumctl.errors import RefusedError, UsageError
from lumctl.files import make_private
from lumctl.training.phase_profile import Profiles, with_newest

TOKEN, LOCK = "token", "lock"
STATUS = "last.json"
SCHEMA = "lumctl/job-kept/v1"
TIMES = "collectives.json"
TIMES_SCHEMA = "lumctl/job-collectives-kept/v1"
PROFILES = "phases.json"
PROFILES_SCHEMA = "lumctl/job-profiles-kept/v1"
ENDED, STOPPED = "ended", "stopped"
FINAL_STATES = frozenset({ENDED, STOPPED})
"""States of a job after which nothing follows."""
_TOKEN_BYTES = 32


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
    save_file(folder / STATUS, SCHEMA, "status", document)


def save_collectives(folder: Path, document: Mapping[str, Any]) -> None:
    """Save the record of a job's collectives, as :func:`save_status` does. Raises ``OSError``."""
    save_file(folder / TIMES, TIMES_SCHEMA, "collectives", document)


def save_profiles(folder: Path, document: Profiles) -> None:
    """Save the profiles of a job's phases beside those of its earlier runs. Raises ``OSError``."""
    save_file(folder / PROFILES, PROFILES_SCHEMA, "profiles", with_newest(saved_profiles(folder), document))


def saved_profiles(folder: Path) -> Profiles:
    """The profiles of a job's phases that its last lumctl left, by plan, the oldest first; empty if there are none."""
    return saved_file(folder / PROFILES, PROFILES_SCHEMA, "profiles") or {}


def saved_status(folder: Path) -> dict[str, Any] | None:
    """The last saved status of a job; ``None`` if none can be read."""
    return saved_file(folder / STATUS, SCHEMA, "status")


def saved_collectives(folder: Path) -> dict[str, Any] | None:
    """The record of a job's collectives that its last lumctl left; ``None`` if none can be read."""
    return saved_file(folder / TIMES, TIMES_SCHEMA, "collectives")


def earlier_recoveries(folder: Path) -> tuple[dict[str, Any], ...]:
    """The recoveries in the saved status of a job that has not ended, for the lumctl that takes it over."""
    status = saved_status(folder)
    return tuple(status["recoveries"]) if status is not None and status["state"] not in FINAL_STATES else ()


def ended_status(folder: Path) -> dict[str, Any] | None:
    """The saved status of a job that has ended; ``None`` if there is none."""
    status = saved_status(folder)
    return status if status is not None and status["state"] in FINAL_STATES else None
