"""What ports count, carriers that come and go, full counters, and what drivers report."""

from dataclasses import replace

import pytest

from lumctl.fleet.readings import NicEvent, NicEventKind
from lumctl.health.rulebook import rulebook, verdict
from lumctl.health.states import State

LANE, HOST = "h03-gpu2-a", "h03"
INTERFACE = "eth6"


def told(watched, lane=LANE):
    return [(finding.rule, finding.case) for finding in watched.report.links[lane].findings]


def infiniband(watched):
    """Let a lane sit behind an InfiniBand device."""
    lane = watched.rack.inventory.transponders[LANE]
    watched.rack.inventory.transponders[LANE] = replace(lane, interface="mlx5_3")
    host = watched.rack.hosts[HOST]
    watched.rack.host(
        HOST,
        interfaces={**host.interfaces, "mlx5_3": replace(host.interfaces[INTERFACE], name="mlx5_3")},
        optics={**host.optics, "mlx5_3": host.optics[INTERFACE]},
        neighbours={**host.neighbours, "mlx5_3": host.neighbours[INTERFACE]},
    )


COUNTED = [line for line in rulebook().lines("link.errors") if line.counter]


@pytest.mark.parametrize("line", COUNTED, ids=lambda line: line.case)
def test_errors_are_told_beyond_their_limit_and_not_at_it(watched, line):
    infiniband(watched)
    at_limit = int(line.limit * line.window_s / line.per_s) if line.per_s else int(line.limit)
    well = at_limit if line.strict else at_limit - 1
    watched.count(LANE, "mlx5_3/1", **{line.counter: 1})
    assert watched.look(5).links[LANE].state is State.OK
    watched.count(LANE, "mlx5_3/1", **{line.counter: 1 + well})
    watched.look(5)
    assert ("link.errors", line.case) not in told(watched)
    watched.count(LANE, "mlx5_3/1", **{line.counter: 2 + well})
    watched.look(5)
    assert ("link.errors", line.case) in told(watched)
    assert watched.report.links[LANE].state in {State.DEGRADED, State.FAILED}


def test_the_errors_of_a_life_are_no_alarm(watched):
    watched.count(LANE, symbol_error=60_000, link_downed=4, port_rcv_errors=9_000)
    for _ in range(5):
        assert watched.look(5).links[LANE].state is State.OK


def test_errors_are_forgotten_when_their_window_is_over(watched):
    watched.count(LANE, link_downed=4)
    watched.look(5)
    watched.count(LANE, link_downed=5)
    assert watched.look(5).links[LANE].state is State.FAILED
    assert "link downed 1 in the last 10 minutes" in watched.report.links[LANE].findings[0].evidence
    since = watched.now
    while watched.look(60).links[LANE].state is State.FAILED:
        assert watched.now - since < 600
    assert watched.now - since == 600


def test_errors_of_a_lane_without_a_circuit_are_its_own_business(watched):
    spare = "h16-gpu0-a"
    watched.count(spare, link_downed=4)
    watched.look(5)
    watched.count(spare, link_downed=9)
    assert watched.look(5).links[spare].state is State.OK


def test_a_boot_begins_all_counts_anew(watched):
    watched.rack.host(HOST, boot_id="one")
    watched.count(LANE, link_downed=4, symbol_error=7)
    watched.carrier(LANE, 2)
    watched.look(5)
    watched.rack.host(HOST, boot_id="two")
    watched.count(LANE, link_downed=200, symbol_error=60_000)
    watched.carrier(LANE, 90)
    assert watched.look(5).links[LANE].state is State.OK


def test_a_full_counter_says_that_it_is_blind(watched):
    watched.count(LANE, symbol_error=65_535, excessive_buffer_overrun_errors=15)
    watched.look(5)
    assert told(watched) == [("link.counter-full", "blind"), ("link.counter-full", "narrow")]
    assert watched.report.links[LANE].state is State.UNKNOWN
    assert "counter saturated" in watched.report.links[LANE].findings[0].evidence


def test_where_a_wider_counter_is_read_it_is_counted_instead(watched):
    watched.count(LANE, link_downed=255)
    watched.carrier(LANE, 2)
    watched.look(5)
    assert told(watched) == [("link.counter-full", "covered")]
    assert watched.report.links[LANE].state is State.OK
    watched.carrier(LANE, 6)
    watched.look(5)
    assert told(watched) == [("link.unsteady", "carrier-changes"), ("link.counter-full", "covered")]


def test_more_than_two_changes_of_carrier_in_an_hour_are_unsteady(watched):
    for changes, state in ((2, State.OK), (3, State.OK), (4, State.OK), (5, State.DEGRADED)):
        watched.carrier(LANE, changes)
        assert watched.look(60).links[LANE].state is state, changes


def test_a_link_that_is_down_for_half_a_minute_three_times_flaps(watched):
    for _ in range(3):
        watched.carrier(LANE, 2, up=False)
        for _ in range(4):
            watched.look(10)
        watched.carrier(LANE, 2, up=True)
        watched.look(10)
    assert told(watched) == [("link.unsteady", "flapping")]
    assert "flaps 3 in the last hour" in watched.report.links[LANE].findings[0].evidence


def test_shorter_losses_are_no_flaps(watched):
    for _ in range(5):
        watched.carrier(LANE, 2, up=False)
        watched.look(10)
        watched.carrier(LANE, 2, up=True)
        watched.look(10)
    assert told(watched) == []


def test_a_link_that_was_down_for_four_minutes_is_remembered_for_ten(watched):
    watched.carrier(LANE, 2, up=False)
    for _ in range(25):
        watched.look(10)
    assert told(watched) == [("link.down", "no-carrier"), ("link.unsteady", "dropped")]
    watched.carrier(LANE, 2, up=True)
    assert watched.look(10).links[LANE].state is State.DEGRADED
    for _ in range(60):
        watched.look(10)
    assert watched.report.links[LANE].state is State.OK


def test_links_that_a_run_moves_are_expected_to_flap(watched):
    watched.said["moving"] = {LANE: watched.now + 100}
    for changes in range(3, 9):
        watched.carrier(LANE, changes, up=changes % 2 == 0)
        state = watched.look(10).links[LANE].state
        assert state is (State.OK if changes % 2 == 0 else State.UNKNOWN)
    assert watched.look(60).links[LANE].state is State.OK
    # The run is over: from now on they are as all others.
    watched.carrier(LANE, 9, up=False)
    assert watched.look(10).links[LANE].state is State.FAILED


def test_readings_of_before_a_move_are_not_held_against_the_circuits_that_came_after_it(watched):
    watched.look(5)
    watched.carrier(LANE, 5, up=False)  # as it was while nothing was to be heard there
    watched.frozen = {HOST}
    watched.said = {"moving": {LANE}, "moved": {LANE: watched.now + 1}}
    watched.look(1)
    del watched.said["moving"]  # the run has ended, and nothing was read since
    look = watched.look(1)
    assert (look.links[LANE].state, look.links[LANE].findings) == (State.UNKNOWN, ())
    carried = [circuit for circuit in look.circuits.values() if LANE in {end.transponder for end in circuit.ends}]
    assert {(circuit.state, circuit.findings) for circuit in carried} == {(State.UNKNOWN, ())}
    watched.frozen = set()
    watched.carrier(LANE, 7, up=True)
    assert watched.look(2).links[LANE].state is State.OK
    # And what is read after it counts.
    watched.carrier(LANE, 8, up=False)
    assert watched.look(2).links[LANE].state is State.FAILED


@pytest.mark.parametrize("ran", [True, False])
def test_changes_of_carrier_while_a_run_moved_the_light_between_two_looks_do_not_count(watched, ran):
    for changes in (2, 3):
        watched.carrier(LANE, changes)
        watched.look(60)
    watched.said = {"moved": {LANE: watched.now + 30}} if ran else {}
    watched.carrier(LANE, 9)
    for _ in range(2):
        assert watched.look(60).links[LANE].state is (State.OK if ran else State.DEGRADED)


def test_what_failed_before_its_light_was_moved_stays_failed(watched):
    watched.carrier(LANE, 3, up=False)
    watched.look(10)
    watched.said["moving"] = {LANE}
    assert watched.look(10).links[LANE].state is State.FAILED


def nic(watched, kind, *, ago=5.0, interface=INTERFACE, **fields):
    event = NicEvent(watched.now - ago, interface, "0000:41:00.0", kind, f"mlx5_core 0000:41:00.0: {kind}", **fields)
    watched.rack.host(HOST, nic_events=(*watched.rack.hosts[HOST].nic_events, event))


@pytest.mark.parametrize("kind", NicEventKind)
def test_what_a_network_driver_reports_counts_for_its_window(watched, kind):
    nic(watched, kind)
    state = watched.look(5).links[LANE].state
    if kind in {NicEventKind.LINK_UP, NicEventKind.LINK_DOWN, NicEventKind.PLUGGED}:
        # Those are told by the carrier itself, and a module that was plugged in is no fault.
        assert state is State.OK
        return
    assert state is verdict("link.nic", kind.value).state is not State.OK
    for _ in range(61):
        watched.look(verdict("link.nic", kind.value).window_s / 60)
    assert watched.report.links[LANE].state is State.OK


def test_a_driver_that_names_no_interface_is_told_at_its_host(watched):
    nic(watched, NicEventKind.FATAL, interface=None)
    nic(watched, NicEventKind.TEMPERATURE, interface="eth99")
    watched.look(5)
    assert [f.rule for f in watched.report.findings()] == ["host.nic"]
    assert watched.report.hosts[HOST].state is State.DEGRADED
