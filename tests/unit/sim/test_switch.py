"""Switches of the world: light goes both ways through a join, and what is not confirmed goes back."""

import math

import pytest

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.errors import UsageError
from lumctl.sim.world.switch import SwitchState
from lumctl.sim.world.world import World


@pytest.fixture
def world(on_switch, bench):
    """The small rack with all of its lanes on its switch: a and b send and hear on one port each, c and d on two."""
    lanes = {"a": (0, 0), "b": (4, 4), "c": (1, 5), "d": (2, 6)}
    return World(
        on_switch(lanes, input_count=4, port_loss_db={6: 0.5}, loss_per_port_db=1.0),
        seed=7,
        now=bench.clock,
    )


def heard(world, host) -> tuple[str, float] | None:
    link = world.link(host, "eth2")
    sources = [sender.host for sender, _, _ in link.neighbours]
    return (sources[0], round(link.rx_power_dbm)) if link.rx_power_dbm > -math.inf else None


def test_without_a_join_all_is_dark(world):
    assert [heard(world, host) for host in "abcd"] == [None] * 4


def test_a_join_carries_light_both_ways(world):
    world.switches.write("x1", {0: 4})
    assert (heard(world, "a"), heard(world, "b")) == (("b", -2), ("a", -2))


def test_ports_lose_what_the_inventory_says(world):
    world.switches.write("x1", {1: 6, 2: 5})
    assert world.link("d", "eth2").rx_power_dbm == pytest.approx(-2.5, abs=0.1)
    assert world.link("c", "eth2").rx_power_dbm == pytest.approx(-2.0, abs=0.1)


@pytest.mark.parametrize("port", [0, 4])
def test_a_shut_port_is_dark_from_both_sides(world, port):
    world.switches.write("x1", {0: 4})
    with world.switches.held("x1") as state:
        state.switch([port], on=False)
    assert (heard(world, "a"), heard(world, "b")) == (None, None)
    assert world.switches.powers("x1", (port,)) == {port: -math.inf}
    with world.switches.held("x1") as state:
        state.switch([port], on=True)
    assert (heard(world, "a"), heard(world, "b")) == (("b", -2), ("a", -2))


def test_monitors_see_what_comes_in_and_what_goes_out(world):
    before = world.switches.powers("x1", (1, 6, 7))
    assert before[1] == pytest.approx(0.0, abs=0.1)
    assert (before[6], before[7]) == (-math.inf, -math.inf)
    world.switches.write("x1", {1: 6})
    assert world.switches.powers("x1", (6,))[6] == pytest.approx(-2.5, abs=0.1)


def test_a_dark_port_has_failed_since_then_and_a_dim_one_has_not(world, bench):
    world.switches.write("x1", {0: 4})
    world.inject("x1/port/4", "dim", 3)
    assert heard(world, "a") == ("b", -5)
    bench.clock.time += 5
    world.inject("x1/port/4", "dark")
    assert heard(world, "a") is None
    with world.switches.held("x1") as state:
        assert state.failed == {4: bench.clock.time}
    world.clear("x1/port/4")
    assert heard(world, "a") == ("b", -2)


def test_what_is_not_confirmed_in_time_goes_back(world, bench):
    world.switches.write("x1", {0: 4})
    world.switches.write("x1", {0: 5, 1: 4}, receipt="r", revert_after_s=10)
    assert heard(world, "a") is None
    bench.clock.time += 9
    assert heard(world, "a") is None
    bench.clock.time += 2
    assert heard(world, "a") == ("b", -2)
    assert not world.switches.confirm("r")


def test_what_is_confirmed_stays(world, bench):
    world.switches.write("x1", {0: 4}, receipt="r", revert_after_s=10)
    assert world.switches.confirm("r")
    bench.clock.time += 11
    assert heard(world, "a") == ("b", -2)


def test_what_is_written_again_does_not_go_back_with_the_earlier_change(world, bench):
    world.switches.write("x1", {0: 4, 1: 6}, receipt="r", revert_after_s=10)
    world.switches.write("x1", {0: 4})
    bench.clock.time += 11
    with world.switches.held("x1") as state:
        assert state.joins == {0: 4}


def test_going_back_takes_nothing_from_anybody(world, bench):
    world.switches.write("x1", {0: 4})
    world.switches.write("x1", {0: None}, receipt="r", revert_after_s=10)
    world.switches.write("x1", {1: 4})
    bench.clock.time += 11
    with world.switches.held("x1") as state:
        assert state.joins == {1: 4}


def test_a_switch_that_is_down_is_unreachable_and_one_that_is_not_there_unknown(world):
    world.inject("x1", "device-down")
    with pytest.raises(DeviceUnreachableError), world.switches.held("x1"):
        pass
    with pytest.raises(UsageError), world.switches.held("x2"):
        pass


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([(0, 8)], "port 8"),
        ([(0, 1)], "on the same side"),
        ([(4, 0)], "on the same side"),
        ([(0, 4), (1, 4)], "port 4 is in use"),
        ([(0, 5), (3, 6)], "port 3 is in use"),
    ],
)
def test_a_join_that_cannot_be_changes_nothing(pairs, why):
    state = SwitchState(8, 4)
    state.join([(3, 7)])
    with pytest.raises(DeviceRefusedError, match=why):
        state.join(pairs)
    assert state.joins == {3: 7}


def test_a_change_that_cannot_be_made_whole_is_not_made():
    state = SwitchState(8, 4)
    state.join([(0, 4), (1, 5)])
    with pytest.raises(DeviceRefusedError):
        state.set({0: 5})
    with pytest.raises(DeviceRefusedError):
        state.set({0: None, 2: 9})
    assert state.joins == {0: 4, 1: 5}
    state.set({0: 5, 1: 4})
    assert state.joins == {0: 5, 1: 4}


def test_any_to_any_either_end_parts_a_join():
    state = SwitchState(8, 8)
    state.join([(0, 1)])
    assert (state.partner(0), state.partner(1)) == (1, 0)
    state.part([(1, 0)])
    assert state.joins == {}
