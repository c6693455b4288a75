"""Light, links and time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import PucState
from lumctl.fabric import exits, mesh

BAR, CROSS = PucState.BAR, PucState.CROSS
TO_C = {0: CROSS, 1: CROSS}

MARK = "02,6c,6d/1/0a"


def test_in_bar_neighbours_at_the_rim_hear_each_other(bench):
    assert bench.hears("a") == {"b": 0.0}
    assert bench.hears("b") == {"a": 0.0}
    assert bench.hears("c") == {}


def test_received_power_is_what_the_way_leaves_over(bench):
    # Ports 0 and 1 share one PUC in bar: twice 1 dB for the ports, once 0.5 dB for the cell.
    assert bench.link("b").rx_power_dbm == pytest.approx(-2.5, abs=0.2)
    assert bench.link("a").tx_power_dbm == pytest.approx(0.0, abs=0.2)


def test_no_light_is_minus_infinity_and_no_carrier(bench):
    assert bench.link("c").rx_power_dbm == -math.inf
    assert not bench.link("c").carrier


def test_a_wrong_circuit_brings_another_transmitters_light(bench):
    bench.world.meshes.write("m1", TO_C)
    bench.world.announce("c", MARK)
    assert bench.hears("a")["c"] == 0.0
    assert bench.hears("c") == {"a": 0.0}


def test_light_switched_without_a_gap_leaves_the_old_neighbour_until_its_time_is_over(bench):
    bench.clock.time += 10
    bench.world.meshes.write("m1", TO_C)
    assert bench.hears("a") == {"b": 10.0}, "no frame of c has come in yet"
    bench.world.announce("c", MARK)
    assert bench.hears("a") == {"b": 10.0, "c": 0.0}
    bench.clock.time += 111
    assert set(bench.hears("a")) == {"c"}


def test_a_lost_carrier_empties_the_table(bench):
    bench.world.set_interface("b", "eth2", up=False)
    assert bench.hears("a") == {}
    bench.world.set_interface("b", "eth2", up=True)
    assert bench.hears("a") == {"b": 0.0}, "both ends come up together and announce themselves"


def test_frames_keep_an_entry_alive_and_only_news_make_it_young(bench):
    bench.clock.time += 30 * 1000
    assert bench.hears("a") == {"b": 30_000.0}
    bench.world.announce("b", MARK)
    assert bench.hears("a") == {"b": 0.0}
    bench.clock.time += 3
    bench.world.announce("b", MARK)
    assert bench.hears("a") == {"b": 3.0}


def test_only_the_announcing_host_is_heard_anew(bench):
    bench.clock.time += 20
    bench.world.announce("a", MARK)
    assert bench.hears("b") == {"a": 0.0}
    assert bench.hears("a") == {"b": 20.0}


def test_a_lane_with_separate_ports_hears_but_is_not_heard_back(bench):
    assert bench.hears("d") == {"c": 0.0}
    assert bench.hears("c") == {}


def test_the_carrier_counts_its_changes(bench):
    before = bench.link("a").carrier_changes
    bench.world.set_interface("b", "eth2", up=False)
    bench.world.set_interface("b", "eth2", up=True)
    assert bench.link("a").carrier_changes == before + 2


def test_light_below_the_sensitivity_is_measured_but_carries_no_frames(bench):
    bench.world.inject("a-t0", "dim", 9)
    assert bench.link("b").rx_power_dbm == pytest.approx(-11.5, abs=0.2)
    assert not bench.link("b").carrier
    assert bench.hears("b") == {}


def test_readings_repeat_with_the_seed_and_vary_with_time(bench):
    first = bench.link("b").rx_power_dbm
    assert bench.link("b").rx_power_dbm == first
    bench.clock.time += 1
    assert bench.link("b").rx_power_dbm != first


def test_port_powers_show_where_light_leaves(bench):
    powers = bench.world.meshes.powers("m1", (0, 1, 9))
    assert powers[0] == pytest.approx(-2.5, abs=0.2)
    assert powers[9] == -math.inf


def test_a_change_that_is_not_confirmed_goes_back_by_itself(bench):
    bench.world.meshes.write("m1", TO_C, receipt="r1", revert_after_s=5)
    bench.clock.time += 4.9
    assert bench.world.meshes.states("m1")[0] is CROSS
    bench.clock.time += 0.2
    assert bench.world.meshes.states("m1")[0] is BAR
    assert set(bench.hears("c")) == set()
    assert not bench.world.meshes.confirm("r1")


def test_a_confirmed_change_stays(bench):
    bench.world.meshes.write("m1", TO_C, receipt="r1", revert_after_s=5)
    assert bench.world.meshes.confirm("r1")
    bench.clock.time += 100
    assert bench.world.meshes.states("m1")[0] is CROSS


def test_cells_written_again_do_not_go_back_with_the_earlier_change(bench):
    bench.world.meshes.write("m1", {0: CROSS, 1: CROSS, 2: CROSS}, receipt="r1", revert_after_s=5)
    bench.world.meshes.write("m1", {0: BAR}, receipt="r2")
    bench.world.meshes.write("m1", {0: CROSS}, receipt="r3")
    bench.clock.time += 6
    states = bench.world.meshes.states("m1")
    assert (states[0], states[1], states[2]) == (CROSS, BAR, BAR)


def test_committing_again_with_a_timer_keeps_the_first_states_as_the_way_back(bench):
    bench.world.meshes.write("m1", TO_C, receipt="r1", revert_after_s=5)
    bench.clock.time += 3
    bench.world.meshes.write("m1", TO_C, receipt="r1", revert_after_s=5)
    bench.clock.time += 4
    assert bench.world.meshes.states("m1")[0] is CROSS
    bench.clock.time += 2
    assert bench.world.meshes.states("m1")[0] is BAR


def test_a_cell_that_is_not_there_is_refused_and_nothing_changes(bench):
    with pytest.raises(DeviceRefusedError, match="no PUC 11"):
        bench.world.meshes.write("m1", {0: CROSS, 11: CROSS})
    assert bench.world.meshes.states("m1")[0] is BAR


def test_a_mesh_whose_controller_is_down_answers_nothing(bench):
    bench.world.inject("m1", "mesh-down")
    for ask in (bench.world.meshes.states, bench.world.meshes.temperature):
        with pytest.raises(DeviceUnreachableError):
            ask("m1")


def test_a_clock_that_is_set_back_does_no_harm(bench):
    bench.world.meshes.write("m1", TO_C, receipt="r1", revert_after_s=5)
    bench.clock.time += 3
    assert bench.world.meshes.states("m1")[0] is CROSS
    bench.clock.time -= 1000
    assert bench.hears("b") is not None
    bench.clock.time += 1003
    assert bench.world.meshes.states("m1")[0] is BAR


@given(crossed=st.sets(st.integers(0, 10)))
def test_who_hears_whom_is_what_the_states_really_make(make_bench, crossed):
    bench = make_bench()
    states = dict.fromkeys(crossed, CROSS)
    bench.world.meshes.write("m1", states)
    for host in "abcd":
        bench.world.announce(host, MARK)
    partner = exits(mesh(2, 1), states)
    lanes = bench.world.inventory.transponders
    for receiver in lanes.values():
        senders = {t.host for t in lanes.values() if partner[t.lane.tx] == receiver.lane.rx}
        lit = bench.link(receiver.host).rx_power_dbm
        # The power decides whether frames get through; the source is the states' alone.
        assert (lit > -math.inf) == bool(senders)
        if bench.link(receiver.host).carrier:
            assert senders <= set(bench.hears(receiver.host))
