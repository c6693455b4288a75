"""Controls one job's torchrun on one host. It runs there as ``python -c``, with an order as JSON; it answers with JSON.

It needs only Linux and Python 3.9. It records the pid and the start time of the torchrun that it starts in a private
folder, so that a later call finds it. A torchrun that another program has started is found by its rendezvous id.
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
"""Interval of the checks for workers: no event reports that a worker has started."""
KILLED_S = 5.0
SAID_BYTES = 2000
PROGRAM_WORDS = 8
"""The first words of a command line, among which torchrun's name is looked for."""
BEGAN = 19
"""The index of the start time among the fields after the name in a process's ``stat``."""


class Minder:
    """One job's torchrun on this host. ``name`` names job and host; ``run_id`` is its rendezvous id."""

    def __init__(self, folder: Path, name: str, run_id: str) -> None:
        self.name, self.run_id = name, run_id
        self.note, self.log = folder / name, folder / f"{name}.log"

    def status(self) -> dict[str, Any]:
        """Whether torchrun or a worker that has outlived it runs, and the ranks of the workers."""
        workers = self._workers()
        return {"running": bool(self._agents() or workers), "ranks": _ranks(workers)}

    def start(self, argv: list[str], environment: dict[str, str], folder: str | None) -> dict[str, Any]:
        """Start torchrun, unless it runs."""
        if self._agents():
            return {"running": True}
        try:
            with self.log.open("wb") as log:
                # The operator's own program, as a list of words; it must outlive this one.
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
        # If this program ends before the note is written, torchrun is still found by its id.
        new = self.note.with_name(f"{self.name}.new")
        new.write_text(json.dumps({"pid": process.pid, "began": _began(process.pid)}))
        new.replace(self.note)
        process.returncode = 0  # avoids a warning: this program does not wait for its end
        return {"running": True}

    def up(self, workers: int, within_s: float) -> dict[str, Any]:
        """Wait until torchrun has all its workers, or has ended, or the time has passed."""
        ends = time.monotonic() + within_s
        while True:
            found, up = self._agents(), self._workers()
            if not found or len(up) >= workers or time.monotonic() > ends:
                told = {"running": bool(found), "workers": len(up), "ranks": _ranks(up)}
                return {**told, "log": str(self.log), "said": self._said()}
            _await_end(found[0], LOOK_S)

    def term(self) -> dict[str, Any]:
        """Send SIGTERM to torchrun; tell whether it or a worker ran."""
        found = self._agents()
        _tell(found, signal.SIGTERM)
        return {"running": bool(found or self._workers())}

    def gone(self, within_s: float) -> dict[str, Any]:
        """Wait until torchrun has ended; then kill the remaining processes of it and its workers."""
        ends = time.monotonic() + within_s
        for process in self._agents():
            _await_end(process, max(ends - time.monotonic(), 0.0))
        left = [*self._agents(), *self._workers()]
        _tell(left, signal.SIGKILL)
        for process in left:
            _await_end(process, KILLED_S)
        return {**self.status(), "killed": len(left)}

    def _agents(self) -> list[int]:
        """The job's torchrun processes: the recorded one, and all with its rendezvous id on their command line."""
        found = []
        with suppress(OSError, ValueError, KeyError):
            ours = json.loads(self.note.read_text())
            # The kernel may have given the pid to another process since.
            if ours["began"] is not None and _began(ours["pid"]) == ours["began"]:
                found.append(int(ours["pid"]))
        for pid in _processes():
            words = _read(pid, "cmdline").split("\0")
            if pid not in found and _is_torchrun(words) and self.run_id in _ids(words) and self._is_here(pid):
                found.append(pid)
        return found

    def _workers(self) -> list[int]:
        """The processes of the job's ranks, including those that have outlived torchrun."""
        wanted = f"TORCHELASTIC_RUN_ID={self.run_id}"
        return [pid for pid in _processes() if wanted in _read(pid, "environ").split("\0") and self._is_here(pid)]

    def _is_here(self, pid: int) -> bool:
        """Whether a process belongs to this host: one machine may represent several."""
        marks = [word for word in _read(pid, "environ").split("\0") if word.startswith(f"{MARK}=")]
        return not marks or marks[0] == f"{MARK}={self.name}"

    def _said(self) -> str:
        """The end of torchrun's output."""
        with suppress(OSError), self.log.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - SAID_BYTES, 0))
            return log.read().decode(errors="replace")
        return ""


def _ranks(workers: Iterable[int]) -> dict[str, str | None]:
    """The accelerator of each rank among these processes; ``None`` for a rank that lumctl did not start."""
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
    """The processes of this user, without this process."""
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with suppress(OSError):
                if place.stat().st_uid == os.getuid() and _began(int(place.name)) is not None:
                    yield int(place.name)


def _began(pid: int) -> str | None:
    """The start time of a process, in kernel ticks, with the id of the boot; ``None`` if it has ended."""
    # The name before this parenthesis may itself contain spaces and parentheses.
    fields = _read(pid, "stat").rpartition(")")[2].split()
    if len(fields) <= BEGAN or fields[0] in {"Z", "X"}:
        return None
    return f"{fields[BEGAN]}@{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"


def _read(pid: int, what: str) -> str:
    """Read a file of a process in ``/proc``; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _tell(found: Iterable[int], number: int) -> None:
    for pid in found:
        with suppress(OSError):
            os.kill(pid, number)


def _await_end(pid: int, seconds: float) -> None:
    """Wait until a process has ended, at most for ``seconds``."""
    with suppress(OSError):
        watched = os.pidfd_open(pid)
        try:
            select.select([watched], [], [], seconds)
        finally:
            os.close(watched)


def main(order: dict[str, Any]) -> dict[str, Any]:
    """Execute an order; orders for the same job on this host run one at a time."""
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
