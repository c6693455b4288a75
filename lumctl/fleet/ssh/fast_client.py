"""The SSH client that reads hundreds of hosts in one thread, on paramiko with parts of it replaced."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import paramiko

from lumctl.fleet.ssh.connection import Connection, Link
from lumctl.fleet.ssh.event_loop import EventLoop
from lumctl.fleet.ssh.paramiko_internals import (
    LoopAgentKey,
    LoopTransport,
    ThreadTransport,
    end_test,
    sending_test,
    wait_for_status,
)
from lumctl.fleet.ssh.sockets import BufferedSocket, LoopSocket, ProxySocket
from lumctl.fleet.ssh.streams import connect_tcp

if TYPE_CHECKING:
    from lumctl.fleet.conversation import Conversation


class FastClient:
    """Connections of one event loop."""

    def __init__(self) -> None:
        self._loop = EventLoop("ssh")

    def over_tcp(self, address: str, port: int, timeout_s: float) -> Connection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return FastConnection(LoopSocket(connect_tcp(address, port, timeout_s), self._loop))

    def over_command(self, command: str) -> Connection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return FastConnection(ProxySocket(command, self._loop))

    def over_channel(self, channel: paramiko.Channel) -> Connection:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return FastConnection(BufferedSocket(channel))

    def agent_key(self, key: paramiko.AgentKey) -> paramiko.PKey:
        """See :class:`lumctl.fleet.ssh.connection.Client`."""
        return LoopAgentKey.of(key)


class FastConnection(Connection):
    """A connection of the event loop; over another connection's channel, which has no socket, one with a thread."""

    def __init__(self, sock: BufferedSocket) -> None:
        try:
            super().__init__(LoopTransport(sock, sock.loop) if isinstance(sock, LoopSocket) else ThreadTransport(sock))
        except BaseException:
            sock.close()
            raise
        self.sock = sock

    def end_timeouts(self) -> None:
        """See :class:`Connection`."""
        self.sock.end_timeouts()

    def link(self, channel: paramiko.Channel) -> Link:
        """See :class:`Connection`."""
        return _FastLink(self, channel)

    def wait_for_status(self, channel: paramiko.Channel, timeout_s: float) -> bool:
        """See :class:`Connection`."""
        return wait_for_status(channel, timeout_s)

    def close(self) -> None:
        """See :class:`Connection`."""
        self.transport.close()
        self.sock.close()


class _FastLink:
    """The connection's own thread drains the conversation whenever it is about to wait for the host."""

    def __init__(self, connection: FastConnection, channel: paramiko.Channel) -> None:
        self._sock = connection.sock
        self._conversation: Conversation
        # Called several times per host and tick: bound here, without a method around each.
        self.can_send = sending_test(connection.transport)
        self.has_ended = end_test(channel)
        self.call_soon = self._sock.loop.call_soon if isinstance(self._sock, LoopSocket) else _call_now

    def attach(self, conversation: "Conversation") -> None:
        self._conversation = conversation
        self._sock.on_closed = lambda: conversation.end("the connection was lost")

    def start(self) -> None:
        self._sock.on_idle = self._conversation.drain

    def close(self) -> None:
        """Nothing: the conversation closes its channel when it is drained."""

    def is_lost(self) -> bool:
        return False  # the socket's on_closed says so


def _call_now(call: Callable[[], None]) -> None:
    call()
