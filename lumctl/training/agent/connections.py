"""The sockets of an agent's event loop: accepted, read, written and closed without waiting for any one of them."""

import os
import selectors
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from lumctl.sockets import credentials_of
from lumctl.training.protocol import MOST_BYTES, BrokenLineError, Message, decoded, encoded

MOST_UNSENT_BYTES = 2 * MOST_BYTES
"""The most unsent bytes for a peer that does not read; a peer that exceeds them is dropped."""
CHUNK_BYTES = 1 << 16


class AgentPeer:
    """A worker, a coordinator, or a peer that has not introduced itself.

    ``pid`` and ``uid`` identify the process that connected, as the kernel reports it. ``name`` is for messages.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)  # noqa: FBT003 - the socket's own vocabulary
        self._connection = connection
        self._received = bytearray()
        self._unsent = bytearray()
        self.closed = False
        self.pid, self.uid = credentials_of(connection)
        self.name = f"process {self.pid}"
        self._called: set[str] = set()

    def set_name(self, name: str | None) -> None:
        """Note the name that the peer gives itself, if any."""
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
        """Whether some bytes are still unsent."""
        return bool(self._unsent)

    def read(self) -> bool:
        """Read the bytes that have arrived; return false if there are none.

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
        """The messages that were read; none after the peer was closed.

        Raises:
            BrokenLineError: the next line is not a message.
        """
        end = self._received.rfind(b"\n") + 1
        lines = bytes(self._received[: end - 1]).split(b"\n") if end else []
        del self._received[:end]
        for line in lines:
            if self.closed:
                return
            yield decoded(line)
        if len(self._received) > MOST_BYTES:
            raise BrokenLineError("a line without an end")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message, now or as soon as the peer reads.

        Raises:
            OSError: the connection broke, or too many bytes are unsent already.
        """
        self._unsent += encoded(message)
        self.flush()
        if len(self._unsent) > MOST_UNSENT_BYTES:
            raise TimeoutError("it does not read its messages")

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


MOST_STRANGERS = 64
"""The most connections of peers that have not introduced themselves; beyond that the oldest is dropped."""
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class HasDescriptor(Protocol):
    """Something that a selector can wait for."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...


class Connections:
    """All connections to one listening socket.

    ``take`` is called with each message, ``gone`` with a peer that hung up or was dropped, and ``broken`` with a peer
    that sent an invalid message and with the reason.
    """

    def __init__(
        self,
        listener: socket.socket,
        *,
        take: Callable[[AgentPeer, Message], None],
        gone: Callable[[AgentPeer], None],
        broken: Callable[[AgentPeer, str], None],
    ) -> None:
        self._listener = listener
        self._take, self._gone, self._broken = take, gone, broken
        self._strangers: list[AgentPeer] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, _READ, lambda _mask: self.accept())

    def turn(self, timeout_s: float | None) -> None:
        """Wait for events, and handle all that have arrived."""
        for key, mask in self._selector.select(timeout_s):
            key.data(mask)

    def watch(self, thing: HasDescriptor, call: Callable[[], None]) -> None:
        """Call a function whenever a descriptor becomes readable."""
        self._selector.register(thing, _READ, lambda _mask: call())

    def unwatch(self, thing: HasDescriptor) -> None:
        """Stop watching a descriptor."""
        self._selector.unregister(thing)

    def accept(self) -> None:
        """Accept all waiting connections, and read what they have sent."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            peer = AgentPeer(connection)
            if peer.uid != os.getuid():
                peer.close()
                continue
            self._selector.register(peer, _READ, partial(self._ready, peer))
            self._strangers.append(peer)
            if len(self._strangers) > MOST_STRANGERS:
                self.drop(self._strangers[0])
            self.read(peer)

    def read_strangers(self) -> None:
        """Read from all peers that have not introduced themselves."""
        for peer in tuple(self._strangers):
            self.read(peer)

    def introduced(self, peer: AgentPeer) -> None:
        """Note that a peer has introduced itself."""
        if peer in self._strangers:
            self._strangers.remove(peer)

    def read(self, peer: AgentPeer) -> bool:
        """Read and handle what a peer has sent; return whether there may be more."""
        if peer.closed:
            return False
        try:
            if not peer.read():
                return False
            for message in peer.messages():
                self._take(peer, message)
        except BrokenLineError as error:
            self._broken(peer, str(error))
        except OSError:
            self.drop(peer)
        return not peer.closed

    def send(self, peer: AgentPeer, message: Message) -> bool:
        """Send a message, now or as soon as the peer reads; return whether the peer is still connected."""
        try:
            peer.send(message)
        except OSError:
            self.drop(peer)
            return False
        self._watch_writable(peer)
        return True

    def drop(self, peer: AgentPeer) -> None:
        """Close the connection to a peer."""
        if not peer.closed:
            # Before it is closed: afterwards the socket has no descriptor to look up.
            self._selector.unregister(peer)
            peer.close()
            self.introduced(peer)
            self._gone(peer)

    def close(self) -> None:
        """Close all connections; other watched descriptors belong to their owners."""
        for key in tuple(self._selector.get_map().values()):
            if isinstance(key.fileobj, AgentPeer):
                self.drop(key.fileobj)
        self._selector.close()
        self._listener.close()

    def _ready(self, peer: AgentPeer, mask: int) -> None:
        if mask & _WRITE and not peer.closed:
            try:
                peer.flush()
            except OSError:
                self.drop(peer)
            else:
                self._watch_writable(peer)
        if mask & _READ:
            self.read(peer)

    def _watch_writable(self, peer: AgentPeer) -> None:
        """Watch a peer for writing while something is unsent."""
        key, wanted = self._selector.get_key(peer), _READ | (_WRITE if peer.unsent else 0)
        if key.events != wanted:
            self._selector.modify(peer, wanted, key.data)
