"""What changed from one report to the next."""

from lumctl.health.acknowledgements import MaintenanceWindow
from lumctl.health.states import State
from lumctl.health.transitions import Transition, transitions

GPU = "h03-gpu2"


def test_a_rack_that_is_well_at_the_first_look_has_no_history(watched):
    assert transitions(None, watched.report) == ()


def test_a_first_look_tells_what_is_not_well(watched):
    watched.rack.gpu(GPU, remap_failed=True)
    watched.look()
    assert transitions(None, watched.report) == (
        Transition(
            watched.now, GPU, "accelerator", None, State.FAILED, ("gpu.row-remap",), "a row remap failed"
        ),
    )  # fmt: skip


def test_a_state_that_changes_is_told_with_the_rules_that_give_it(watched):
    before = watched.report
    watched.rack.gpu(GPU, remap_failed=True, sram_threshold_exceeded=True)
    failed = watched.look()
    (told,) = transitions(before, failed)
    assert (told.before, told.after, told.rules) == (State.OK, State.FAILED, ("gpu.row-remap",))
    watched.rack.gpu(GPU, remap_failed=False)
    degraded = watched.look()
    (told,) = transitions(failed, degraded)
    assert (told.before, told.after, told.rules) == (State.FAILED, State.DEGRADED, ("gpu.ecc",))
    watched.rack.gpu(GPU, sram_threshold_exceeded=False)
    (told,) = transitions(degraded, watched.look())
    assert (told.before, told.after, told.rules, told.evidence) == (State.DEGRADED, State.OK, (), "")


def test_the_same_state_by_another_rule_is_no_change(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    before = watched.look()
    watched.rack.gpu(GPU, remap_pending=False, sram_threshold_exceeded=True)
    assert transitions(before, watched.look()) == ()


def test_everything_behind_a_lost_host_is_told_in_the_order_of_the_report(watched):
    before = watched.report
    watched.rack.host("h03", reachable=False, error="no route to host", probes={})
    told = transitions(before, watched.look())
    assert [t.kind for t in told] == ["accelerator"] * 4 + ["circuit"] * 8 + ["link"] * 8 + ["host"]
    assert {t.after for t in told} == {State.UNKNOWN, State.FAILED}


def test_what_has_no_finding_of_its_own_tells_what_it_is_unknown_or_disabled_for(watched):
    before = watched.report
    watched.rack.host("h03", reachable=False, error="no route to host", probes={})
    lost = watched.look()
    told = {change.component: change for change in transitions(before, lost)}
    assert told[GPU].after is State.UNKNOWN
    assert told[GPU].evidence == "h03: host.unreachable"
    watched.said["windows"] = [MaintenanceWindow("w", "h03", "kim", "fans", watched.now, watched.now + 99)]
    told = {change.component: change for change in transitions(lost, watched.look())}
    assert (told[GPU].after, told[GPU].evidence) == (State.DISABLED, "in maintenance: h03 by kim: fans")
