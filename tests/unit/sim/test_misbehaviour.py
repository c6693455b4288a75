"""How simulated devices misbehave: what each fault makes of a change and of an answer, and that it goes again."""

import pytest

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import PucState
from lumctl.sim.world.misbehaviour import Misbehaviour

BAR, CROSS = PucState.BAR, PucState.CROSS
FOUR = dict.fromkeys(range(4), CROSS)


def test_a_device_without_faults_is_well(bench):
    assert bench.world.misbehaviour("m1") == Misbehaviour()
    assert Misbehaviour().taken("abc") == ("a", "b", "c")
    assert Misbehaviour().shortened(b"ok\n") == b"ok\n"
    assert not Misbehaviour().says_no


@pytest.mark.parametrize("device", ["m1", "x1", "k1", "p1"])
@pytest.mark.parametrize(
    ("fault", "value", "conduct"),
    [
        ("device-down", None, Misbehaviour(down=True)),
        ("device-lying", None, Misbehaviour(lying=True)),
        ("device-refuse", None, Misbehaviour(refuses=True)),
        ("device-half", None, Misbehaviour(half=True)),
        ("device-cut", None, Misbehaviour(cuts=True)),
        ("device-slow", None, Misbehaviour(delay_s=5.0)),
        ("device-slow", 0.25, Misbehaviour(delay_s=0.25)),
    ],
)
def test_every_kind_of_device_misbehaves_alike_and_is_healed(bench, device, fault, value, conduct):
    bench.world.inject(device, fault, value)
    assert bench.world.misbehaviour(device) == conduct
    others = {"m1", "x1", "k1", "p1"} - {device}
    assert {bench.world.misbehaviour(other) for other in others} == {Misbehaviour()}
    bench.world.clear(device)
    assert bench.world.misbehaviour(device) == Misbehaviour()


@pytest.mark.parametrize(("old", "new"), [("mesh-down", "device-down"), ("mesh-lying", "device-lying")])
def test_the_old_names_mean_the_same(bench, old, new):
    bench.world.inject("m1", old)
    by_its_old_name = bench.world.misbehaviour("m1")
    assert [fault.kind for fault in bench.world.faults()] == [old]
    bench.world.clear()
    bench.world.inject("m1", new)
    assert bench.world.misbehaviour("m1") == by_its_old_name


def test_faults_add_up(bench):
    for fault in ("device-half", "device-cut", "device-slow"):
        bench.world.inject("m1", fault)
    assert bench.world.misbehaviour("m1") == Misbehaviour(half=True, cuts=True, delay_s=5.0)


@pytest.mark.parametrize(("parts", "taken"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2)])
def test_half_a_change_is_its_first_half_and_never_nothing(parts, taken):
    assert Misbehaviour(half=True).taken(range(parts)) == tuple(range(taken))
    assert Misbehaviour(lying=True).taken(range(parts)) == ()
    assert Misbehaviour(refuses=True).taken(range(parts)) == ()
    assert Misbehaviour(refuses=True, half=True).taken(range(parts)) == ()


@pytest.mark.parametrize("answer", [b"ok 4 cells set\n", b"a\n", b"1\n2\n", b"<ok/>\n\n\n"])
def test_a_cut_answer_ends_in_mid_line(answer):
    left = Misbehaviour(cuts=True).shortened(answer)
    assert len(left) < len(answer.rstrip())
    assert answer.startswith(left)


def test_a_mesh_that_refuses_takes_nothing_and_says_so(bench):
    bench.world.inject("m1", "device-refuse")
    with pytest.raises(DeviceRefusedError, match="no change is accepted now"):
        bench.world.meshes.write("m1", FOUR)
    assert set(bench.world.meshes.states("m1").values()) == {BAR}


def test_a_mesh_that_stops_midway_keeps_what_it_did_and_says_so(bench):
    bench.world.inject("m1", "device-half")
    with pytest.raises(DeviceRefusedError, match="stopped in the middle"):
        bench.world.meshes.write("m1", FOUR)
    assert [bench.world.meshes.states("m1")[puc] for puc in range(5)] == [CROSS, CROSS, BAR, BAR, BAR]


def test_half_a_change_that_was_to_revert_reverts(bench):
    bench.world.inject("m1", "device-half")
    with pytest.raises(DeviceRefusedError):
        bench.world.meshes.write("m1", FOUR, receipt="r", revert_after_s=5)
    bench.clock.time += 5
    assert set(bench.world.meshes.states("m1").values()) == {BAR}


def test_a_mesh_that_lies_does_not_even_disarm_a_timer(bench):
    bench.world.meshes.write("m1", FOUR, receipt="r", revert_after_s=5)
    bench.world.inject("m1", "device-lying")
    bench.world.meshes.write("m1", FOUR, receipt="r")
    bench.clock.time += 5
    assert set(bench.world.meshes.states("m1").values()) == {BAR}


def test_a_cell_that_does_not_exist_is_refused_before_anything_misbehaves(bench):
    bench.world.inject("m1", "device-half")
    with pytest.raises(DeviceRefusedError, match="no PUC 11"):
        bench.world.meshes.write("m1", {0: CROSS, 11: CROSS})
    assert bench.world.meshes.states("m1")[0] is BAR


def test_a_device_that_is_down_is_not_read(bench):
    bench.world.inject("m1", "device-down")
    with pytest.raises(DeviceUnreachableError, match="controller is down"):
        bench.world.meshes.states("m1")
