import pytest

from lumctl.fleet.parsers.nvidia_smi import parse_nvidia_smi
from lumctl.fleet.readings import ProbeStatus

AT = 1000.0


def gpu(text):
    (found,) = parse_nvidia_smi(text, AT).gpus
    return found


def test_hopper_states_its_limits_as_margins(answer):
    first, _ = parse_nvidia_smi(answer("h100.xml"), AT).gpus
    # 46 degrees of margin at 41 C: the limit is 87 C, and the card slows down 2 degrees beyond it.
    assert (first.temperature_max_c, first.temperature_slowdown_c) == (87.0, 89.0)
    assert (first.temperature_c, first.memory_temperature_c, first.memory_temperature_max_c) == (41.0, 48.0, None)


def test_every_reading_of_a_new_schema(answer):
    first, _ = parse_nvidia_smi(answer("h100.xml"), AT).gpus
    assert (first.taken_at, first.pci, first.minor) == (AT, "0000:9b:00.0", 4)
    assert (first.uuid, first.recovery_action) == ("GPU-11111111-2222-3333-4444-555555555555", "Reset")
    assert (first.ecc_volatile_uncorrectable, first.ecc_aggregate_uncorrectable) == (9, 50)
    assert first.ecc_volatile_correctable == 11
    assert (first.remap_pending, first.remap_failed, first.remap_uncorrectable) == (True, False, 7)
    assert first.retired_double_bit is None
    assert (first.pcie_generation, first.pcie_generation_max, first.pcie_width, first.pcie_width_max) == (4, 5, 8, 16)
    assert first.throttle_reasons == {"hw_slowdown", "hw_thermal_slowdown"}
    assert [each[:2] for each in first.processes] == [(4242, "python3 <train>"), (4243, "nccl-agent")]
    assert (first.memory_used_mib, first.memory_total_mib, first.utilization_percent) == (70012.0, 81559.0, 97.0)
    assert first.power_w == 648.55


def test_what_rates_and_windows_are_judged_by(answer):
    first, second = parse_nvidia_smi(answer("healthy.xml"), AT).gpus
    assert (first.pcie_replays, first.pcie_replay_rollovers) == (3, 0)
    assert (first.pcie_tx_kb_s, first.pcie_rx_kb_s) == (4210.0, 918.0)
    assert (first.utilization_percent, first.memory_utilization_percent) == (97.0, 41.0)
    assert (first.power_w, first.power_limit_w) == (661.42, 1000.0)
    assert (first.sm_clock_mhz, first.sm_clock_max_mhz) == (1815.0, 1965.0)
    assert first.throttle_reasons == {"sw_power_cap"}
    assert first.throttled_us == {
        "sw_power_cap": 8123456,
        "sync_boost": 0,
        "sw_thermal_slowdown": 12,
        "hw_thermal_slowdown": 34,
        "hw_power_brake_slowdown": 56,
    }
    assert (first.memory_temperature_max_c, second.temperature_c, first.unread) == (95.0, 51.0, {})


def test_memory_errors_that_are_counted_and_not_told(answer):
    text = answer("healthy.xml")
    start, end = text.index("<ecc_errors>"), text.index("</ecc_errors>") + len("</ecc_errors>")
    first, second = parse_nvidia_smi(text[:start] + text[end:], AT).gpus
    assert (first.unread, second.unread) == ({"ecc_errors": "no count"}, {})


@pytest.mark.parametrize("leaf", ["-300 C", "99999999 C", "N/A"])
def test_a_temperature_that_nothing_can_have_is_none(leaf):
    assert one(f"<temperature><gpu_temp>{leaf}</gpu_temp></temperature>").temperature_c is None


def test_fields_that_nobody_knows_yet_survive(answer):
    first, _ = parse_nvidia_smi(answer("h100.xml"), AT).gpus
    assert first.raw["invented_in_2031/photon_count"] == "12 Tph"
    assert first.raw["processes/process_info[2]/pid"] == "4243"


def test_a_gpu_that_says_it_is_lost_is_named(answer):
    report = parse_nvidia_smi(answer("h100.xml"), AT)
    assert report.lost == ("0000:c3:00.0",)
    assert report.gpus[1].temperature_c is None
    assert report.gpus[1].remap_pending is None


def test_an_old_schema(answer):
    old = gpu(answer("k80.xml"))
    assert (old.pci, old.minor, old.power_w) == ("0000:05:00.0", 0, 61.2)
    assert (old.ecc_volatile_correctable, old.ecc_volatile_uncorrectable, old.ecc_aggregate_uncorrectable) == (6, 2, 9)
    assert old.retired_double_bit == 3
    assert old.throttle_reasons == {"sw_power_cap"}
    assert old.recovery_action is None


@pytest.mark.parametrize(
    "complaint",
    [
        "Unable to determine the device handle for GPU0000:9B:00.0: GPU is lost.  Reboot the system",
        "Unable to determine the device handle for GPU 0000:9B:00.0: Unknown Error",
        "Unable to determine the device handle for GPU3: 00000000:9B:00.0: Unknown Error",
        "Unable to determine the device handle for gpu 0000:9B:00.0: Not Found",
    ],
)
def test_a_complaint_in_place_of_xml_names_the_lost_gpu(complaint):
    report = parse_nvidia_smi(f"{complaint}\n", AT)
    assert (report.gpus, report.lost, report.complete) == ((), ("0000:9b:00.0",), False)


@pytest.mark.parametrize("reason", ["Insufficient Permissions", "Insufficient External Power"])
def test_a_gpu_that_is_withheld_is_not_lost(reason):
    complaint = f"Unable to determine the device handle for GPU 0000:9B:00.0: {reason}"
    report = parse_nvidia_smi(f"{complaint}\n", AT)
    assert (report.lost, report.withheld) == ((), (complaint,))


def test_the_gpu_in_which_an_answer_is_cut_is_left_out(answer):
    text = answer("h100.xml")
    for cut, whole in (("<clocks_event_reasons>", []), ("<temperature>\n\t\t\t<gpu_temp>GPU", ["0000:9b:00.0"])):
        report = parse_nvidia_smi(text[: text.index(cut)], AT)
        assert [gpu.pci for gpu in report.gpus] == whole
        assert not report.complete


def test_warnings_around_the_xml_do_no_harm(answer):
    report = parse_nvidia_smi(f"WARNING: infoROM is corrupted\n{answer('h100.xml')}\nmore\n", AT)
    assert (len(report.gpus), report.complete) == (2, True)


def test_entities_are_refused():
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        '<nvidia_smi_log><gpu id="0000:01:00.0"><product_name>&b;</product_name></gpu></nvidia_smi_log>'
    )
    report = parse_nvidia_smi(bomb, AT)
    assert (report.gpus, report.complete) == ((), False)


def test_an_embedded_dtd_without_entities_is_read(answer):
    text = answer("k80.xml").replace('SYSTEM "nvsmi_device_v8.dtd"', "[<!ELEMENT nvidia_smi_log (gpu*)>]")
    assert gpu(text).product == "Tesla K80"


def test_bottomless_nesting_ends_early():
    text = '<?xml version="1.0"?><nvidia_smi_log><gpu id="0000:01:00.0">' + "<a>" * 100_000
    report = parse_nvidia_smi(text, AT)
    assert (report.gpus, report.complete) == ((), False)


@pytest.mark.parametrize("leaf", ["N/A", "[N/A]", "", "Requested functionality has been deprecated", "9" * 400])
def test_a_cell_without_a_number_is_none(leaf):
    text = f'<nvidia_smi_log><gpu id="0000:01:00.0"><minor_number>{leaf}</minor_number></gpu></nvidia_smi_log>'
    assert gpu(text).minor is None


def one(leaves):
    return gpu(f'<nvidia_smi_log><gpu id="0000:01:00.0">{leaves}</gpu></nvidia_smi_log>')


@pytest.mark.parametrize("error", ["Unknown Error", "[Unknown Error]", "ERR!"])
@pytest.mark.parametrize("place", ["temperature", "ecc_errors", "remapped_rows", "gpu_power_readings", "utilization"])
def test_an_error_in_place_of_a_value_is_kept(error, place):
    assert one(f"<{place}><x>{error}</x></{place}>").unread == {f"{place}/x": error}
    assert one(f"<processes><{place}>{error}</{place}></processes><x>{error}</x>").unread == {}


@pytest.mark.parametrize("words", ["GPU requires reset", "[GPU requires reset]"])
def test_a_reset_may_be_asked_for_in_any_place(words):
    assert one(f"<ecc_mode><current_ecc>{words}</current_ecc></ecc_mode>").says_reset == "ecc_mode/current_ecc"
    assert (
        one(f"<processes><process_info><process_name>{words}</process_name></process_info></processes>").says_reset
        is None
    )


@pytest.mark.parametrize(
    "word", ["N/A", "Unknown Error", "Not Supported", "Requested functionality has been deprecated", "[N/A]", ""]
)
def test_a_recovery_action_that_is_not_told(word):
    assert one(f"<gpu_recovery_action>{word}</gpu_recovery_action>").recovery_action is None


def test_what_older_drivers_ask_for():
    asked = one(
        "<gpu_reset_status><reset_required>Yes</reset_required>"
        "<drain_and_reset_recommended>No</drain_and_reset_recommended></gpu_reset_status>"
        "<retired_pages><multiple_single_bit_retirement><retired_count>5</retired_count>"
        "</multiple_single_bit_retirement><pending_blacklist>Yes</pending_blacklist></retired_pages>"
        "<ecc_errors><aggregate><sram_threshold_exceeded>Yes</sram_threshold_exceeded></aggregate></ecc_errors>"
    )
    assert (asked.reset_required, asked.drain_and_reset_recommended) == (True, False)
    assert (asked.retired_single_bit, asked.retirement_pending, asked.sram_threshold_exceeded) == (5, True, True)
    said = "<pending_retirement>Yes</pending_retirement><pending_blacklist>No</pending_blacklist>"
    assert one(f"<retired_pages>{said}</retired_pages>").retirement_pending is True
    assert one("").retirement_pending is None


def test_a_limit_of_zero_is_none():
    limits = one(
        "<temperature><gpu_temp_slow_threshold>0 C</gpu_temp_slow_threshold>"
        "<gpu_temp_max_mem_threshold>0 C</gpu_temp_max_mem_threshold></temperature>"
    )
    assert (limits.temperature_slowdown_c, limits.memory_temperature_max_c) == (None, None)


class TestCaptures:
    def read(self, captures, name):
        return parse_nvidia_smi((captures / name).read_text(), AT)

    def test_a100(self, captures):
        report = self.read(captures, "nvidia-smi-q-x__a100-sxm4.xml")
        (a100,) = report.gpus
        assert report.complete
        assert (a100.pci, a100.minor, a100.product) == ("0000:01:00.0", 1, "NVIDIA A100-SXM4-80GB")
        assert (a100.driver, a100.firmware) == ("535.54.03", "92.00.36.00.02")
        assert (a100.temperature_slowdown_c, a100.temperature_max_c, a100.memory_temperature_max_c) == (89, 85, 95)
        assert (a100.ecc_volatile_uncorrectable, a100.remap_pending, a100.power_w) == (0, None, 67.03)
        assert a100.throttle_reasons == frozenset()
        assert (a100.power_limit_w, a100.memory_utilization_percent, a100.pcie_tx_kb_s) == (500.0, None, 4000.0)
        assert (a100.sm_clock_mhz, a100.sm_clock_max_mhz) == (1275.0, 1410.0)

    def test_tesla_t4(self, captures):
        (t4,) = self.read(captures, "nvidia-smi-q-x__tesla-t4.xml").gpus
        assert (t4.driver, t4.firmware) == ("515.105.01", "90.04.84.00.06")
        assert (t4.pcie_width, t4.pcie_width_max, t4.retired_double_bit) == (8, 16, 0)
        assert t4.processes == ((675, "/usr/lib/xorg/Xorg", 22.0), (5762, "python", 1005.0))
        assert t4.memory_temperature_c is None
        assert (t4.power_limit_w, t4.pcie_replays, t4.throttled_us) == (70.0, 0, {})

    def test_rtx_3080(self, captures):
        (rtx,) = self.read(captures, "nvidia-smi-q-x__rtx-3080-v13.xml").gpus
        assert (rtx.recovery_action, rtx.ecc_volatile_uncorrectable, rtx.power_w) == ("None", None, 142.33)
        assert (rtx.temperature_slowdown_c, rtx.temperature_max_c) == (95.0, 93.0)
        assert (rtx.pcie_rx_kb_s, rtx.memory_utilization_percent) == (14742333.0, 9.0)
        assert set(rtx.throttled_us.values()) == {0}
        assert len(rtx.throttled_us) == 5

    def test_gtx_1070_ti(self, captures):
        (gtx,) = self.read(captures, "nvidia-smi-q-x__gtx-1070-ti.xml").gpus
        assert (gtx.pci, gtx.minor, gtx.temperature_c, gtx.pcie_width) == ("0000:01:00.0", None, 39.0, 16)


_FABRIC = """<fabric>
    <state>Completed</state><status>Success</status><cliqueId>0</cliqueId><clusterUuid>0000</clusterUuid>
    <health><summary>N/A</summary><route_unhealthy>True</route_unhealthy></health>
</fabric>"""


def test_the_registration_with_the_fabric():
    assert one(_FABRIC).fabric == {"state": "Completed", "status": "Success", "health/route_unhealthy": "True"}
    assert one(_FABRIC.replace("Completed", "N/A").replace("Success", "[N/A]").replace("True", "N/A")).fabric == {}
    assert one(_FABRIC.replace("Success", "Unknown Error")).unread == {"fabric/status": "Unknown Error"}


@pytest.mark.parametrize("heading", ["health", "fabric"])
def test_fabric_health_without_its_heading_is_not_read(heading):
    text = _FABRIC.replace(f"<{heading}>", "").replace(f"</{heading}>", "")
    assert "True" in one(text).unread.values()


@pytest.mark.parametrize("status", [0, 14])
def test_a_corrupted_inforom_is_that_of_the_gpu_it_names(answer, take, status):
    warning = "WARNING: infoROM is corrupted at gpu 0000:4C:00.0"
    text = f"{answer('healthy.xml')}\n{warning}\n"
    verdict, _, gathered = take("gpu", text, status=status)
    assert verdict is ProbeStatus.OK
    assert {gpu.pci: gpu.inforom_corrupted for gpu in gathered.gpus} == {"0000:1b:00.0": False, "0000:4c:00.0": True}


def test_an_exit_status_that_tells_of_a_corrupted_inforom_without_a_name(answer, take):
    verdict, detail, gathered = take("gpu", answer("healthy.xml"), status=14)
    assert (verdict, len(gathered.gpus)) == (ProbeStatus.FAILED, 2)
    assert "infoROM" in detail


def test_repairs_and_banks_without_spare_rows():
    leaves = (
        "<ecc_errors><channel_repair_pending>Yes</channel_repair_pending><tpc_repair_pending>No</tpc_repair_pending>"
        "<unrepairable_memory>Yes</unrepairable_memory></ecc_errors><remapped_rows><row_remapper_histogram>"
        "<row_remapper_histogram_max>62 bank(s)</row_remapper_histogram_max>"
        "<row_remapper_histogram_none>2 bank(s)</row_remapper_histogram_none></row_remapper_histogram></remapped_rows>"
    )
    seen = one(leaves)
    assert (seen.channel_repair_pending, seen.tpc_repair_pending, seen.unrepairable_memory) == (True, False, True)
    assert (seen.banks_without_spare_rows, seen.unread) == (2, {})
    # A flag outside its section may be that of another one.
    assert one("<unrepairable_memory>Yes</unrepairable_memory>").unread == {"unrepairable_memory": "Yes"}


_PARITY = "<sram_uncorrectable_parity>1</sram_uncorrectable_parity>"


@pytest.mark.parametrize(
    ("aggregate", "sram", "dram"),
    [
        ("<sram_uncorrectable>3</sram_uncorrectable><dram_uncorrectable>4</dram_uncorrectable>", 3, 4),
        (
            f"{_PARITY}<sram_uncorrectable_secded>2</sram_uncorrectable_secded><dram_uncorrectable>4</dram_uncorrectable>",
            3,
            4,
        ),
        ("<double_bit><device_memory>4</device_memory><l2_cache>3</l2_cache><total>7</total></double_bit>", 3, 4),
        ("<double_bit><device_memory>N/A</device_memory><total>7</total></double_bit>", 7, None),
        ("<sram_uncorrectable>N/A</sram_uncorrectable>", None, None),
    ],
)
def test_errors_in_the_life_of_a_card_by_kind_of_memory(aggregate, sram, dram):
    seen = one(f"<ecc_errors><aggregate>{aggregate}</aggregate></ecc_errors>")
    assert (seen.sram_aggregate_uncorrectable, seen.dram_aggregate_uncorrectable) == (sram, dram)
