"""Events of kernel logs that need a reset or a reboot: what ends them, and what does not."""

import json
from dataclasses import replace

import pytest

from lumctl.fleet.readings import ProbeStatus, SxidEvent, XidEvent
from lumctl.health.acknowledgements import EventClear, MaintenanceWindow
from lumctl.health.event_record import EventRecord
from lumctl.health.memory import Memory, merged
from lumctl.health.remedy import remedies
from lumctl.health.rulebook import rulebook
from lumctl.health.states import State
from lumctl.inventory.exporters import ReadingSource

GPU, OTHER, HOST = "h03-gpu2", "h03-gpu1", "h03"
DAY_S = 86_400.0
RESET_DONE = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"


@pytest.fixture
def booted(watched):
    """The same rack, whose host tells its boot; everything is read at once."""
    boot(watched, "boot-1")
    watched.look()
    return watched


def boot(watched, boot_id):
    watched.rack.host(HOST, boot_id=boot_id, booted_at=watched.now - 10 * DAY_S, xids=(), sxids=())


def pci(watched, name):
    return watched.rack.inventory.accelerators[name].pci.rsplit(".", 1)[0]


def xid(watched, number, text="", *, name=GPU, at=None, stamp=None):
    """A line that the kernel of the host wrote a second before the next look."""
    at = watched.now + 9 if at is None else at
    booted_at = watched.rack.hosts[HOST].booted_at
    return XidEvent(at, pci(watched, name), number, text, stamp or f"{at - booted_at:.6f}")


def log(watched, *events):
    """Set what the ring of the host shows."""
    watched.rack.host(
        HOST,
        xids=tuple(event for event in events if isinstance(event, XidEvent)),
        sxids=tuple(event for event in events if isinstance(event, SxidEvent)),
    )


def state(watched, name=GPU):
    return watched.report.accelerators[name].state


def found(watched, name=GPU):
    return [finding for finding in watched.report.accelerators[name].findings if finding.state is not State.OK]


def clear(watched, component=GPU, rule=None):
    said = EventClear(component, rule, "kim", "reset by hand", watched.now)
    watched.said["cleared"] = (*watched.said.get("cleared", ()), said)


# -- what does not end an event ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [95, 79, 48, 62, 119])
def test_an_event_stays_when_its_line_leaves_the_ring(booted, number):
    log(booted, xid(booted, number))
    before = booted.look().accelerators[GPU]
    assert before.state in {State.FAILED, State.DEGRADED}
    log(booted, xid(booted, 43, name=OTHER))
    assert booted.look().accelerators[GPU].state is before.state
    (finding,) = found(booted)
    assert "the line is no longer in the kernel log" in finding.evidence
    assert finding.since == before.findings[0].since
    assert f"lumctl health clear {GPU} --reason TEXT" in finding.advice


@pytest.mark.parametrize("later", [DAY_S + 3600, 30 * DAY_S])
@pytest.mark.parametrize("in_ring", [True, False])
def test_age_does_not_end_it_nor_a_time_without_a_look(booted, later, in_ring):
    event = xid(booted, 95)
    log(booted, event)
    booted.look()
    if not in_ring:
        log(booted)
    assert booted.look(later).accelerators[GPU].state is State.FAILED


def test_age_ends_what_needs_no_reset(booted):
    log(booted, xid(booted, 54))
    assert booted.look().accelerators[GPU].state is State.DEGRADED
    log(booted)
    assert booted.look(3600).accelerators[GPU].state is State.DEGRADED
    assert booted.look(DAY_S).accelerators[GPU].state is State.OK


def test_a_restart_of_the_daemon_and_other_processes_keep_it(booted):
    log(booted, xid(booted, 95))
    booted.look()
    log(booted)
    booted.restart()
    assert booted.look().accelerators[GPU].state is State.FAILED
    booted.memory = Memory(merged([booted.memory.document(), Memory().document()]))
    assert booted.look().accelerators[GPU].state is State.FAILED


def test_a_host_that_does_not_answer_or_tell_its_boot_ends_nothing(booted):
    log(booted, xid(booted, 95))
    booted.look()
    booted.rack.host(HOST, reachable=False, attempts=3, xids=(), boot_id=None)
    assert booted.look().accelerators[GPU].state is State.UNKNOWN
    booted.rack.host(HOST, reachable=True, attempts=0)
    assert booted.look().accelerators[GPU].state is State.FAILED


def test_a_maintenance_window_without_a_reset_ends_nothing(booted):
    log(booted, xid(booted, 95))
    booted.look()
    booted.said["windows"] = (MaintenanceWindow("w", HOST, "kim", "fans", booted.now, booted.now + 60),)
    log(booted)
    assert booted.look().accelerators[GPU].state is State.DISABLED
    assert booted.look(60).accelerators[GPU].state is State.FAILED


def test_the_line_is_dated_alike_by_processes_that_compute_another_boot_time(booted):
    event = xid(booted, 95)
    log(booted, event)
    booted.look()
    clear(booted)
    assert booted.look().accelerators[GPU].state is State.OK
    booted.restart()
    late = 2.5
    booted.rack.host(HOST, booted_at=booted.rack.hosts[HOST].booted_at + late)
    log(booted, replace(event, at=event.at + late))
    assert booted.look().accelerators[GPU].state is State.OK


# -- what ends it -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [95, 79])
def test_a_reboot_ends_it(booted, number):
    log(booted, xid(booted, number))
    booted.look()
    boot(booted, "boot-2")
    assert booted.look().accelerators[GPU].state is State.OK
    assert booted.memory.document()["events"] == {}


def test_the_driver_says_that_a_reset_is_no_longer_required(booted):
    event, done = xid(booted, 95), xid(booted, 154, RESET_DONE, at=booted.now + 9.5)
    log(booted, event, done)
    assert booted.look().accelerators[GPU].state is State.OK
    # The line of the reset leaves the ring first where the driver writes it into another place.
    log(booted, event)
    assert booted.look().accelerators[GPU].state is State.OK
    log(booted, event, xid(booted, 95))
    assert booted.look().accelerators[GPU].state is State.FAILED


@pytest.mark.parametrize(
    "text",
    [
        "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "GPU recovery action changed from 0x3 (Drain P2P) to 0x0 (None)",
        "GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)",
        "GPU recovery action changed",
    ],
)
def test_other_changes_of_the_recovery_action_are_no_reset(booted, text):
    log(booted, xid(booted, 95), xid(booted, 154, text, at=booted.now + 9.5))
    assert booted.look().accelerators[GPU].state is State.FAILED


def test_a_reset_of_before_the_event_or_of_another_gpu_is_none(booted):
    log(
        booted,
        xid(booted, 154, RESET_DONE, at=booted.now + 8),
        xid(booted, 95),
        xid(booted, 154, RESET_DONE, name=OTHER, at=booted.now + 9.5),
    )
    assert booted.look().accelerators[GPU].state is State.FAILED


def test_a_gpu_that_asked_for_a_reset_and_asks_no_more_was_reset(booted):
    event = xid(booted, 95)
    log(booted, event)
    booted.rack.gpu(GPU, recovery_action="Reset")
    booted.look()
    booted.restart()
    booted.rack.gpu(GPU, recovery_action="None")
    assert booted.look().accelerators[GPU].state is State.OK
    booted.restart()
    assert booted.look().accelerators[GPU].state is State.OK
    log(booted, event, xid(booted, 95))
    assert booted.look().accelerators[GPU].state is State.FAILED


def test_so_was_one_whose_driver_says_it_in_older_words(booted):
    booted.rack.gpu(GPU, recovery_action=None, reset_required=True)
    log(booted, xid(booted, 62))
    booted.look()
    booted.rack.gpu(GPU, reset_required=False)
    assert booted.look().accelerators[GPU].state is State.OK


def test_an_event_of_after_the_last_question_for_a_reset_stays(booted):
    log(booted, first := xid(booted, 95))
    booted.rack.gpu(GPU, recovery_action="Reset")
    booted.look()
    booted.rack.gpu(GPU, recovery_action="None")
    log(booted, first, xid(booted, 62))
    booted.look()
    assert [finding.about for finding in found(booted)] == ["62"]


def test_a_gpu_that_never_asked_was_not_reset(booted):
    log(booted, xid(booted, 95))
    for _ in range(5):
        assert booted.look().accelerators[GPU].state is State.FAILED


def test_a_request_for_a_reboot_that_is_gone_is_no_reset(booted):
    log(booted, xid(booted, 95))
    for action in ("Reset", "Reboot", "None"):
        booted.rack.gpu(GPU, recovery_action=action)
        assert booted.look().accelerators[GPU].state is State.FAILED


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"pcie_replays": 7}, {"pcie_replays": 0}, State.OK),
        ({"pcie_replays": 7}, {"pcie_replays": 8}, State.FAILED),
        ({"pcie_replays": 7}, {"pcie_replays": None}, State.FAILED),
        ({"pcie_replays": 7}, {"pcie_replays": 0, "uuid": "GPU-2"}, State.FAILED),
        ({"pcie_replays": 7, "persistence_enabled": False}, {"pcie_replays": 0}, State.FAILED),
        # Driver loads and operators set these back as well.
        ({"throttled_us": {"sw_power_cap": 900}}, {"throttled_us": {"sw_power_cap": 1}}, State.FAILED),
        ({"ecc_volatile_uncorrectable": 2}, {"ecc_volatile_uncorrectable": 0}, State.FAILED),
    ],
)
def test_of_counters_only_the_replays_since_the_reset_tell_of_one(booted, before, after, expected):
    booted.rack.gpu(GPU, uuid="GPU-1", persistence_enabled=True)
    log(booted, xid(booted, 95))
    booted.rack.gpu(GPU, **before)
    booted.look()
    booted.rack.gpu(GPU, **after)
    assert booted.look().accelerators[GPU].state is expected


def test_a_lost_gpu_needs_a_reboot_whatever_was_reset(booted):
    log(booted, xid(booted, 79))
    booted.rack.gpu(GPU, recovery_action="Reset")
    booted.look()
    booted.rack.gpu(GPU, recovery_action="None")
    log(booted, xid(booted, 79), xid(booted, 154, RESET_DONE, at=booted.now + 9.5))
    assert booted.look().accelerators[GPU].state is State.FAILED


def test_a_reset_within_maintenance_ends_what_was_before_it(booted):
    event = xid(booted, 95)
    log(booted, event)
    booted.rack.gpu(GPU, recovery_action="Reset")
    booted.look()
    booted.said["windows"] = (MaintenanceWindow("w", HOST, "kim", "reset", booted.now, booted.now + 60),)
    booted.look()
    booted.rack.gpu(GPU, recovery_action="None")
    booted.look()
    assert booted.look(60).accelerators[GPU].state is State.OK


# -- an operator ------------------------------------------------------------------------------------------------------


def test_an_operator_ends_it_though_its_line_is_in_the_ring_and_a_new_one_counts(booted):
    event = xid(booted, 79)
    log(booted, event)
    booted.look()
    clear(booted)
    assert booted.look().accelerators[GPU].state is State.OK
    booted.restart()
    assert booted.look().accelerators[GPU].state is State.OK
    log(booted, event, xid(booted, 79))
    assert booted.look().accelerators[GPU].state is State.FAILED
    assert len(found(booted)) == 1
    assert "times" not in found(booted)[0].evidence


def test_what_no_look_had_seen_by_then_is_not_cleared(booted):
    clear(booted)
    log(booted, xid(booted, 79, at=booted.now - 1))
    assert booted.look().accelerators[GPU].state is State.FAILED


def test_a_clear_is_of_one_component_and_one_rule(booted):
    switch = SxidEvent(booted.now, "0000:c1:00.0", 12020, "Fatal, Link 3", "7.000000", fatal=True)
    log(booted, xid(booted, 95), xid(booted, 95, name=OTHER), switch)
    booted.look()
    clear(booted, OTHER)
    booted.look()
    assert (state(booted), state(booted, OTHER), booted.report.hosts[HOST].state) == (
        State.FAILED,
        State.OK,
        State.FAILED,
    )
    clear(booted, HOST, "host.xid-unmatched")
    assert booted.look().hosts[HOST].state is State.FAILED
    clear(booted, HOST, "host.nvswitch")
    assert booted.look().hosts[HOST].state is State.OK
    assert state(booted) is State.FAILED


def test_a_stray_xid_is_its_hosts(booted):
    stray = replace(xid(booted, 79), pci="0000:ff:00")
    log(booted, stray)
    assert booted.look().hosts[HOST].findings[0].rule == "host.xid-unmatched"
    log(booted)
    assert f"lumctl health clear {HOST} --reason TEXT" in booted.look().hosts[HOST].findings[0].advice
    clear(booted, HOST)
    assert booted.look().hosts[HOST].state is State.OK


# -- accelerators without an address in the inventory -----------------------------------------------------------------


@pytest.fixture
def nameless(booted):
    """A booted host; the inventory states the address of none of its accelerators. Returns their addresses."""
    accelerators = booted.rack.inventory.accelerators
    slots = {each.id: pci(booted, each.id) for each in booted.rack.inventory.accelerators_of(HOST)}
    changed = {name: replace(accelerators[name], pci=None) for name in slots}
    booted.rack.inventory = replace(booted.rack.inventory, accelerators={**accelerators, **changed})
    return slots


def lose_two(watched, slots):
    watched.rack.lose_gpu(GPU)
    watched.rack.lose_gpu(OTHER)
    log(watched, *(XidEvent(watched.now, slots[name], 79, "", "9.0") for name in (GPU, OTHER)))


def xids_of_both(watched):
    return [any(each.rule == "gpu.xid" for each in found(watched, name)) for name in (GPU, OTHER)]


def test_two_gpus_that_were_listed_before_keep_their_xids(booted, nameless):
    booted.look()
    booted.restart()
    lose_two(booted, nameless)
    booted.look()
    assert xids_of_both(booted) == [True, True]
    assert booted.report.hosts[HOST].findings == ()
    booted.restart()
    booted.look()
    assert xids_of_both(booted) == [True, True]
    clear(booted, GPU)
    booted.look()
    assert xids_of_both(booted) == [False, True]


def test_of_two_gpus_that_were_never_listed_the_host_has_the_xids_and_both_are_named(booted, nameless):
    lose_two(booted, nameless)
    booted.memory = Memory()
    booted.look()
    assert xids_of_both(booted) == [False, False]
    (finding,) = booted.report.hosts[HOST].findings
    assert finding.rule == "host.xid-unmatched"
    assert f"perhaps of {OTHER} or {GPU}, whose PCI addresses are not known" in finding.evidence
    assert [booted.report.accelerators[name].state for name in (GPU, OTHER)] == [State.FAILED] * 2


def test_after_a_boot_an_earlier_address_is_not_used(booted, nameless):
    booted.look()
    boot(booted, "boot-2")
    lose_two(booted, nameless)
    booted.look()
    assert xids_of_both(booted) == [False, False]
    assert [each.rule for each in booted.report.hosts[HOST].findings] == ["host.xid-unmatched"]


def test_without_a_rank_the_advice_ends_with_the_command_that_clears_the_events(booted, nameless):
    lose_two(booted, nameless)
    booted.memory = Memory()
    booted.look()
    booted.look()
    found_ = remedies(booted.report, booted.rack.inventory, {})
    (remedy,) = [each for each in found_ if each.cause == HOST]
    assert remedy.by_hand.endswith(f"lumctl health clear {HOST} --reason TEXT")


# -- NVSwitches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [12020, 11001, 10003, 11004])
def test_a_fatal_sxid_lasts_until_the_host_is_rebooted(booted, number):
    log(booted, SxidEvent(booted.now, "0000:c1:00.0", number, "Fatal, Link 3", "7.000000", fatal=True))
    ill = booted.look().hosts[HOST].state
    assert ill is not State.OK
    log(booted)
    assert booted.look(2 * DAY_S).hosts[HOST].state is ill
    assert "the line is no longer in the kernel log" in booted.report.hosts[HOST].findings[0].evidence
    boot(booted, "boot-2")
    assert booted.look().hosts[HOST].state is State.OK


def test_one_that_is_not_fatal_is_over_after_a_day(booted):
    log(booted, SxidEvent(booted.now, "0000:c1:00.0", 20012, "Non-fatal", "7.000000", fatal=False))
    assert booted.look().hosts[HOST].state is State.DEGRADED
    log(booted)
    assert booted.look(3600).hosts[HOST].state is State.DEGRADED
    assert booted.look(DAY_S).hosts[HOST].state is State.OK


# -- the record itself ------------------------------------------------------------------------------------------------


def test_what_is_kept_is_bounded_and_keeps_the_first_and_the_newest(booted):
    first = xid(booted, 119, at=booted.now - 5000)
    flood = [xid(booted, 119, "x" * 2000, at=booted.now - 4000 + n) for n in range(400)]
    strangers = [replace(xid(booted, 95, at=booted.now - 3000 + n), pci=f"{n:04x}:1b:00") for n in range(1000)]
    log(booted, first, *flood, *strangers)
    booted.look()
    log(booted)
    booted.look()
    document = booted.memory.document()["events"][HOST]
    assert len(document["events"]) <= 256
    assert len(json.dumps(document)) < 256 * 700
    log(booted, first, *flood)
    booted.memory = Memory()
    booted.look()
    log(booted)
    booted.look()
    assert found(booted)[0].evidence.endswith("at least 4 times; the lines are no longer in the kernel log")
    assert found(booted)[0].since == first.at


def test_a_host_that_left_the_inventory_is_forgotten_and_nonsense_is_a_first_look(booted):
    log(booted, xid(booted, 95))
    booted.look()
    document = booted.memory.document()["events"]
    assert set(document) == {HOST}
    assert set(EventRecord({**document, "gone": document[HOST]}).document()) == {HOST, "gone"}
    record = EventRecord({"gone": document[HOST]})
    record.take(booted.rack.inventory, booted.rack.observation().snapshot, (), booted.now)
    assert "gone" not in record.document()
    broken = {**booted.memory.document(), "events": {HOST: {"boot": 1}}}
    assert Memory(broken).document()["events"] == {}


def test_a_well_rack_keeps_nothing(booted):
    for _ in range(3):
        booted.look()
    assert booted.memory.document()["events"] == {}


def test_a_log_that_cannot_be_read_does_not_say_that_a_line_has_left_it(booted):
    log(booted, xid(booted, 95))
    booted.look()
    log(booted)
    booted.rack.probe(HOST, "kernel", ProbeStatus.TIMED_OUT)
    assert booted.look().accelerators[GPU].state is State.FAILED
    assert "no longer in the kernel log" not in found(booted)[0].evidence


def test_every_case_says_what_ends_it_in_a_known_word():
    assert {line.ends for line in rulebook().lines()} == {"age", "reset", "reboot"}
    for line in rulebook().lines("gpu.xid"):
        needs = "reset" if "reset" in line.advice else "reboot" if "restart the" in line.advice else "age"
        if line.case in {"reset-gpu", "restart-virtual-machine", "decide"}:
            assert line.ends == needs, line.case


def test_an_exporters_last_xid_stays_cleared_while_it_is_shown(booted):
    shown = XidEvent(None, pci(booted, GPU), 95, "DCGM_FI_DEV_XID_ERRORS")
    log(booted, shown)
    booted.look()
    assert state(booted) is State.FAILED
    clear(booted)
    for _ in range(3):
        booted.look()
        assert state(booted) is State.OK
    log(booted, replace(shown, xid=79))
    booted.look()
    assert state(booted) is State.FAILED


@pytest.fixture
def by_exporters(watched):
    """The same rack, one host of which is read by exporters alone: they tell when it was booted, and no boot id."""
    hosts = watched.rack.inventory.hosts
    hosts[HOST] = replace(hosts[HOST], readings=ReadingSource.PROMETHEUS)
    watched.rack.host(HOST, boot_id=None, booted_at=watched.now - 10 * DAY_S)
    watched.look()
    return watched


def test_an_exporter_that_was_started_again_heals_nothing(by_exporters):
    log(by_exporters, XidEvent(None, pci(by_exporters, GPU), 95, "DCGM_FI_DEV_XID_ERRORS"))
    by_exporters.look()
    log(by_exporters)
    # The time of a boot is computed from two clocks.
    by_exporters.rack.host(HOST, booted_at=by_exporters.rack.hosts[HOST].booted_at + 1)
    by_exporters.look()
    assert state(by_exporters) is State.FAILED
    by_exporters.rack.host(HOST, booted_at=by_exporters.now)
    by_exporters.look()
    assert state(by_exporters) is State.OK
