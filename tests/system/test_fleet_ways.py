"""The ways to devices over real OpenSSH: straight and through a host, to subsystems and to plain TCP."""

import contextlib
import dataclasses
import socket
import threading
import time
from pathlib import Path

import paramiko
import pytest
from netconfd import Netconfd

from lumctl.devices.endpoints import DeviceEndpoint, Endpoints, HostEndpoint
from lumctl.devices.errors import DeviceLoginError, DeviceUnreachableError
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.ssh.host_keys import HostKeyError
from lumctl.inventory.load import example, load_inventory

pytestmark = pytest.mark.usefixtures("ssh_client")

DEFAULT_PORT, TIMEOUT_S = 9, 5.0


@pytest.fixture(scope="module")
def device(require_program):
    """netconfd behind an sshd: a device for its subsystem, and another's way for its forwarding."""
    server = Netconfd(require_program)
    yield server
    server.close()


@pytest.fixture
def host(device):
    at = device.endpoint()
    return HostEndpoint("s0", "127.0.0.1", dataclasses.replace(at.ssh, port=device.port), at.known_hosts)


@pytest.fixture
def way_to(host):
    fleets = []

    def way(endpoint, via=host):
        inventory = load_inventory(example("prototype"))
        fleets.append(Fleet(inventory, Endpoints("rack", {"s0": via}, {}), connect_timeout_s=TIMEOUT_S))
        return fleets[-1].way(endpoint)

    yield way
    for fleet in fleets:
        fleet.close()


@pytest.fixture
def echo():
    """The address of a server that says what it hears; it ends a connection that says bye."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        while (data := connection.recv(65536)) and data != b"bye":
                            connection.sendall(data)

        serving = threading.Thread(target=serve)
        serving.start()
        yield "{}:{}".format(*listener.getsockname())
        listener.shutdown(socket.SHUT_RDWR)
    serving.join()


@pytest.fixture(params=["straight", "through a host"])
def via(request, host):
    return host if request.param == "through a host" else None


def read(stream, wanted):
    got = b""
    while wanted not in got:
        piece = stream.recv(65536)
        assert piece, got
        got += piece
    return got


def test_a_subsystem(way_to, device, via):
    stream = way_to(device.endpoint(via=via)).subsystem("netconf", DEFAULT_PORT, TIMEOUT_S)
    stream.settimeout(TIMEOUT_S)
    assert b"<hello" in read(stream, b"]]>]]>")
    stream.settimeout(0.0)
    with pytest.raises(TimeoutError):
        stream.recv(1)
    stream.sendall(b"<this-is-no-hello/>]]>]]>")
    stream.settimeout(TIMEOUT_S)
    while stream.recv(65536):
        pass
    stream.close()
    stream.close()
    with pytest.raises(OSError, match=r"closed|descriptor"):
        stream.sendall(b"x")


def test_tcp(way_to, echo, via):
    stream = way_to(DeviceEndpoint("d1", echo, via=via)).tcp(DEFAULT_PORT, TIMEOUT_S)
    stream.settimeout(TIMEOUT_S)
    for said in (b"x", b"y" * 300_000):
        sending = threading.Thread(target=stream.sendall, args=(said,))
        sending.start()
        assert len(b"".join(iter_recv(stream, len(said)))) == len(said)
        sending.join()
    stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        stream.recv(1)
    stream.settimeout(TIMEOUT_S)
    stream.sendall(b"bye")
    assert stream.recv(1) == b""
    stream.close()
    with pytest.raises(OSError, match=r"closed|descriptor"):
        stream.sendall(b"x")


def iter_recv(stream, count):
    while count:
        piece = stream.recv(65536)
        count -= len(piece)
        yield piece


def test_the_default_port_is_for_addresses_without_one(way_to, echo, via):
    address, port = echo.split(":")
    stream = way_to(DeviceEndpoint("d1", address, via=via)).tcp(int(port), TIMEOUT_S)
    stream.sendall(b"x")
    assert stream.recv(1) == b"x"
    stream.close()


def test_nobody_listens_there(way_to, via):
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = "{}:{}".format(*free.getsockname())
    way = way_to(DeviceEndpoint("d1", nobody, via=via))
    with pytest.raises(ConnectionRefusedError):
        way.tcp(DEFAULT_PORT, TIMEOUT_S)
    with pytest.raises(DeviceUnreachableError, match="d1"):
        way.subsystem("netconf", DEFAULT_PORT, TIMEOUT_S)


def test_the_hosts_one_connection_serves_all_ways_and_is_replaced_when_it_dies(way_to, device, host, echo):
    way = way_to(DeviceEndpoint("d1", echo, via=host))
    first, second = way.tcp(DEFAULT_PORT, TIMEOUT_S), way.tcp(DEFAULT_PORT, TIMEOUT_S)
    assert first._channel.get_transport() is second._channel.get_transport()
    device.end_sessions()
    first.settimeout(TIMEOUT_S)
    assert first.recv(1) == b""
    # The channels end a moment before their connection is known to be over.
    first._channel.get_transport().join(TIMEOUT_S)
    third = way.tcp(DEFAULT_PORT, TIMEOUT_S)
    third.sendall(b"x")
    assert third.recv(1) == b"x"
    third.close()


def test_a_host_that_cannot_be_reached_is_named(way_to, echo, host):
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = free.getsockname()[1]
    away = dataclasses.replace(host, ssh=dataclasses.replace(host.ssh, port=nobody))
    way = way_to(DeviceEndpoint("d1", echo, via=away), away)
    for call in (lambda: way.tcp(DEFAULT_PORT, TIMEOUT_S), lambda: way.subsystem("netconf", DEFAULT_PORT, TIMEOUT_S)):
        with pytest.raises(DeviceUnreachableError, match=r"s0: .* connection refused"):
            call()


def test_the_devices_key_must_be_known(way_to, device, via, tmp_path):
    way = way_to(device.endpoint(via=via, known_hosts=tmp_path / "none"))
    with pytest.raises(HostKeyError, match=r"d1: the host key of \[127.0.0.1\]:\d+ is unknown: ssh-ed25519 SHA256:"):
        way.subsystem("netconf", DEFAULT_PORT, TIMEOUT_S)


def test_a_changed_key_is_refused(way_to, device, via, tmp_path):
    other = paramiko.ECDSAKey.generate()
    (tmp_path / "known").write_text(f"[127.0.0.1]:{device.port} {other.get_name()} {other.get_base64()}\n")
    way = way_to(device.endpoint(via=via, known_hosts=tmp_path / "known"))
    with pytest.raises(HostKeyError, match="has CHANGED"):
        way.subsystem("netconf", DEFAULT_PORT, TIMEOUT_S)


def test_the_hosts_key_is_checked_as_strictly(way_to, device, host, tmp_path):
    stranger = dataclasses.replace(host, known_hosts=tmp_path / "none")
    way = way_to(device.endpoint(via=stranger), stranger)
    with pytest.raises(DeviceUnreachableError, match=r"s0: the host key of .* is unknown"):
        way.subsystem("netconf", DEFAULT_PORT, TIMEOUT_S)


def test_a_key_that_is_not_taken(way_to, device, via, tmp_path):
    stranger = tmp_path / "stranger"
    paramiko.ECDSAKey.generate().write_private_key_file(str(stranger))
    for key_file, said in ((stranger, "refused 1 key$"), (tmp_path / "no-such-key", "no SSH key to offer")):
        ssh = dataclasses.replace(device.endpoint().ssh, key_file=key_file)
        with pytest.raises(DeviceLoginError, match=said):
            way_to(device.endpoint(via=via, ssh=ssh)).subsystem("netconf", DEFAULT_PORT, TIMEOUT_S)


def test_a_subsystem_that_is_not_there(way_to, device, via):
    with pytest.raises(
        DeviceUnreachableError, match=r"d1 at 127\.0\.0\.1:\d+: it has no subsystem telepathy: channel closed"
    ):
        way_to(device.endpoint(via=via)).subsystem("telepathy", DEFAULT_PORT, TIMEOUT_S)


def test_one_that_says_nothing_is_given_up_in_the_time_of_the_call(way_to, via):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        way = way_to(DeviceEndpoint("d1", "{}:{}".format(*silent.getsockname()), known_hosts=Path("none"), via=via))
        started = time.monotonic()
        with pytest.raises(DeviceUnreachableError, match="no answer within"):
            way.subsystem("netconf", DEFAULT_PORT, 0.5)
        assert time.monotonic() - started < TIMEOUT_S


def test_closing_wakes_whoever_waits(way_to, device, echo, host):
    for stream in (
        way_to(DeviceEndpoint("d1", echo, via=host)).tcp(DEFAULT_PORT, TIMEOUT_S),
        way_to(device.endpoint()).subsystem("netconf", DEFAULT_PORT, TIMEOUT_S),
    ):
        stream.settimeout(60)
        waiting = threading.Thread(target=drain, args=(stream,))
        waiting.start()
        stream.close()
        waiting.join(TIMEOUT_S)
        assert not waiting.is_alive()


def drain(stream):
    with contextlib.suppress(OSError):
        while stream.recv(65536):
            pass
