"""All names outside paramiko's public API that lumctl uses or replaces, with the reason for each.

Only :mod:`lumctl.fleet.ssh.fast_client` and its sockets use them. If the installed paramiko lacks one of these names,
:func:`missing` lists it, and lumctl uses :mod:`lumctl.fleet.ssh.plain_client` instead, which needs none of them.
``tests/unit/fleet/test_paramiko_internals.py`` finds private uses of paramiko in other files.
"""

import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

import paramiko

from lumctl.fleet.ssh.event_loop import EventLoop, current_loop, run_apart

if TYPE_CHECKING:
    import socket

    from paramiko.packet import Packetizer
else:
    # If paramiko lacks it, `missing` lists it, and the classes below are not used.
    Packetizer = getattr(getattr(paramiko, "packet", None), "Packetizer", object)

_REKEY_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class InternalName:
    """A name that paramiko does not promise to keep."""

    name: str
    use: str
    """What lumctl does with it."""
    reason: str
    """Why paramiko's public API is not enough."""
    breakage: str
    """The consequence if paramiko changes this internal name."""
    is_there: Callable[[], bool]
    """Whether the installed paramiko has the name in the form that lumctl needs; an exception means no."""


class StandInSocket:
    """The attribute that paramiko needs of a socket: it reads ``_closed`` when it stops a connection's thread."""

    _closed = False
    closed = False

    def mark_closed(self) -> None:
        """Note that the socket is closed."""
        self.closed = self._closed = True


class ReadAhead(Protocol):
    """A socket that has read more than was requested."""

    def take(self, size: int) -> bytes | None:
        """Return ``size`` bytes that were read before, or ``None`` if there are fewer."""


class ReadAheadPacketizer(Packetizer):
    """A packetizer without a handshake timer. It takes bytes that were read ahead directly from the socket."""

    def __init__(self, sock: "socket.socket") -> None:
        super().__init__(sock)
        # Two underscores, here and below: an attribute of paramiko's own class cannot have this name.
        self.__read_ahead = cast("ReadAhead", sock)

    def start_handshake(self, timeout: float) -> None:
        """Do nothing: the caller has its own deadline, and closes the connection when it passes."""

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:  # noqa: FBT002 - paramiko's signature
        """Return ``n`` bytes; wait for them only if they were not read ahead."""
        ready = self.__read_ahead.take(n)
        return super().read_all(n, check_rekey) if ready is None else ready


class ThreadTransport(paramiko.Transport):
    """A client's transport with a thread of its own."""

    def __init__(self, sock: object) -> None:
        # paramiko accepts any object with a socket's methods, but its type hints name only sockets.
        super().__init__(cast("socket.socket", sock), packetizer_class=ReadAheadPacketizer)


class LoopTransport(ThreadTransport):
    """A transport that runs as a task of an event loop. Its callbacks run in the loop's thread and must not wait."""

    def __init__(self, sock: object, loop: EventLoop) -> None:
        super().__init__(sock)
        self.clear_to_send = _YieldingEvent()
        self.__loop = loop
        self.__started = False
        self.__finished = threading.Event()

    def start(self) -> None:
        """Start the task when paramiko starts its thread."""
        self.__started = True
        self.__loop.start_task(self.__run_task)

    def is_alive(self) -> bool:
        """Whether the task has started and not ended."""
        return self.__started and not self.__finished.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the task's end. In the loop's own thread, return at once, because waiting would block the loop."""
        if self.__started and current_loop() is not self.__loop:
            self.__finished.wait(timeout)

    def __run_task(self) -> None:
        try:
            self.run()
        finally:
            self.__finished.set()


class _YieldingEvent(threading.Event):
    """An event that a task can wait for. The task may have to: it may want to send during a key exchange."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait; a task yields meanwhile."""
        loop = current_loop()
        if loop is None:
            return super().wait(timeout)
        while not self.is_set():
            # Setting the event does not wake a task, so the task looks again.
            loop.sleep(_REKEY_LOOK_S if timeout is None else timeout)
            if timeout is not None:
                break
        return self.is_set()


class LoopAgentKey(paramiko.AgentKey):
    """A key of the SSH agent. The agent may ask its user before it signs; other connections continue meanwhile."""

    @classmethod
    def of(cls, key: paramiko.AgentKey) -> "LoopAgentKey":
        """The same key of the same agent."""
        return cls(key.agent, key.blob, key.comment)

    def sign_ssh_data(self, data: Any, algorithm: str | None = None) -> paramiko.Message:
        """Have the agent sign."""
        return run_apart(lambda: super(LoopAgentKey, self).sign_ssh_data(data, algorithm))


def sending_test(transport: paramiko.Transport) -> Callable[[], bool]:
    """A function that returns whether sending is possible without waiting for a key exchange."""
    return transport.clear_to_send.is_set


def end_test(channel: paramiko.Channel) -> Callable[[], bool]:
    """A function that returns whether the host has closed the channel, or sends no more on it."""
    return lambda: bool(channel.eof_received) or channel.exit_status_ready()


def wait_for_status(channel: paramiko.Channel, timeout_s: float) -> bool:
    """Wait for a command's exit status; ``False`` if it did not come in time."""
    return channel.status_event.wait(timeout_s)


@cache
def missing() -> tuple[str, ...]:
    """Names of :data:`INTERNAL_NAMES` that the installed paramiko lacks."""
    return tuple(internal.name for internal in INTERNAL_NAMES if not _is_there(internal))


def _is_there(internal: InternalName) -> bool:
    try:
        return internal.is_there()
    except Exception:  # noqa: BLE001 - another paramiko may fail in any way
        return False


def _parameters(function: Callable[..., object]) -> list[str]:
    return list(inspect.signature(function).parameters)


class _NoSocket(StandInSocket):
    """A socket that is not connected, used to inspect a transport's attributes."""

    def settimeout(self, _timeout_s: float | None) -> None:
        pass

    def close(self) -> None:
        pass


INTERNAL_NAMES = (
    InternalName(
        name="Socket._closed",
        use="our sockets have this attribute (StandInSocket)",
        reason="paramiko documents that it accepts any socket-like object, but lists neither this name nor others",
        breakage="closing a connection raises AttributeError",
        is_there=lambda: "packetizer_class" in _parameters(paramiko.Transport.__init__),
    ),
    InternalName(
        name="Packetizer.start_handshake",
        use="replaced: no timer",
        reason=(
            "paramiko starts a timer thread for each connection and cancels it again for each later packet; no "
            "setting turns it off"
        ),
        breakage="each connection has a thread again; nothing else changes",
        is_there=lambda: _parameters(Packetizer.start_handshake) == ["self", "timeout"],
    ),
    InternalName(
        name="Packetizer.read_all",
        use="replaced: returns bytes that our socket has read ahead",
        reason=(
            "paramiko makes two system calls for each packet and passes on the interpreter's lock at each; there is "
            "no public hook between socket and packet"
        ),
        breakage="packets are read one piece at a time; if the meaning changes, the handshake fails",
        is_there=lambda: _parameters(Packetizer.read_all) == ["self", "n", "check_rekey"],
    ),
    InternalName(
        name="Transport.start, run, is_alive, join",
        use="start, is_alive and join are replaced, run is called: a task of the event loop instead of a thread",
        reason=(
            "threads that wake at the same time compete for one lock: a tick over 128 hosts costs 3 to 4 times the CPU"
        ),
        breakage="each connection has a thread, or does not start",
        is_there=lambda: issubclass(paramiko.Transport, threading.Thread) and "run" in vars(paramiko.Transport),
    ),
    InternalName(
        name="Transport.clear_to_send",
        use="replaced by an event that yields; read before anything is sent to many hosts",
        reason="during a key exchange paramiko blocks the sender for up to 30 s; no public attribute shows this",
        breakage="a host that stalls in a key exchange delays the reading of all hosts",
        is_there=lambda: isinstance(paramiko.Transport(cast("Any", _NoSocket())).clear_to_send, threading.Event),
    ),
    InternalName(
        name="Channel.eof_received",
        use="read: the host's shell closed its outputs",
        reason="the only public sign is an empty read, which may wait or remove data",
        breakage="a shell that closes its outputs and continues is noticed only when its next answer is late",
        is_there=lambda: hasattr(paramiko.Channel(0), "eof_received"),
    ),
    InternalName(
        name="Channel.status_event",
        use="waited for: the exit status of a command",
        reason="recv_exit_status waits without a limit",
        breakage="a command that does not end blocks its caller forever",
        is_there=lambda: isinstance(paramiko.Channel(0).status_event, threading.Event),
    ),
    InternalName(
        name="AgentKey.agent, blob, comment",
        use="read to make a key that signs in its own thread",
        reason="an agent may wait until its user touches a key, which would delay every other connection",
        breakage="keys of the agent cannot be offered",
        is_there=lambda: _parameters(paramiko.AgentKey.__init__) == ["self", "agent", "blob", "comment"],
    ),
)
