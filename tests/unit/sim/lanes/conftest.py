"""Lanes without a simulator: their loop is turned by hand, and their clock stands still unless a test moves it."""

import math
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from lumctl.sim.lanes.loop import LaneLoop
from lumctl.sim.lanes.server import Exchange
from lumctl.sim.lanes.ways import Hop

HOSTS = {"a0": "a", "b0": "b", "c0": "c", "d0": "d", "d1": "d"}
WITHIN_S = 20.0


def hops(*pairs: str) -> list[Hop]:
    """``ab``: a transmitter of a0 is heard by b0; ``ab2``: another one."""
    return [Hop(f"{each[0]}{each[2:]}", f"{each[1]}{each[2:]}", f"{each[0]}0", f"{each[1]}0") for each in pairs]


class Yard:
    """An exchange, and connections that run through it."""

    def __init__(self, rate: float) -> None:
        self.time = 0.0
        self.loop = LaneLoop()
        self.exchange = Exchange(self.loop, HOSTS, rate=rate, clock=lambda: self.time)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]

    def turn(self) -> None:
        self.exchange.serve_waiting()
        self.loop.turn(0.0)

    def until(self, fulfilled: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not fulfilled():
            self.turn()
            assert time.monotonic() < deadline

    def quiet(self) -> None:
        """Turn until nothing happens any more: the kernel hands on what goes over loopback before it returns."""
        for _ in range(50):
            self.turn()

    def endpoint(self, source: str, sink: str) -> tuple[str, int]:
        answer = self.exchange.answer({"from": source, "to": sink, "address": self._listener.getsockname()})
        ip, port = answer["endpoint"]
        return ip, port

    def joined(self, source: str, sink: str) -> tuple[socket.socket, socket.socket]:
        """Two ends of a connection through the exchange: who connected, and who accepted."""
        near = socket.create_connection(self.endpoint(source, sink))
        count = self.exchange.status()["connections"]
        self.until(lambda: self.exchange.status()["connections"] == count + 1)
        far, _ = self._listener.accept()
        for end in (near, far):
            end.settimeout(0.0)
            self._sockets.append(end)
        return near, far

    def close(self) -> None:
        self.exchange.close()
        self.loop.close()
        for each in self._sockets:
            each.close()


def received(end: socket.socket) -> bytes | None:
    """What has come, all of it; ``None`` if nothing has, and nothing can be said about the end either."""
    found = bytearray()
    try:
        while chunk := end.recv(1 << 20):
            found += chunk
    except BlockingIOError:
        return bytes(found) or None
    return bytes(found)


@pytest.fixture
def make_yard() -> Iterator[Callable[..., Yard]]:
    made: list[Yard] = []

    def make(rate: float = math.inf) -> Yard:
        made.append(Yard(rate))
        return made[-1]

    yield make
    for yard in made:
        yard.close()


@pytest.fixture
def yard(make_yard) -> Yard:
    return make_yard()


@pytest.fixture(name="hops")
def _hops():
    return hops


@pytest.fixture(name="received")
def _received():
    return received
