"""What each fault does to what a host prints, that clearing takes it back, and what is refused."""

import math
from xml.etree import ElementTree as ET

import pytest

from lumctl.devices.types import Alarm, PucState
from lumctl.errors import UsageError
from lumctl.sim.world.faults import FITS, ComponentKind, FaultKind

COMPONENTS = {
    ComponentKind.HOST: "a",
    ComponentKind.ACCELERATOR: "a-gpu0",
    ComponentKind.TRANSPONDER: "a-t0",
    ComponentKind.MESH: "m1",
    ComponentKind.SWITCH: "x1",
    ComponentKind.CHASSIS: "k1",
    ComponentKind.POWER: "p1",
    ComponentKind.PORT: "m1/port/0",
    ComponentKind.PUC: "m1/puc/3",
}


def gpus(bench, host="a"):
    # The document is our own.
    return ET.fromstring(bench.run(host, "nvidia-smi -q -x").stdout).findall("gpu")  # noqa: S314


def text(gpu, path):
    return gpu.findtext(path)


def test_a_lost_gpu_is_gone_from_the_driver_and_named_in_the_kernel_log(bench):
    bench.world.inject("a-gpu0", "gpu-lost")
    assert [text(gpu, "minor_number") for gpu in gpus(bench)] == ["1"]
    assert "<attached_gpus>1<" in bench.run("a", "nvidia-smi -q -x").stdout
    assert "Xid (PCI:0000:1b:00): 79," in bench.run("a", "dmesg --time-format iso").stdout
    assert bench.hears("b") == {"a": 0.0}, "its transmitter keeps shining"


def test_a_healed_gpu_reads_healthy(bench):
    boot = bench.world.boots["a"]
    bench.world.inject("a-gpu1", "ecc")
    bench.world.clear("a-gpu1")
    log = bench.run("a", "dmesg --time-format iso").stdout
    assert "48," in log, "the lines of a GPU that was reset stay"
    assert log.endswith("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)\n")
    assert bench.world.boots["a"] == boot
    bench.world.inject("a-gpu0", "gpu-lost")
    bench.clock.time += 1
    bench.world.clear("a-gpu0")
    assert len(gpus(bench)) == 2
    assert "Xid" not in bench.run("a", "dmesg --time-format iso").stdout
    assert bench.world.boots["a"].id != boot.id, "a GPU that was lost needs a boot of its host"
    assert bench.world.boots["a"].at == bench.clock.time


def test_a_gpu_that_is_healed_leaves_the_faults_of_another_in_the_log(bench):
    bench.world.inject("a-gpu0", "gpu-lost")
    bench.world.inject("a-gpu1", "ecc")
    bench.world.clear("a-gpu0")
    log = bench.run("a", "dmesg --time-format iso").stdout
    assert "): 79," not in log
    assert "Xid (PCI:0000:9d:00): 48," in log, "the boot that heals one GPU does not heal the other"


def test_a_job_works_where_it_was_last_resumed(bench):
    bench.world.inject("a-gpu0", "process-died")
    bench.world.resume("pair", ["c-gpu0", "b-gpu0"])
    busy = [text(gpus(bench, host)[0], "utilization/gpu_util") for host in "abc"]
    assert busy == ["0 %", "96 %", "96 %"]
    bench.world.resume("pair", ["a-gpu0", "b-gpu0"])
    assert gpus(bench)[0].find("processes/process_info") is not None, "a process that died is started again"
    assert gpus(bench, "c")[0].find("processes/process_info") is None
    with pytest.raises(UsageError, match="no accelerator 'z-gpu0'"):
        bench.world.resume("pair", ["z-gpu0"])


def test_a_dead_process_leaves_the_gpu_well(bench):
    assert gpus(bench)[0].find("processes/process_info") is not None
    bench.world.inject("a-gpu0", "process-died")
    assert gpus(bench)[0].find("processes/process_info") is None
    assert "Xid" not in bench.run("a", "dmesg --time-format iso").stdout


def test_memory_errors_are_counted_and_logged(bench):
    bench.world.inject("a-gpu0", "ecc", 3)
    gpu = gpus(bench)[0]
    assert text(gpu, "ecc_errors/volatile/dram_uncorrectable") == "3"
    assert text(gpu, "ecc_errors/aggregate/dram_uncorrectable") == "3"
    assert text(gpu, "remapped_rows/remapped_row_pending") == "Yes"
    assert text(gpu, "gpu_recovery_action") == "Reset"
    log = bench.run("a", "dmesg --time-format iso").stdout
    assert "): 48," in log
    assert "): 63," in log


def test_a_failed_row_remap_shows_in_both_places(bench):
    bench.world.inject("a-gpu0", "row-remap-failed")
    assert text(gpus(bench)[0], "remapped_rows/remapped_row_failure") == "Yes"
    assert "): 64," in bench.run("a", "dmesg --time-format iso").stdout


@pytest.mark.parametrize(("value", "least"), [(None, 90), (101, 101)])
def test_an_overheated_gpu_is_above_its_own_threshold(bench, value, least):
    bench.world.inject("a-gpu0", "overheat", value)
    gpu = gpus(bench)[0]
    warm = int(text(gpu, "temperature/gpu_temp").split()[0])
    assert warm >= least
    assert warm > int(text(gpu, "temperature/gpu_temp_slow_threshold").split()[0])


@pytest.mark.parametrize("device", ["m1", "x1"])
@pytest.mark.parametrize(("value", "celsius"), [(None, 95), (110, 110)])
def test_an_overheated_device_shows_it(bench, device, value, celsius):
    read = bench.world.meshes.temperature if device == "m1" else bench.world.switches.temperature
    assert read(device) < 40
    bench.world.inject(device, "overheat", value)
    assert read(device) == pytest.approx(celsius, abs=4)
    bench.world.clear(device)
    assert read(device) < 40


@pytest.mark.parametrize(
    ("value", "severity"), [(None, "CRITICAL"), (1, "CRITICAL"), (2, "MAJOR"), (3, "MINOR"), (4, "WARNING")]
)
@pytest.mark.parametrize("device", ["m1", "x1"])
def test_a_device_raises_an_alarm_until_it_is_cleared(bench, device, value, severity):
    read = bench.world.meshes.alarms if device == "m1" else bench.world.switches.alarms
    assert read(device) == ()
    bench.world.inject(device, "alarm", value)
    assert read(device) == (Alarm("power supply 1 has failed", severity, "psu/1", bench.clock.time),)
    bench.world.clear(device)
    assert read(device) == ()


@pytest.mark.parametrize("value", [0, 5, 1.5, math.nan])
def test_an_alarm_has_one_of_four_severities(bench, value):
    with pytest.raises(UsageError, match="1 critical, 2 major, 3 minor, 4 warning"):
        bench.world.inject("x1", "alarm", value)


@pytest.mark.parametrize("component", ["k1", "p1", "a", "a-gpu0", "a-t0", "m1/port/0"])
def test_alarms_are_of_meshes_and_switches(bench, component):
    with pytest.raises(UsageError, match="does not fit"):
        bench.world.inject(component, "alarm")


def test_a_switch_complains_of_its_failed_ports_as_well(bench):
    bench.world.inject("x1", "alarm", 3)
    bench.world.inject("x1/port/1", "dark")
    assert [(a.severity, a.source) for a in bench.world.switches.alarms("x1")] == [("MINOR", "psu/1"), ("", "port/1")]


def test_a_throttled_gpu_says_so(bench):
    path = "clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown"
    assert text(gpus(bench)[0], path) == "Not Active"
    bench.world.inject("a-gpu0", "throttled")
    assert text(gpus(bench)[0], path) == "Active"


def test_a_link_that_is_down_has_no_carrier_and_sends_nothing(bench):
    bench.world.inject("a-t0", "link-down")
    assert not bench.link("a").carrier
    assert bench.link("b").rx_power_dbm == -math.inf
    assert bench.link("a").rx_power_dbm > -math.inf, "the light of the far end still comes in"
    assert bench.link("a").admin_up
    bench.world.clear("a-t0")
    assert bench.hears("b") == {"a": 0.0}


def test_a_flapping_link_goes_up_and_down_with_the_clock(bench):
    before = bench.link("a").carrier_changes
    bench.world.inject("a-t0", "link-flap", 2)
    seen = []
    for _ in range(6):
        seen.append(bench.link("a").carrier)
        bench.clock.time += 2
    assert seen == [False, True, False, True, False, True]
    assert bench.link("a").carrier_changes == before + 7
    bench.clock.time += 2 * 1000
    assert bench.link("a").carrier_changes == before + 1007, "also while nobody looked"


def test_a_dark_transmitter_is_dark_at_both_ends(bench):
    bench.world.inject("a-t0", "dark")
    assert bench.link("b").rx_power_dbm == -math.inf
    assert bench.link("a").tx_power_dbm == -math.inf
    assert bench.hears("a") == {"b": 0.0}, "its receiver still hears"
    bench.world.set_interface("a", "eth2", up=True)
    assert bench.link("b").rx_power_dbm == -math.inf


def test_a_dark_port_passes_no_light_either_way(bench):
    bench.world.inject("m1/port/0", "dark")
    assert bench.link("a").rx_power_dbm == bench.link("b").rx_power_dbm == -math.inf
    assert bench.link("a").tx_power_dbm > -math.inf


def test_a_dim_port_loses_in_both_directions_and_a_dim_transmitter_in_one(bench):
    bench.world.inject("m1/port/0", "dim", 3)
    assert bench.link("a").rx_power_dbm == pytest.approx(-5.5, abs=0.2)
    assert bench.link("b").rx_power_dbm == pytest.approx(-5.5, abs=0.2)
    bench.world.clear()
    bench.world.inject("a-t0", "dim", 4)
    assert bench.link("a").rx_power_dbm == pytest.approx(-2.5, abs=0.2)
    assert bench.link("b").rx_power_dbm == pytest.approx(-6.5, abs=0.2)


def test_a_stuck_cell_moves_at_once_and_ignores_writes(bench):
    bench.world.inject("m1/puc/3", "stuck-cross")
    assert bench.world.meshes.states("m1")[3] is PucState.CROSS
    bench.world.meshes.write("m1", {3: PucState.BAR, 4: PucState.CROSS})
    assert bench.world.meshes.states("m1")[3] is PucState.CROSS
    assert bench.world.meshes.states("m1")[4] is PucState.CROSS
    bench.world.inject("m1/puc/3", "stuck-bar")
    assert [fault.kind for fault in bench.world.faults()] == ["stuck-bar"]
    bench.world.clear("m1/puc/3")
    bench.world.meshes.write("m1", {3: PucState.CROSS})
    assert bench.world.meshes.states("m1")[3] is PucState.CROSS


def test_a_lying_mesh_does_nothing_and_says_nothing(bench):
    bench.world.inject("m1", "mesh-lying")
    bench.world.meshes.write("m1", {3: PucState.CROSS}, receipt="r", revert_after_s=1)
    assert bench.world.meshes.states("m1")[3] is PucState.BAR


def test_a_slow_host_delays_every_answer(bench):
    bench.world.inject("a", "slow-host", 2.5)
    assert bench.run("a", "dmesg --time-format iso").delay_s == 2.5
    assert bench.run("a", "no-such-tool").delay_s == 2.5
    assert bench.run("b", "dmesg --time-format iso").delay_s == 0


def test_a_hung_driver_answers_never_and_the_rest_of_the_host_does(bench):
    bench.world.inject("a", "hung-smi")
    assert bench.run("a", "nvidia-smi -q -x").delay_s == math.inf
    assert bench.run("a", "lldpctl -f json").delay_s == 0


@pytest.mark.parametrize("kind", FaultKind)
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_kind_fits_what_it_fits_and_is_refused_elsewhere(bench, kind, component):
    name = COMPONENTS[component]
    if component in FITS[kind]:
        fault = bench.world.inject(name, kind)
        assert bench.world.clear(name) == [fault]
        assert bench.world.faults() == []
    else:
        with pytest.raises(UsageError) as refused:
            bench.world.inject(name, kind)
        assert refused.value.hint
        assert bench.world.faults() == []


@pytest.mark.parametrize(
    ("component", "kind", "value", "message", "hint"),
    [
        (
            "gpu-lost",
            "h03-gpu2",
            None,
            "'gpu-lost' is a kind of fault, not a component",
            "lumctl sim fault h03-gpu2 gpu-lost",
        ),
        ("a-gpu9", "gpu-lost", None, "component 'a-gpu9' is not in", "did you mean a-gpu"),
        ("a-gpu0", "gpu-lots", None, "'gpu-lots' is not a known", "did you mean gpu-lost"),
        ("a-gpu0", "zzz", None, "'zzz' is not a known", "one of: gpu-lost"),
        ("a", "gpu-lost", None, "does not fit a, which is a host", "a-gpu0, a-gpu1"),
        ("a-gpu0", "dark", None, "which is an accelerator", "a-t0"),
        ("m1/puc/11", "stuck-bar", None, "no puc '11'", "0 to 10"),
        ("m1/puc/x", "stuck-bar", None, "no puc 'x'", "0 to 10"),
        ("m1/port/16", "dark", None, "no port '16'", "0 to 15"),
        ("m1/prot/1", "dark", None, "names nothing", "m1/port/N"),
        ("x1", "mesh-down", None, "is a switch", "device-down"),
        ("k1", "mesh-lying", None, "is a chassis", "device-lying"),
        ("p1", "dark", None, "is a power controller", "device-refuse"),
        ("a", "device-slow", None, "is a host", "slow-host"),
        ("m1", "device-slow", -1, "at least 0", None),
        ("m1", "device-cut", 1, "takes no value", None),
        ("k2", "device-down", None, "component 'k2' is not in", "a device"),
        ("x1/puc/0", "stuck-bar", None, "no puc '0'", None),
        ("a-t0", "dim", -1, "at least 0.1", None),
        ("a-t0", "dim", math.nan, "at least 0.1", None),
        ("a", "slow-host", math.inf, "at least 0", None),
        ("a-gpu0", "gpu-lost", 3, "takes no value", None),
    ],
)
def test_a_wrong_fault_is_refused_with_the_right_word(bench, component, kind, value, message, hint):
    with pytest.raises(UsageError) as refused:
        bench.world.inject(component, kind, value)
    assert message in refused.value.message
    if hint:
        assert hint in refused.value.hint


def test_clearing_what_is_well_does_nothing_and_an_unknown_name_is_refused(bench):
    assert bench.world.clear("a") == []
    with pytest.raises(UsageError):
        bench.world.clear("nobody")
