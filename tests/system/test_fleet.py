"""The fleet against the simulated rack: real sockets, real SSH."""

import dataclasses
import socket
import sys
import threading
import time

import paramiko
import pytest

from lumctl.devices.endpoints import HostEndpoint
from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.errors import UsageError
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.readings import ProbeStatus
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.probe_times import PROBE_TIMES
from lumctl.sim.client import ask
from lumctl.sim.launch import launch

pytestmark = pytest.mark.usefixtures("ssh_client")
SHORT = {kind: dataclasses.replace(times, deadline_s=1.0) for kind, times in PROBE_TIMES.items()}
_ABSENT = ("infiniband", "nvlink", "nvlink:errors", "nvlink:traffic", "adapters", "fabric_log")


@pytest.fixture(scope="module")
def inventory():
    return load_inventory(example("prototype"))


@pytest.fixture(scope="module")
def rack(inventory, tmp_path_factory):
    with launch(inventory, folder=tmp_path_factory.mktemp("sim"), tied=True) as running:
        yield running


@pytest.fixture
def fault(rack):
    """Set a fault; after the test there is none."""
    control = rack.folder / "control.sock"
    yield lambda component, kind, value=None: ask(control, "fault", component=component, kind=kind, value=value)
    ask(control, "clear", component=None)


@pytest.fixture
def fleet(inventory, rack):
    with Fleet(dataclasses.replace(inventory, probes=SHORT), rack.endpoints(), connect_timeout_s=2.0) as opened:
        yield opened


@pytest.fixture
def aimed(inventory, rack):
    """A fleet whose hosts are reached in another way than the simulator says."""
    opened = []

    def aim(hosts=None, **changes):
        at = rack.endpoints()
        hosts = hosts or {name: dataclasses.replace(end, **changes) for name, end in at.hosts.items()}
        quick = dataclasses.replace(inventory, probes=SHORT)
        made = Fleet(quick, dataclasses.replace(at, hosts=hosts), connect_timeout_s=1.0)
        opened.append(made)
        return made

    yield aim
    for each in opened:
        each.close()


def test_everything_is_read(fleet, inventory):
    snapshot = fleet.collect()
    assert list(snapshot.hosts) == list(inventory.hosts)
    for name, host in snapshot.hosts.items():
        assert host.reachable, host.error
        assert host.error is None
        assert host.connect_seconds is not None
        statuses = {probe: outcome.status for probe, outcome in host.probes.items()}
        absent = {statuses.pop(probe) for probe in _ABSENT}
        assert absent == {ProbeStatus.ABSENT}
        assert set(statuses.values()) == {ProbeStatus.OK}, statuses
        assert [gpu.pci for gpu in host.gpus] == [a.pci for a in inventory.accelerators_of(name)]
        lanes = {t.interface for t in inventory.transponders.values() if t.host == name}
        assert set(host.optics) == lanes <= set(host.interfaces)
        assert {f"optics:{lane}" for lane in lanes} < set(statuses)


def test_connections_are_kept(fleet):
    fleet.collect()
    again = fleet.collect()
    assert all(host.connect_seconds is None and host.reachable for host in again.hosts.values())


def test_hosts_and_probes_can_be_named(fleet):
    snapshot = fleet.collect(hosts=["s1"], probes=["optics", "net"])
    assert list(snapshot.hosts) == ["s1"]
    assert [probe.partition(":")[0] for probe in snapshot.hosts["s1"].probes] == ["net", "optics", "optics"]
    with pytest.raises(UsageError, match="s00") as unknown:
        fleet.collect(hosts=["s00"])
    assert unknown.value.hint == "did you mean s0?"


def test_one_hanging_driver_delays_nobody_else(fleet, fault):
    fleet.collect()
    fault("s1", "hung-smi")
    hosts = fleet.collect().hosts
    hung = hosts["s1"].probes.pop("gpu")
    assert (hung.status, hung.detail) == (ProbeStatus.TIMED_OUT, "no answer within 1 s")
    assert hosts["s1"].reachable
    # What would use the same driver is not started behind it.
    behind = [hosts["s1"].probes.pop(probe) for probe in ("nvlink", "nvlink:errors", "nvlink:traffic")]
    assert {(o.status, o.detail) for o in behind} == {(ProbeStatus.TIMED_OUT, "waits behind gpu, which hangs")}
    others = [outcome for host in hosts.values() for outcome in host.probes.values()]
    assert not [outcome for outcome in others if outcome.status not in {ProbeStatus.OK, ProbeStatus.ABSENT}]
    assert max(outcome.seconds for outcome in others) < 0.9
    # It is not asked a second time, so it costs no time any more.
    again = fleet.collect()
    assert again.seconds < 0.9
    assert again.hosts["s1"].probes["gpu"].status is ProbeStatus.TIMED_OUT
    assert again.hosts["s1"].probes["gpu"].detail.startswith("still hanging since 20")


def test_a_host_that_goes_away_and_comes_back(fleet, fault, rack):
    assert fleet.collect().hosts["s2"].reachable
    fault("s2", "unreachable")
    hosts = fleet.collect().hosts
    assert not hosts["s2"].reachable
    assert hosts["s2"].error.startswith("s2: ")
    assert hosts["s2"].probes == {}
    assert all(hosts[name].reachable for name in ("s0", "s1", "s3"))
    ask(rack.folder / "control.sock", "clear", component="s2")
    back = fleet.collect().hosts["s2"]
    assert (back.reachable, back.error) == (True, None)
    assert back.connect_seconds is not None


def test_a_slow_host_is_read_in_its_own_time(fleet, fault):
    fault("s3", "slow-host", 0.3)
    hosts = fleet.collect().hosts
    assert all(hosts["s3"].probes[first].seconds >= 0.3 for first in ("gpu", "kernel", "net", "lldp"))
    assert all(outcome.seconds < 0.3 for outcome in hosts["s0"].probes.values())


def test_a_shell_shares_the_connection(fleet):
    shell = fleet.shell("s0")
    assert shell.run("cat /sys/class/net/enp65s0f0/flags", timeout_s=2).stdout.startswith("0x")
    assert shell.run("no-such-tool", timeout_s=2).exit_status == 127
    assert fleet.collect(["s0"]).hosts["s0"].connect_seconds is None


def test_a_shell_serves_many_threads(fleet):
    shell, statuses = fleet.shell("s0"), []

    def ask_often():
        statuses.extend(shell.run("lldpctl -f json", timeout_s=5).exit_status for _ in range(5))

    threads = [threading.Thread(target=ask_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert statuses == [0] * 20


def test_a_shell_says_when_the_outcome_is_unknown(fleet, fault):
    fault("s0", "hung-smi")
    with pytest.raises(OutcomeUnknownError, match=r"s0: 'nvidia-smi -q -x' did not end within 0.2 s"):
        fleet.shell("s0").run("nvidia-smi -q -x", timeout_s=0.2)
    assert fleet.shell("s0").run("lldpctl -f json", timeout_s=2).exit_status == 0


def test_a_shell_to_nowhere(fleet, fault):
    fault("s0", "unreachable")
    with pytest.raises(DeviceUnreachableError, match="s0: "):
        fleet.shell("s0").run("lldpctl -f json", timeout_s=1)
    with pytest.raises(UsageError):
        fleet.shell("s77")


def test_an_unknown_host_key_is_refused(aimed, tmp_path):
    hosts = aimed(known_hosts=tmp_path / "empty").collect().hosts
    assert not any(host.reachable for host in hosts.values())
    assert all(host.host_key_problem for host in hosts.values())
    assert "unknown: ssh-ed25519 SHA256:" in hosts["s0"].error


def test_a_changed_host_key_is_refused(aimed, rack, tmp_path):
    lines = (rack.folder / "known_hosts").read_text().splitlines()
    names, keys = [line.split()[0] for line in lines], [line.split()[1:] for line in lines]
    swapped = tmp_path / "known_hosts"
    swapped.write_text("".join(f"{n} {' '.join(k)}\n" for n, k in zip(names, keys[1:] + keys[:1], strict=True)))
    hosts = aimed(known_hosts=swapped).collect().hosts
    assert all(host.host_key_problem and "CHANGED" in host.error for host in hosts.values())


def test_a_key_that_the_hosts_do_not_take(aimed, rack, tmp_path):
    stranger = tmp_path / "stranger"
    paramiko.ECDSAKey.generate().write_private_key_file(str(stranger))
    at = rack.endpoints().hosts["s0"]
    host = aimed(ssh=dataclasses.replace(at.ssh, key_file=stranger)).collect(["s0"]).hosts["s0"]
    assert not host.reachable
    assert not host.host_key_problem
    assert host.error.endswith("refused 1 key")
    assert "PRIVATE" not in host.error
    missing = aimed(ssh=dataclasses.replace(at.ssh, key_file=tmp_path / "none")).collect(["s0"]).hosts["s0"]
    assert "no SSH key to offer" in missing.error
    assert "none does not exist" in missing.error


@pytest.mark.parametrize("talks", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_port_behind_which_is_no_ssh_delays_nobody(aimed, rack, talks):
    at = rack.endpoints().hosts
    accepted = []

    def answer_and_hold():
        connection, _ = server.accept()
        accepted.append(connection)
        connection.sendall(talks)
        if talks:
            connection.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_and_hold, daemon=True).start()
        elsewhere = dataclasses.replace(at["s1"], ssh=dataclasses.replace(at["s1"].ssh, port=server.getsockname()[1]))
        started = time.monotonic()
        hosts = aimed({"s0": at["s0"], "s1": elsewhere}).collect().hosts
        assert time.monotonic() - started < 3.0
    accepted[0].close()
    assert hosts["s0"].reachable
    assert max(outcome.seconds for outcome in hosts["s0"].probes.values()) < 0.9
    assert hosts["s1"].error == f"s1: 127.0.0.1 port {elsewhere.ssh.port}: " + (
        "no SSH server answers there" if talks else "no answer within 1 s"
    )


def test_through_a_proxy_command(aimed, rack, tmp_path):
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import os, socket, sys, threading\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "def up():\n"
        "    while data := os.read(0, 65536): s.sendall(data)\n"
        "    s.shutdown(socket.SHUT_WR)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while data := s.recv(65536): os.write(1, data)\n"
    )
    at = rack.endpoints().hosts["s0"]
    config = tmp_path / "config"
    config.write_text(f"Host *\n  ProxyCommand {sys.executable} {relay} %h %p\n")
    through = HostEndpoint("s0", at.address, dataclasses.replace(at.ssh, config_file=config), at.known_hosts)
    host = aimed({"s0": through}).collect(probes=["net", "gpu"]).hosts["s0"]
    assert host.reachable, host.error
    assert len(host.gpus) == 1


def test_a_closed_fleet_leaves_no_connection(inventory, rack, ssh_client):
    others = {*threading.enumerate()}
    opened = Fleet(inventory, rack.endpoints())
    opened.collect()
    new = [each for each in threading.enumerate() if each not in others]
    receive = [each for each in new if each.name.startswith("ssh") or isinstance(each, paramiko.Transport)]
    assert len(receive) == (1 if ssh_client == "fast" else 2 * len(inventory.hosts))
    opened.close()
    opened.close()
    for each in receive:
        each.join(5)
        assert not each.is_alive()
