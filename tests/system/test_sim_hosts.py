"""The simulated hosts as any SSH client meets them."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import paramiko
import pytest

from lumctl.sim.ssh import new_private_key

NVIDIA_SMI = "nvidia-smi -q -x"


@contextmanager
def connected(sim, host: str, **options) -> Iterator[paramiko.SSHClient]:
    """A session that insists on the server's key being the one that the simulator wrote down."""
    at = sim.endpoints.hosts[host]
    options = {"key_filename": str(at.ssh.key_file), "username": at.ssh.user} | options
    with paramiko.SSHClient() as client:
        client.load_host_keys(str(at.known_hosts))
        client.connect(at.address, at.ssh.port, timeout=10, allow_agent=False, look_for_keys=False, **options)
        yield client


def run(client: paramiko.SSHClient, command: str, timeout: float = 10) -> tuple[int, str, str]:
    _, out, err = client.exec_command(command, timeout=timeout)
    said = out.read().decode(), err.read().decode()
    return out.channel.recv_exit_status(), *said


@pytest.fixture
def sim(prototype_sim):
    yield prototype_sim
    prototype_sim.process.clear()


def test_many_commands_over_one_connection(sim):
    with connected(sim, "s0") as client:
        for _ in range(100):
            assert run(client, "cat /sys/class/net/enp65s0f0/flags") == (0, "0x1003\n", "")
        assert run(client, NVIDIA_SMI)[1].rstrip().endswith("</nvidia_smi_log>")
        assert run(client, "foo") == (127, "", "sh: 1: foo: not found\n")


def test_commands_at_once_over_one_connection(sim):
    with connected(sim, "s0") as client:
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda: answers.append(run(client, NVIDIA_SMI)[0]), daemon=True) for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert answers == [0] * 12


def test_every_host_is_itself(sim):
    with ExitStack() as sessions:
        for host in sim.inventory.hosts:
            client = sessions.enter_context(connected(sim, host))
            uuid = sim.inventory.accelerators_of(host)[0].uuid
            assert f"<uuid>{uuid or 'GPU-'}" in run(client, NVIDIA_SMI)[1]
    keys = sim.endpoints.hosts["s0"].known_hosts.read_text().splitlines()
    assert len({line.split()[2] for line in keys}) == len(sim.inventory.hosts)


def test_only_the_one_key_opens_the_door(sim, tmp_path):
    (tmp_path / "other").write_text(new_private_key())
    with (
        pytest.raises(paramiko.AuthenticationException),
        connected(sim, "s0", key_filename=str(tmp_path / "other")),
    ):
        pass
    with pytest.raises(paramiko.SSHException), connected(sim, "s0", key_filename=None, password="lumctl"):  # noqa: S106
        pass


def test_it_listens_on_loopback_only(sim):
    address = sim.endpoints.hosts["s0"]
    assert address.address == "127.0.0.1"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{address.ssh.port:04X}")]
    assert mine == [f"0100007F:{address.ssh.port:04X}"]


def test_no_shell_and_no_tunnels(sim):
    with connected(sim, "s0") as client:
        transport = client.get_transport()
        with pytest.raises(paramiko.SSHException):
            transport.open_session().invoke_shell()
        with pytest.raises(paramiko.ChannelException):
            transport.open_channel("direct-tcpip", ("127.0.0.1", 22), ("127.0.0.1", 1))


def test_a_hung_driver_holds_its_channel_and_nothing_else(sim):
    sim.process.inject("s0", "hung-smi")
    with connected(sim, "s0") as client:
        with pytest.raises(TimeoutError):
            run(client, NVIDIA_SMI, timeout=0.3)
        assert run(client, "lldpctl -f json")[0] == 0


def test_probing_a_hung_driver_again_and_again_leaves_the_connection_usable(sim):
    sim.process.inject("s0", "hung-smi")
    with connected(sim, "s0") as client:
        for _ in range(40):
            _, out, _ = client.exec_command(NVIDIA_SMI)
            out.channel.close()
        assert run(client, "lldpctl -f json")[0] == 0


def test_a_slow_host_is_slow(sim):
    sim.process.inject("s1", "slow-host", 0.4)
    with connected(sim, "s1") as client:
        started = time.monotonic()
        assert run(client, "lldpctl -f json")[0] == 0
        assert time.monotonic() - started >= 0.4


def test_an_unreachable_host_cuts_and_refuses_and_comes_back_where_it_was(sim):
    at = sim.endpoints.hosts["s2"]
    with connected(sim, "s2") as client:
        sim.process.inject("s2", "unreachable")
        with pytest.raises((paramiko.SSHException, EOFError, OSError)):
            run(client, "dmesg --time-format iso")
    with pytest.raises(ConnectionRefusedError), socket.create_connection((at.address, at.ssh.port), timeout=5):
        pass
    sim.process.clear("s2")
    with connected(sim, "s2") as client:
        assert run(client, "dmesg --time-format iso")[0] == 0


def test_a_client_that_says_nothing_harms_nobody(sim):
    at = sim.endpoints.hosts["s3"]
    with ExitStack() as sockets:
        for _ in range(10):
            sockets.enter_context(socket.create_connection((at.address, at.ssh.port), timeout=5))
        with connected(sim, "s3") as client:
            assert run(client, "lldpctl -f json")[0] == 0


def test_connections_are_bounded(sim):
    at = sim.endpoints.hosts["s3"]
    with ExitStack() as sockets:
        crowd = [sockets.enter_context(socket.create_connection((at.address, at.ssh.port), 5)) for _ in range(60)]
        assert any(_closed(each) for each in crowd)


def _closed(connection: socket.socket) -> bool:
    """Whether the server hung up at once instead of greeting."""
    connection.settimeout(5)
    try:
        return connection.recv(64) == b""
    except ConnectionResetError:
        return True


def forward(sim, host: str, command: str, **options) -> subprocess.Popen[bytes]:
    """What a foreign sshd runs for a command of its client."""
    return subprocess.Popen(
        [sys.executable, "-m", "lumctl.sim.hosts.forward", str(sim.control), host],
        env=os.environ | {"SSH_ORIGINAL_COMMAND": command},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.mark.parametrize(
    ("host", "command", "status", "out", "err"),
    [
        ("s0", "cat /sys/class/net/enp65s0f0/flags", 0, b"0x1003\n", b""),
        ("s0", "foo", 127, b"", b"sh: 1: foo: not found\n"),
        ("nobody", "foo", 255, b"", b"the inventory has no host 'nobody'\n"),
        ("s3", "foo", 255, b"", b"s3 does not answer\n"),
    ],
)
def test_a_foreign_sshd_can_serve_a_host(sim, host, command, status, out, err):
    sim.process.inject("s3", "unreachable")
    with forward(sim, host, command) as process:
        assert process.communicate(timeout=20) == (out, err)
    assert process.returncode == status


def test_behind_a_foreign_sshd_a_hung_driver_ends_with_its_client(sim):
    sim.process.inject("s0", "hung-smi")
    with forward(sim, "s0", NVIDIA_SMI) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.stdout.close()
        assert process.wait(20) == 255
