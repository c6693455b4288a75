"""The same collection against OpenSSH's sshd, which serves a simulated host through its ForceCommand."""

import dataclasses
import subprocess
import sys
import threading

import paramiko
import pytest
from waiting import until

from lumctl.devices.endpoints import HostEndpoint
from lumctl.fleet.fleet import Fleet
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.launch import launch

pytestmark = pytest.mark.usefixtures("ssh_client")


@pytest.fixture(scope="module")
def inventory():
    return load_inventory(example("prototype"))


@pytest.fixture(scope="module")
def rack(inventory, tmp_path_factory):
    with launch(inventory, folder=tmp_path_factory.mktemp("sim"), tied=True) as running:
        yield running


@pytest.fixture(scope="module")
def sshd(serve_ssh, rack):
    """A real sshd that lets the simulator's client in and answers as host s0."""
    control = rack.folder / "control.sock"
    endpoint = serve_ssh(rack.folder / "client_key", f"{sys.executable} -m lumctl.sim.hosts.forward {control} s0")
    known = endpoint.known_hosts
    known.write_text((rack.folder / "known_hosts").read_text() + known.read_text())
    return endpoint


@pytest.fixture
def collected(inventory, rack):
    def collect(endpoint, **more):
        at = dataclasses.replace(rack.endpoints(), hosts={endpoint.host: endpoint})
        with Fleet(inventory, at) as fleet:
            return fleet.collect(**more).hosts[endpoint.host]

    return collect


def still(host):
    """What of a host does not change from one moment to the next."""
    return {
        "probes": {name: outcome.status for name, outcome in host.probes.items()},
        "gpus": [(gpu.pci, gpu.uuid, gpu.product, gpu.minor, gpu.memory_total_mib) for gpu in host.gpus],
        "xids": host.xids,
        "interfaces": {name: (i.operstate, i.speed_mbps) for name, i in host.interfaces.items()},
        "optics": {name: (o.vendor, o.part, o.transmitting, o.thresholds) for name, o in host.optics.items()},
        "neighbours": {name: [(n.system, n.port) for n in heard] for name, heard in host.neighbours.items()},
    }


def test_openssh_gives_the_same_readings(sshd, rack, collected):
    real = collected(sshd)
    ours = collected(rack.endpoints().hosts["s0"])
    assert real.reachable, real.error
    assert still(real) == still(ours)
    assert len(real.gpus) == 1
    assert real.optics


def test_openssh_and_a_shell(sshd, inventory, rack):
    with Fleet(inventory, dataclasses.replace(rack.endpoints(), hosts={"s0": sshd})) as fleet:
        assert fleet.shell("s0").run("cat /sys/class/net/enp65s0f0/flags", timeout_s=5).stdout.startswith("0x")
        assert fleet.shell("s0").run("no-such-tool", timeout_s=5).exit_status == 127


def test_through_openssh_as_a_jump_host(sshd, rack, collected):
    at = rack.endpoints().hosts["s1"]
    jump = f"{sshd.ssh.user}@127.0.0.1:{sshd.ssh.port}"
    behind = HostEndpoint("s1", at.address, dataclasses.replace(at.ssh, jump=jump), sshd.known_hosts)
    host = collected(behind)
    assert host.reachable, host.error
    assert len(host.gpus) == 1
    # The jump host's own key is checked as strictly as any.
    unknown = collected(dataclasses.replace(behind, known_hosts=at.known_hosts))
    assert unknown.host_key_problem
    assert unknown.error.startswith("jump host 127.0.0.1: the host key of [127.0.0.1]:")


def test_an_unknown_key_of_openssh_is_refused(sshd, collected, tmp_path):
    host = collected(dataclasses.replace(sshd, known_hosts=tmp_path / "none"))
    assert (host.reachable, host.host_key_problem) == (False, True)
    assert "is unknown: ssh-ed25519 SHA256:" in host.error


def test_a_changed_key_of_openssh_is_refused(sshd, collected, tmp_path):
    other = paramiko.ECDSAKey.generate()
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sshd.ssh.port} {other.get_name()} {other.get_base64()}\n")
    host = collected(dataclasses.replace(sshd, known_hosts=known))
    assert (host.reachable, host.host_key_problem) == (False, True)
    assert "has CHANGED" in host.error
    assert f"{known}:1" in host.error


def test_a_key_that_openssh_does_not_take(sshd, collected, tmp_path):
    stranger = tmp_path / "stranger"
    paramiko.ECDSAKey.generate().write_private_key_file(str(stranger))
    host = collected(dataclasses.replace(sshd, ssh=dataclasses.replace(sshd.ssh, key_file=stranger)))
    assert not host.host_key_problem
    assert host.error.endswith("refused 1 key")


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
@pytest.mark.parametrize("named", [False, True], ids=["beside-the-key", "named-in-the-configuration"])
def test_a_key_that_is_only_known_by_its_certificate(sshd, collected, tmp_path, require_program, kind, named):
    keygen, key = require_program("ssh-keygen"), tmp_path / "key"
    subprocess.run([keygen, "-q", "-t", kind, "-N", "", "-f", key], check=True)
    refused = dataclasses.replace(sshd, ssh=dataclasses.replace(sshd.ssh, key_file=key))
    assert "refused 1 key" in collected(refused, probes=["net"]).error
    subprocess.run(
        [keygen, "-q", "-s", sshd.known_hosts.parent / "ca", "-I", "me", "-n", sshd.ssh.user, f"{key}.pub"], check=True
    )
    config = tmp_path / "config"
    config.touch()
    if named:
        (tmp_path / "key-cert.pub").rename(tmp_path / "elsewhere")
        config.write_text(f"CertificateFile {tmp_path}/elsewhere\n")
    certified = dataclasses.replace(sshd, ssh=dataclasses.replace(sshd.ssh, key_file=key, config_file=config))
    host = collected(certified, probes=["net"])
    assert (host.error, host.reachable) == (None, True)


@pytest.fixture
def cautious_agent(rack, tmp_path, monkeypatch, require_program):
    """OpenSSH's agent, with the client's key, which it asks about each time: it asks by a file, and waits for one."""
    agent, add = require_program("ssh-agent"), require_program("ssh-add")
    asked, agreed, ask = tmp_path / "asked", tmp_path / "agreed", tmp_path / "ask"
    ask.write_text(f"#!/bin/sh\ntouch {asked}\nuntil [ -e {agreed} ]; do sleep 0.05; done\n")
    ask.chmod(0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("SSH_ASKPASS", str(ask))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    monkeypatch.setenv("DISPLAY", ":0")
    running = subprocess.Popen([agent, "-D", "-a", tmp_path / "agent"], stdout=subprocess.DEVNULL)
    try:
        # Its socket is there before it listens; 2 means that no agent answers.
        until(lambda: subprocess.run([add, "-l"], capture_output=True, check=False).returncode != 2)
        subprocess.run([add, "-q", "-c", rack.folder / "client_key"], check=True, capture_output=True)
        yield asked, agreed
    finally:
        running.terminate()
        running.wait()


def test_an_agent_that_asks_its_user_first_holds_up_nobody_else(sshd, inventory, rack, cautious_agent):
    asked, agreed = cautious_agent
    by_agent = dataclasses.replace(sshd, ssh=dataclasses.replace(sshd.ssh, key_file=None))
    hosts = {"s0": by_agent, "s1": rack.endpoints().hosts["s1"]}
    with Fleet(inventory, dataclasses.replace(rack.endpoints(), hosts=hosts), connect_timeout_s=20) as fleet:
        assert fleet.collect(["s1"], probes=["net"]).hosts["s1"].reachable
        found = []
        waits = threading.Thread(target=lambda: found.append(fleet.collect(["s0"], probes=["net"]).hosts["s0"]))
        waits.start()
        until(asked.exists)
        for _ in range(3):
            other = fleet.collect(["s1"], probes=["net"])
            assert other.hosts["s1"].reachable
            assert other.seconds < 5
        assert not found
        agreed.touch()
        waits.join(20)
    assert [(host.error, host.reachable) for host in found] == [(None, True)]
