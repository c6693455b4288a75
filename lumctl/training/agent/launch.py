"""A line to the agent of a folder; an agent is started if none lives."""

import fcntl
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lumctl.errors import ExitCode, LumctlError, RefusedError, UnreachableError, UsageError
from lumctl.training.agent.folder import Folder, holder, private_folder
from lumctl.training.wire import MessageLine

WITHIN_S = 10.0
"""What an agent may take to start, to end, or to let somebody in."""
_TRIES = 3
_ERRORS: Mapping[int, type[LumctlError]] = {ExitCode.USAGE: UsageError, ExitCode.REFUSED: RefusedError}


def open_agent(folder: Path, *, take: bool = False, who: str | None = None) -> MessageLine:
    """Open a coordinator's line to the agent of a folder on this machine, and start the agent if none lives.

    Its first message is a ``list``, or ``taken`` where another coordinator is there and it does not ``take`` its
    place. ``who`` is what others are told then.

    Raises:
        LumctlError: no agent can be started, or none answers.
    """
    line = MessageLine(connected(folder))
    try:
        line.send({"ask": "take" if take else "who", "who": who or f"{os.getpid()}@{socket.gethostname()}"})
    except OSError as error:
        line.close()
        raise UnreachableError(f"the agent of {folder} has hung up: {error}", hint="try again") from error
    return line


def connected(path: Path) -> socket.socket:
    """Connect to the agent of a folder, and start it if none lives.

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
                # One holds the lock that cannot be reached: it ends just now.
                _await_end(holder(folder))
    raise UnreachableError(
        f"the agent of {folder.path} cannot be reached", hint=f"see {folder.errors}, and end process {holder(folder)}"
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
        raise UnreachableError(f"the agent of {folder.path} lets nobody in: {error.strerror or error}") from error
    connection.settimeout(None)
    return connection


def _start(folder: Folder) -> None:
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
    held = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
