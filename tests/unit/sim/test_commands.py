"""The answers of a host, held against the program's own parsers and the forms of the real tools."""

import json
import math
import re

import pytest

from lumctl.devices.formats.ethtool import parse_ethtool_module
from lumctl.devices.formats.lldp import mark_command, parse_lldp
from lumctl.devices.types import PucState
from lumctl.fleet.parsers.kernel_log import parse_kernel_log
from lumctl.fleet.parsers.nvidia_smi import parse_nvidia_smi
from lumctl.fleet.parsers.sysfs import parse_infiniband, parse_interfaces

NET = "grep -sH . /sys/class/net/*/operstate /sys/class/net/*/carrier_changes /sys/class/net/*/speed"
INFINIBAND = "grep -sH . /sys/class/infiniband/*/ports/*/state /sys/class/infiniband/*/ports/*/counters/*"

MARK = "02,6c,6d/1/0a"


def test_nvidia_smi_is_read_whole_by_the_fleet(bench):
    bench.world.inject("a-gpu1", "ecc", 2)
    bench.world.inject("a-gpu1", "throttled")
    report = parse_nvidia_smi(bench.run("a", "nvidia-smi -q -x").stdout, bench.clock.time)
    assert report.complete
    well, ill = report.gpus
    assert (well.pci, well.minor, well.product) == ("0000:1b:00.0", 0, "NVIDIA H100 80GB HBM3")
    assert 55 < well.temperature_c < 70
    assert (well.temperature_slowdown_c, well.memory_temperature_max_c) == (89.0, 95.0)
    assert well.memory_total_mib == 81920
    assert [each.name for each in well.processes] == ["/opt/train/bin/python3"]
    assert (well.recovery_action, well.remap_pending, well.remap_failed) == ("None", False, False)
    assert not well.throttle_reasons
    assert (ill.ecc_volatile_uncorrectable, ill.remap_pending, ill.recovery_action) == (2, True, "Reset")
    assert {"hw_slowdown", "hw_thermal_slowdown"} <= ill.throttle_reasons
    assert ill.processes == ()


def test_the_kernel_log_is_read_by_the_fleet(bench):
    bench.clock.time += 7.25
    bench.world.inject("a-gpu0", "gpu-lost")
    (event,) = parse_kernel_log(bench.run("a", "dmesg --time-format iso").stdout).xids
    assert (event.xid, event.pci.removesuffix(".0")) == (79, "0000:1b:00")
    assert event.at == pytest.approx(bench.clock.time)


def test_interfaces_are_read_by_the_fleet(bench):
    answer = bench.run("a", NET)
    assert answer.exit_status == 2, "the speed of lo cannot be read, as on a real host"
    found = parse_interfaces(answer.stdout, bench.clock.time)
    assert set(found) == {"lo", "eno1", "eth2"}
    assert (found["eth2"].operstate, found["eth2"].speed_mbps) == ("up", 100_000)
    bench.world.inject("a-t0", "link-down")
    down = parse_interfaces(bench.run("a", NET).stdout, bench.clock.time)["eth2"]
    assert (down.operstate, down.speed_mbps, down.carrier_changes) == ("down", None, 2)


def test_a_host_without_infiniband_prints_nothing(bench):
    answer = bench.run("a", INFINIBAND)
    assert (answer.exit_status, answer.stdout, answer.stderr) == (2, "", "")
    assert parse_infiniband(answer.stdout, bench.clock.time) == ()


@pytest.mark.parametrize(("host", "form"), [("a", "0x11 (QSFP28)"), ("d", "0x03 (SFP)")])
def test_modules_are_read_by_the_fleet(bench, host, form):
    text = bench.run(host, "ethtool -m eth2").stdout
    assert form in text
    optics = parse_ethtool_module(text, bench.clock.time)
    view = bench.link(host)
    assert optics.optical
    assert optics.rx_power_dbm == pytest.approx(view.rx_power_dbm, abs=0.01)
    assert optics.tx_power_dbm == pytest.approx(view.tx_power_dbm, abs=0.01)
    assert optics.temperature_c == pytest.approx(view.temperature_c, abs=0.01)
    assert optics.bias_ma == pytest.approx(36.4)
    limits = optics.thresholds
    assert limits["rx_power_low_alarm"] < limits["rx_power_low_warning"] < limits["rx_power_high_warning"]
    assert limits["tx_power_low_alarm"] < limits["tx_power_low_warning"] < limits["tx_power_high_alarm"]


def test_no_light_reads_as_no_light(bench):
    bench.world.inject("c-t0", "dark")
    for host in "cd":
        text = bench.run(host, "ethtool -m eth2").stdout
        assert "0.0000 mW / -inf dBm" in text
        assert parse_ethtool_module(text, 0.0).rx_power_dbm == -math.inf
    assert re.search(r"Laser rx power low alarm\s+: On", bench.run("d", "ethtool -m eth2").stdout)


def test_neighbours_are_read_by_the_fleet_freshest_first(bench):
    bench.clock.time += 12
    bench.world.meshes.write("m1", {0: PucState.CROSS, 1: PucState.CROSS})
    bench.world.announce("c", MARK)
    text = bench.run("a", "lldpctl -f json").stdout
    assert '"age": "0 day, 00:00:12"' in text
    assert [(n.system, n.port, n.age_s) for n in parse_lldp(text)["eth2"]] == [("c", "eth2", 0.0), ("b", "eth2", 12.0)]


def test_an_update_is_heard_at_the_far_end(bench):
    bench.world.meshes.write("m1", {0: PucState.CROSS, 1: PucState.CROSS})
    assert set(bench.hears("a")) == {"b"}
    assert bench.run("c", "lldpcli update") == (0, "", "", 0.0)
    assert set(bench.hears("a")) == {"b", "c"}


@pytest.mark.parametrize("oui", ["zz", "33,44", "3/3,4/4,55", "33,44,55,66"])
def test_what_lldpcli_cannot_say_is_refused(bench, oui):
    answer = bench.run("a", f"lldpcli configure lldp custom-tlv replace oui {oui} subtype 1 oui-info 0a")
    assert answer.exit_status == 1
    assert "[WARN/lldpctl]" in answer.stderr
    assert "unknown-tlvs" not in bench.run("b", "lldpctl -f json").stdout


def test_of_two_neighbours_within_a_second_the_later_one_is_taken_for_the_fresher(bench):
    bench.clock.time += 0.4
    bench.world.meshes.write("m1", {0: PucState.CROSS, 1: PucState.CROSS})
    bench.run("c", "lldpcli update")
    heard = parse_lldp(bench.run("a", "lldpctl -f json").stdout)["eth2"]
    assert [(n.system, n.age_s) for n in heard] == [("c", 0.0), ("b", 0.0)]


def test_the_shape_of_the_neighbour_table_follows_lldpd(bench):
    def shape():
        return json.loads(bench.run("a", "lldpctl -f json").stdout)["lldp"]

    assert isinstance(shape()["interface"], dict)
    bench.world.meshes.write("m1", {0: PucState.CROSS, 1: PucState.CROSS})
    bench.world.announce("c", MARK)
    assert [list(entry) for entry in shape()["interface"]] == [["eth2"], ["eth2"]]
    bench.world.set_interface("a", "eth2", up=False)
    assert shape() == {}


def test_switching_an_interface_switches_its_light_and_its_flags(bench):
    assert bench.run("a", "cat /sys/class/net/eth2/flags").stdout == "0x1003\n"
    assert bench.run("a", "sudo -n ip link set dev eth2 down") == (0, "", "", 0.0)
    assert bench.run("a", "cat /sys/class/net/eth2/flags").stdout == "0x1002\n"
    assert bench.link("b").rx_power_dbm == -math.inf
    assert "eth2/speed" not in bench.run("a", NET).stdout, "reading it is an error while it is switched off"
    bench.run("a", "ip link set dev eth2 up")
    assert bench.hears("b") == {"a": 0.0}


def test_commands_joined_by_and_end_with_the_first_that_fails(bench):
    assert bench.run("a", "sudo -n ip link set dev eth2 down && cat /sys/class/net/eth2/flags") == (
        0,
        "0x1002\n",
        "",
        0.0,
    )
    said = bench.run("a", "ip link set dev eth9 up && ip link set dev eth2 up")
    assert (said.exit_status, said.stdout) == (1, "")
    assert bench.run("a", "cat /sys/class/net/eth2/flags").stdout == "0x1002\n"


def test_a_mark_is_heard_at_the_far_end_and_makes_the_entry_young_again(bench):
    bench.clock.time += 20
    assert bench.hears("b") == {"a": 20.0}
    assert bench.run("a", mark_command("00ff")).exit_status == 0
    heard = parse_lldp(bench.run("b", "lldpctl -f json").stdout)["eth2"]
    assert [(n.system, n.port, n.age_s, n.mark) for n in heard] == [("a", "eth2", 0.0, "00ff")]


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("foo --bar", 127, "sh: 1: foo: not found"),
        ("sudo -n foo", 127, "sh: 1: foo: not found"),
        ("ip link set dev eth9 up", 1, 'Cannot find device "eth9"'),
        ("ip link set dev eth2 sideways", 2, "does not support"),
        ("ethtool -m eth9", 1, "No such device"),
        ("ethtool eth2", 2, "does not support"),
        ("cat /etc/passwd", 1, "No such file or directory"),
        ("cat /sys/class/net/lo/speed", 1, "Invalid argument"),
        ("nvidia-smi -L", 2, "does not support"),
        ("dmesg -w", 2, "does not support"),
        ("lldpctl", 2, "does not support"),
        ("lldpcli show neighbors", 2, "does not support"),
        ("grep -r x /", 2, "does not support"),
        ("cat a b", 2, "does not support"),
        ("echo 'unbalanced", 2, "Syntax error"),
    ],
)
def test_other_commands_fail_as_in_a_shell(bench, command, status, said):
    answer = bench.run("a", command)
    assert (answer.exit_status, answer.stdout) == (status, "")
    assert said in answer.stderr


def test_an_empty_command_is_no_error(bench):
    assert bench.run("a", "  ") == (0, "", "", 0.0)
