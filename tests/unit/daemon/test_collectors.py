"""Metrics of what hosts tell: each reading in its unit, and none that is old, lost or only half there."""

from collections import Counter
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lumctl.context.job_files import LIGHT, job_folder, save_light
from lumctl.daemon.metrics.collectors import metrics_text
from lumctl.devices.types import Alarm, DeviceReading, OpticsReading
from lumctl.fleet.readings import (
    ALL_NVLINKS,
    InfinibandPort,
    NicEvent,
    NicEventKind,
    NvlinkReading,
    PortCounters,
    ProbeOutcome,
    ProbeStatus,
    SxidEvent,
    XidEvent,
)
from lumctl.health.acknowledgements import Acknowledgement, MaintenanceWindow
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory

NOW = 1_800_000_000.0
HOST, GPU = "s1", "s1-gpu0"


@pytest.fixture
def metrics(seen):
    """The samples of one look, by name and by what of their labels was asked for."""

    def of(name, *asked, look=None):
        found = {}
        for family in text_string_to_metric_families(metrics_text(look or seen.look())):
            for sample in family.samples:
                if sample.name == f"lumctl_{name}":
                    key = tuple(sample.labels[label] for label in asked)
                    assert key not in found, f"{name} {key} came twice"
                    found[key] = sample.value
        return found

    return of


@pytest.fixture
def lane(seen):
    return next(lane for lane in seen.inventory.transponders.values() if lane.host == HOST)


def nvlinks(at, count=3, **fields):
    """NVLinks of the first GPU in the list."""
    return tuple(
        NvlinkReading(at, 0, None, n, active=n > 0, errors_at=at, **{"replay_errors": n, "crc_errors": 10, **fields})
        for n in range(count)
    )


def test_nvlinks_are_summed_over_an_accelerator(seen, metrics):
    seen.of_hosts[HOST] = {"nvlinks": nvlinks(seen.now, effective_ber=1e-13)}
    assert metrics("accelerator_nvlinks", "id", "active") == {(GPU, "true"): 2, (GPU, "false"): 1}
    assert metrics("accelerator_nvlink_errors_total", "id", "kind") == {(GPU, "replay"): 3, (GPU, "crc"): 30}
    assert metrics("accelerator_nvlink_bit_error_ratio", "id") == {(GPU,): 1e-13}


def test_links_of_which_none_is_active_are_not_counted(seen, metrics):
    seen.of_hosts[HOST] = {"nvlinks": (NvlinkReading(seen.now, 0, None, ALL_NVLINKS, active=False),)}
    assert metrics("accelerator_nvlinks", "id", "active") == {}
    assert metrics("accelerator_nvlink_errors_total", "id", "kind") == {}


def test_a_sum_that_lacks_a_link_is_none(seen, metrics):
    whole = nvlinks(seen.now)
    seen.of_hosts[HOST] = {"nvlinks": (*whole[1:], replace(whole[0], errors_at=None))}
    assert metrics("accelerator_nvlink_errors_total", "id", "kind") == {}
    seen.of_hosts[HOST] = {"nvlinks": (*whole[1:], replace(whole[0], crc_errors=None))}
    assert metrics("accelerator_nvlink_errors_total", "kind") == {("replay",): 3}


def test_nvlinks_are_read_rarely_and_old_in_the_end(seen, metrics):
    limit_s = seen.inventory.thresholds.stale_after_s + seen.inventory.probes["nvlink"].every_s
    seen.of_hosts[HOST] = {"nvlinks": nvlinks(seen.now - limit_s + 1)}
    assert metrics("accelerator_nvlinks", "active")
    seen.of_hosts[HOST] = {"nvlinks": nvlinks(seen.now - limit_s - 1)}
    assert not metrics("accelerator_nvlinks", "active")
    assert not metrics("accelerator_nvlink_errors_total", "kind")


def test_ports_count_in_bytes_and_by_the_kernels_names(seen, metrics, lane):
    values = {"rx_bytes": 1000, "tx_bytes": 2000, "rx_errors": 3, "rx_fifo_errors": 3, "roce_adp_retrans": 4}
    seen.of_hosts[HOST] = {"counters": {lane.interface: PortCounters(lane.interface, seen.now, values)}}
    assert metrics("link_receive_bytes_total", "id", "port") == {(lane.id, lane.interface): 1000}
    assert metrics("link_transmit_bytes_total", "id") == {(lane.id,): 2000}
    assert metrics("link_errors_total", "id", "counter") == {(lane.id, "rx_errors"): 3}
    assert metrics("link_congestion_events_total", "counter") == {("roce_adp_retrans",): 4}


def test_an_infiniband_device_has_ports_that_count_words_and_may_be_down(seen, metrics, lane):
    ports = {
        f"{lane.interface}/{n}": PortCounters(
            f"{lane.interface}/{n}", seen.now, {"port_rcv_data": 25, "link_downed": n}
        )
        for n in (1, 2)
    }
    states = tuple(InfinibandPort(lane.interface, n, seen.now, state) for n, state in ((1, "ACTIVE"), (2, "DOWN")))
    seen.of_hosts[HOST] = {"counters": ports, "infiniband": states, "interfaces": {}}
    assert metrics("link_receive_bytes_total", "port") == dict.fromkeys(((name,) for name in ports), 100)
    assert metrics("link_errors_total", "port", "counter")[f"{lane.interface}/2", "link_downed"] == 2
    assert metrics("link_up", "id")[lane.id,] == 0
    seen.of_hosts[HOST]["infiniband"] = states[:1]
    assert metrics("link_up", "id")[lane.id,] == 1


def test_counters_that_are_old_are_left_out(seen, metrics, lane):
    old = seen.now - seen.inventory.thresholds.stale_after_s - 1
    seen.of_hosts[HOST] = {"counters": {lane.interface: PortCounters(lane.interface, old, {"rx_bytes": 1})}}
    assert not metrics("link_receive_bytes_total", "id")


def test_what_kernel_logs_tell(seen, metrics):
    pci = seen.look().snapshot.hosts[HOST].gpus[0].pci
    seen.of_hosts[HOST] = {
        "xids": (XidEvent(5.0, pci, 79, "x"), XidEvent(9.0, pci, 79, "x"), XidEvent(None, "0000:ff:00.0", 8, "x")),
        "sxids": (SxidEvent(7.0, "0000:c1:00.0", 12028, "x", fatal=True), SxidEvent(8.0, "0000:c1:00.0", 20034, "x")),
        "nic_events": (NicEvent(1.0, "eth2", None, NicEventKind.LINK_DOWN, "x"),),
    }
    assert metrics("host_xid_events", "host")[HOST,] == 3
    assert metrics("xid_timestamp_seconds", "host", "id", "xid") == {(HOST, GPU, "79"): 9}
    sxids = metrics("host_sxid_events", "host", "fatal")
    assert [sxids[HOST, word] for word in ("true", "false", "unknown")] == [1, 0, 1]
    assert metrics("sxid_timestamp_seconds", "host", "sxid") == {(HOST, "12028"): 7, (HOST, "20034"): 8}
    nics = metrics("host_nic_events", "host", "event")
    assert nics[HOST, "link-down"] == 1
    assert nics["s2", "link-down"] == 0


@pytest.mark.parametrize("status", [ProbeStatus.DENIED, ProbeStatus.TIMED_OUT, None])
def test_a_log_that_cannot_be_read_holds_no_number_of_lines(seen, metrics, status):
    probes = {"kernel": ProbeOutcome("kernel", status, seen.now, 0.1)} if status else {}
    seen.of_hosts[HOST] = {"probes": probes}
    assert (HOST,) not in metrics("host_xid_events", "host")
    assert ("s2",) in metrics("host_xid_events", "host")


def test_what_copper_and_bare_modules_do_not_say_is_left_out(seen, metrics, lane):
    seen.of_hosts[HOST] = {"optics": {lane.interface: OpticsReading(seen.now, optical=False)}}
    for name in ("rx_power_dbm", "temperature_celsius", "bias_amperes", "rx_power_low_alarm_dbm"):
        assert (lane.id,) not in metrics(f"link_{name}", "id")
    limits = {"rx_power_low_alarm": -16.5}
    seen.of_hosts[HOST] = {"optics": {lane.interface: OpticsReading(seen.now, thresholds=limits, pre_fec_ber=1e-8)}}
    assert metrics("link_rx_power_low_alarm_dbm", "id")[lane.id,] == -16.5
    assert metrics("link_pre_fec_bit_error_ratio", "id")[lane.id,] == 1e-8


def test_a_state_that_the_kernel_does_not_know_is_not_down(seen, metrics, lane):
    usual = seen.look().snapshot.hosts[HOST].interfaces
    seen.of_hosts[HOST] = {"interfaces": {**usual, lane.interface: replace(usual[lane.interface], operstate="unknown")}}
    assert metrics("link_up", "id")[lane.id,] == 1
    assert metrics("link_speed_bytes", "id")[lane.id,] == 10_000 * 1e6 / 8


def test_incidents_say_since_when_of_what_and_whether_anybody_knows(seen, metrics):
    seen.group(HOST, HOST, GPU)
    labels = ("cause", "rule", "state", "acknowledged")
    assert metrics("incident_since_timestamp_seconds", *labels) == {(HOST, "host.down", "failed", "false"): seen.now}
    assert metrics("incident_components", "cause") == {(HOST,): 2}
    for name, found in seen.findings.items():
        seen.findings[name] = [replace(finding, acknowledged="by ops") for finding in found]
    assert [key[3] for key in metrics("incident_since_timestamp_seconds", *labels)] == ["true"]


def test_what_is_known_of_is_told_apart(seen, metrics):
    seen.find(GPU, acknowledged="by ops")
    seen.find("s2-gpu0")
    assert metrics("component_acknowledged", "kind", "id") == {("accelerator", GPU): 1}
    said = (Acknowledgement(GPU, None, "ops", "", seen.now),)
    window = MaintenanceWindow("w1", HOST, "ops", "", seen.now - 1, seen.now + 60)
    later = replace(window, id="w2", component="s2", starts=seen.now + 1)
    look = seen.look(acknowledgements=said, windows=(window, replace(window, id="w3", ends=seen.now + 90), later))
    assert metrics("acknowledgements", look=look) == {(): 1}
    assert metrics("maintenance_end_timestamp_seconds", "component", look=look) == {(HOST,): seen.now + 90}


def test_a_rack_with_everything_wrong_has_no_series_twice_and_not_too_many(seen_of):
    seen = seen_of("rack64")
    for host in seen.inventory.hosts:
        seen.find(host, State.FAILED, "host.unreachable")
        lanes = [lane.interface for lane in seen.inventory.transponders.values() if lane.host == host]
        seen.of_hosts[host] = {
            "nvlinks": nvlinks(seen.now, 18),
            "counters": {lane: PortCounters(lane, seen.now, {"rx_bytes": 1, "rx_errors": 1}) for lane in lanes},
            "xids": tuple(XidEvent(seen.now, "0000:00:00.0", 79, str(n)) for n in range(100)),
        }
    lines = [line.rpartition(" ")[0] for line in metrics_text(seen.look()).splitlines() if line[0] != "#"]
    assert [line for line, count in Counter(lines).items() if count > 1] == []
    assert len(lines) < 110 * len(seen.inventory.accelerators)


def test_what_devices_say_of_themselves(seen, metrics):
    device = seen.inventory.light_devices[0].id
    alarms = (Alarm("psu", "CRITICAL"), Alarm("fan", "Major"), Alarm("odd", "sev-9"))
    said = DeviceReading(seen.now, None, seen.now, alarms, 33.5, {3: -4.0, 4: float("-inf"), 5: float("nan")})
    look = seen.look(devices={device: said})
    counted = metrics("device_alarms", "id", "severity", look=look)
    assert {severity for (_, severity), count in counted.items() if count == 1} == {
        "critical",
        "major",
        "not-understood",
    }
    assert counted[device, "warning"] == 0, "an alert must see that an alarm has ended"
    assert metrics("device_temperature_celsius", "id", look=look) == {(device,): 33.5}
    powers = metrics("device_port_power_dbm", "id", "port", look=look)
    assert powers == {(device, "3"): -4.0, (device, "4"): float("-inf")}, "nonsense is no measurement"


@pytest.mark.parametrize(
    "fields", [{"problem": "gone"}, {"taken_at": NOW - 99, "read_at": NOW - 99}, {"read_at": None}, {"alarms": None}]
)
def test_a_device_that_said_nothing_of_late_has_no_alarms_in_the_metrics(seen, metrics, fields):
    device = seen.inventory.light_devices[0].id
    said = replace(DeviceReading(seen.now, None, seen.now, alarms=()), **fields)
    assert metrics("device_alarms", "id", look=seen.look(devices={device: said})) == {}


@pytest.fixture
def lit_job(seen, tmp_path, monkeypatch):
    """A look at a rack whose job changes its light, and the job's folder."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    look = seen.look()
    phased = load_inventory(example("rails")).jobs["train"]
    look = replace(look, inventory=replace(look.inventory, jobs={**look.inventory.jobs, "train": phased}))
    folder = job_folder(look.inventory.path, look.target, "train")
    folder.mkdir(parents=True)
    return look, folder


def test_a_job_that_changes_light_has_its_counts_while_it_runs(lit_job, metrics):
    look, folder = lit_job
    totals = {"changes": 40, "failed_changes": 1, "wait_s": 0.5, "hidden_s": 0.25, "worst_s": 0.02}
    assert metrics("job_light_changes_total", "job", look=look) == {}
    save_light(folder, {"at": look.at - 10, **totals})
    assert metrics("job_light_changes_total", "job", look=look) == {("train",): 40}
    assert metrics("job_light_failed_changes_total", "job", look=look) == {("train",): 1}
    assert metrics("job_light_wait_seconds_total", "job", look=look) == {("train",): 0.5}
    assert metrics("job_light_hidden_seconds_total", "job", look=look) == {("train",): 0.25}
    assert metrics("job_light_worst_wait_seconds", "job", look=look) == {("train",): 0.02}


@pytest.mark.parametrize("saved", [{"at": 0.0}, {"at": "soon"}, {"at": NOW, "changes": 1}, {}])
def test_what_is_old_or_damaged_says_nothing_of_a_job(lit_job, metrics, saved):
    look, folder = lit_job
    save_light(folder, {"changes": 4, "failed_changes": 0, "wait_s": 0.5, "hidden_s": 0.2, **saved})
    assert metrics("job_light_changes_total", "job", look=look) == {}
    (folder / LIGHT).write_text("[")
    assert metrics("job_light_changes_total", "job", look=look) == {}
