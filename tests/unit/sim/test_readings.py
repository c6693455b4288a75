"""What a host has told since it was booted: kernel log, counters, NVLinks, and modules in JSON."""

import json
import math

import pytest

from lumctl.devices.formats.ethtool import parse_ethtool_module, read_ethtool_module
from lumctl.fleet.parsers.kernel_log import parse_kernel_log
from lumctl.fleet.parsers.nvlink import parse_nvlink_errors, parse_nvlink_states, parse_nvlink_traffic

STATISTICS = "/sys/class/net/{}/statistics/{}"


def test_a_kernel_log_counts_from_the_boot(bench):
    boot = bench.world.boots["a"]
    bench.clock.time += 7.25
    bench.world.inject("a-gpu0", "gpu-lost")
    log = bench.run("a", "dmesg").stdout
    assert log.startswith("[    0.000000] Linux version ")
    (event,) = parse_kernel_log(log, booted_at=boot.at).xids
    assert event.at == pytest.approx(bench.clock.time, abs=1e-5)
    assert log.count("\n") == bench.run("a", "dmesg --time-format iso").stdout.count("\n")


def test_every_host_was_booted_days_ago_and_on_its_own(bench, make_bench):
    boots = bench.world.boots
    assert len({boot.id for boot in boots.values()}) == len({boot.at for boot in boots.values()}) == len(boots)
    assert all(2 <= (bench.clock.time - boot.at) / 86_400 <= 40 for boot in boots.values())
    assert make_bench().world.boots == boots, "the seed decides"


@pytest.mark.parametrize("counter", ["rx_bytes", "tx_bytes", "rx_packets", "tx_packets"])
def test_traffic_is_counted_while_there_is_a_carrier(bench, counter):
    def count():
        return int(bench.run("a", f"cat {STATISTICS.format('eth2', counter)}").stdout)

    assert count() == 0
    bench.clock.time += 10
    in_ten = count()
    assert in_ten > 0
    bench.world.inject("a-t0", "link-down")
    bench.clock.time += 10
    assert count() == in_ten
    bench.world.clear()
    bench.clock.time += 10
    assert count() == pytest.approx(2 * in_ten, rel=1e-6)


def test_errors_are_not(bench):
    bench.clock.time += 1000
    lines = bench.run("a", "grep -sH . /sys/class/net/*/statistics/*_err* /sys/class/net/*/statistics/*dropped").stdout
    assert len(lines.splitlines()) == 3 * 15
    assert all(line.endswith(":0") for line in lines.splitlines())


def test_changes_of_a_carrier_are_ups_and_downs(bench):
    def changes():
        answer = bench.run("a", "grep -sH . /sys/class/net/eth2/carrier_*")
        assert answer.exit_status == 0
        return [int(line.rpartition(":")[2]) for line in answer.stdout.splitlines()]

    assert changes() == [1, 0, 1]
    bench.world.inject("a-t0", "link-down")
    assert changes() == [2, 1, 1]
    bench.world.clear()
    assert changes() == [3, 1, 2]


def test_nvlinks_are_read_by_the_fleet_and_are_well(bench):
    _, states = parse_nvlink_states(bench.run("a", "nvidia-smi nvlink -s").stdout)
    answer, errors = parse_nvlink_errors(bench.run("a", "nvidia-smi nvlink -e").stdout)
    assert answer.gpus == 2
    assert set(states) == set(errors)
    assert len(states) == 2 * 18
    assert all(state.active and state.speed_gb_s == 26.562 for state in states.values())
    assert all(set(each.counters.values()) == {0} and len(each.counters) == 3 for each in errors.values())


def test_nvlinks_move_data_while_a_gpu_works_and_nothing_once_its_process_died(bench):
    def moved():
        answer, counts = parse_nvlink_traffic(bench.run("a", "nvidia-smi nvlink -gt d").stdout)
        assert (answer.gpus, answer.unread, len(counts)) == (2, None, 2 * 18)
        return next(sent for (gpu, _, link), (sent, _) in counts.items() if (gpu, link) == (0, 3))

    before = moved()
    bench.clock.time += 10
    after = moved()
    assert 5_000_000 < (after - before) / 10 < 26_562_000_000 / 1024
    bench.world.inject("a-gpu0", "process-died")
    moved()
    bench.clock.time += 10
    assert moved() == after


def test_a_lost_gpu_has_no_nvlinks(bench):
    bench.world.inject("a-gpu0", "gpu-lost")
    said = bench.run("a", "nvidia-smi nvlink -s").stdout
    assert said.startswith("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-")
    assert said.count("GPU 0") == 1
    assert "GPU 1" not in said


def test_a_hung_driver_hangs_for_both(bench):
    bench.world.inject("a", "hung-smi")
    assert bench.run("a", "nvidia-smi nvlink -s").delay_s == math.inf
    assert bench.run("a", "nvidia-smi nvlink -e").delay_s == math.inf
    assert bench.run("a", "dmesg").delay_s == 0


@pytest.mark.parametrize("host", ["a", "d"])
@pytest.mark.parametrize("dark", [False, True])
def test_a_module_in_json_reads_as_in_text(bench, host, dark):
    if dark:
        bench.world.inject(f"{host}-t0", "dark")
    text, document = bench.run(host, "ethtool -m eth2").stdout, bench.run(host, "ethtool --json -m eth2").stdout
    json.loads(document)
    read = read_ethtool_module(document, 0.0)
    assert read.unread is None
    plain = parse_ethtool_module(text, 0.0)
    for quantity in ("rx_power_dbm", "tx_power_dbm", "bias_ma", "temperature_c", "voltage_v"):
        # Text has dBm with two digits, JSON milliwatts with four.
        assert getattr(read.reading, quantity) == pytest.approx(getattr(plain, quantity), abs=0.02), quantity
    assert read.reading.thresholds == pytest.approx(plain.thresholds, abs=0.02)
    assert (read.reading.vendor, read.reading.part) == (plain.vendor, plain.part)
    assert read.reading.transmitting is plain.transmitting is not dark


def test_a_module_that_is_not_there_is_not_there_in_json_either(bench):
    assert bench.run("a", "ethtool --json -m eth9") == bench.run("a", "ethtool -m eth9")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/sys/class/net/*/operstate", ["eno1", "eth2", "lo"]),
        ("/sys/class/net/?o/operstate", ["lo"]),
        ("/sys/class/net/e[a-n]*/operstate", ["eno1"]),
        ("/sys/class/net/[!e]*/operstate", ["lo"]),
        ("/sys/class/*/operstate", []),
        ("/sys/class/net[/]lo/operstate", []),
    ],
)
def test_patterns_find_what_a_shell_would(bench, pattern, found):
    lines = bench.run("a", f"grep -sH . {pattern}").stdout.splitlines()
    assert [line.split("/")[4] for line in lines] == found
