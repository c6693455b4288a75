"""Ends of runs that the store could not record: an empty file beside it, which needs no room on a full disk.

An engine creates one as its very last act, after which it writes to no device. From then on its run is half done and
its lease is released, although the store has the run as running. The lease number in the file's name makes it void as
soon as the run is continued under a newer lease.
"""

from contextlib import suppress
from pathlib import Path

from lumctl.files import make_private

_PREFIX = "unwritten-end"


def leave(files: Path, run: str, fence: int) -> None:
    """Note that a run was left half done under a lease; where that cannot be done either, its lease has to end."""
    with suppress(OSError):
        make_private(files)
        _path(files, run, fence).touch(mode=0o600)


def is_left(files: Path, run: str, fence: int) -> bool:
    """Whether a run was left half done under a lease, and its end could not be written."""
    return _path(files, run, fence).exists()


def given_back(files: Path) -> frozenset[int]:
    """The numbers of the leases that engines gave back and could not record."""
    numbers = (path.name.rpartition(".")[2] for path in files.glob(f"{_PREFIX}.*"))
    return frozenset(int(number) for number in numbers if number.isdecimal())


def forget(files: Path, run: str) -> None:
    """Take away what was noted of a run: it was continued with."""
    for path in files.glob(f"{_PREFIX}.{run}.*"):
        with suppress(OSError):
            path.unlink()


def _path(files: Path, run: str, fence: int) -> Path:
    return files / f"{_PREFIX}.{run}.{fence}"
