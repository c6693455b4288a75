"""Twins of plug-ins: a twin serves one device of the world; if it fails, only its device fails, with the reason."""

import contextlib
import socket
import socketserver
import sys
import threading
import time
import types

import pytest

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import Alarm, Progress, PucState
from lumctl.offers import Offer
from lumctl.sim.twins import PlugInTwin, device_of
from lumctl.sim.world.misbehaviour import Misbehaviour

CROSS = PucState.CROSS


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"hello\n")
        for line in self.rfile:
            self.wfile.write(b"you said " + line)


@contextlib.contextmanager
def serving(_device, listen, ended=None):
    with socketserver.ThreadingTCPServer((listen, 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server.server_address[1]
        server.shutdown()
    if ended is not None:
        ended.set()


@pytest.fixture
def started(bench, monkeypatch):
    """Starts a twin of m1 and waits for it; closes it at the end."""
    made = []

    def start(twin, *, within_s=5.0, conduct=Misbehaviour, offers=1):
        monkeypatch.setitem(sys.modules, "somebody", types.SimpleNamespace(twin=twin))
        known = [Offer("acme", "somebody:twin", f"acme-{n}", "1.0") for n in range(offers)]
        device = device_of(bench.world, bench.world.inventory.devices["m1"])
        made.append(PlugInTwin(device, known, conduct, threading.Event().wait))
        made[-1].begin()
        made[-1].await_begun(time.monotonic() + within_s)
        return made[-1]

    yield start
    for each in made:
        each.close()


def connect(twin):
    return socket.create_connection(("127.0.0.1", twin.service.port), 5)


def test_what_begins_is_served_and_ended(started):
    ended = threading.Event()
    twin = started(lambda device, listen: serving(device, listen, ended))
    assert twin.failure is None
    with connect(twin) as line, line.makefile("rwb", buffering=0) as file:
        assert file.readline() == b"hello\n"
        file.write(b"one\n")
        assert file.readline() == b"you said one\n"
        line.shutdown(socket.SHUT_WR)
        assert file.readline() == b""
    twin.close()
    assert ended.is_set()
    with pytest.raises(OSError, match="refused"):
        connect(twin)


def test_a_twin_may_state_the_scheme_of_its_address(started):
    @contextlib.contextmanager
    def http(device, listen):
        with serving(device, listen) as port:
            yield f"http://{listen}:{port}"

    twin = started(http)
    assert twin.failure is None
    assert twin.address == f"http://127.0.0.1:{twin.service.port}"
    with connect(twin) as line, line.makefile("rb") as file:
        assert file.readline() == b"hello\n"
    assert started(serving).address.startswith("127.0.0.1:")


def never(_device, _listen):
    threading.Event().wait(60)


@contextlib.contextmanager
def abroad(_device, _listen):
    with socket.create_server(("0.0.0.0", 0)) as listening:  # noqa: S104 - it is to be found out
        yield listening.getsockname()[1]


@contextlib.contextmanager
def abroad_by_the_newer_protocol(_device, _listen):
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize(
    ("twin", "why"),
    [
        (lambda *_: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda *_: sys.exit(3), "SystemExit: 3"),
        (lambda: None, "TypeError"),
        (lambda *_: 7000, "returned int, not a context manager"),
        (lambda *_: contextlib.nullcontext("127.0.0.1:7000"), "'127.0.0.1:7000' is not a TCP port"),
        (lambda *_: contextlib.nullcontext("http://192.0.2.1:7000"), "'http://192.0.2.1:7000' is not a TCP port"),
        (lambda *_: contextlib.nullcontext(70000), "70000 is not a TCP port"),
        ("no function", "is not callable"),
        (abroad, "beyond loopback: bind to 127.0.0.1"),
        (abroad_by_the_newer_protocol, "beyond loopback"),
    ],
)
def test_what_does_not_begin_says_whose_it_is_and_why_and_nobody_answers(started, twin, why):
    broken = started(twin)
    assert broken.failure.startswith("twin 'acme' of acme-0 1.0 ")
    assert why in broken.failure
    with pytest.raises(OSError, match="refused"):
        connect(broken)


def test_one_that_hangs_is_left_behind(started):
    twin = started(never, within_s=0.05)
    assert twin.failure == "twin 'acme' of acme-0 1.0 did not start in time"


def test_one_that_begins_too_late_is_ended_and_not_served(started):
    go_on, ended = threading.Event(), threading.Event()

    def late(device, listen):
        go_on.wait(5)
        return serving(device, listen, ended)

    twin = started(late, within_s=0.05)
    go_on.set()
    assert ended.wait(5)
    assert "in time" in twin.failure
    with pytest.raises(OSError, match="refused"):
        connect(twin)


def test_two_packages_cannot_offer_the_same(started):
    assert "acme-0 1.0 and acme-1 1.0: two packages offer it" in started(serving, offers=2).failure


def test_the_relay_is_slow_and_cuts_answers_but_no_greeting(started):
    conduct = Misbehaviour(cuts=True)
    twin = started(serving, conduct=lambda: conduct)
    with connect(twin) as line, line.makefile("rwb", buffering=0) as file:
        assert file.readline() == b"hello\n"
        file.write(b"one\n")
        assert file.read() == b"you sa"
    conduct = Misbehaviour(delay_s=0.2)
    with connect(twin) as line, line.makefile("rwb", buffering=0) as file:
        began = time.monotonic()
        assert file.readline() == b"hello\n"
        file.write(b"one\n")
        assert file.readline() == b"you said one\n"
        assert time.monotonic() - began >= 0.2


def test_a_mesh_as_a_twin_has_it(bench):
    mesh = device_of(bench.world, bench.world.inventory.devices["m1"])
    assert (mesh.id, mesh.puc_count) == ("m1", len(mesh.read_states()))
    mesh.write({0: CROSS, 1: CROSS})
    assert bench.link("c").carrier
    assert mesh.read_powers((0,))[0] > -10
    assert 20 < mesh.read_temperature() < 50
    bench.world.inject("m1", "slow-commit")
    mesh.write({2: CROSS})
    assert mesh.read_progress() == Progress(0, 1, "commit in progress")
    bench.world.inject("m1", "device-refuse")
    with pytest.raises(DeviceRefusedError):
        mesh.write({3: CROSS})
    bench.world.inject("m1", "device-down")
    with pytest.raises(DeviceUnreachableError):
        mesh.read_states()


def test_a_switch_as_a_twin_has_it(bench):
    switch = device_of(bench.world, bench.world.inventory.devices["x1"])
    assert (switch.id, switch.port_count, switch.input_count) == ("x1", 8, 0)
    switch.set_label(3, "to the spare")
    switch.set_port(3, enabled=False)
    assert (switch.read_ports()[3].label, switch.read_ports()[3].enabled) == ("to the spare", False)
    assert switch.read_circuits() == {}
    with pytest.raises(DeviceRefusedError, match="the same side"):
        switch.write({0: 4})
    bench.world.inject("x1/port/5", "dark")
    assert switch.read_alarms() == (Alarm("port 5 has failed", source="port/5", since=bench.clock.time),)
    assert switch.read_progress() is None
    bench.world.inject("x1", "device-lying")
    switch.set_port(4, enabled=False)
    assert switch.read_ports()[4].enabled
    bench.world.inject("x1", "device-refuse")
    with pytest.raises(DeviceRefusedError, match="no change"):
        switch.set_label(4, "x")
    bench.world.inject("x1", "device-down")
    with pytest.raises(DeviceUnreachableError):
        switch.read_ports()


@pytest.mark.parametrize("device", ["m1", "x1"])
def test_the_alarm_of_a_fault_reaches_the_twin(bench, device):
    seen = device_of(bench.world, bench.world.inventory.devices[device])
    bench.world.inject(device, "alarm")
    (alarm,) = seen.read_alarms()
    assert (alarm.source, alarm.since) == ("psu/1", bench.clock.time)
    assert alarm.severity
