"""One thread that waits for many sockets: what each of them is watched for, and who handles it."""

import select
import socket
from collections.abc import Callable

Handler = Callable[[int], None]
"""Is given the mask of events that came."""

IN, OUT, CLOSED = select.EPOLLIN, select.EPOLLOUT, select.EPOLLRDHUP
BROKEN = select.EPOLLERR | select.EPOLLHUP
"""This event is reported for every watched socket, even if it was not requested."""
_MOST_EVENTS = 256


class LaneLoop:
    """Level-triggered. A socket must be let go of before it is closed."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, tuple[int, Handler]] = {}

    def watch(self, watched: socket.socket, mask: int, handler: Handler) -> None:
        """From now on call ``handler`` for these events of a socket; for none at all with an empty mask."""
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
        """Let go of a socket; does nothing if it was not watched."""
        if self._watched.pop(watched.fileno(), None):
            self._epoll.unregister(watched.fileno())

    def turn(self, timeout_s: float | None) -> None:
        """Wait for events, at most so long (``None``: for ever), and have them handled."""
        for number, events in self._epoll.poll(timeout_s, _MOST_EVENTS):
            # A handler of the same turn may have let go of this one.
            if number in self._watched:
                self._watched[number][1](events)

    def close(self) -> None:
        """Close the system's descriptor."""
        self._epoll.close()
