"""What a change of joins does to a switch, by sides and any-to-any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.errors import DeviceRefusedError, InconsistentError
from lumctl.devices.joins import Ports, difference, judge, plan
from lumctl.devices.types import JoinChange

SIDES, ANY = Ports("x", 16, 8), Ports("x", 16, 16)


def test_what_is_in_the_way_goes_first():
    found = plan(SIDES, {0: 8, 1: 9, 2: 10}, {0: 9, 1: 8})
    assert found.changes == (JoinChange(0, 8, 9), JoinChange(1, 9, 8))
    assert (found.remove, found.add) == (((0, 8), (1, 9)), ((0, 9), (1, 8)))


def test_what_is_so_already_is_neither_removed_nor_made():
    found = plan(SIDES, {0: 8, 1: 9}, {0: 8, 2: None})
    assert found.changes == (JoinChange(0, 8, 8), JoinChange(2, None, None))
    assert (found.remove, found.add) == ((), ())


def test_any_to_any_a_join_is_the_same_from_either_end():
    assert plan(ANY, {0: 4}, {4: 0}).add == ()
    assert plan(ANY, {0: 4}, {4: None}).remove == ((0, 4),)
    assert difference({0: 4}, [JoinChange(4, None, 0)]) == ()
    moved = plan(ANY, {0: 4}, {4: 9})
    assert (moved.remove, moved.add) == (((0, 4),), ((4, 9),))


def test_any_to_any_both_ends_of_a_join_may_move_and_come_back():
    moved = plan(ANY, {0: 4}, {0: 9, 4: 8})
    assert (moved.remove, moved.add) == (((0, 4),), ((0, 9), (4, 8)))
    back = plan(ANY, {0: 9, 4: 8}, {change.ingress: change.before for change in moved.changes})
    assert (back.remove, back.add) == (((0, 9), (4, 8)), ((0, 4),))


def test_any_to_any_a_port_without_an_egress_may_be_one():
    found = plan(ANY, {4: 9}, {0: 4, 4: None})
    assert (found.remove, found.add) == (((4, 9),), ((0, 4),))
    assert difference({0: 4}, found.changes) == ()
    assert difference({4: 9}, found.changes) != ()


@pytest.mark.parametrize("wanted", [{0: 4, 4: 9}, {0: 4, 1: 4}, {0: 0}, {1: 4}, {1: 0}])
def test_any_to_any_nobody_is_joined_twice_or_robbed(wanted):
    with pytest.raises(DeviceRefusedError):
        plan(ANY, {0: 4}, wanted)


@st.composite
def switches(draw):
    ports = draw(st.sampled_from([SIDES, ANY]))
    some = draw(st.permutations(range(16)))
    if ports is SIDES:
        some = [x for x in some if x < 8], [x for x in some if x >= 8]
        pairs = list(zip(*some, strict=True))
    else:
        pairs = list(zip(some[:8], some[8:], strict=True))
    return ports, dict(pairs[: draw(st.integers(0, 8))])


@given(switches(), st.dictionaries(st.integers(0, 15), st.none() | st.integers(0, 15), max_size=6))
def test_a_plan_leads_where_it_says_touches_nobody_else_and_can_be_undone(switch, wanted):
    ports, held = switch
    try:
        found = plan(ports, held, wanted)
    except DeviceRefusedError:
        return
    after = {pair for pair in held.items() if pair not in found.remove} | set(found.add)
    used = [port for pair in after for port in pair]
    assert len(used) == len(set(used)), "no port is in two joins"
    assert difference(dict(after), found.changes) == ()
    touched = set(wanted) | {port for port in wanted.values() if port is not None}
    assert all({*pair} & touched for pair in (*found.remove, *found.add))
    undo = plan(ports, dict(after), {change.ingress: change.before for change in found.changes})
    back = {pair for pair in after if pair not in undo.remove} | set(undo.add)
    named = {port for pair in held.items() for port in pair if {*pair} & set(wanted)}
    assert {frozenset(p) for p in back if {*p} & named} == {frozenset(p) for p in held.items() if {*p} & named}


def test_a_verdict_goes_by_what_is_shown():
    changes = plan(SIDES, {}, {0: 8, 1: 9}).changes
    judge(SIDES, changes, {}, {0: 8, 1: 9, 5: 13}, "that belongs to somebody else")
    with pytest.raises(DeviceRefusedError, match="busy; nothing changed"):
        judge(SIDES, changes, {}, {5: 13}, "busy")
    with pytest.raises(InconsistentError, match="1 of 2 connections"):
        judge(SIDES, changes, {}, {0: 8}, "busy")
    with pytest.raises(InconsistentError, match="without a complaint"):
        judge(SIDES, changes, {}, {}, "")
