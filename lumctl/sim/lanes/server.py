"""The process that carries the bytes: ``python -m lumctl.sim.lanes.server``, started by the simulator only.

It is a separate process so that busy lanes do not slow down the simulated devices in the same interpreter. It gets
two descriptors, the socket for requests and the simulator's line, and an order (JSON). The line brings all lit hops,
whenever they change; when it closes, this process ends.
"""

import contextlib
import json
import math
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from lumctl.sim.lanes.exchange import Exchange
from lumctl.sim.lanes.loop import BROKEN, CLOSED, IN, LaneLoop
from lumctl.sim.lanes.ways import Hop

_MOST_BYTES = 4096


class Lines:
    """JSON lines from one socket; ``answer`` is given each. Without an end they are cut off at ``most`` bytes."""

    def __init__(
        self,
        loop: LaneLoop,
        connection: socket.socket,
        take: Callable[[dict[str, Any]], dict[str, Any] | None],
        *,
        most: float = _MOST_BYTES,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop, self._connection, self._take, self._most, self._ended = loop, connection, take, most, ended
        self._received = bytearray()
        connection.settimeout(0.0)
        loop.watch(connection, IN | CLOSED, self._event)

    def _event(self, _events: int) -> None:
        try:
            chunk = self._connection.recv(65536)
            self._received += chunk
            while b"\n" in self._received:
                line, _, self._received = self._received.partition(b"\n")
                answer = self._take(_object(bytes(line)))
                if answer is not None:
                    # A client that does not read its answers is not waited for.
                    self._connection.send(json.dumps(answer).encode() + b"\n", socket.MSG_NOSIGNAL)
        except OSError:
            chunk = b""
        if not chunk or len(self._received) > self._most:
            self._loop.forget(self._connection)
            self._connection.close()
            self._ended()


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def carry(listener: socket.socket, simulator: socket.socket, order: dict[str, Any]) -> None:
    """Carry until the simulator closes its line."""
    loop = LaneLoop()
    rate = math.inf if order["mbps"] is None else order["mbps"] * 1e6 / 8
    exchange = Exchange(loop, order["hosts"], rate=rate)
    ended = []

    def light(said: dict[str, Any]) -> None:
        exchange.light(Hop(*hop) for hop in said["lit"])

    def accept(_events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            Lines(loop, listener.accept()[0], exchange.answer)

    Lines(loop, simulator, light, most=math.inf, ended=lambda: ended.append(True))
    listener.settimeout(0.0)
    loop.watch(listener, IN | BROKEN, accept)
    while not ended:
        exchange.serve_waiting()
        loop.turn(exchange.patience_s())
    exchange.close()
    loop.close()


def main() -> int:
    """The process."""
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listener, simulator = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    carry(listener, simulator, json.loads(sys.argv[3]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
