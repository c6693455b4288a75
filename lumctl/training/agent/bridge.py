"""A coordinator's line from another machine: standard input goes to the agent, its messages to standard output."""

import os
import select
import socket
import sys
from contextlib import suppress
from pathlib import Path

from lumctl.training.agent.launch import connected
from lumctl.training.wire import encoded

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
