"""Looks after one job's torchrun on one host: run there as ``python -c``, with an order as JSON; answers with JSON.

It needs nothing but Linux and Python 3.9. What it has started is recorded, pid and start time, in a private folder:
it is found again whatever has become of who asked. A torchrun that somebody else has started is known by its id.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARK = "LUMCTL_TORCHRUN"
ACCELERATORS = "LUMCTL_ACCELERATORS"
LOOK_S = 0.05
"""Nothing tells that a worker has come up."""
KILLED_S = 5.0
SAID_BYTES = 2000
PROGRAM_WORDS = 8
"""Of a command line: torchrun's own name is among the first."""
BEGAN = 19
"""Which field of a process's ``stat``, after its name, says when it began."""


class Minder:
    """One job's torchrun on this host. ``name`` is who it is, ``run_id`` the id by which its ranks find together."""

    def __init__(self, folder: Path, name: str, run_id: str) -> None:
        self.name, self.run_id = name, run_id
        self.note, self.log = folder / name, folder / f"{name}.log"

    def status(self) -> dict[str, Any]:
        """Whether it runs, or has workers that have outlived it, and which ranks those are."""
        workers = self._workers()
        return {"running": bool(self._agents() or workers), "ranks": _ranks(workers)}

    def start(self, argv: list[str], environment: dict[str, str], folder: str | None) -> dict[str, Any]:
        """Start it, unless it runs."""
        if self._agents():
            return {"running": True}
        try:
            with self.log.open("wb") as log:
                # The operator's own program, as a list of words; it is to outlive this one.
                process = subprocess.Popen(  # noqa: S603
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **environment, MARK: self.name},
                    cwd=Path(folder or "~").expanduser(),
                    start_new_session=True,
                )
        except OSError as error:
            return {"running": False, "error": f"{error.filename or argv[0]}: {error.strerror}"}
        new = self.note.with_name(f"{self.name}.new")
        new.write_text(json.dumps({"pid": process.pid, "began": _began(process.pid)}))
        new.replace(self.note)
        process.returncode = 0  # it is not this one that waits for its end
        return {"running": True}

    def up(self, workers: int, within_s: float) -> dict[str, Any]:
        """Wait until it has all its workers, or has ended."""
        ends = time.monotonic() + within_s
        while True:
            found, up = self._agents(), self._workers()
            if not found or len(up) >= workers or time.monotonic() > ends:
                told = {"running": bool(found), "workers": len(up), "ranks": _ranks(up)}
                return {**told, "log": str(self.log), "said": self._said()}
            _await_end(found[0], LOOK_S)

    def term(self) -> dict[str, Any]:
        """Ask it to end."""
        found = self._agents()
        _tell(found, signal.SIGTERM)
        return {"running": bool(found or self._workers())}

    def gone(self, within_s: float) -> dict[str, Any]:
        """Wait until it has ended; end it with all its workers when the time is over."""
        ends = time.monotonic() + within_s
        for process in self._agents():
            _await_end(process, max(ends - time.monotonic(), 0.0))
        left = [*self._agents(), *self._workers()]
        _tell(left, signal.SIGKILL)
        for process in left:
            _await_end(process, KILLED_S)
        return {**self.status(), "killed": len(left)}

    def _agents(self) -> list[int]:
        """The job's torchrun: ours as it is recorded, and whatever has its id on its command line."""
        found = []
        with suppress(OSError, ValueError, KeyError):
            ours = json.loads(self.note.read_text())
            if ours["began"] is not None and _began(ours["pid"]) == ours["began"]:
                found.append(int(ours["pid"]))
        for pid in _processes():
            words = _read(pid, "cmdline").split("\0")
            if pid not in found and _is_torchrun(words) and self.run_id in _ids(words) and self._is_here(pid):
                found.append(pid)
        return found

    def _workers(self) -> list[int]:
        """The processes of its ranks, also those that have outlived it."""
        wanted = f"TORCHELASTIC_RUN_ID={self.run_id}"
        return [pid for pid in _processes() if wanted in _read(pid, "environ").split("\0") and self._is_here(pid)]

    def _is_here(self, pid: int) -> bool:
        """Whether a process belongs to this host: one machine may stand for several."""
        marks = [word for word in _read(pid, "environ").split("\0") if word.startswith(f"{MARK}=")]
        return not marks or marks[0] == f"{MARK}={self.name}"

    def _said(self) -> str:
        """The end of what it has printed."""
        with suppress(OSError), self.log.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - SAID_BYTES, 0))
            return log.read().decode(errors="replace")
        return ""


def _ranks(workers: Iterable[int]) -> dict[str, str | None]:
    """The accelerator of each rank among these processes; ``None`` for one that lumctl did not start."""
    found: dict[str, str | None] = {}
    for pid in workers:
        variables = dict(word.partition("=")[::2] for word in _read(pid, "environ").split("\0"))
        with suppress(KeyError, ValueError):
            named = variables[ACCELERATORS].split(",") if ACCELERATORS in variables else []
            rank, at = int(variables["RANK"]), int(variables["LOCAL_RANK"])
            found[str(rank)] = named[at] if 0 <= at < len(named) else None
    return found


def _is_torchrun(words: list[str]) -> bool:
    return any(Path(word).name in {"torchrun", "torch.distributed.run"} for word in words[:PROGRAM_WORDS] if word)


def _ids(words: list[str]) -> Iterator[str]:
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in {"--rdzv-id", "--rdzv_id"}:
            yield value if equals else "".join(words[at + 1 : at + 2])


def _processes() -> Iterator[int]:
    """The processes of who runs this, but for this one."""
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with suppress(OSError):
                if place.stat().st_uid == os.getuid() and _began(int(place.name)) is not None:
                    yield int(place.name)


def _began(pid: int) -> str | None:
    """When a process began, in the kernel's ticks since which boot; nothing if it has ended."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    if len(fields) <= BEGAN or fields[0] in {"Z", "X"}:
        return None
    return f"{fields[BEGAN]}@{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"


def _read(pid: int, what: str) -> str:
    """A file of a process; empty if that has ended."""
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _tell(found: Iterable[int], number: int) -> None:
    for pid in found:
        with suppress(OSError):
            os.kill(pid, number)


def _await_end(pid: int, seconds: float) -> None:
    """Wait until a process has ended, for so long at most."""
    with suppress(OSError):
        watched = os.pidfd_open(pid)
        try:
            select.select([watched], [], [], seconds)
        finally:
            os.close(watched)


def main(order: dict[str, Any]) -> dict[str, Any]:
    """Do what an order says; one at a time for each job."""
    os.umask(0o077)
    folder = Path(order.pop("state")).expanduser()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    act, minder = order.pop("act"), Minder(folder, order.pop("name"), order.pop("id"))
    acts = {each.__name__: each for each in (minder.status, minder.start, minder.up, minder.term, minder.gone)}
    with (folder / f"{minder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told: dict[str, Any] = acts[act](**order)
        return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
