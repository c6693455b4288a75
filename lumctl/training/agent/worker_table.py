"""The workers of an agent: it starts, records, finds and ends them, and limits the size of their logs.

A worker outlives its agent and writes into its log itself. The agent shortens the file while the
worker writes to it, and adds a line that reports it.
"""

import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lumctl.training import death_lock, protocol
from lumctl.training.agent.folder import Folder
from lumctl.training.agent.process import Process, ProcessEnd, WorkerNotStartedError, boot, with_variable
from lumctl.training.agent.worker import (
    BEATS,
    ENDED,
    FAILED,
    HEARTBEAT_S,
    RequestRefusedError,
    StartOrder,
    Worker,
    worker_of,
)
from lumctl.training.protocol import ACCELERATOR, BEAT_S, SOCKET, WORKER, Message, printable_line

NOT_STARTED = 127
"""The exit code for a program that could not be run, as in shells."""
MOST_ENDED = 100
"""Maximum number of ended workers that stay in the table."""


class WorkerTable:
    """All workers by name; ``wall`` gives time.time()."""

    def __init__(self, folder: Folder, workers: dict[str, Worker], wall: Callable[[], float]) -> None:
        self.workers = workers
        self.changed = True
        self._unwritten = False
        self._folder, self._wall = folder, wall

    @property
    def living(self) -> list[Worker]:
        """The workers that have not ended."""
        return [each for each in self.workers.values() if each.alive]

    def alive(self, name: str) -> Worker:
        """A worker that has not ended.

        Raises:
            RequestRefusedError: no worker has this name, or it has ended.
        """
        worker = self.workers.get(name)
        if worker is None:
            raise RequestRefusedError(f"worker {name} does not exist here")
        if not worker.alive:
            raise RequestRefusedError(f"worker {name} has ended")
        return worker

    def start(self, order: StartOrder, now: float) -> Worker:
        """Start a worker; if its program cannot be run, it ends with code 127 and a ``failed`` message.

        Raises:
            RequestRefusedError: a worker of this name is running.
        """
        former = self.workers.pop(order.worker, None)
        if former is not None and former.alive:
            self.workers[order.worker] = former
            raise RequestRefusedError(f"worker {order.worker} already exists (pid {former.pid})")
        worker = Worker(order.worker, order.accelerator, order.heartbeat_s, order.silence_s, heard_at=now)
        forget(self._folder, order.accelerator, [*self.workers.values(), worker])
        self._drop_oldest()
        self.workers[order.worker] = worker
        worker.prints_from = size(self._folder.log(order.worker))
        # Recorded before the start: if this agent is killed now, the next one looks for the process.
        self._write_early()
        guarded = self._watched(order.worker)
        try:
            worker.process = Process.start(
                order.argv,
                self._environment(order, guarded=guarded),
                order.folder or self._folder.path,
                self._folder.log(order.worker),
            )
        except WorkerNotStartedError as error:
            worker.said({"say": FAILED, "error": f"worker {order.worker} was not started: {error}"}, now)
            self._end(worker, ProcessEnd(NOT_STARTED, None))
        else:
            worker.pid, worker.started = worker.process.pid, worker.process.started
        self.changed = True
        return worker

    def end(self, worker: Worker) -> None:
        """Record how a worker's process ended; unless it succeeded, kill the processes that it left behind."""
        if worker.process is None:
            return
        end = worker.process.end()
        if end.code != 0 and not (end == ProcessEnd(None, None) and ENDED in worker.last):
            worker.process.kill()  # processes left behind may hold the accelerator's memory and ports
        worker.process.close()
        worker.process = None
        self._folder.remove(self._folder.death_watch(worker.worker).name)
        self._end(worker, end)

    def document(self) -> Message:
        """The ``list`` message for the coordinator."""
        return {"tell": "list", "workers": [each.document() for each in self.workers.values()]}

    def write(self) -> None:
        """Write the records if they changed.

        Raises:
            OSError: it cannot be written.
        """
        if self.changed:
            self.changed = False
            write_records(self._folder, self.workers.values())

    def try_to_write(self) -> str | None:
        """Write the records if they changed; return the reason if that fails, once."""
        try:
            self.write()
        except OSError as error:
            known, self.changed, self._unwritten = self._unwritten, True, True
            lost = "if this agent is killed, the next one will not know its workers"
            return None if known else f"{self._folder.records} cannot be written: {error}; {lost}"
        self._unwritten = False
        return None

    def _end(self, worker: Worker, end: ProcessEnd) -> None:
        worker.alive, worker.at = False, self._wall()
        worker.code, worker.signal = end
        worker.waiting.clear()
        self.changed = True

    def _write_early(self) -> None:
        self.changed = True
        try:
            self.write()
        except OSError:
            self.changed = True  # a failure is reported at the end of the turn; a job starts even on a full disk

    def _drop_oldest(self) -> None:
        ended = [name for name, each in self.workers.items() if not each.alive]
        for name in ended[:-MOST_ENDED]:
            del self.workers[name]

    def _watched(self, name: str) -> bool:
        """Make the lock of a worker's death watch; return false if that fails. Without it, a death is noticed later."""
        try:
            return death_lock.make(self._folder.death_watch(name))
        except OSError:
            return False

    def _environment(self, order: StartOrder, *, guarded: bool) -> Mapping[str, str]:
        own = {protocol.DEATH_WATCH: str(self._folder.death_watch(order.worker))} if guarded else {}
        return {
            # What comes later overrides: the job may set its own beat, but not what the agent relies on.
            **os.environ,
            protocol.BEAT_S: f"{order.heartbeat_s / BEATS:g}",
            **order.environment,
            protocol.SOCKET: str(self._folder.socket),
            protocol.WORKER: order.worker,
            protocol.ACCELERATOR: order.accelerator,
            protocol.FOLDER: str(self._folder.path),
            **own,
        }


SCHEMA = "lumctl/agent/v1"


def write_records(folder: Folder, workers: Iterable[Worker]) -> None:
    """Write the records of all workers, atomically.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps({"schema": SCHEMA, "boot": boot(), "workers": [each.record() for each in workers]}, indent=1)
    new = folder.records.with_name(f"{folder.records.name}.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
    # No fsync: a power failure ends the workers as well.
    new.rename(folder.records)


def adopted(folder: Folder, *, now: float, at: float) -> dict[str, Worker]:
    """Workers that still run have a process.

    Unreadable records are renamed, and the workers are found by their environment variables.
    """
    sound, workers = _read(folder.records)
    if not sound or any(each.alive and each.pid is None for each in workers.values()):
        # An agent was killed after it had started a worker and before it recorded the process.
        _find(folder, workers)
    for each in workers.values():
        each.heard_at = now
        if each.alive and each.pid is not None and each.started is not None:
            each.process = Process.found(each.pid, each.started)
        if each.alive and each.process is None:
            each.alive, each.at = False, at
    return workers


def _read(path: Path) -> tuple[bool, dict[str, Worker]]:
    try:
        found: Any = json.loads(path.read_text())
        workers = {each.worker: each for each in map(worker_of, found["workers"])}
        booted: str = found["boot"]
    except FileNotFoundError:
        return True, {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        path.rename(path.with_name(f"{path.name}.unreadable"))
        return False, {}
    # After a reboot the recorded ids belong to other processes.
    if booted != boot():
        for each in workers.values():
            each.started = None
    return True, workers


def _find(folder: Folder, workers: dict[str, Worker]) -> None:
    for pid, started, given in with_variable(SOCKET, str(folder.socket)):
        name = given.get(WORKER, "")
        known = workers.get(name) or Worker(name, given.get(ACCELERATOR, ""), _heartbeat_s(given.get(BEAT_S, "")))
        if known.alive and known.pid is None:
            known.pid, known.started = pid, started
            workers[name] = known


def _heartbeat_s(beat_s: str) -> float:
    try:
        return BEATS * float(beat_s)
    except ValueError:
        return HEARTBEAT_S


KEPT = 5
"""The number of stored logs of ended workers for each accelerator."""
LOOKED_AFTER_EVERY_S = 10.0
LONGEST_BYTES = 64 << 20
"""The longest log; a longer one is shortened."""
KEPT_BYTES = 16 << 20
"""The size of the part of a long log that is saved next to it: small, because workers wait for the agent meanwhile."""
BEFORE = ".1"
_CHUNK_BYTES = 1 << 20
_LAST_BYTES = 4096
"""The bytes at the end of a log that are read for its last line."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def shorten(log: Path, at: float, *, longest: int = LONGEST_BYTES, kept: int = KEPT_BYTES) -> None:
    """Shorten a log that is too long: move its last whole lines to a file next to it, and note that in the log.

    ``at`` is the time (``time.time()``). Lines written during the copy may be lost; if the disk has no room for
    the copy, all lines are lost.

    Raises:
        OSError: it cannot be shortened.
    """
    opened = os.open(log, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or found.st_size <= longest:
            return
        before = log.with_name(log.name + BEFORE)
        try:
            # A worker may write faster than this copies; without a limit the agent would never return.
            copied = _copy(opened, max(0, found.st_size - kept), before, most=2 * kept)
            put = f"{copied:,} of its last bytes are in {before.name}"
        except OSError as error:
            before.unlink(missing_ok=True)
            put = f"none could be stored in {before.name}: {error.strerror}"
        size = os.fstat(opened).st_size
        # Workers append (O_APPEND), so they go on at the new end.
        os.ftruncate(opened, 0)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        note = f"{size:,} bytes of this log were removed; {put}; lines written at that moment may be lost"
        os.write(opened, f"[lumctl {when}: {note}]\n".encode())
    finally:
        os.close(opened)


def _copy(source: int, start: int, target: Path, *, most: int) -> int:
    """Copy about ``most`` bytes at most, from the first whole line after ``start`` on; return the bytes copied."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    copied, cut = 0, start > 0
    with open(os.open(target, flags, 0o600), "wb") as file:  # noqa: PTH123
        while copied < most and (chunk := os.pread(source, _CHUNK_BYTES, start)):
            start += len(chunk)
            copied += file.write(chunk.partition(b"\n")[2] if cut else chunk)
            cut = False
    return copied


def size(log: Path) -> int:
    """The length of a log in bytes; 0 if it does not exist."""
    try:
        return log.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def last_line(log: Path, after: int = 0) -> str:
    """The last non-empty line of a log, safe to show; empty if the log has none.

    ``after``: how long the log was when its worker began to write, in bytes.
    """
    try:
        # O_NONBLOCK: a FIFO in the log's place must not stop the agent.
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
    """Shorten the logs of workers; if a log cannot be shortened, a later call tries again."""
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
