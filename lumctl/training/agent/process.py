"""Worker processes: started in a session of their own or found again, watched, and killed.

A process id may be reused for another process. A pidfd identifies one process, and reports its end to any holder.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

_PROC = Path("/proc")


class WorkerNotStartedError(Exception):
    """The program of a worker cannot be run; the text gives the reason."""


class Stat(NamedTuple):
    """A process as the kernel reports it: ids, and its start in clock ticks since boot."""

    parent: int
    session: int
    started: int


class ProcessEnd(NamedTuple):
    """How a process ended: its exit code or its signal. Both are unknown for a process that was not our child."""

    code: int | None
    signal: int | None


@dataclass(slots=True)
class Process:
    """A process that leads its own session and group. ``child`` is ``None`` if another agent started it."""

    pid: int
    started: int
    pidfd: int
    child: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, argv: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> Self:
        """Start a program. Its output is appended to ``log``.

        Raises:
            WorkerNotStartedError: it cannot be run.
        """
        try:
            output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise WorkerNotStartedError(f"its log {log} cannot be written: {error.strerror}") from error
        try:
            child = subprocess.Popen(  # noqa: S603 - the job's own program, as a list of words
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment),
                cwd=str(folder),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise WorkerNotStartedError(_why(error, argv[0], folder)) from error
        finally:
            os.close(output)
        # Only we reap this child: until then its id is not reused, even if it has ended already.
        return cls(child.pid, stat_of(child.pid).started, os.pidfd_open(child.pid), child)

    @classmethod
    def found(cls, pid: int, started: int) -> Self | None:
        """A process that another agent started; ``None`` if it has ended, even if another process has its id now."""
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            return None
        with suppress(ProcessLookupError):
            if stat_of(pid).started == started:
                return cls(pid, started, pidfd)
        os.close(pidfd)
        return None

    def fileno(self) -> int:
        """The pidfd: readable when the process has ended."""
        return self.pidfd

    def end(self) -> ProcessEnd:
        """How it ended; call this after its end. Its id is not reused until :meth:`close`."""
        if self.child is None:
            return ProcessEnd(None, None)
        how = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT)
        if how is None or how.si_code == os.CLD_EXITED:
            return ProcessEnd(None if how is None else how.si_status, None)
        return ProcessEnd(None, how.si_status)

    def kill(self) -> None:
        """Kill the processes of its group that still exist."""
        with suppress(ProcessLookupError):
            if self.child is None and stat_of(self.pid).started != self.started:
                return  # the id was reused, so no process is left in the group
        # As long as the group exists, the kernel does not reuse the id of its leader.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Stop watching it; a child that has ended is reaped."""
        os.close(self.pidfd)
        if self.child is not None:
            self.child.poll()


def stat_of(pid: int) -> Stat:
    """The session and group of a process, and when it started.

    Raises:
        ProcessLookupError: no process has this id.
    """
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError as error:
        raise ProcessLookupError(str(error)) from error
    # The program's name may contain blanks and brackets; the fields after it are the state and numbers.
    fields = text[text.rindex(")") + 1 :].split()
    return Stat(parent=int(fields[1]), session=int(fields[3]), started=int(fields[19]))


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, as by SIGSTOP; a traced process is not."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return False
    return text[text.rindex(")") + 1 :].split()[0] == "T"


def belongs_to(pid: int, leader: int) -> bool:
    """Whether a process is the leader, belongs to its session, or descends from one of these."""
    with suppress(ProcessLookupError):
        while pid > 1:
            if pid == leader or (known := stat_of(pid)).session == leader:
                return True
            pid = known.parent
    return False


def boot() -> str:
    """The id of this boot: process ids and start times are valid only within it."""
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""


def with_variable(name: str, value: str) -> Iterator[tuple[int, int, Mapping[str, str]]]:
    """The session leaders that were started with this value of a variable: id, start time, all their variables."""
    wanted = os.fsencode(f"{name}={value}")
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError, ProcessLookupError):
            given = (entry / "environ").read_bytes().split(b"\0")
            pid = int(entry.name)
            if wanted in given and (known := stat_of(pid)).session == pid != os.getpid():
                yield pid, known.started, dict(os.fsdecode(each).split("=", 1) for each in given if b"=" in each)


def _why(error: OSError | ValueError, program: str, folder: Path) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, OSError) and error.filename == str(folder) and not folder.is_dir():
        return f"its folder {folder} cannot be entered: {reason}"
    return f"{program} cannot be run: {reason}"
