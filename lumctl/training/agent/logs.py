"""The output of workers, within bounds: the newest logs of ended workers, and the end of each long log.

A worker outlives its agent and writes into its file itself: the agent shortens the file under it, and says so there.
"""

import os
import re
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from lumctl.training.agent.folder import Folder
from lumctl.training.agent.worker import Worker
from lumctl.training.protocol import printable_line

KEPT = 5
"""Logs of ended workers on one accelerator."""
LOOKED_AFTER_EVERY_S = 10.0
LONGEST_BYTES = 64 << 20
"""A log that is longer is begun anew."""
KEPT_BYTES = 16 << 20
"""How much of its end is put beside it then: little enough to be copied while others wait for the agent."""
BEFORE = ".1"
_CHUNK_BYTES = 1 << 20
_LAST_BYTES = 4096
"""How much of the end of a log is read for its last line."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def shorten(log: Path, at: float, *, longest: int = LONGEST_BYTES, kept: int = KEPT_BYTES) -> None:
    """Shorten a log that is too long: move its last whole lines to a file beside it, and note that in the log.

    ``at`` is time.time(). Lines that come in the moment between cannot be held up.

    Raises:
        OSError: it cannot be; unless that was for want of room beside it, nothing was changed.
    """
    opened = os.open(log, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or found.st_size <= longest:
            return
        before = log.with_name(log.name + BEFORE)
        try:
            copied = _copy(opened, max(0, found.st_size - kept), before, most=2 * kept)
            put = f"{copied:,} of its last are in {before.name}"
        except OSError as error:
            before.unlink(missing_ok=True)
            put = f"none could be kept in {before.name}: {error.strerror}"
        size = os.fstat(opened).st_size
        os.ftruncate(opened, 0)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        note = f"{size:,} bytes of this log were removed; {put}; lines of this very moment may be lost"
        os.write(opened, f"[lumctl {when}: {note}]\n".encode())
    finally:
        os.close(opened)


def _copy(source: int, start: int, target: Path, *, most: int) -> int:
    """Copy from the first whole line after a place to the end, which may run away; how many bytes."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    copied, cut = 0, start > 0
    with open(os.open(target, flags, 0o600), "wb") as file:  # noqa: PTH123
        while copied < most and (chunk := os.pread(source, _CHUNK_BYTES, start)):
            start += len(chunk)
            copied += file.write(chunk.partition(b"\n")[2] if cut else chunk)
            cut = False
    return copied


def size(log: Path) -> int:
    """The length of a log in bytes; 0 if there is none."""
    try:
        return log.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def last_line(log: Path, after: int = 0) -> str:
    """The last non-empty line of a log, safe to show; empty if there is none.

    ``after``: how long the log was when its worker began to write, in bytes.
    """
    try:
        opened = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            return ""
        start = max(after if after <= found.st_size else 0, found.st_size - _LAST_BYTES)
        text = os.pread(opened, _LAST_BYTES, start).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(opened)
    lines = (printable_line(_COLOURS.sub("", line)) for line in reversed(text.splitlines()))
    return next((line for line in lines if line), "")


def shorten_all(folder: Folder, workers: Iterable[Worker], at: float) -> None:
    """Shorten the logs of workers; one that cannot be shortened now is tried again later."""
    for worker in workers:
        with suppress(OSError):
            shorten(folder.log(worker.worker), at)


def forget(folder: Folder, accelerator: str, workers: Iterable[Worker]) -> None:
    """Remove the oldest logs of ended workers on an accelerator, including those of earlier runs."""
    known = [each for each in workers if each.accelerator == accelerator]
    living = {folder.log(each.worker).name for each in known if each.alive}
    names = {folder.log(each.worker).name for each in known} - living
    plain = folder.log(accelerator).stem
    ours = re.compile(rf"{re.escape(plain)}#\d+\.log")
    ended: list[tuple[float, str]] = []
    with suppress(OSError):
        ended = [
            (entry.stat(follow_symlinks=False).st_mtime, entry.name)
            for entry in os.scandir(folder.path)
            if entry.name not in living and (entry.name in names or ours.fullmatch(entry.name))
        ]
    for _, name in sorted(ended, reverse=True)[KEPT:]:
        folder.remove(name, name + BEFORE)
