"""The names of paramiko that it does not promise to keep, and that lumctl uses or replaces: all of them, and why.

Only :mod:`lumctl.fleet.ssh.fast_client` and its sockets use them. If the installed paramiko lacks one of these names,
:func:`missing` says so, and lumctl uses :mod:`lumctl.fleet.ssh.plain_client` instead, which needs none of them.
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
    # A paramiko without it is found by `missing`; what is defined below is not used then.
    Packetizer = getattr(getattr(paramiko, "packet", None), "Packetizer", object)

_REKEY_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class InternalName:
    """A name that paramiko does not promise."""

    name: str
    use: str
    """What lumctl does with it."""
    reason: str
    """Why paramiko's public API does not do."""
    breakage: str
    """What goes wrong if paramiko changes it."""
    is_there: Callable[[], bool]
    """Whether the installed paramiko has it as lumctl needs it; an exception means no."""


class StandInSocket:
    """What paramiko needs of a socket beyond its methods: it reads ``_closed`` when it stops a connection's thread."""

    _closed = False
    closed = False

    def mark_closed(self) -> None:
        """Note that the socket is closed."""
        self.closed = self._closed = True


class ReadAhead(Protocol):
    """A socket that has read more than it was asked for."""

    def take(self, size: int) -> bytes | None:
        """Return ``size`` bytes that were read before, or ``None`` if there are fewer."""


class ReadAheadPacketizer(Packetizer):
    """A packetizer without a handshake timer, which takes bytes that were read ahead as they are."""

    def __init__(self, sock: "socket.socket") -> None:
        super().__init__(sock)
        self.__read_ahead = cast("ReadAhead", sock)

    def start_handshake(self, timeout: float) -> None:
        """Start no timer: the caller has a deadline of its own and closes the connection when it passes."""

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:  # noqa: FBT002 - paramiko's signature
        """Return ``n`` bytes; wait for them only if they were not read ahead."""
        ready = self.__read_ahead.take(n)
        return super().read_all(n, check_rekey) if ready is None else ready


class ThreadTransport(paramiko.Transport):
    """A client's transport with a thread of its own."""

    def __init__(self, sock: object) -> None:
        # paramiko takes any object with a socket's methods; its type hints know sockets only.
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
        """Start the task where paramiko starts its thread."""
        self.__started = True
        self.__loop.start_task(self.__run_task)

    def is_alive(self) -> bool:
        """Whether the task has started and not ended."""
        return self.__started and not self.__finished.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the task's end; return at once in the loop's own thread, which the wait would block."""
        if self.__started and current_loop() is not self.__loop:
            self.__finished.wait(timeout)

    def __run_task(self) -> None:
        try:
            self.run()
        finally:
            self.__finished.set()


class _YieldingEvent(threading.Event):
    """An event that a task can wait for: during a key exchange the task itself may have something to send."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait; a task yields meanwhile."""
        loop = current_loop()
        if loop is None:
            return super().wait(timeout)
        while not self.is_set():
            loop.sleep(_REKEY_LOOK_S if timeout is None else timeout)
            if timeout is not None:
                break
        return self.is_set()


class LoopAgentKey(paramiko.AgentKey):
    """A key of the SSH agent, which may ask its user before it signs: other connections continue meanwhile."""

    @classmethod
    def of(cls, key: paramiko.AgentKey) -> "LoopAgentKey":
        """The same key of the same agent."""
        return cls(key.agent, key.blob, key.comment)

    def sign_ssh_data(self, data: Any, algorithm: str | None = None) -> paramiko.Message:
        """Have the agent sign."""
        return run_apart(lambda: super(LoopAgentKey, self).sign_ssh_data(data, algorithm))


def sending_test(transport: paramiko.Transport) -> Callable[[], bool]:
    """A call that tells whether sending does not wait for a key exchange."""
    return transport.clear_to_send.is_set


def end_test(channel: paramiko.Channel) -> Callable[[], bool]:
    """A call that tells whether the host has closed the channel, or sends no more on it."""
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
    """Connects to nothing: to look at a transport's attributes."""

    def settimeout(self, _timeout_s: float | None) -> None:
        pass

    def close(self) -> None:
        pass


INTERNAL_NAMES = (
    InternalName(
        name="Socket._closed",
        use="our sockets have this attribute (StandInSocket)",
        reason="paramiko documents that it takes any socket-like object, and lists neither this name nor others",
        breakage="closing a connection raises AttributeError",
        is_there=lambda: "packetizer_class" in _parameters(paramiko.Transport.__init__),
    ),
    InternalName(
        name="Packetizer.start_handshake",
        use="replaced: no timer",
        reason="paramiko starts a timer thread for each connection and cancels it again for each packet after that; "
        "no setting turns it off",
        breakage="a thread for each connection comes back; nothing else",
        is_there=lambda: _parameters(Packetizer.start_handshake) == ["self", "timeout"],
    ),
    InternalName(
        name="Packetizer.read_all",
        use="replaced: takes bytes that our socket has read ahead",
        reason="paramiko makes two system calls for each packet, with the interpreter's lock passed around at each; "
        "there is no public hook between socket and packet",
        breakage="packets are read one piece at a time; if the meaning changes, the handshake fails",
        is_there=lambda: _parameters(Packetizer.read_all) == ["self", "n", "check_rekey"],
    ),
    InternalName(
        name="Transport.start, run, is_alive, join",
        use="start, is_alive and join are replaced, run is called: a task of the event loop instead of a thread",
        reason="threads that wake at once compete for one lock: a tick over 128 hosts costs 3 to 4 times the CPU",
        breakage="connections have a thread each, or do not start",
        is_there=lambda: issubclass(paramiko.Transport, threading.Thread) and "run" in vars(paramiko.Transport),
    ),
    InternalName(
        name="Transport.clear_to_send",
        use="replaced by an event that yields; read before anything is sent to many hosts",
        reason="while a key exchange is under way paramiko blocks the sender for up to 30 s; nothing public says so",
        breakage="a host that stalls in a key exchange delays the reading of all hosts",
        is_there=lambda: isinstance(paramiko.Transport(cast("Any", _NoSocket())).clear_to_send, threading.Event),
    ),
    InternalName(
        name="Channel.eof_received",
        use="read: the host's shell closed its outputs",
        reason="the public sign is an empty read, which needs a read that may wait or take data away",
        breakage="a shell that closes its outputs and continues is noticed only when its next answer is late",
        is_there=lambda: hasattr(paramiko.Channel(0), "eof_received"),
    ),
    InternalName(
        name="Channel.status_event",
        use="waited for: the exit status of a command",
        reason="recv_exit_status waits without a limit",
        breakage="a command that does not end holds its caller for ever",
        is_there=lambda: isinstance(paramiko.Channel(0).status_event, threading.Event),
    ),
    InternalName(
        name="AgentKey.agent, blob, comment",
        use="read, to make a key that signs in a thread of its own",
        reason="an agent may wait for its user's touch, and would hold up every other connection",
        breakage="keys of the agent cannot be offered",
        is_there=lambda: _parameters(paramiko.AgentKey.__init__) == ["self", "agent", "blob", "comment"],
    ),
)
