"""Devices that continue with a change after their answer."""

from dataclasses import replace

import pytest

from lumctl.devices.errors import DeviceBusyError, DeviceUnreachableError
from lumctl.devices.types import Progress, PucState
from lumctl.errors import UsageError
from lumctl.sim.world.world import World

BAR, CROSS = PucState.BAR, PucState.CROSS
FOUR = dict.fromkeys(range(4), CROSS)


def crossed(bench):
    return [puc for puc, state in bench.world.meshes.states("m1").items() if state is CROSS]


def test_a_mesh_is_half_written_until_its_work_ends(bench):
    bench.world.inject("m1", "slow-commit", 10)
    bench.world.meshes.write("m1", FOUR)
    assert crossed(bench) == [0, 1]
    assert bench.world.progress("m1") == Progress(2, 4, "commit in progress")
    with pytest.raises(DeviceBusyError, match="still working"):
        bench.world.meshes.write("m1", {0: BAR})
    bench.clock.time += 11
    assert bench.world.progress("m1") is None
    assert crossed(bench) == [0, 1, 2, 3]


def test_a_switch_has_taken_the_old_joins_apart_and_makes_the_new_ones_in_the_end(inventory, bench):
    switch = replace(inventory.devices["x1"], input_count=4)
    world = World(replace(inventory, devices=inventory.devices | {"x1": switch}), seed=7, now=bench.clock)

    def joins():
        with world.switches.held("x1") as state:
            return dict(state.joins)

    world.switches.write("x1", {0: 5, 1: 4})
    world.inject("x1", "slow-commit", 10)
    world.switches.write("x1", {0: 4, 1: 5})
    assert joins() == {}
    assert world.progress("x1") == Progress(0, 2, "commit in progress")
    bench.clock.time += 11
    assert joins() == {0: 4, 1: 5}
    assert world.progress("x1") is None


def test_clearing_the_fault_ends_the_work_at_once(bench):
    bench.world.inject("m1", "slow-commit", 1e6)
    bench.world.meshes.write("m1", FOUR)
    bench.world.clear("m1")
    assert crossed(bench) == [0, 1, 2, 3]
    assert bench.world.progress("m1") is None


def test_a_revert_timer_ends_it_too_and_what_was_to_come_does_not_come(bench):
    bench.world.inject("m1", "slow-commit", 50)
    bench.world.meshes.write("m1", FOUR, receipt="r", revert_after_s=20)
    bench.clock.time += 100
    assert crossed(bench) == []
    assert bench.world.progress("m1") is None


def test_a_device_that_is_down_does_not_say(bench):
    for device in ("m1", "x1"):
        bench.world.inject(device, "device-down")
        with pytest.raises(DeviceUnreachableError):
            bench.world.progress(device)


def test_only_meshes_and_switches_have_it(bench):
    with pytest.raises(UsageError, match="does not fit"):
        bench.world.inject("p1", "slow-commit")
