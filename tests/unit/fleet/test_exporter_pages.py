"""Pages of exporters as readings: what each field means, and what is refused."""

import json
import math

import pytest
from exporter_pages import dcgm_labels, dcgm_page, node_page
from prometheus_client.parser import text_string_to_metric_families

from lumctl.fleet.exporters.amd import Amd
from lumctl.fleet.exporters.dcgm import Dcgm, is_blank
from lumctl.fleet.exporters.gpud import Gpud
from lumctl.fleet.exporters.node import NodeExporterReader
from lumctl.fleet.exporters.text_format import PageError, samples_of
from lumctl.fleet.probe_output import Gathered, ProbeAnswer
from lumctl.fleet.readings import NVLINK_TOTAL, ProbeStatus

OK, FAILED = ProbeStatus.OK, ProbeStatus.FAILED
ODD = (
    "# HELP a text with { and }\n# TYPE a gauge\n"
    'a{path="C:\\\\x",say="\\"hi\\", he said\\n}",} 1e+09\n'
    'a 2\nb{ x = "1" , y="2" } -3.5 1700000000000\nc NaN\nd +Inf\ne{x="a}b"} 4\n'
)


def take(parser, text, gathered=None, at=9.0):
    gathered = gathered or Gathered()
    return *parser.take(ProbeAnswer(0, text), at, gathered), gathered


def test_the_format_is_read_as_prometheus_own_client_reads_it():
    def written(name, labels, value):
        return name, tuple(sorted(labels.items())), str(float(value))

    theirs = [
        written(s.name, s.labels, s.value)
        for text in (ODD, dcgm_page(), node_page())
        for family in text_string_to_metric_families(text)
        for s in family.samples
    ]
    mine = [
        written(s.name, s.labels, s.value) for text in (ODD, dcgm_page(), node_page()) for s in samples_of(text, "")
    ]
    assert sorted(mine) == sorted(theirs)
    assert next(s.at for s in samples_of(ODD, "b")) == 1_700_000_000.0


@pytest.mark.parametrize(
    "text",
    ["", "\n\n ", "a 1\nb 2", 'a{x="1" 1\n', "a one\n", "a 1.2.3\n", "<html>no</html>\n", 'a{x="1"}\n', "b{x=1} 2\n"],
)
def test_what_is_not_whole_or_not_of_the_format_is_refused(text):
    with pytest.raises(PageError):
        list(samples_of(text, "b", "a"))


@pytest.mark.parametrize("parser", [Dcgm(), Amd(), Gpud(), NodeExporterReader(["eth2"], ())])
def test_a_page_cut_anywhere_within_a_line_brings_nothing(parser):
    pages = {Dcgm: dcgm_page(), NodeExporterReader: node_page(), Gpud: json.dumps([{"component": "cpu", "states": []}])}
    page = pages.get(type(parser), 'gpu_health{gpu_uuid="a"} 1\ngpu_edge_temperature{gpu_uuid="a"} 40\n')
    for end in range(len(page) - 1):
        status, detail, gathered = take(parser, page[:end])
        assert status is not OK or page[end - 1] == "\n", page[:end]
        if status is not OK:
            assert detail
            assert not gathered.gpus


def test_a_gpu_of_dcgm_is_known_by_address_and_uuid():
    status, _, gathered = take(Dcgm(), dcgm_page({"FB_RESERVED": 559, "CLOCK_THROTTLE_REASONS": 0x48}))
    gpu = gathered.gpus[0]
    assert status is OK
    assert (gpu.pci, gpu.uuid, gpu.minor, gpu.source) == ("0000:1b:00.0", "GPU-0", None, "dcgm-exporter")
    assert (gpu.temperature_c, gpu.memory_used_mib, gpu.memory_total_mib) == (45, 1000, 81559)
    assert gpu.throttle_reasons == {"hw_slowdown", "hw_thermal_slowdown"}
    assert gpu.remap_failed is False
    assert gpu.ecc_volatile_uncorrectable == 0
    assert isinstance(gpu.ecc_volatile_uncorrectable, int)


@pytest.mark.parametrize(
    "blank",
    [9223372036854775794, 9223372036854775792, 2147483632, 2147483635, 140737488355328.0, math.nan, math.inf],
)
def test_a_blank_of_dcgm_says_nothing(blank):
    assert is_blank(float(blank))
    written = str(blank).replace("nan", "NaN").replace("inf", "+Inf")
    _, _, gathered = take(Dcgm(), dcgm_page(dict.fromkeys(("GPU_TEMP", "ECC_DBE_VOL_TOTAL", "XID_ERRORS"), written)))
    gpu = gathered.gpus[0]
    assert gpu.temperature_c is None
    assert gpu.ecc_volatile_uncorrectable is None
    assert gathered.xids == ()


def test_a_gpu_in_parts_counts_by_its_worst_part():
    labels = [dcgm_labels(0, GPU_I_ID=f"{part}", GPU_I_PROFILE="1g.10gb") for part in (3, 5)]
    parts = "".join(f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{label}}} {part}\n" for part, label in enumerate(labels))
    _, _, gathered = take(Dcgm(), dcgm_page({"ROW_REMAP_FAILURE": None}, also=parts))
    assert gathered.gpus[0].remap_failed is True
    assert gathered.gpus[0].mig_enabled
    assert gathered.gpus[0].memory_total_mib is None


def test_an_xid_has_no_time_while_it_is_shown_and_is_not_forgotten_when_another_is():
    gathered = Gathered()
    take(Dcgm(), dcgm_page({"XID_ERRORS": 79}), gathered, at=10.0)
    assert [(e.pci, e.xid, e.at) for e in gathered.xids] == [("0000:1b:00.0", 79, None)]
    take(Dcgm(), dcgm_page({"XID_ERRORS": 45}), gathered, at=20.0)
    assert [(e.xid, e.at) for e in gathered.xids] == [(79, 20.0), (45, None)]
    take(Dcgm(), dcgm_page({"XID_ERRORS": 0}), gathered, at=30.0)
    assert [(e.xid, e.at) for e in gathered.xids] == [(79, 20.0), (45, 30.0)]


def test_xids_of_a_window_and_health_watches_are_read():
    also = (
        f"DCGM_EXP_XID_ERRORS_COUNT{{{dcgm_labels(1, xid='48', window_size_in_ms='300000')}}} 2\n"
        f"DCGM_EXP_GPU_HEALTH_STATUS{{{dcgm_labels(0, health_watch='MEM', health_error_code='X')}}} 20\n"
        f"DCGM_EXP_GPU_HEALTH_STATUS{{{dcgm_labels(0, health_watch='PCIE')}}} 0\n"
    )
    _, _, gathered = take(Dcgm(), dcgm_page(also=also))
    assert [(e.pci, e.xid) for e in gathered.xids] == [("0000:2c:00.0", 48)]
    (report,) = gathered.reports["dcgm"]
    assert (report.component, report.health, report.reason) == ("health watch MEM", "unhealthy", "X")
    assert "0000:1b:00.0" in report.devices


def test_errors_of_all_nvlinks_together_are_one_link_of_unknown_state():
    _, _, gathered = take(Dcgm(), dcgm_page({"NVLINK_REPLAY_ERROR_COUNT_TOTAL": 3}))
    (link,) = gathered.nvlinks
    assert (link.link, link.active, link.replay_errors, link.crc_errors) == (NVLINK_TOTAL, None, 3, None)


def test_a_page_without_a_gpu_is_no_proof_that_there_is_none():
    for parser in (Dcgm(), Amd()):
        status, detail, _ = take(parser, "# nothing yet\nother 1\n")
        assert (status, detail) == (FAILED, "the page lists no GPU")


def test_samples_with_a_time_of_their_own_are_as_old_as_they_say():
    _, _, gathered = take(Dcgm(), dcgm_page({"GPU_TEMP": "45 3000"}), at=9.0)
    assert [gpu.taken_at for gpu in gathered.gpus] == [3.0, 9.0]


def test_node_exporter_tells_links_disks_clock_and_boot():
    status, detail, gathered = take(
        NodeExporterReader(["eth2"], ["/data"]), node_page(), Gathered(heard_at=1000.5), at=999.5
    )
    assert (status, detail) == (OK, "")
    eth2 = gathered.interfaces["eth2"]
    assert (eth2.operstate, eth2.carrier_changes, eth2.speed_mbps) == ("up", 2, 100_000)
    assert gathered.counters["eth2"].values == {"rx_errors": 7}
    (use,) = gathered.disks.uses
    assert use.used == pytest.approx(4 / 9)
    assert not gathered.mounts.by_path["/data"].stopped
    assert (gathered.clock.least_ahead_s, gathered.clock.most_ahead_s) == (-0.5, 0.5)
    assert gathered.booted_at == 500
    assert gathered.host_events == ()


@pytest.mark.parametrize("speed_mbps", [-1, 2**32 - 1])
def test_the_speed_of_an_interface_without_carrier_is_unknown(speed_mbps):
    page = node_page(node_network_speed_bytes=f"{speed_mbps * 125_000}")
    _, _, gathered = take(NodeExporterReader(["eth2"], ()), page)
    assert gathered.interfaces["eth2"].speed_mbps is None


@pytest.mark.parametrize(
    ("changed", "shows"),
    [
        ({"readonly_device=/dev/sda1": "1"}, lambda g: g.mounts.by_path["/"].stopped),
        ({"readonly_device=files:/data": "1"}, lambda g: g.mounts.by_path["/data"].stopped),
        ({"device_error_device=/dev/sda1": "1"}, lambda g: "/" in g.disks.unreadable),
        ({"device_error_device=files:/data": "1"}, lambda g: "/data" in g.disks.unreadable),
        ({"node_edac": "2"}, lambda g: g.host_events[0].text.startswith("node_exporter: 2 uncorrectable")),
    ],
)
def test_what_node_exporter_tells_of_a_fault_is_kept(changed, shows):
    _, _, gathered = take(NodeExporterReader(["eth2"], ["/data"]), node_page(**changed))
    assert shows(gathered)


def test_infiniband_ports_have_the_kernels_words():
    port = '{device="mlx5_0",port="1"}'
    page = node_page() + (
        f"node_infiniband_state_id{port} 1\nnode_infiniband_physical_state_id{port} 3\n"
        f"node_infiniband_rate_bytes_per_second{port} 5e+10\nnode_infiniband_link_downed_total{port} 4\n"
        'node_infiniband_info{board_id="MT_1",device="mlx5_0"} 1\n'
    )
    _, _, gathered = take(NodeExporterReader([], ()), page)
    (port,) = gathered.infiniband
    assert (port.state, port.phys_state, port.rate, port.board) == ("DOWN", "Disabled", "400 Gb/sec", "MT_1")
    assert gathered.counters["mlx5_0/1"].values == {"link_downed": 4}


def test_a_collector_that_failed_is_a_probe_that_failed_and_answers_nothing():
    status, detail, gathered = take(NodeExporterReader(["eth2"], ()), node_page(node_scrape="0"))
    assert (status, detail) == (FAILED, "its collector filesystem failed")
    assert not {"mounts", "disks"} & gathered.answered["node"]


def test_a_page_of_another_program_is_not_taken_for_node_exporter():
    assert take(NodeExporterReader([], ()), "go_goroutines 8\n")[:2] == (FAILED, "the page is not from node_exporter")


def test_amd_gpus_are_known_by_uuid_or_serial_number_and_the_worst_counts():
    labels = 'gpu_id="0",serial_number="SN0",card_model="MI300X"'
    page = (
        f"amd_gpu_junction_temperature{{{labels}}} 71\namd_gpu_edge_temperature{{{labels}}} 60\n"
        f"amd_gpu_used_vram{{{labels}}} 500\namd_gpu_health{{{labels}}} 0\n"
        f"amd_gpu_ecc_uncorrect_total{{{labels}}} 0\namd_gpu_ecc_uncorrect_gfx{{{labels}}} 2\n"
        f"amd_pcie_speed{{{labels}}} 32\namd_gpu_violation_hbm_thermal_residency_percentage{{{labels}}} 4\n"
    )
    status, _, gathered = take(Amd(), page)
    (gpu,) = gathered.gpus
    assert status is OK
    assert (gpu.uuid, gpu.temperature_c, gpu.ecc_volatile_uncorrectable, gpu.pcie_generation) == ("SN0", 71, 2, 5)
    assert gpu.throttle_reasons == {"hw_thermal_slowdown"}
    assert gathered.reports["amd"][0].health == "unhealthy"
    assert take(Amd(), 'gpu_health{gpu_id="0"} 1\n')[0] is FAILED


def test_gpud_reports_what_is_not_healthy_with_its_reason():
    uuid = "GPU-12345678-1234-1234-1234-1234567890ab"
    states = [
        {"component": "cpu", "states": [{"health": "Healthy"}]},
        {"component": "accelerator-nvidia-ecc", "states": [{"health": "Unhealthy", "reason": f"errors on {uuid}"}]},
        {"component": "disk", "states": [{"health": "Strange\x1b[31m", "error": "no space"}, "?"]},
    ]
    status, _, gathered = take(Gpud(), json.dumps(states))
    ecc, disk, odd = gathered.reports["gpud"]
    assert status is OK
    assert (ecc.health, ecc.devices) == ("unhealthy", {uuid.lower()})
    assert (disk.reason, odd.health) == ("no space", "unknown")
    for bad in ("{}", "[]", '[{"component": "cpu"}]', "[[", "null"):
        assert take(Gpud(), bad)[0] is FAILED
