"""Where the journal lies: on which disk, how surely its transactions are synced, and how long a sync takes there."""

import os
import time
from pathlib import Path
from statistics import median

from lumctl.store import Store

_SYNCS = 100
_PAGE = 4096
_IN_MEMORY = {"tmpfs", "ramfs", "overlay"}
_FULL = 2
"""What SQLite gives for PRAGMA synchronous=FULL: each commit waits for the disk."""


class Place:
    """A folder with an open store in it. It is an error if it is no disk, or if its transactions are not synced."""

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder = folder
        self.kind, self.source = _mounted(folder)
        assert self.kind not in _IN_MEMORY, f"{folder} is {self.kind}, not a disk: name another folder"
        with store._engine.connect() as connection:
            self.mode = str(connection.exec_driver_sql("PRAGMA journal_mode").scalar())
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == _FULL
        self.fsync_ms = _fsync_ms(folder)

    def __str__(self) -> str:
        return (
            f"{self._folder} ({self.kind} on {self.source}), SQLite {self.mode.upper()}, synchronous=FULL, "
            f"one fsync of a page {self.fsync_ms:.2f} ms"
        )


def _mounted(folder: Path) -> tuple[str, str]:
    """The kind of file system of a folder, and what it is on."""
    found = ("/", "unknown", "unknown")
    for line in Path("/proc/mounts").read_text().splitlines():
        source, at, kind, *_ = line.split()
        if folder.is_relative_to(at) and len(at) >= len(found[0]):
            found = (at, kind, source)
    return found[1], found[2]


def _fsync_ms(folder: Path) -> float:
    """The median of a page that is added and synced."""
    path = folder / "fsync"
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    times = []
    try:
        for page in range(_SYNCS):
            os.pwrite(file, b"\xa5" * _PAGE, page * _PAGE)
            began = time.perf_counter()
            os.fsync(file)
            times.append(1000 * (time.perf_counter() - began))
    finally:
        os.close(file)
        path.unlink()
    return median(times)
