"""Ends of runs that the store could not record: each is an empty file next to the store, which fits on a full disk.

An engine creates the file as its very last act; after that it writes to no device. From then on its run counts as half
done and its lease as released, although the store lists the run as running. The file's name contains the lease number,
so the file no longer applies when the run continues under a newer lease.
"""

from contextlib import suppress
from pathlib import Path

from lumctl.files import make_private

_PREFIX = "unwritten-end"


def leave(files: Path, run: str, fence: int) -> None:
    """Note that a run was left half done under a lease; if even that fails, others wait until the lease expires."""
    with suppress(OSError):
        make_private(files)
        _path(files, run, fence).touch(mode=0o600)


def is_left(files: Path, run: str, fence: int) -> bool:
    """Whether a run was left half done under a lease, and its end could not be written."""
    return _path(files, run, fence).exists()


def given_back(files: Path) -> frozenset[int]:
    """The numbers of the leases that engines released but could not record as released."""
    numbers = (path.name.rpartition(".")[2] for path in files.glob(f"{_PREFIX}.*"))
    return frozenset(int(number) for number in numbers if number.isdecimal())


def forget(files: Path, run: str) -> None:
    """Delete the notes about a run that was continued or undone."""
    for path in files.glob(f"{_PREFIX}.{run}.*"):
        with suppress(OSError):
            path.unlink()


def _path(files: Path, run: str, fence: int) -> Path:
    return files / f"{_PREFIX}.{run}.{fence}"
