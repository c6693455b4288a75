"""``python -m lumctl.training.agent serve FOLDER`` and ``... bridge FOLDER [--take] [--who NAME]``."""

import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from lumctl.errors import LumctlError, UsageError
from lumctl.training.agent.agent import Agent
from lumctl.training.agent.connections import CHUNK_BYTES
from lumctl.training.agent.folder import Folder, claimed, connected, listening, private_folder
from lumctl.training.agent.worker_table import adopted
from lumctl.training.protocol import encoded


def serve(path: Path) -> None:
    """Start an agent for a folder. Once this returns in the caller, the agent accepts connections.

    Raises:
        LumctlError: another agent serves the folder already, or the folder cannot be served.
    """
    folder = private_folder(path)
    lock = claimed(folder)
    with listening(folder) as listener:
        # Connections are accepted from here on, and answered once the agent has found its workers.
        agent = os.fork()
        if agent == 0:
            os.setsid()
            _say_who(lock, os.getpid())
            _leave(folder)
            Agent(folder, listener, adopted(folder, now=time.monotonic(), at=time.time())).run()
            return
        # Here too: the file must name the agent once this returns, even if the agent has not run yet.
        _say_who(lock, agent)
    # The agent has a copy of this descriptor, so the lock stays held.
    os.close(lock)


def _say_who(lock: int, pid: int) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(pid).encode(), 0)


def _leave(folder: Folder) -> None:
    """Detach this process from the terminal, the pipes and the working folder of the process that started it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(folder.errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    for descriptor, place in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(descriptor, place)
    os.close(nothing)
    os.close(errors)
    os.chdir("/")


_OUT_BYTES = 4096
"""The most bytes that a writable pipe accepts without blocking (PIPE_BUF)."""


def bridge(path: Path, *, take: bool = False, who: str | None = None) -> None:
    """Relay until the coordinator or the agent hangs up; start the agent if none runs. The agent outlives this process.

    A second call by the same ``who`` replaces the first: the agent may not have noticed that the first line is cut.

    Raises:
        LumctlError: no agent can be started, or none answers.
    """
    with connected(path) as agent, suppress(BrokenPipeError):
        agent.sendall(encoded({"ask": "take" if take else "who", "who": who or _who()}))
        _relay(agent, sys.stdin.fileno(), sys.stdout.fileno())


def _relay(agent: socket.socket, given: int, output: int) -> None:
    """Relay both directions; never wait for one side only: that side may be waiting for us."""
    ask = tell = b""
    coordinator_there = agent_there = True
    while (agent_there and (coordinator_there or ask)) or tell:
        poll = select.poll()
        _register(poll, agent.fileno(), read=agent_there and not tell, write=agent_there and bool(ask))
        _register(poll, given, read=coordinator_there and not ask)
        _register(poll, output, write=bool(tell))
        ready = {descriptor for descriptor, _ in poll.poll()}
        if given in ready:
            ask = os.read(given, CHUNK_BYTES)
            coordinator_there = bool(ask)
        if output in ready:
            tell = tell[os.write(output, tell[:_OUT_BYTES]) :]
        if agent.fileno() in ready:
            ask = _sent(agent, ask)
            if not tell:
                tell, agent_there = _received(agent)


def _sent(agent: socket.socket, ask: bytes) -> bytes:
    """Send to the agent without waiting; return the unsent rest.

    If the agent has hung up, return nothing: the caller must still read the agent's last messages.
    """
    try:
        return ask[agent.send(ask, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :] if ask else b""
    except BlockingIOError:
        return ask
    except OSError:
        return b""


def _received(agent: socket.socket) -> tuple[bytes, bool]:
    """The bytes the agent sent, and whether it is still connected."""
    try:
        said = agent.recv(CHUNK_BYTES, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b"", True
    except OSError:
        return b"", False
    return said, bool(said)


def _register(poll: select.poll, descriptor: int, *, read: bool = False, write: bool = False) -> None:
    if read or write:
        poll.register(descriptor, (select.POLLIN if read else 0) | (select.POLLOUT if write else 0))


def _who() -> str:
    """The name of this coordinator that other coordinators are shown."""
    here = f"{os.getpid()}@{socket.gethostname()}"
    client = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    return f"{here} for {client}" if client else here


USAGE = "python -m lumctl.training.agent serve FOLDER | bridge FOLDER [--take] [--who NAME]"


def main(words: list[str]) -> int:
    """Execute the command line; return the exit code."""
    try:
        match words:
            case ["serve", folder]:
                serve(Path(folder))
            case ["bridge", folder, *flags, "--who", who] if flags in ([], ["--take"]):
                _bridge(Path(folder), take=bool(flags), who=who)
            case ["bridge", folder, *flags] if flags in ([], ["--take"]):
                _bridge(Path(folder), take=bool(flags))
            case _:
                raise UsageError(f"usage: {USAGE}")
    except LumctlError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return int(error.exit_code)
    return 0


def _bridge(folder: Path, *, take: bool, who: str | None = None) -> None:
    try:
        bridge(folder, take=take, who=who)
    except LumctlError as error:
        # The coordinator may not receive our error output, so the error also travels as a message.
        sys.stdout.buffer.write(encoded({"tell": "refused", "why": error.message, "hint": error.hint}))
        sys.stdout.flush()
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
