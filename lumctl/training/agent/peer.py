"""One connection of an agent, which waits for it neither to read nor to write."""

import socket
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lumctl.training.wire import MOST_BYTES, BrokenLineError, Message, decoded, encoded

if TYPE_CHECKING:
    from lumctl.training.agent.worker import Worker

MOST_UNSENT_BYTES = 2 * MOST_BYTES
"""What may wait for a peer that does not read before it is given up."""
CHUNK_BYTES = 1 << 16
_CREDENTIALS = struct.Struct("3i")


class AgentPeer:
    """A worker, a coordinator, or a peer that has not introduced itself.

    ``pid`` and ``uid`` are the kernel's word for who connected. ``name`` is what it is called in messages, ``worker``
    the worker that it is.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)  # noqa: FBT003 - the socket's own vocabulary
        self._connection = connection
        self._received = bytearray()
        self._unsent = bytearray()
        self.closed = False
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self.pid, self.uid, _ = _CREDENTIALS.unpack(credentials)
        self.name = f"process {self.pid}"
        self.worker: Worker | None = None
        self._called: set[str] = set()

    def calls_itself(self, name: str | None) -> None:
        """Take in the name that it gives itself, if it does."""
        if name is not None:
            self.name = name
            self._called.add(name)

    def is_again(self, former: "AgentPeer") -> bool:
        """Whether this is the same coordinator as an earlier peer."""
        return not self._called.isdisjoint(former._called)  # noqa: SLF001 - of the same class

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._connection.fileno()

    @property
    def unsent(self) -> bool:
        """Whether something is still unsent."""
        return bool(self._unsent)

    def read(self) -> bool:
        """Read what has arrived; false if nothing has.

        Raises:
            OSError: the connection broke, or its other end has closed it.
        """
        try:
            chunk = self._connection.recv(CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            raise ConnectionResetError("closed")
        self._received += chunk
        return True

    def messages(self) -> Iterator[Message]:
        """The messages of what was read, until it is closed.

        Raises:
            BrokenLineError: the next is no message.
        """
        end = self._received.rfind(b"\n") + 1
        lines = bytes(self._received[: end - 1]).split(b"\n") if end else []
        del self._received[:end]
        for line in lines:
            if self.closed:
                return
            yield decoded(line)
        if len(self._received) > MOST_BYTES:
            raise BrokenLineError("a line without end")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message, now or as soon as the peer reads.

        Raises:
            OSError: the connection broke, or too much waits already.
        """
        self._unsent += encoded(message)
        self.flush()
        if len(self._unsent) > MOST_UNSENT_BYTES:
            raise TimeoutError("it does not read what it is told")

    def flush(self) -> None:
        """Send as much as the peer accepts now.

        Raises:
            OSError: the connection broke.
        """
        while self._unsent:
            try:
                sent = self._connection.send(self._unsent, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            del self._unsent[:sent]

    def close(self) -> None:
        """Close the connection; the peer can still read what was sent."""
        self.closed = True
        self._connection.close()
