"""Processes of this machine, identified so that a process with a reused PID is never taken for another one."""

import os
import pwd
import select
import shlex
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from time import monotonic, sleep

_PROC = Path("/proc")
_MOST_COMMAND = 160
_POLL_S = 0.01
_STATE, _THREADS, _STARTED = 0, 17, 19
"""Fields of /proc/PID/stat after the command's name, see proc(5)."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """The identity of a process; it stays valid after the process ends and on other machines.

    ``boot_id`` identifies one boot of a machine's kernel and one PID namespace in it; empty if the system has none.
    ``started`` is the start of the process in clock ticks after that boot; 0 if unknown.
    """

    host: str
    boot_id: str
    pid: int
    started: int

    @property
    def is_here(self) -> bool:
        """Whether this process can inspect the PID: it has the same kernel and the same PID namespace."""
        return self.boot_id != "" and self.boot_id == _boot_id()


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process that exists. ``command`` and ``user`` are empty if the system hides them.

    ``stopped``: stopped by a signal (SIGSTOP, Ctrl-Z) or a debugger. ``is_mine``: this user may signal it.
    ``started_at`` is in seconds since the epoch.
    """

    id: ProcessId
    command: str = ""
    user: str = ""
    stopped: bool = False
    is_mine: bool = False
    started_at: float | None = None

    @property
    def described(self) -> str:
        """The process in words: PID, command, user, host, start time, and whether it is stopped."""
        command = f" ({self.command})" if self.command else ""
        since = ""
        if self.started_at is not None:
            since = f", started {datetime.fromtimestamp(self.started_at, UTC).isoformat(timespec='seconds')}"
        condition = "stopped" if self.stopped else "running"
        whose = f"of {self.user}" if self.user else "of another user"
        return f"process {self.id.pid}{command} {whose} on {self.id.host}{since}, is {condition}"

    @property
    def kill_command(self) -> str:
        """The shell command that ends the process on its machine."""
        return f"{'' if self.is_mine else 'sudo '}kill -KILL {self.id.pid}"


def this_process() -> ProcessId:
    """The identity of the calling process."""
    return process_with(os.getpid()) or ProcessId(socket.gethostname(), "", os.getpid(), 0)


def process_with(pid: int) -> ProcessId | None:
    """The process with a PID on this machine now; ``None`` if none exists, or if the system does not show it."""
    fields = _stat(pid)
    if fields is None or not _boot_id():
        return None
    return ProcessId(socket.gethostname(), _boot_id(), pid, int(fields[_STARTED]))


def find(process: ProcessId) -> ProcessState | None:
    """The present state of a process of this machine; ``None`` if it has ended, even if it is not reaped yet.

    Raises:
        ValueError: it is a process of another machine, see :attr:`ProcessId.is_here`; its state is unknown.
    """
    if not process.is_here:
        raise ValueError(f"process {process.pid} of {process.host} cannot be inspected from here")
    fields = _stat(process.pid)
    if fields is None:
        # /proc may hide processes of other users (hidepid=2): a forbidden signal shows that the process exists.
        return ProcessState(process) if _is_forbidden(process.pid) else None
    if int(fields[_STARTED]) != process.started or _has_ended(fields):
        return None
    try:
        uid = (_PROC / str(process.pid)).stat().st_uid
        command = (_PROC / str(process.pid) / "cmdline").read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        return ProcessState(process)
    return ProcessState(
        process,
        command=_printable(command),
        user=_user(uid),
        stopped=fields[_STATE] in {"T", "t"},
        is_mine=os.geteuid() in {0, uid},
        started_at=_booted_at() + process.started / os.sysconf("SC_CLK_TCK"),
    )


def kill_and_wait(process: ProcessId, within_s: float) -> bool:
    """End a process of this machine with SIGKILL; return whether it has ended with all its threads.

    False: this user may not signal it, or it did not end in time (it may hang in the kernel, for example on a dead file
    server).

    Raises:
        ValueError: it is a process of another machine.
    """
    if find(process) is None:
        return True
    try:
        # A pidfd stays with its process: a signal through it cannot hit another process that gets the PID later.
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):  # no pidfd on this system
        return _kill_by_pid(process, within_s)
    try:
        return _kill_by_handle(process, handle, within_s)
    finally:
        os.close(handle)


def _kill_by_handle(process: ProcessId, handle: int, within_s: float) -> bool:
    if find(process) is None:  # the handle may be of a new process with the same PID: check again
        return True
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    # A pidfd becomes readable when the last thread of the process has ended, not only the first.
    return bool(poll.poll(max(0.0, within_s) * 1000))


def _kill_by_pid(process: ProcessId, within_s: float) -> bool:
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    ends = monotonic() + within_s
    while find(process) is not None:
        if monotonic() >= ends:
            return False
        sleep(_POLL_S)
    return True


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the command's name, which may contain spaces and parentheses."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _has_ended(fields: list[str]) -> bool:
    """Whether a process is a zombie without further threads: its first thread may end alone, while others continue.

    A zombie holds neither files nor locks.
    """
    return fields[_STATE] in {"Z", "X"} and int(fields[_THREADS]) <= 1


def _is_forbidden(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _printable(command: bytes) -> str:
    """A command line without characters that could move a terminal's cursor, and of limited length."""
    words = command.decode(errors="replace").rstrip("\0").split("\0")
    line = "".join(sign if sign.isprintable() else "?" for sign in shlex.join(words))
    return line if len(line) <= _MOST_COMMAND else f"{line[: _MOST_COMMAND - 3]}..."


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@cache
def _boot_id() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        # A container sees the boot id of its host but has its own PIDs; the inode tells such namespaces apart.
        return f"{boot}:{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116 - of the link's target
    except OSError:
        return ""


@cache
def _booted_at() -> float:
    with suppress(OSError, ValueError):
        for line in (_PROC / "stat").read_text().splitlines():
            if line.startswith("btime "):
                return float(line.split()[1])
    return 0.0
