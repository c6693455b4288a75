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
from lumctl.training.agent.folder import Folder, claimed, connected, listening, private_folder
from lumctl.training.agent.worker_table import adopted
from lumctl.training.protocol import encoded


def serve(path: Path) -> None:
    """Start an agent for a folder. Once this returns in the caller, the agent accepts connections.

    Raises:
        LumctlError: another serves it already, or it cannot be served.
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
        _say_who(lock, agent)
    os.close(lock)


def _say_who(lock: int, pid: int) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(pid).encode(), 0)


def _leave(folder: Folder) -> None:
    """Let go of the starter's terminal, pipes and working folder."""
    nothing = os.open(os.devnull, os.O_RDWR)
    errors = os.open(folder.errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    for descriptor, place in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(descriptor, place)
    os.close(nothing)
    os.close(errors)
    os.chdir("/")


CHUNK_BYTES = 1 << 16
_OUT_BYTES = 4096
"""What a pipe that can be written takes without making us wait (PIPE_BUF)."""


def bridge(path: Path, *, take: bool = False, who: str | None = None) -> None:
    """Relay until the coordinator or the agent hangs up; the agent is started if need be, and outlives us.

    A second call by the same ``who`` replaces the first, whose line may be cut without the agent knowing.

    Raises:
        LumctlError: no agent can be started, or none answers.
    """
    with connected(path) as agent, suppress(BrokenPipeError):
        agent.sendall(encoded({"ask": "take" if take else "who", "who": who or _who()}))
        _relay(agent, sys.stdin.fileno(), sys.stdout.fileno())


def _relay(agent: socket.socket, given: int, output: int) -> None:
    """Relay both directions; never wait for one side alone, for it may wait for us."""
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
    """What is left to send; nothing if the agent has hung up, since its last messages are still to be read."""
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
    """The name of this coordinator, as a second one is told it."""
    here = f"{os.getpid()}@{socket.gethostname()}"
    client = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    return f"{here} for {client}" if client else here


USAGE = "python -m lumctl.training.agent serve FOLDER | bridge FOLDER [--take] [--who NAME]"


def main(words: list[str]) -> int:
    """Do what the command line says; its exit code."""
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
        # The coordinator's end of the line may not see what we print beside it.
        sys.stdout.buffer.write(encoded({"tell": "refused", "why": error.message, "hint": error.hint}))
        sys.stdout.flush()
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
