"""The sockets of an agent's event loop: accepted, read, written and closed without waiting for any one of them."""

import os
import selectors
import socket
from collections.abc import Callable
from functools import partial
from typing import Protocol

from lumctl.training.agent.peer import AgentPeer
from lumctl.training.wire import BrokenLineError, Message

MOST_STRANGERS = 64
"""Connections that have not said who they are."""
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class HasDescriptor(Protocol):
    """Something that a selector can wait for."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...


class Connections:
    """All connections to one listening socket.

    ``take`` is called with each message, ``gone`` with a peer that hung up or was dropped, ``broken`` with a peer that
    sent an invalid message, and the reason.
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
        """Wait for events, and handle all that have come."""
        for key, mask in self._selector.select(timeout_s):
            key.data(mask)

    def watch(self, thing: HasDescriptor, call: Callable[[], None]) -> None:
        """Have a function called when a descriptor becomes readable."""
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
            self.hear(peer)

    def hear_strangers(self) -> None:
        """Read from all peers that have not introduced themselves."""
        for peer in tuple(self._strangers):
            self.hear(peer)

    def introduced(self, peer: AgentPeer) -> None:
        """A peer has introduced itself."""
        if peer in self._strangers:
            self._strangers.remove(peer)

    def hear(self, peer: AgentPeer) -> bool:
        """Take in what a peer has sent; whether there may be more."""
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
        """Send a message, now or as soon as the peer reads; whether it is still there."""
        try:
            peer.send(message)
        except OSError:
            self.drop(peer)
            return False
        self._tend(peer)
        return True

    def drop(self, peer: AgentPeer) -> None:
        """Hang up."""
        if not peer.closed:
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
                self._tend(peer)
        if mask & _READ:
            self.hear(peer)

    def _tend(self, peer: AgentPeer) -> None:
        """Watch a peer for writing while something is unsent."""
        key, wanted = self._selector.get_key(peer), _READ | (_WRITE if peer.unsent else 0)
        if key.events != wanted:
            self._selector.modify(peer, wanted, key.data)
