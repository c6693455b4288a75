"""The fleet against an SSH server that misbehaves on purpose."""

# ruff: noqa: ARG002 - the signatures of a server's methods are paramiko's

import contextlib
import dataclasses
import socket
import threading

import paramiko
import pytest

from lumctl.devices.endpoints import Endpoints, HostEndpoint
from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.fleet import session
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.readings import ProbeStatus
from lumctl.inventory.examples import example
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import SshSettings
from lumctl.inventory.probe_times import PROBE_TIMES

NET = "/sys/class/net/eno1/operstate:up\n"
SHORT = {kind: dataclasses.replace(times, deadline_s=0.3) for kind, times in PROBE_TIMES.items()}


def reply(channel, text=NET, status=0):
    channel.sendall(text.encode())
    channel.send_exit_status(status)
    channel.close()


class Wire:
    """A socket that tells when the server is about to read on: what it had to answer before is sent by then."""

    def __init__(self, sock):
        self.sock = sock
        self.then = []

    def recv(self, size):
        while self.then:
            threading.Thread(target=self.then.pop(0), daemon=True).start()
        return self.sock.recv(size)

    def __getattr__(self, name):
        return getattr(self.sock, name)


class Server(paramiko.ServerInterface):
    """Lets everybody in; ``twin.act`` is called with each command, in a thread of its own."""

    def __init__(self, twin, wire):
        self.twin = twin
        self.wire = wire

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind, chanid):
        return self.twin.opens

    def check_channel_exec_request(self, channel, command):
        words = command.decode()
        self.twin.commands.append(words)
        if self.twin.freezes:
            self.twin.let_go.wait(20)
            return False
        self.twin.channels.append(channel)
        self.wire.then.append(lambda: self._act(channel, words))
        return True

    def _act(self, channel, words):
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self.twin.act(channel, words)


class Twin:
    """One host. A test sets how it behaves."""

    def __init__(self, folder):
        self.key = paramiko.ECDSAKey.generate()
        client = folder / "key"
        paramiko.ECDSAKey.generate().write_private_key_file(str(client))
        self.act = lambda channel, _words: reply(channel)
        self.opens = paramiko.OPEN_SUCCEEDED
        self.freezes = False
        self.let_go = threading.Event()
        self.commands, self.channels, self.transports = [], [], []
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        known = folder / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {self.key.get_name()} {self.key.get_base64()}\n")
        settings = SshSettings(user="u", port=port, key_file=client, config_file=folder / "config")
        (folder / "config").touch()
        self.endpoint = HostEndpoint("s0", "127.0.0.1", settings, known)
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                wire = Wire(self._listener.accept()[0])
                transport = paramiko.Transport(wire)
                transport.add_server_key(self.key)
                self.transports.append(transport)
                transport.start_server(event=threading.Event(), server=Server(self, wire))

    def close(self):
        self.let_go.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(5)
        for transport in self.transports:
            transport.close()
            transport.join(5)


@pytest.fixture
def twin(tmp_path):
    made = Twin(tmp_path)
    yield made
    made.close()


@pytest.fixture
def fleet(twin):
    at = Endpoints("rack", {"s0": twin.endpoint}, {})
    inventory = dataclasses.replace(load_inventory(example("prototype")), probes=SHORT)
    with Fleet(inventory, at, connect_timeout_s=2.0) as opened:
        yield opened


def net(fleet):
    host = fleet.collect(probes=["net"]).hosts["s0"]
    return host, host.probes.get("net")


def test_no_second_copy_behind_one_that_hangs(fleet, twin):
    def hang(channel, _words):
        twin.let_go.wait(20)
        reply(channel)

    twin.act = hang
    assert net(fleet)[1].detail == "no answer within 0.3 s"
    for _ in range(3):
        host, outcome = net(fleet)
        assert (outcome.status, host.reachable) == (ProbeStatus.TIMED_OUT, True)
        assert outcome.detail.startswith("still hanging since 20")
    assert len(twin.commands) == 1
    # It ends on the host, and only then is it asked again.
    twin.let_go.set()
    for _ in range(200):
        host, outcome = net(fleet)
        if outcome.status is ProbeStatus.OK:
            break
        threading.Event().wait(0.01)
    assert outcome.status is ProbeStatus.OK
    assert host.interfaces["eno1"].operstate == "up"
    assert len(twin.commands) == 2


def test_a_server_that_freezes_in_mid_request(fleet, twin):
    assert net(fleet)[1].status is ProbeStatus.OK  # connected: what follows measures the request, not the handshake
    twin.freezes = True
    outcome = net(fleet)[1]
    assert (outcome.status, outcome.detail) == (ProbeStatus.TIMED_OUT, "the host's time ran out before it")
    twin.freezes = False
    twin.let_go.set()
    assert net(fleet)[1].status is ProbeStatus.OK


def test_a_shell_does_not_freeze_with_the_server(fleet, twin):
    twin.freezes = True
    with pytest.raises(OutcomeUnknownError, match="may have acted"):
        fleet.shell("s0").run("ip link set dev eth2 down", timeout_s=0.3)
    assert len(twin.commands) == 1


def test_a_connection_lost_while_a_command_runs(fleet, twin):
    twin.act = lambda _channel, _words: twin.transports[-1].close()
    host, _ = net(fleet)
    assert (host.reachable, host.probes) == (False, {})
    assert host.error == "s0: the connection was lost while a command ran"
    with pytest.raises(OutcomeUnknownError):
        fleet.shell("s0").run("ip link set dev eth2 down", timeout_s=2)
    twin.act = lambda channel, _words: reply(channel)
    assert net(fleet)[1].status is ProbeStatus.OK


def test_a_dead_connection_is_replaced_before_anything_is_sent(fleet, twin):
    net(fleet)
    twin.transports[-1].close()
    assert fleet.shell("s0").run("cat x", timeout_s=2).stdout == NET
    assert len(twin.commands) == 2


def test_a_host_that_opens_no_more_sessions(fleet, twin):
    net(fleet)
    twin.opens = paramiko.OPEN_FAILED_RESOURCE_SHORTAGE
    host, outcome = net(fleet)
    assert (outcome.status, outcome.detail) == (ProbeStatus.FAILED, "s0: the host opens no more sessions")
    assert host.reachable


def test_output_without_end_is_cut_off(fleet, twin, monkeypatch):
    monkeypatch.setattr(session, "MAX_OUTPUT_BYTES", 2**20)

    def pour(channel, _words):
        while True:
            channel.sendall(b"x" * 65536)

    twin.act = pour
    _, outcome = net(fleet)
    assert (outcome.status, outcome.detail) == (ProbeStatus.FAILED, "a command printed more than 1 MiB")


def test_a_command_without_exit_status(fleet, twin):
    twin.act = lambda channel, _words: channel.close()
    assert fleet.shell("s0").run("cat x", timeout_s=2).exit_status == -1


def test_after_close_a_shell_is_unreachable(fleet):
    shell = fleet.shell("s0")
    assert shell.run("cat x", timeout_s=2).exit_status == 0
    fleet.close()
    with pytest.raises(DeviceUnreachableError):
        shell.run("cat x", timeout_s=2)
