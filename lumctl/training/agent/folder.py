"""The private folder of a job on one host (socket, lock, records, logs), and lines to its agent."""

import fcntl
import os
import select
import socket
import stat
import string
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lumctl import sockets
from lumctl.errors import ExitCode, LumctlError, RefusedError, UnreachableError, UsageError
from lumctl.training.protocol import MessageLine

SOCKET, LOCK, RECORDS, ERRORS = "agent", "lock", "workers.json", "errors"
LONGEST_SOCKET_BYTES = 107
"""``sun_path`` of unix(7) without the zero at its end."""
WAITING = 128
"""How many connections may wait to be accepted."""
_PLAIN = frozenset(string.ascii_letters + string.digits + "-_.#")


@dataclass(frozen=True, slots=True)
class Folder:
    """The paths of a job's files on this host."""

    path: Path

    @property
    def socket(self) -> Path:
        """The Unix socket on which coordinator and workers reach the agent."""
        return self.path / SOCKET

    @property
    def records(self) -> Path:
        """The records of the workers that the agent has started, for the next agent."""
        return self.path / RECORDS

    @property
    def errors(self) -> Path:
        """The agent's error output."""
        return self.path / ERRORS

    def log(self, worker: str) -> Path:
        """The file for a worker's output; any worker name gives a valid file name."""
        return self.path / f"{_plain(worker)}.log"

    def death_watch(self, worker: str) -> Path:
        """The lock that is released when a worker dies."""
        return self.path / f"{_plain(worker)}.life"

    def remove(self, *names: str) -> None:
        """Remove files of this folder."""
        for name in names:
            with suppress(OSError):
                (self.path / name).unlink()


def _plain(name: str) -> str:
    return "".join(sign if sign in _PLAIN else f"%{ord(sign):02x}" for sign in name)


def private_folder(path: Path) -> Folder:
    """A folder that only this user may enter; it is made if it is missing.

    Raises:
        RefusedError: other users may enter it, or it belongs to another user.
        UsageError: it cannot be made, or its path is too long for a socket in it.
    """
    folder = Folder(path.absolute())
    long = len(os.fsencode(folder.socket.with_name(f"{SOCKET}.new")))
    if long > LONGEST_SOCKET_BYTES:
        raise UsageError(
            f"a socket in {folder.path} would have a path of {long} bytes, but at most {LONGEST_SOCKET_BYTES} are "
            "possible",
            hint="give the job a folder with a shorter path",
        )
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.path.lstat()
    except OSError as error:
        raise UsageError(f"folder {folder.path} cannot be created: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(
            f"{folder.path} is not a private folder of this user", hint=f"remove it or chmod 700 {folder.path}"
        )
    return folder


def claimed(folder: Folder) -> int:
    """Take the lock of a folder's only agent; return its descriptor.

    The lock is held until all copies of that descriptor are closed.

    Raises:
        RefusedError: another agent holds it.
    """
    while True:
        lock = os.open(folder.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 32, 0).decode(errors="replace")
            os.close(lock)
            raise RefusedError(
                f"an agent already serves {folder.path} (pid {pid or 'unknown'})",
                hint="connect to that one: python -m lumctl.training.agent bridge FOLDER",
            ) from None
        # The former agent may have removed the file that we have just locked.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), (folder.path / LOCK).stat()):
                return lock
        os.close(lock)


def holder(folder: Folder) -> int | None:
    """The id of the process that holds the lock, or held it last and may have ended."""
    with suppress(OSError, ValueError):
        return int((folder.path / LOCK).read_text())
    return None


def listening(folder: Folder) -> socket.socket:
    """The agent's socket, listening. The holder of the lock replaces the socket that a killed agent left.

    Raises:
        UsageError: it cannot be made.
    """
    hint = f"free space in {folder.path}, or give the job another folder"
    made = sockets.listening(folder.socket, WAITING, hint=hint)
    made.setblocking(False)  # noqa: FBT003 - the socket's own vocabulary
    return made


WITHIN_S = 10.0
"""How long an agent may take to start, to end, or to accept a connection."""
_TRIES = 3
_ERRORS: Mapping[int, type[LumctlError]] = {ExitCode.USAGE: UsageError, ExitCode.REFUSED: RefusedError}


def open_agent(folder: Path, *, take: bool = False, who: str | None = None) -> MessageLine:
    """Open a coordinator's line to the agent of a folder on this machine; start an agent if none runs.

    The first message received is a ``list``, or ``taken`` if another coordinator is connected and ``take`` is false.
    ``who`` is the name that other coordinators are shown.

    Raises:
        LumctlError: no agent can be started, or none answers.
    """
    line = MessageLine(connected(folder))
    try:
        line.send({"ask": "take" if take else "who", "who": who or f"{os.getpid()}@{socket.gethostname()}"})
    except OSError as error:
        line.close()
        raise UnreachableError(f"the agent of {folder} has closed the connection: {error}", hint="try again") from error
    return line


def connected(path: Path) -> socket.socket:
    """Connect to the agent of a folder; start an agent if none runs.

    Raises:
        LumctlError: no agent can be started, or none answers.
    """
    folder = private_folder(path)
    with _alone(folder):
        for _ in range(_TRIES):
            if (connection := _connect(folder)) is not None:
                return connection
            try:
                _start(folder)
            except RefusedError:
                # An agent that holds the lock and cannot be reached is ending.
                _await_end(holder(folder))
    raise UnreachableError(
        f"the agent of {folder.path} cannot be reached", hint=f"see {folder.errors}, and kill process {holder(folder)}"
    )


def _connect(folder: Folder) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(WITHIN_S)
    try:
        connection.connect(str(folder.socket))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise UnreachableError(
            f"the agent of {folder.path} accepts no connection: {error.strerror or error}"
        ) from error
    connection.settimeout(None)
    return connection


def _start(folder: Folder) -> None:
    # -P: no file of the working folder can replace a module.
    command = [sys.executable, "-P", "-m", "lumctl.training.agent", "serve", str(folder.path)]
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and our own module
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UnreachableError(f"the agent of {folder.path} did not start within {WITHIN_S:g} s") from error
    if done.returncode:
        kind = _ERRORS.get(done.returncode, LumctlError)
        said, *hints = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        hint = next((line.removeprefix("hint: ") for line in hints if line.startswith("hint: ")), None)
        raise kind(said.removeprefix("error: "), hint=hint)


def _await_end(pid: int | None) -> None:
    if pid is None:
        return
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        select.select([pidfd], [], [], WITHIN_S)
    finally:
        os.close(pidfd)


@contextmanager
def _alone(folder: Folder) -> Iterator[None]:
    """Hold the folder's lock, so that only one caller starts an agent."""
    # A lock on the folder itself: the file LOCK is held by the agent.
    held = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
