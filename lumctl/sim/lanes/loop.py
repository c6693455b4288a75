"""An event loop for many sockets in one thread: which events of a socket are watched, and who handles them."""

import select
import socket
from collections.abc import Callable

Handler = Callable[[int], None]
"""A function that is called with the mask of the events that occurred."""

IN, OUT, CLOSED = select.EPOLLIN, select.EPOLLOUT, select.EPOLLRDHUP
BROKEN = select.EPOLLERR | select.EPOLLHUP
"""This event is reported for every watched socket, even if it was not requested."""
_MOST_EVENTS = 256


class LaneLoop:
    """A level-triggered event loop. Call :meth:`forget` for a socket before closing it."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, tuple[int, Handler]] = {}

    def watch(self, watched: socket.socket, mask: int, handler: Handler) -> None:
        """Call ``handler`` for these events of a socket from now on; an empty mask watches no events."""
        number = watched.fileno()
        before = self._watched.get(number)
        if mask == 0:
            self.forget(watched)
        elif before is None:
            self._epoll.register(number, mask)
            self._watched[number] = (mask, handler)
        elif before[0] != mask:
            self._epoll.modify(number, mask)
            self._watched[number] = (mask, handler)

    def forget(self, watched: socket.socket) -> None:
        """Stop watching a socket; do nothing if it is not watched."""
        if self._watched.pop(watched.fileno(), None):
            self._epoll.unregister(watched.fileno())

    def turn(self, timeout_s: float | None) -> None:
        """Wait for events for at most ``timeout_s`` (``None``: no limit), and call their handlers."""
        for number, events in self._epoll.poll(timeout_s, _MOST_EVENTS):
            # Another handler of the same turn may have stopped watching this socket.
            if number in self._watched:
                self._watched[number][1](events)

    def close(self) -> None:
        """Close the file descriptor of the loop."""
        self._epoll.close()
