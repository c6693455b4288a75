"""What health says of one accelerator."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumctl.fleet.readings import GpuReading, ProbeStatus, XidEvent
from lumctl.health.rulebook import all_lines
from lumctl.health.rules.cases import GpuCase
from lumctl.health.rules.gpu import RULES
from lumctl.health.states import SPARE_FIRST, State
from lumctl.inventory.model import Role, Thresholds

NOW = 1_800_000_000.0
GPU = "h03-gpu2"


def verdict(rack, accelerator=GPU, now=NOW):
    return rack.report(now=now).accelerators[accelerator]


def told(health):
    return [(finding.rule, finding.state) for finding in health.findings]


def others(rack):
    return {a.state for name, a in rack.report().accelerators.items() if name != GPU}


def test_a_rack_in_which_all_is_well_is_ok_throughout(rack):
    report = rack.report()
    assert {h.state for group in report.groups().values() for h in group.values()} == {State.OK}
    assert report.findings() == ()
    assert (len(report.accelerators), len(report.circuits), len(report.hosts)) == (64, 60, 16)


def test_a_gpu_that_fell_off_the_bus_is_named_by_the_kernel_and_by_its_absence(rack):
    rack.lose_gpu(GPU)
    rack.xid(GPU, 79)
    health = verdict(rack)
    assert health.state is State.FAILED
    assert told(health) == [("gpu.xid", State.FAILED), ("gpu.lost", State.FAILED)]
    assert health.findings[0].evidence == "fell off the bus (XID 79)"
    assert health.findings[0].since == NOW - 60
    assert others(rack) == {State.OK}


def test_the_siblings_of_a_lost_gpu_keep_their_own_readings(collected):
    rack = collected("rack64")
    for name, accelerator in rack.inventory.accelerators.items():
        # Without addresses in the inventory only the minor number tells them apart.
        rack.inventory.accelerators[name] = replace(accelerator, pci=None)
    rack.gpu("h03-gpu3", ecc_volatile_uncorrectable=3)
    rack.lose_gpu(GPU)
    assert verdict(rack).state is State.FAILED
    assert told(verdict(rack, "h03-gpu3")) == [("gpu.ecc", State.DEGRADED)]
    assert verdict(rack, "h03-gpu1").state is State.OK


def test_an_xid_finds_the_lost_gpu_by_elimination_where_the_inventory_has_no_address(rack):
    rack.lose_gpu(GPU)
    rack.xid(GPU, 79)
    rack.inventory.accelerators[GPU] = replace(rack.inventory.accelerators[GPU], pci=None)
    assert ("gpu.xid", State.FAILED) in told(verdict(rack))
    assert rack.report().hosts["h03"].findings == ()


def test_a_uuid_is_used_before_the_minor_number(rack):
    rack.inventory.accelerators[GPU] = replace(rack.inventory.accelerators[GPU], pci=None, uuid="GPU-abc")
    for place in range(4):
        rack.gpu(f"h03-gpu{place}", uuid=f"GPU-{place}")
    assert told(verdict(rack)) == [("gpu.lost", State.FAILED)]
    rack.gpu(GPU, uuid="GPU-abc", minor=7)
    assert verdict(rack).state is State.OK


@pytest.mark.parametrize("silent", [range(4), (1,)])
def test_a_gpu_whose_source_prints_no_uuid_is_not_taken_for_lost(rack, silent):
    rack.inventory.accelerators[GPU] = replace(rack.inventory.accelerators[GPU], pci=None, uuid="GPU-abc")
    for place in range(4):
        rack.gpu(f"h03-gpu{place}", uuid=None if place in silent else f"GPU-{place}")
    assert told(verdict(rack)) == [("gpu.not-read", State.UNKNOWN)]
    assert "does not print the pci, uuid or minor number" in verdict(rack).findings[0].evidence


def test_a_gpu_that_cannot_be_told_apart_is_unknown_and_not_lost(rack):
    rack.inventory.accelerators[GPU] = replace(rack.inventory.accelerators[GPU], pci=None)
    rack.gpu(GPU, minor=None)
    assert told(verdict(rack)) == [("gpu.not-read", State.UNKNOWN)]


def test_a_gpu_that_nvidia_smi_names_as_lost_is_failed(rack):
    rack.lose_gpu(GPU)
    rack.host("h03", lost_gpus=("0000:9b:00.0",))
    assert told(verdict(rack)) == [("gpu.lost", State.FAILED)]
    assert "lists it" in verdict(rack).findings[0].evidence


def test_a_list_that_stopped_at_a_lost_gpu_does_not_fail_its_siblings(rack):
    rack.host("h03", gpus=(), lost_gpus=("0000:9b:00.0",))
    assert verdict(rack).state is State.FAILED
    assert told(verdict(rack, "h03-gpu0")) == [("gpu.not-read", State.UNKNOWN)]


@pytest.mark.parametrize(("number", "state"), [(119, State.FAILED), (74, State.DEGRADED), (4711, State.DEGRADED)])
def test_an_xid_degrades_or_fails_its_gpu_only(rack, number, state):
    rack.xid(GPU, number)
    assert verdict(rack).state is state
    assert others(rack) == {State.OK}


def test_an_unknown_xid_is_called_unknown(rack):
    rack.xid(GPU, 4711)
    assert verdict(rack).findings[0].evidence == "not in the catalogue (XID 4711)"


def test_the_fault_of_a_program_is_noted_and_leaves_the_gpu_ok(rack):
    rack.xid(GPU, 31)
    rack.xid(GPU, 31)
    rack.xid(GPU, 43)
    health = verdict(rack)
    assert health.state is State.OK
    assert [f.evidence for f in health.findings] == ["GPU memory page fault (XID 31), 2 times"]


def test_old_xids_are_forgotten_and_undated_ones_are_not(rack):
    rack.xid(GPU, 79, at=NOW - 86_401)
    assert verdict(rack).state is State.OK
    rack.xid(GPU, 79, at=None)
    assert verdict(rack).state is State.FAILED


def test_a_changed_recovery_action_is_judged_by_what_the_gpu_asks_for_now(rack):
    rack.xid(GPU, 154)
    assert verdict(rack).findings == ()
    rack.gpu(GPU, recovery_action=None)
    assert told(verdict(rack)) == [("gpu.xid", State.DEGRADED)]


@pytest.mark.parametrize(
    ("target", "findings"),
    [
        ("0x0 (None)", []),
        ("0x1 (GPU Reset Required)", [("gpu.recovery-action", State.FAILED)]),
        ("0x2 (Node Reboot Required)", [("gpu.recovery-action", State.FAILED)]),
        ("0x3 (Drain P2P)", [("gpu.recovery-action", State.DEGRADED)]),
        ("0x4 (Drain and Reset)", [("gpu.recovery-action", State.DEGRADED)]),
        ("0x5 (Something New)", [("gpu.xid", State.DEGRADED)]),
    ],
)
def test_the_kernel_tells_what_the_gpu_asks_for_where_nvidia_smi_does_not(rack, target, findings):
    rack.gpu(GPU, recovery_action=None)
    rack.xid(GPU, 154, text="GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    rack.xid(GPU, 154, text=f"GPU recovery action changed from 0x1 (GPU Reset Required) to {target}")
    assert told(verdict(rack)) == findings


@pytest.mark.parametrize(
    ("action", "state"),
    [
        ("None", State.OK),
        ("Reset", State.FAILED),
        ("Reboot", State.FAILED),
        ("Drain P2P", State.DEGRADED),
        ("Drain and Reset", State.DEGRADED),
        ("Ask Someone", State.DEGRADED),
    ],
)
def test_what_the_gpu_itself_asks_for(rack, action, state):
    rack.gpu(GPU, recovery_action=action)
    assert verdict(rack).state is state


@pytest.mark.parametrize(
    ("fields", "rule", "state"),
    [
        ({"remap_pending": True}, "gpu.row-remap", State.DEGRADED),
        ({"remap_failed": True}, "gpu.row-remap", State.FAILED),
        ({"remap_uncorrectable": 512}, "gpu.row-remap", State.FAILED),
        ({"retired_double_bit": 63}, "gpu.retired-pages", State.FAILED),
        ({"retired_double_bit": 3, "retired_single_bit": 60}, "gpu.retired-pages", State.FAILED),
        ({"retirement_pending": True}, "gpu.retired-pages", State.DEGRADED),
        ({"sram_threshold_exceeded": True}, "gpu.ecc", State.DEGRADED),
        ({"unrepairable_memory": True}, "gpu.repair", State.FAILED),
        ({"channel_repair_pending": True}, "gpu.repair", State.DEGRADED),
        ({"tpc_repair_pending": True}, "gpu.repair", State.DEGRADED),
        ({"banks_without_spare_rows": 1}, "gpu.row-remap", State.DEGRADED),
        ({"inforom_corrupted": True}, "gpu.inforom", State.DEGRADED),
        ({"ecc_aggregate_uncorrectable": 1, "sram_aggregate_uncorrectable": 1}, "gpu.ecc", State.DEGRADED),
        ({"ecc_aggregate_uncorrectable": 1, "dram_aggregate_uncorrectable": 1}, "gpu.ecc", State.DEGRADED),
        (
            {"ecc_aggregate_uncorrectable": 2, "dram_aggregate_uncorrectable": 2, "remap_uncorrectable": 1},
            "gpu.ecc",
            State.OK,
        ),
        ({"recovery_action": None, "reset_required": True}, "gpu.recovery-action", State.FAILED),
        ({"recovery_action": None, "drain_and_reset_recommended": True}, "gpu.recovery-action", State.DEGRADED),
        ({"says_reset": "temperature/gpu_temp", "temperature_c": None}, "gpu.recovery-action", State.FAILED),
        ({"unread": {"ecc_errors/volatile/dram_uncorrectable": "ERR!"}}, "gpu.silent", State.UNKNOWN),
        ({"temperature_c": None}, "gpu.silent", State.UNKNOWN),
        ({"memory_used_mib": None, "ecc_volatile_uncorrectable": None}, "gpu.silent", State.UNKNOWN),
        ({"ecc_volatile_uncorrectable": 1}, "gpu.ecc", State.DEGRADED),
        ({"temperature_c": 89.0}, "gpu.temperature", State.DEGRADED),
        ({"memory_temperature_c": 95.0}, "gpu.temperature", State.DEGRADED),
        ({"throttle_reasons": frozenset({"hw_thermal_slowdown"})}, "gpu.throttled", State.OK),
    ],
)
def test_each_reading_has_its_rule(rack, fields, rule, state):
    rack.gpu(GPU, **fields)
    health = verdict(rack)
    assert told(health) == [(rule, state)]
    assert health.state is state
    assert others(rack) == {State.OK}


@pytest.mark.parametrize(
    "fields",
    [
        {"remap_uncorrectable": 511},
        {"retired_double_bit": 31, "retired_single_bit": 31},
        {"retirement_pending": False, "reset_required": False, "drain_and_reset_recommended": False},
        {"ecc_volatile_uncorrectable": None, "remap_failed": None},
        {"unrepairable_memory": False, "channel_repair_pending": False, "banks_without_spare_rows": 0},
        {"ecc_aggregate_uncorrectable": 0, "sram_aggregate_uncorrectable": 0, "dram_aggregate_uncorrectable": 0},
        {"memory_used_mib": None},
        {"temperature_c": 88.9},
        {"memory_temperature_c": 94.9},
        {"throttle_reasons": frozenset({"gpu_idle", "sw_power_cap"})},
    ],
)
def test_just_below_each_limit_there_is_nothing_to_say(rack, fields):
    rack.gpu(GPU, **fields)
    assert verdict(rack).findings == ()


REGISTERED = {"state": "Completed", "status": "Success"}


@pytest.mark.parametrize(
    ("fabric", "cases", "state"),
    [
        ({}, [], State.OK),
        (REGISTERED, [], State.OK),
        ({"state": "Completed", "status": "Success", "health/summary": "Not Supported"}, [], State.OK),
        ({"state": "Not Supported"}, [], State.OK),
        ({"state": "In Progress"}, ["registering"], State.DEGRADED),
        ({"state": "Not Started"}, ["not-started"], State.FAILED),
        ({"state": "A New Word"}, ["not-started"], State.FAILED),
        ({"state": "Completed", "status": "Unknown Failure"}, ["error"], State.FAILED),
        ({**REGISTERED, "health/summary": "Unhealthy"}, ["summary"], State.FAILED),
        ({**REGISTERED, "health/summary": "Limited Capacity"}, ["limited"], State.DEGRADED),
        ({**REGISTERED, "health/bandwidth": "Degraded"}, ["bandwidth"], State.DEGRADED),
        ({**REGISTERED, "health/route_recovery_in_progress": "True"}, ["route-recovery"], State.DEGRADED),
        ({**REGISTERED, "health/route_unhealthy": "True"}, ["route-unhealthy"], State.FAILED),
        ({**REGISTERED, "health/access_timeout_recovery": "True"}, ["access-timeout"], State.DEGRADED),
        ({**REGISTERED, "health/incorrect_configuration": "Insufficient NVLinks"}, ["configuration"], State.FAILED),
        ({**REGISTERED, "health/incorrect_configuration": "None", "health/bandwidth": "Full"}, [], State.OK),
    ],
)
def test_a_gpu_that_its_fabric_does_not_carry_is_not_ok(rack, fabric, cases, state):
    rack.gpu(GPU, fabric=fabric)
    health = verdict(rack)
    assert [finding.case for finding in health.findings] == cases
    assert health.state is state


def test_a_registration_that_does_not_end_fails_the_gpu(watched):
    watched.rack.gpu(GPU, fabric={"state": "In Progress"})
    assert watched.look().accelerators[GPU].state is State.DEGRADED
    assert watched.look(290.0).accelerators[GPU].state is State.DEGRADED
    health = watched.look(10.0).accelerators[GPU]
    assert health.state is State.FAILED
    assert "802" in health.findings[0].advice
    watched.rack.gpu(GPU, fabric=REGISTERED)
    assert watched.look().accelerators[GPU].state is State.OK


def test_the_inventory_s_limit_stands_in_where_the_card_prints_none(rack):
    rack.gpu(GPU, temperature_c=80.0)
    assert verdict(rack).state is State.OK
    rack.gpu(GPU, temperature_slowdown_c=None)
    assert verdict(rack).state is State.DEGRADED
    assert "inventory" in verdict(rack).findings[0].evidence


def test_a_stale_reading_is_unknown_and_says_its_age(rack):
    rack.gpu(GPU, taken_at=NOW - 31, remap_failed=True)
    health = verdict(rack)
    assert told(health) == [("gpu.stale", State.UNKNOWN)]
    assert "31 s ago" in health.findings[0].evidence
    assert health.read_at == NOW - 31


def test_a_gpu_without_a_single_value_is_not_ok(rack):
    rack.host("h03", gpus=tuple(GpuReading(NOW, gpu.pci, gpu.minor) for gpu in rack.hosts["h03"].gpus))
    assert told(verdict(rack)) == [("gpu.silent", State.UNKNOWN)]


def test_an_accelerator_out_of_service_is_disabled_and_keeps_its_findings(rack):
    rack.xid(GPU, 79)
    rack.inventory.accelerators[GPU] = replace(rack.inventory.accelerators[GPU], role=Role.DISABLED)
    health = verdict(rack)
    assert health.state is State.DISABLED
    assert told(health) == [("gpu.xid", State.FAILED)]


def test_the_advice_for_an_accelerator_out_of_service_asks_for_no_second_swap(rack):
    rack.xid(GPU, 79)
    assert verdict(rack).findings[0].advice.startswith(SPARE_FIRST)
    ranks = tuple("h16-gpu2" if a == GPU else a for a in rack.assignment["train-a"])
    rack.assignment = {**rack.assignment, "train-a": ranks}
    (finding,) = verdict(rack).findings
    assert finding.advice.startswith("drain and power-cycle the host")
    assert "swap" not in finding.advice


def test_the_advice_for_a_spare_in_no_job_asks_for_no_swap(rack):
    rack.xid("h16-gpu2", 79)
    (finding,) = verdict(rack, "h16-gpu2").findings
    assert finding.advice.startswith("drain and power-cycle the host")


def test_the_advice_for_an_accelerator_that_no_job_names_asks_for_no_swap(rack):
    ranks = tuple("h16-gpu2" if a == GPU else a for a in rack.assignment["train-a"])
    rack.inventory.jobs["train-a"] = replace(rack.inventory.jobs["train-a"], ranks=ranks)
    rack.assignment = {**rack.assignment, "train-a": ranks}
    rack.xid(GPU, 79)
    (finding,) = verdict(rack).findings
    assert finding.advice.startswith("drain and power-cycle the host")


def test_no_advice_begins_with_a_spare_in_other_words():
    """The advice of a replaced accelerator is cut by how it begins."""
    said = [line.advice for line in all_lines() if "swap in" in line.advice]
    assert said
    assert all(advice.startswith(SPARE_FIRST) for advice in said)


def test_a_swapped_out_accelerator_no_longer_counts(rack):
    rack.lose_gpu(GPU)
    ranks = tuple("h16-gpu2" if a == GPU else a for a in rack.assignment["train-a"])
    rack.assignment = {**rack.assignment, "train-a": ranks}
    assert verdict(rack).state is State.DISABLED
    assert rack.report().links[f"{GPU}-a"].state is State.DISABLED


def test_a_probe_that_failed_leaves_its_accelerators_unknown_unless_the_kernel_tells(rack):
    rack.probe("h03", "gpu", ProbeStatus.FAILED, "no answer")
    rack.host("h03", gpus=())
    rack.xid(GPU, 79)
    assert verdict(rack).state is State.FAILED
    assert verdict(rack, "h03-gpu0").state is State.UNKNOWN
    assert verdict(rack, "h03-gpu0").findings == ()


def test_a_driver_that_finds_no_gpu_fails_all_that_the_inventory_has_there(rack):
    rack.probe("h03", "gpu", ProbeStatus.OK)
    rack.host("h03", gpus=())
    assert told(verdict(rack)) == [("gpu.lost", State.FAILED)]
    assert rack.report().hosts["h03"].findings == ()


numbers = st.none() | st.integers(-10, 10_000)
floats = st.none() | st.floats()


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    reading=st.builds(
        GpuReading,
        taken_at=st.just(NOW),
        pci=st.text(max_size=12),
        recovery_action=st.none() | st.text(max_size=12),
        temperature_c=floats,
        temperature_slowdown_c=floats,
        memory_temperature_c=floats,
        ecc_volatile_uncorrectable=numbers,
        remap_uncorrectable=numbers,
        retired_double_bit=numbers,
        remap_failed=st.none() | st.booleans(),
        throttle_reasons=st.frozensets(st.text(max_size=5), max_size=3),
    ),
    xids=st.lists(st.builds(XidEvent, at=floats, pci=st.just(""), xid=st.integers(-5, 400), text=st.just(""))),
)
def test_no_reading_makes_a_rule_raise_and_nothing_makes_garbage_pass(reading, xids):
    case = GpuCase("g", reading, None, None, tuple(xids), Thresholds(), NOW)
    findings = [finding for rule in RULES for finding in rule(case)]
    assert all(finding.component == "g" and finding.evidence and finding.advice for finding in findings)
    if reading.remap_failed:
        assert State.FAILED in {finding.state for finding in findings}
