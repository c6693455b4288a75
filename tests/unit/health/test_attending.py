"""Acknowledged findings and maintenance windows."""

import pytest

from lumctl.devices.types import Neighbour
from lumctl.health.acknowledgements import Acknowledgement, CoveredFinding, MaintenanceWindow, covered
from lumctl.health.states import State

GPU, HOST, LANE = "h03-gpu2", "h03", "h03-gpu2-a"


def acknowledge(watched, component=GPU, rule=None, **fields):
    said = Acknowledgement(component, rule, "kim", "part is ordered", watched.now, **fields)
    watched.said["acknowledged"] = (*watched.said.get("acknowledged", ()), said)
    return said


def window(watched, component, *, starts=0.0, ends=600.0):
    opened = MaintenanceWindow("w1", component, "kim", "new fans", watched.now + starts, watched.now + ends)
    watched.said["windows"] = (opened,)


def known(watched, component=GPU):
    return [(f.rule, f.acknowledged) for f in watched.report.accelerators[component].findings]


def test_an_acknowledged_finding_stays_and_says_who_knows_of_it(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    acknowledge(watched, rule="gpu.row-remap")
    watched.look()
    assert watched.report.accelerators[GPU].state is State.DEGRADED
    assert known(watched) == [("gpu.row-remap", "by kim: part is ordered")]
    assert watched.memory.spent == ()


def test_it_covers_its_own_rule_or_all(watched):
    watched.rack.gpu(GPU, remap_pending=True, sram_threshold_exceeded=True)
    watched.look()
    acknowledge(watched, rule="gpu.ecc")
    watched.look()
    assert dict(known(watched)) == {"gpu.row-remap": None, "gpu.ecc": "by kim: part is ordered"}
    acknowledge(watched)
    watched.look()
    assert None not in dict(known(watched)).values()


def test_it_does_not_cover_a_worse_state(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    acknowledge(watched, rule="gpu.row-remap")
    watched.look()
    watched.rack.gpu(GPU, remap_failed=True)
    watched.look()
    assert known(watched) == [("gpu.row-remap", None), ("gpu.row-remap", "by kim: part is ordered")]
    watched.restart()
    watched.look()
    assert known(watched)[0] == ("gpu.row-remap", None)


def test_it_does_not_cover_a_rule_that_finds_something_later(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    acknowledge(watched)
    watched.look()
    watched.rack.gpu(GPU, sram_threshold_exceeded=True)
    watched.look()
    assert dict(known(watched)) == {"gpu.row-remap": "by kim: part is ordered", "gpu.ecc": None}
    watched.restart()
    watched.look()
    assert dict(known(watched)) == {"gpu.row-remap": "by kim: part is ordered", "gpu.ecc": None}


def test_it_covers_what_it_was_given_for_and_not_what_comes_before_the_next_look(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    acknowledge(watched, covers=covered(watched.report.accelerators[GPU].findings))
    watched.rack.gpu(GPU, sram_threshold_exceeded=True)
    watched.look()
    assert dict(known(watched)) == {"gpu.row-remap": "by kim: part is ordered", "gpu.ecc": None}


def test_another_number_of_an_acknowledged_rule_is_a_new_fault(watched):
    watched.rack.xid(GPU, 95, at=watched.now)
    watched.look()
    acknowledge(watched)
    watched.look()
    watched.rack.xid(GPU, 79, at=watched.now)
    watched.look()
    findings = watched.report.accelerators[GPU].findings
    assert {f.about: f.acknowledged is not None for f in findings} == {"95": True, "79": False}


def test_what_cleared_and_returns_is_a_new_fault(watched):
    watched.rack.gpu(GPU, remap_pending=True, sram_threshold_exceeded=True)
    watched.look()
    acknowledge(watched)
    watched.look()
    watched.rack.gpu(GPU, sram_threshold_exceeded=False)
    watched.look()
    watched.rack.gpu(GPU, sram_threshold_exceeded=True)
    watched.look()
    assert dict(known(watched)) == {"gpu.row-remap": "by kim: part is ordered", "gpu.ecc": None}


def test_of_a_rack_it_covers_no_other_component_that_fails_later(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    acknowledge(watched, "rack64")
    watched.look()
    watched.rack.gpu("h01-gpu0", remap_pending=True)
    watched.look()
    assert known(watched) == [("gpu.row-remap", "by kim: part is ordered")]
    assert known(watched, "h01-gpu0") == [("gpu.row-remap", None)]


def test_what_it_covers_is_said_in_words(watched):
    watched.rack.gpu(GPU, remap_pending=True, remap_failed=True)
    watched.rack.xid(GPU, 79, at=watched.now)
    watched.look()
    covers = covered(watched.report.accelerators[GPU].findings)
    assert set(covers) == {
        CoveredFinding(GPU, "gpu.xid", "79", "failed"),
        CoveredFinding(GPU, "gpu.row-remap", "", "failed"),
    }
    own = acknowledge(watched, covers=covers)
    assert set(own.covers_text.split(", ")) == {"gpu.xid 79 (failed)", "gpu.row-remap (failed)"}
    whole = acknowledge(watched, "rack64", covers=covers[:1])
    assert whole.covers_text == f"{GPU}: {covers[0].words}"


def test_it_ends_when_its_finding_has_cleared_for_good(watched):
    watched.rack.gpu(GPU, temperature_c=93.0)
    watched.look()
    said = acknowledge(watched, rule="gpu.temperature")
    watched.look()
    watched.rack.gpu(GPU, temperature_c=60.0)
    watched.look(10)
    # It still sticks.
    assert known(watched) == [("gpu.temperature", "by kim: part is ordered")]
    assert watched.memory.spent == ()
    watched.look(60)
    assert watched.memory.spent == (said,)


def test_a_note_that_stays_does_not_keep_it_alive_for_the_next_fault(watched):
    watched.rack.gpu(GPU, remap_failed=True)
    watched.rack.xid(GPU, 43)
    watched.rack.xid(GPU, 13, at=None)
    watched.look()
    said = acknowledge(watched)
    watched.look()
    watched.rack.gpu(GPU, remap_failed=False)
    watched.look(60)
    assert [finding.state for finding in watched.report.accelerators[GPU].findings] == [State.OK]
    assert watched.memory.spent == (said,)


def test_it_ends_at_its_time(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    said = acknowledge(watched, until=watched.now + 15)
    watched.look(10)
    assert known(watched) == [("gpu.row-remap", "by kim: part is ordered")]
    watched.look(10)
    assert known(watched) == [("gpu.row-remap", None)]
    assert watched.memory.spent == (said,)


def test_it_does_not_end_while_nobody_can_tell(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    acknowledge(watched, rule="gpu.row-remap")
    watched.look()
    watched.rack.host(HOST, reachable=False, attempts=3)
    for _ in range(3):
        watched.look()
        assert watched.memory.spent == ()
    watched.rack.host(HOST, reachable=True, attempts=0)
    watched.look()
    assert known(watched) == [("gpu.row-remap", "by kim: part is ordered")]


def test_what_is_acknowledged_of_a_rack_covers_all_in_it(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.rack.gpu("h01-gpu0", remap_pending=True)
    watched.look()
    acknowledge(watched, "rack64", rule="gpu.row-remap")
    watched.look()
    assert {f.acknowledged for f in watched.report.findings()} == {"by kim: part is ordered"}


def test_what_is_acknowledged_of_a_rack_covers_its_circuits(watched):
    watched.rack.hears(LANE, Neighbour("h07", "eth6", 3.0))
    watched.look()
    (circuit,) = (each for each in watched.report.circuits.values() if each.findings)
    said = acknowledge(watched, "rack64", covers=covered(watched.report.findings()))
    for _ in range(2):
        watched.look()
        assert {finding.acknowledged for finding in watched.report.circuits[circuit.id].findings} == {said.told}
        assert watched.memory.spent == ()


def disabled(watched):
    return {h.id for group in watched.report.groups().values() for h in group.values() if h.state is State.DISABLED}


def test_a_window_on_a_host_covers_everything_on_it_and_the_far_ends_of_its_light(watched):
    watched.rack.gpu(GPU, remap_failed=True)
    window(watched, HOST, ends=60)
    watched.look()
    assert watched.report.accelerators[GPU].maintenance == "h03 by kim: new fans"
    assert [f.rule for f in watched.report.accelerators[GPU].findings] == ["gpu.row-remap"]
    on_host = {HOST, *(f"h03-gpu{n}" for n in range(4)), *(f"h03-gpu{n}-{lane}" for n in range(4) for lane in "ab")}
    neighbours = {f"{h}-gpu{n}-{lane}" for h, lane in (("h02", "b"), ("h04", "a")) for n in range(4)}
    circuits = {c.id for c in watched.report.circuits.values() if {end.transponder for end in c.ends} & on_host}
    assert len(circuits) == 8
    assert disabled(watched) == on_host | neighbours | circuits
    watched.look(60)
    # The window has ended: the state is back at the next look.
    assert disabled(watched) == set()
    assert watched.report.accelerators[GPU].state is State.FAILED


@pytest.mark.parametrize(
    ("component", "some", "count"),
    [
        ("rack64", {"h01", "rail0", "h16-gpu3"}, 16 + 64 + 128 + 4 + 60),
        (GPU, {GPU, LANE, "h03-gpu2-b"}, 1 + 2 + 2 + 2),
        (LANE, {LANE}, 3),
        ("rail2", {"rail2", "h01-gpu2-a", "h15-gpu2-b"}, 1 + 15 + 30),
    ],
)
def test_what_a_window_covers(watched, component, some, count):
    window(watched, component)
    watched.look()
    assert some <= disabled(watched)
    assert len(disabled(watched)) == count


def test_a_window_that_has_not_begun_covers_nothing(watched):
    window(watched, HOST, starts=100)
    watched.look()
    assert disabled(watched) == set()


def test_what_happens_under_work_is_no_alarm_after_it(watched):
    watched.count(LANE, link_downed=2)
    watched.carrier(LANE, 2)
    watched.look()
    window(watched, HOST, ends=100)
    for changes in range(3, 9):
        watched.carrier(LANE, changes, up=changes % 2 == 0)
        watched.count(LANE, link_downed=changes)
        watched.rack.gpu(GPU, temperature_c=95.0, throttle_reasons=frozenset({"hw_slowdown"}))
        watched.look(10)
    watched.rack.gpu(GPU, temperature_c=50.0, throttle_reasons=frozenset())
    watched.look(10)
    watched.said["windows"] = ()
    assert {h.state for group in watched.look(60).groups().values() for h in group.values()} == {State.OK}
    # And what happens then counts again.
    watched.count(LANE, link_downed=9)
    assert watched.look(10).links[LANE].state is State.FAILED
