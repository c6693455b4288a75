"""paramiko's transport, with what it does per connection and per packet left out where others have seen to it."""

import threading
from typing import TYPE_CHECKING, cast

import paramiko
from paramiko.packet import Packetizer

from lumctl.fleet.ssh.event_loop import current_loop

if TYPE_CHECKING:
    import socket

    from lumctl.fleet.ssh.sockets import BufferedSocket, LoopSocket

_LOOK_S = 0.1


class ReadAheadPacketizer(Packetizer):
    """Without a watch over the handshake: it would be a thread for each connection, and stopped anew by each packet.

    Whoever begins a handshake here has a deadline, and closes the connection at its end. What was read ahead is taken
    as it is.
    """

    def __init__(self, sock: "socket.socket") -> None:
        super().__init__(sock)
        self._ahead = cast("BufferedSocket", sock)

    def start_handshake(self, timeout: float) -> None:
        """Begin a handshake."""

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:  # noqa: FBT002 - as paramiko has it
        """``n`` bytes, waited for if need be."""
        there = self._ahead.take(n)
        return super().read_all(n, check_rekey) if there is None else there


class Transport(paramiko.Transport):
    """A client's transport, with a thread of its own."""

    def __init__(self, sock: "BufferedSocket") -> None:
        # paramiko takes anything with a socket's methods; its type hints know sockets only.
        super().__init__(cast("socket.socket", sock), packetizer_class=ReadAheadPacketizer)


class LoopTransport(Transport):
    """A transport that is a task of the thread that it shares with others. What it calls back must not wait."""

    def __init__(self, sock: "LoopSocket") -> None:
        super().__init__(sock)
        self.clear_to_send = _YieldingEvent()
        self._loop = sock.loop
        self._begun = False
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin the task, where a thread would begin."""
        self._begun = True
        self._loop.start_task(self._live)

    def is_alive(self) -> bool:
        """Whether it has begun, and not ended."""
        return self._begun and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end; a task waits for none."""
        if self._begun and current_loop() is not self._loop:
            self._ended.wait(timeout)

    def _live(self) -> None:
        try:
            self.run()
        finally:
            self._ended.set()


class _YieldingEvent(threading.Event):
    """Waited for by whoever has something to send while new keys are agreed on: at times the very task that does."""

    def wait(self, timeout: float | None = None) -> bool:
        loop = current_loop()
        if loop is None:
            return super().wait(timeout)
        while not self.is_set():
            loop.sleep(_LOOK_S if timeout is None else timeout)
            if timeout is not None:
                break
        return self.is_set()
