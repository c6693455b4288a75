"""Nothing leaves for a device without permission, by whichever way it goes."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from lumctl.devices.errors import StaleFenceError
from lumctl.devices.gateway.client import Gateway
from lumctl.devices.gateway.wire import SCHEMA
from lumctl.devices.permission import permission, require_permission, sending_with
from lumctl.devices.ways import Direct
from lumctl.errors import LumctlError
from lumctl.json_lines import connect
from lumctl.sim.client import ask


class Sink:
    """A server that keeps what it is sent, and greets like a gateway."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self.received = b""
        self.ended = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with closing(connection), suppress(ConnectionError):  # its greeting may be left unread
            connection.sendall(json.dumps({"schema": SCHEMA, "rack": "r1", "target": "sim"}).encode() + b"\n")
            while piece := connection.recv(4096):
                self.received += piece
        self.ended.set()


def refuse() -> None:
    raise StaleFenceError("the lease has ended; nothing was sent")


@pytest.fixture
def path(tmp_path: Path) -> Iterator[tuple[Path, Sink]]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        yield tmp_path / "s", Sink(server)


def refused(send: Callable[[], object], sink: Sink) -> None:
    with sending_with(refuse), pytest.raises(StaleFenceError):
        send()
    assert sink.ended.wait(10)
    assert sink.received == b""


def test_a_tcp_connection_sends_only_with_permission() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sink, (host, port) = Sink(server), server.getsockname()
        stream = Direct(f"{host}:{port}").tcp(0, 5.0)
        stream.settimeout(5.0)
        assert stream.recv(1) == b"{"  # reading needs none
        stream.sendall(b"outside a change ")
        with sending_with(refuse), pytest.raises(StaleFenceError):
            stream.sendall(b"under a lease that has ended")
        stream.close()
        assert sink.ended.wait(10)
        assert sink.received == b"outside a change "


def test_a_gateway_is_asked_only_with_permission(path: tuple[Path, Sink]) -> None:
    where, sink = path
    gateway = Gateway("r1", "sim", str(where), lambda within_s: connect(where, within_s))
    refused(lambda: gateway.ask({"call": "commit"}, about="m1", writes=True), sink)


def test_a_simulated_device_is_asked_only_with_permission(path: tuple[Path, Sink]) -> None:
    where, sink = path
    refused(lambda: ask(where, "mesh-write", device="m1"), sink)


def test_another_thread_asks_for_the_permission_of_whoever_it_serves() -> None:
    asked: list[str] = []
    with sending_with(lambda: asked.append("here")):
        granted = permission()
    served = threading.Thread(target=granted)
    served.start()
    served.join()
    require_permission()  # outside: always given
    assert asked == ["here"]


def test_a_permission_ends_with_its_block_whatever_happens_in_it() -> None:
    with pytest.raises(LumctlError), sending_with(refuse):
        require_permission()
    require_permission()
