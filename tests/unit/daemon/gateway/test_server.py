"""The socket between a program and a gateway: who is there, who has gone, and what is nonsense."""

import json
import os
import socket
import stat
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from lumctl.daemon.gateway import service
from lumctl.daemon.gateway.service import gateway_server, relay
from lumctl.devices.endpoints import Endpoints, GatewayEndpoint
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.gateway import client
from lumctl.devices.gateway.client import Gateway
from lumctl.devices.gateway.racks import GatedRacks, GatewayMeans
from lumctl.devices.gateway.wire import SCHEMA
from lumctl.errors import UsageError
from lumctl.inventory.load import load_inventory
from lumctl.json_lines import MAX_BYTES, connect

GREETING = {"rack": "r1", "target": "sim"}


@pytest.fixture
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("g") / "r1.sock"


def gateway(path, rack="r1"):
    return Gateway(rack, "sim", str(path), lambda within_s: connect(path, within_s))


@contextmanager
def asked(path, **how):
    ours = gateway(path, **how)
    try:
        yield ours
    finally:
        ours.close()


def echo(request, peer):
    return {"answer": [request, peer.pid, peer.uid]}


def connected(path):
    """A connection that has been greeted."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    connection.connect(str(path))
    greeting = json.loads(connection.makefile().readline())
    return connection, greeting


def test_requests_are_answered_over_one_connection_and_the_asker_is_known(path):
    with gateway_server(path, GREETING, echo), asked(path) as ours:
        for number in range(3):
            assert ours.ask({"n": number}, about="x") == [{"n": number}, os.getpid(), os.getuid()]
        assert len(ours._idle) == 1


def test_the_socket_is_for_its_user_alone_or_for_a_group(path):
    with gateway_server(path, GREETING, echo):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()
    with gateway_server(path, GREETING, echo, group=os.getgid()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_threads_have_connections_of_their_own(path):
    both = threading.Barrier(2, timeout=10)

    def answer(request, _peer):
        both.wait()
        return {"answer": request["n"]}

    with gateway_server(path, GREETING, answer), asked(path) as ours:
        found = []
        threads = [threading.Thread(target=lambda n=n: found.append(ours.ask({"n": n}, about="x"))) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert sorted(found) == [0, 1]


RACK = """\
lumctl: 1
racks: {r1: {}}
hosts:
  - {name: h1, accelerators: [{id: g1, model: X100, memory_gib: 80}]}
devices:
  - {id: chip, kind: mesh, driver: sim-mesh, address: "a.example:1", geometry: {columns: 3, rows: 2}}
"""


def test_of_drivers_that_threads_open_at_once_one_is_kept_and_the_others_are_closed(path, tmp_path):
    (tmp_path / "rack.yaml").write_text(RACK)
    both = threading.Barrier(2, timeout=10)
    opened, closed, found = [], [], []

    def describe(_request, _peer):
        both.wait()
        return {"answer": {"capabilities": [], "proven": "a test"}}

    def recorded(driver, _subject):
        opened.append(SimpleNamespace(driver=driver, close=lambda: closed.append(driver)))
        return opened[-1]

    endpoints = Endpoints("sim", {}, {}, {"r1": GatewayEndpoint(path)})
    with gateway_server(path, GREETING, describe):
        racks = GatedRacks(load_inventory(tmp_path / "rack.yaml"), endpoints, GatewayMeans(), recorded)
        threads = [threading.Thread(target=lambda: found.append(racks.driver("mesh", "chip"))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert found[0] is found[1]
        assert closed == [each.driver for each in opened if each is not found[0]]
        assert len(closed) == 1
        racks.close()
    assert {id(driver) for driver in closed} == {id(each.driver) for each in opened}


def test_where_none_answers_nothing_was_written_and_a_hint_is_given(path):
    with (
        asked(path) as ours,
        pytest.raises(DeviceUnreachableError, match=r"does not answer.*nothing was written") as lost,
    ):
        ours.ask({}, about="mesh", writes=True)
    assert lost.value.hint.endswith("start it: lumctl gateway run r1 --target sim; here $LUMCTL_GATEWAY sets it")


def test_the_gateway_of_another_rack_is_refused(path):
    with (
        gateway_server(path, GREETING, echo),
        asked(path, rack="r2") as ours,
        pytest.raises(DeviceRefusedError, match="serves rack r1 on target sim, not r2"),
    ):
        ours.ask({}, about="mesh")


def test_a_gateway_that_was_started_again_is_found_again(path):
    with asked(path) as ours:
        with gateway_server(path, GREETING, echo):
            ours.ask({}, about="x")
        with gateway_server(path, GREETING, echo):
            assert ours.ask({"n": 1}, about="x", writes=True)[0] == {"n": 1}


@contextmanager
def listening(path, *behaviours):
    """Something else at the socket: each connection is treated by the next behaviour."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve():
            for behave in behaviours:
                connection, _ = listener.accept()
                with connection:
                    behave(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join(10)
        assert not thread.is_alive()


def greeted(connection):
    connection.sendall(json.dumps({"schema": SCHEMA, **GREETING}).encode() + b"\n")


def dies(connection):
    greeted(connection)
    connection.recv(65536)


def says(*answers):
    def behave(connection):
        greeted(connection)
        for answer in answers:
            connection.recv(65536)
            connection.sendall(answer)

    return behave


def test_a_gateway_that_dies_in_the_middle_of_a_write_leaves_it_unknown(path):
    with listening(path, dies), asked(path) as ours, pytest.raises(OutcomeUnknownError, match="received a write"):
        ours.ask({}, about="mesh", writes=True)


def test_one_that_dies_in_the_middle_of_a_read_is_unreachable(path):
    with listening(path, dies), asked(path) as ours, pytest.raises(DeviceUnreachableError, match="has closed"):
        ours.ask({}, about="mesh")


def test_one_that_stands_still_is_not_waited_for_without_end(path, monkeypatch):
    monkeypatch.setattr(client, "READ_WITHIN_S", 0.05)
    monkeypatch.setattr(client, "WRITTEN_WITHIN_S", 0.05)
    done = threading.Event()

    def stands(connection):
        dies(connection)
        done.wait(10)

    with listening(path, stands, stands), asked(path) as ours:
        with pytest.raises(DeviceUnreachableError, match="no answer in time"):
            ours.ask({}, about="mesh")
        done.set()
        with pytest.raises(OutcomeUnknownError):
            ours.ask({}, about="mesh", writes=True)


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-x\n", b"{}\n", b"[1]\n", b"\xff\n", b"x" * 3000 + b"\n"])
def test_what_is_no_gateway_is_told_nothing(path, greeting):
    heard = []

    def behave(connection):
        connection.sendall(greeting)
        connection.shutdown(socket.SHUT_WR)
        heard.append(connection.recv(65536))

    with listening(path, behave), asked(path) as ours, pytest.raises(DeviceUnreachableError):
        ours.ask({"secret": 1}, about="mesh", writes=True)
    assert heard == [b""]


@pytest.mark.parametrize("answer", [b"5\n", b"{\n", b'{"error": 5}\n', b'{"error": {}}\n', b"\xff\n"])
def test_an_answer_that_is_none_leaves_a_write_unknown(path, answer):
    with listening(path, says(answer)), asked(path) as ours, pytest.raises(OutcomeUnknownError):
        ours.ask({}, about="mesh", writes=True)


def test_when_all_places_are_taken_whoever_comes_hears_it(path, monkeypatch):
    monkeypatch.setattr(service, "MAX_CONNECTIONS", 2)
    with ExitStack() as held, gateway_server(path, GREETING, echo):
        for _ in range(2):
            held.enter_context(connected(path)[0])
        with asked(path) as ours, pytest.raises(DeviceUnreachableError, match="serves 2 connections"):
            ours.ask({}, about="mesh", writes=True)


@pytest.mark.parametrize(
    "line",
    [b"nonsense\n", b"[]\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"n": ' + b"9" * 5000 + b"}\n"],
    ids=["text", "list", "bytes", "deep", "large"],
)
def test_what_cannot_be_read_is_answered_and_hung_up_on(path, line):
    asked_of = []
    with gateway_server(path, GREETING, lambda request, _: asked_of.append(request)):
        connection, _ = connected(path)
        with connection:
            connection.sendall(line)
            answer = connection.makefile().readlines()
    assert "the gateway cannot read the request" in json.loads(answer[0])["error"]["message"]
    assert asked_of == []


def test_a_line_without_end_is_not_kept(path, monkeypatch):
    monkeypatch.setattr("lumctl.json_lines.MAX_BYTES", 100_000)
    with gateway_server(path, GREETING, echo):
        connection, _ = connected(path)
        with connection:
            connection.sendall(b"x" * 150_000)
            assert "more than 100000 bytes" in connection.makefile().readline()
    assert MAX_BYTES > 100_000


def test_half_a_request_is_never_acted_on(path, monkeypatch):
    monkeypatch.setattr(service, "_REQUEST_WITHIN_S", 0.05)
    asked_of = []
    with gateway_server(path, GREETING, lambda request, _: asked_of.append(request)):
        for closes in (True, False):
            connection, _ = connected(path)
            with connection:
                connection.sendall(b'{"call": "commit"')
                if closes:
                    connection.shutdown(socket.SHUT_WR)
                assert connection.recv(10) == b""
    assert asked_of == []


def test_whoever_hangs_up_is_seen_to_have_gone(path):
    seen, asking, gone = [], threading.Event(), threading.Event()

    def answer(_request, peer):
        seen.append(peer.waits())
        asking.set()
        assert gone.wait(10)
        seen.append(peer.waits())
        return {"answer": None}

    with gateway_server(path, GREETING, answer):
        connection, _ = connected(path)
        with connection:
            connection.sendall(b"{}\n")
            assert asking.wait(10)
        gone.set()
    assert seen == [True, False]


def test_the_end_waits_for_answers_that_are_being_given(path):
    asking, goes_on = threading.Event(), threading.Event()

    def answer(_request, _peer):
        asking.set()
        assert goes_on.wait(10)
        return {"answer": "late"}

    found = []
    with asked(path) as ours:
        with gateway_server(path, GREETING, answer):
            thread = threading.Thread(target=lambda: found.append(ours.ask({}, about="x", writes=True)))
            thread.start()
            assert asking.wait(10)
            threading.Timer(0.05, goes_on.set).start()
        thread.join(10)
    assert found == ["late"]


def test_a_place_where_no_socket_can_be(tmp_path):
    with pytest.raises(UsageError, match=r"cannot create a socket at .*: AF_UNIX path too long"):
        gateway_server(tmp_path / ("x" * 120), GREETING, echo)


def test_standard_input_and_output_are_joined_to_the_socket(path):
    ours, theirs = os.pipe()
    heard, told = os.pipe()
    with gateway_server(path, GREETING, echo):
        thread = threading.Thread(target=relay, args=(Path(path), ours, told))
        thread.start()
        with os.fdopen(heard) as said:
            assert json.loads(said.readline())["rack"] == "r1"
            os.write(theirs, b'{"n": 1}\n')
            assert json.loads(said.readline())["answer"][0] == {"n": 1}
            os.close(theirs)
            thread.join(10)
            os.close(told)
            assert said.read() == ""
    os.close(ours)
    assert not thread.is_alive()
