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
    """One process, also after its end and from another machine.

    ``boot_id`` names one start of a machine's kernel and one PID namespace in it; empty where the system has none.
    ``started`` is the start of the process in clock ticks after that start; 0 where it is not known.
    """

    host: str
    boot_id: str
    pid: int
    started: int

    @property
    def is_here(self) -> bool:
        """Whether its PID can be looked up by this process: the same kernel, the same PID namespace."""
        return self.boot_id != "" and self.boot_id == _boot_id()


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process that exists. ``command`` and ``user`` are empty where the system hides them.

    ``stopped``: by a signal (SIGSTOP, Ctrl-Z) or a debugger. ``is_mine``: this user may signal it.
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
        """For a person: which process, whose, since when, and whether it is stopped."""
        command = f" ({self.command})" if self.command else ""
        since = ""
        if self.started_at is not None:
            since = f", started {datetime.fromtimestamp(self.started_at, UTC).isoformat(timespec='seconds')}"
        condition = "stopped" if self.stopped else "running"
        whose = f"of {self.user}" if self.user else "of another user"
        return f"process {self.id.pid}{command} {whose} on {self.id.host}{since}, is {condition}"

    @property
    def kill_command(self) -> str:
        """The command that ends it, for a shell on its machine."""
        return f"{'' if self.is_mine else 'sudo '}kill -KILL {self.id.pid}"


def this_process() -> ProcessId:
    """The process that calls this."""
    return process_with(os.getpid()) or ProcessId(socket.gethostname(), "", os.getpid(), 0)


def process_with(pid: int) -> ProcessId | None:
    """The process that has a PID on this machine now; ``None`` if there is none, or the system does not say."""
    fields = _stat(pid)
    if fields is None or not _boot_id():
        return None
    return ProcessId(socket.gethostname(), _boot_id(), pid, int(fields[_STARTED]))


def find(process: ProcessId) -> ProcessState | None:
    """What a process of this machine does now; ``None`` if it has ended, also if nobody has reaped it yet.

    Raises:
        ValueError: it is not of this machine, see :attr:`ProcessId.is_here`: nothing is known about it.
    """
    if not process.is_here:
        raise ValueError(f"process {process.pid} of {process.host} cannot be looked up here")
    fields = _stat(process.pid)
    if fields is None:
        # /proc may hide processes of other users (hidepid=2): a signal that is forbidden shows that one exists.
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
    """End a process of this machine with SIGKILL; gives whether it has ended, all its threads included.

    False: this user may not signal it, or it did not end in time (it hangs in the kernel, on a dead file server say).

    Raises:
        ValueError: it is not of this machine.
    """
    if find(process) is None:
        return True
    try:
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
    if find(process) is None:  # the handle is bound to the process that had the PID when it was opened: look again
        return True
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    poll = select.poll()
    poll.register(handle, select.POLLIN)
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
    """The fields of /proc/PID/stat after the command's name, which may hold spaces and parentheses."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _has_ended(fields: list[str]) -> bool:
    """A zombie holds neither files nor locks; but its first thread may have ended alone, while others continue."""
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
    """A command line with nothing in it that would move a terminal's cursor, and of bounded length."""
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
