"""The same rules judge what exporters tell, and nothing is ok by their silence."""

import json
from dataclasses import replace

import pytest
from exporter_pages import because, dcgm_labels, dcgm_page, node_page, reader_of

from lumctl.fleet.readings import HostSnapshot, Snapshot
from lumctl.fleet.rounds import Round
from lumctl.health.explanation import explain
from lumctl.health.memory import Memory
from lumctl.health.states import State
from lumctl.inventory.load import load_inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment

NOW = 1000.0
RACK = """\
lumctl: 1
racks: {r1: {}}
hosts:
  - name: h1
    readings: prometheus
    mounts: [/data]
    accelerators:
      - {id: "gpu[0-1]", model: H100, memory_gib: 80, pci: ["0000:1b:00.0", "0000:2c:00.0"]}
"""
LANES = """\
devices:
  - {id: mesh, kind: mesh, driver: smartlight, address: "m:1", geometry: {columns: 3, rows: 2}}
transponders:
  - {id: "lane[0-1]", accelerator: "gpu[0-1]", interface: ["eth2", "eth3"], device: mesh, port: [0, 1]}
jobs:
  - {name: job, ranks: "gpu[0-1]", links: [{kind: pairs, pairs: [[0, 1]]}]}
"""
OK, DEGRADED, FAILED, UNKNOWN = State.OK, State.DEGRADED, State.FAILED, State.UNKNOWN


@pytest.fixture
def rack(tmp_path):
    def made(text=RACK):
        path = tmp_path / "rack.yaml"
        path.write_text(text)
        return load_inventory(path)

    return made


def seen_of(pages) -> HostSnapshot:
    made = reader_of(pages, now=lambda: NOW, mounts=["/data"])
    made.reader.read_now(Round(), None)
    return made.reader.snapshot(None, None)


def judged(inventory, pages, memory=None, seen=None):
    circuits = circuits_of(inventory, initial_assignment(inventory))
    snapshot = Snapshot(NOW, 0.1, {"h1": seen or seen_of(pages)})
    return (memory or Memory()).judge(inventory, snapshot, circuits, losses={}, devices={}, now=NOW), snapshot


def rules(health):
    return {(finding.rule, finding.case) for finding in health.findings}


def test_what_is_well_is_ok_and_says_what_nobody_looked_at(rack):
    report, snapshot = judged(rack(), {"dcgm": dcgm_page(), "node": node_page()})
    assert {health.state for group in report.groups().values() for health in group.values()} == {OK}
    (why,) = explain(report, "gpu0", inventory=rack(), snapshot=snapshot, devices={})
    assert "did not report what these rules check" in why.because
    assert "gpu.xid" in why.because
    readings = {seen.name: seen.value for check in why.checks for seen in check.readings}
    assert readings["source"] == "dcgm-exporter"


@pytest.mark.parametrize(
    ("metric", "value", "rule"),
    [
        ("GPU_TEMP", 97, "gpu.temperature"),
        ("MEMORY_TEMP", 120, "gpu.temperature"),
        ("ECC_DBE_VOL_TOTAL", 1, "gpu.ecc"),
        ("ECC_DBE_AGG_TOTAL", 4, "gpu.ecc"),
        ("ROW_REMAP_FAILURE", 1, "gpu.row-remap"),
        ("ROW_REMAP_PENDING", 1, "gpu.row-remap"),
        ("UNCORRECTABLE_REMAPPED_ROWS", 512, "gpu.row-remap"),
        ("BANKS_REMAP_ROWS_AVAIL_NONE", 1, "gpu.row-remap"),
        ("RETIRED_DBE", 63, "gpu.retired-pages"),
        ("RETIRED_SBE", 63, "gpu.retired-pages"),
        ("RETIRED_PENDING", 2, "gpu.retired-pages"),
        ("MEMORY_UNREPAIRABLE_FLAG", 1, "gpu.repair"),
        ("THRESHOLD_SRM", 1, "gpu.ecc"),
        ("GPU_RECOVERY_ACTION", 1, "gpu.recovery-action"),
        ("GPU_RECOVERY_ACTION", 9, "gpu.recovery-action"),
        ("XID_ERRORS", 79, "gpu.xid"),
        ("XID_ERRORS", 9999, "gpu.xid"),
        ("PCIE_LINK_WIDTH", 4, "gpu.expected"),
        ("GPU_TEMP", None, "gpu.silent"),
        ("GPU_TEMP", 9223372036854775794, "gpu.silent"),
        ("GPU_TEMP", "NaN", "gpu.silent"),
    ],
)
def test_no_field_that_means_a_fault_passes_as_ok(rack, metric, value, rule):
    page = dcgm_page({metric: value, "PCIE_MAX_LINK_WIDTH": 16})
    report, _ = judged(rack(), {"dcgm": page, "node": node_page()})
    assert report.accelerators["gpu0"].state is not OK
    assert rule in {finding.rule for finding in report.accelerators["gpu0"].findings}
    assert report.accelerators["gpu1"].state is OK


def test_a_gpu_that_no_exporter_lists_is_lost_and_the_evidence_names_the_source(rack):
    report, _ = judged(rack(), {"dcgm": dcgm_page(gpus=1), "node": node_page()})
    (finding,) = report.accelerators["gpu1"].findings
    assert (report.accelerators["gpu1"].state, finding.rule) == (FAILED, "gpu.lost")
    assert finding.evidence == "dcgm-exporter does not list it"


def test_without_its_exporter_a_gpu_is_unknown_and_the_host_says_why(rack):
    for page in ("# starting\n", dcgm_page()[:-3], ""):
        report, _ = judged(rack(), {"dcgm": page, "node": node_page()})
        assert {health.state for health in report.accelerators.values()} == {UNKNOWN}
        (finding,) = report.hosts["h1"].findings
        assert (finding.state, finding.rule, finding.case) == (DEGRADED, "host.probe-failed", "exporter")
        assert "http://h1:9400/metrics" in finding.evidence


def test_a_question_that_no_exporter_answers_and_the_inventory_needs_is_told(rack):
    report, _ = judged(rack(), {"dcgm": dcgm_page()})
    assert rules(report.hosts["h1"]) == {("host.probe-failed", "not-asked")}
    assert "mounts" in report.hosts["h1"].findings[0].evidence


def test_a_host_of_which_no_exporter_answers_has_failed(rack):
    lost = because(TimeoutError(), "no answer in time")
    report, _ = judged(rack(), {"dcgm": lost, "node": lost})
    assert report.hosts["h1"].state is not OK
    assert {health.state for health in report.accelerators.values()} == {UNKNOWN}
    asked_now = HostSnapshot("h1", NOW, reachable=False, error="h1: no answer in time")
    report, _ = judged(rack(), {}, seen=asked_now)
    assert rules(report.hosts["h1"]) == {("host.unreachable", "no-exporter")}
    assert report.hosts["h1"].state is FAILED
    unnamed = replace(asked_now, error="h1: name 'h1' cannot be resolved")
    report, _ = judged(rack(), {}, seen=unnamed)
    assert (report.hosts["h1"].findings[0].case, report.hosts["h1"].state) == ("no-name", UNKNOWN)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"readonly_device=/dev/sda1": "1"}, "host.mount"),
        ({"readonly_device=files:/data": "1"}, "host.mount"),
        ({"device_error_device=files:/data": "1"}, "host.mount"),
        ({"filesystem_avail_bytes": "1e+9", "filesystem_free_bytes": "1e+9"}, "host.disk"),
        ({"node_edac": "1"}, "host.kernel"),
        ({"node_scrape": "0"}, "host.probe-failed"),
    ],
)
def test_no_fault_that_node_exporter_tells_passes_as_ok(rack, changed, rule):
    report, _ = judged(rack(), {"dcgm": dcgm_page(), "node": node_page(**changed)})
    assert report.hosts["h1"].state is not OK
    assert rule in {finding.rule for finding in report.hosts["h1"].findings}


def test_a_mount_that_node_exporter_does_not_list_is_missing(rack):
    page = "".join(line for line in node_page().splitlines(keepends=True) if "/data" not in line)
    report, _ = judged(rack(), {"dcgm": dcgm_page(), "node": page})
    assert rules(report.hosts["h1"]) == {("host.mount", "missing")}


def test_a_lane_whose_light_nobody_reads_is_unknown_and_one_that_is_down_has_failed(rack):
    inventory = rack(RACK + LANES)
    well = node_page() + node_page().replace("eth2", "eth3")
    report, _ = judged(inventory, {"dcgm": dcgm_page(), "node": well})
    assert report.links["lane0"].state is UNKNOWN
    assert rules(report.links["lane0"]) == {("link.not-read", "module")}
    assert {health.state for health in report.circuits.values()} == {UNKNOWN}
    report, _ = judged(inventory, {"dcgm": dcgm_page(), "node": well.replace('operstate="up"', 'operstate="down"')})
    assert report.links["lane0"].state is FAILED


def test_errors_of_nvlinks_count_when_they_grow(rack):
    memory, inventory = Memory(), rack()
    for errors in (0, 0, 3):
        page = dcgm_page({"NVLINK_REPLAY_ERROR_COUNT_TOTAL": errors})
        report, _ = judged(inventory, {"dcgm": page, "node": node_page()}, memory)
    assert "gpu.nvlink" in {finding.rule for finding in report.accelerators["gpu0"].findings}
    assert "gpu.expected" not in {finding.rule for finding in report.accelerators["gpu0"].findings}


def test_reports_of_other_programs_are_findings_of_the_gpu_they_name_or_of_the_host(rack):
    gpud = [
        {
            "component": "accelerator-nvidia-ecc",
            "states": [{"health": "Unhealthy", "reason": "at 0000:2c:00.0 errors"}],
        },
        {"component": "disk", "states": [{"health": "Degraded", "reason": "nearly full"}]},
        {"component": "os", "states": [{"health": "Initializing"}]},
        {"component": "odd", "states": [{"health": "Purple"}]},
    ]
    watch = f"DCGM_EXP_GPU_HEALTH_STATUS{{{dcgm_labels(0, health_watch='MEM')}}} 10\n"
    pages = {"dcgm": dcgm_page(also=watch), "node": node_page(), "gpud": json.dumps(gpud)}
    report, _ = judged(rack(), pages)
    assert rules(report.accelerators["gpu0"]) == {("gpu.reported", "degraded")}
    assert rules(report.accelerators["gpu1"]) == {("gpu.reported", "unhealthy")}
    assert "gpud reports accelerator-nvidia-ecc unhealthy" in report.accelerators["gpu1"].findings[0].evidence
    assert rules(report.hosts["h1"]) == {("host.reported", case) for case in ("degraded", "initializing", "unknown")}


def test_a_gpu_that_one_of_two_sources_does_not_list_is_degraded(rack):
    seen = seen_of({"dcgm": dcgm_page(), "node": node_page()})
    gpus = (replace(seen.gpus[0], source="nvidia-smi", unlisted_by="dcgm-exporter"), seen.gpus[1])
    report, _ = judged(rack(), {}, seen=replace(seen, gpus=gpus))
    assert rules(report.accelerators["gpu0"]) == {("gpu.sources", "not-listed")}
    assert report.accelerators["gpu0"].state is DEGRADED


def test_gpus_without_an_address_are_matched_by_uuid_and_else_unknown(rack):
    page = dcgm_page({"XID_ERRORS": 79}).replace("pci_bus_id", "other")
    report, _ = judged(rack(), {"dcgm": page, "node": node_page()})
    assert {("gpu.not-read", "no-key")} <= rules(report.accelerators["gpu0"])
    assert {health.state for health in report.accelerators.values()} == {UNKNOWN}
    by_uuid = rack(RACK.replace('pci: ["0000:1b:00.0", "0000:2c:00.0"]', 'uuid: ["GPU-0", "GPU-1"]'))
    report, _ = judged(by_uuid, {"dcgm": page, "node": node_page()})
    assert report.accelerators["gpu0"].state is FAILED
    assert report.accelerators["gpu1"].state is OK
