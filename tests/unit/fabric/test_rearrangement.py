"""Few moves, and no step that darkens a circuit which it does not switch."""

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.fabric import Unroutable, changes, exits, mesh, rearrangement, route, trace
from lumctl.fabric.rearrangement import Effort, rearrange
from lumctl.fabric.search import Prices, Undecided, exhaust
from lumctl.fabric.switching_order import Deadlock, Task, ordered
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment

BAR, CROSS = PucState.BAR, PucState.CROSS
QUICK = Effort(sets=8, nodes=30)


@st.composite
def crowded(draw):
    """A mesh whose live circuits leave little room, and circuits wanted between the ports that are left."""
    found = mesh(draw(st.integers(2, 4)), draw(st.integers(2, 4)))
    rng = draw(st.randoms(use_true_random=False))
    states = {puc: rng.choice((BAR, CROSS)) for puc in range(found.puc_count)}
    pairs = [(a, b) for a, b in exits(found, states).items() if a < b]
    live = rng.sample(pairs, draw(st.integers(1, min(4, len(pairs) - 2))))
    free = [port for port in range(found.port_count) if all(port not in pair for pair in live)]
    ends = rng.sample(free, 2 * draw(st.integers(1, 2)))
    movable = rng.sample(live, draw(st.integers(0, len(live))))
    return found, states, live, movable, list(zip(ends[::2], ends[1::2], strict=True))


def walked(found, states, live, result):
    """Make the steps one by one; after each every circuit is where it was, but for the one that is switched."""
    now = dict(states)
    ways = {pair: trace(found, now, pair[0]).passes for pair in live}
    for step in result.steps:
        now.update(step.changes)
        ways[step.circuit] = step.passes
        for (a, b), passes in ways.items():
            seen = trace(found, now, a)
            assert (seen.exit, seen.passes) == (b, passes)
    return now, ways


@settings(max_examples=60)
@given(crowded())
def test_every_live_circuit_is_where_it_should_be_after_every_step(task):
    found, states, live, movable, demands = task
    try:
        result = rearrange(found, demands, states=states, live=live, movable=movable, effort=QUICK)
    except Unroutable:
        return
    now, ways = walked(found, states, live, result)
    assert [planned.ports for planned in result.routes] == demands
    assert {move.ports for move in result.moves} <= set(movable)
    for planned in (*result.routes, *(move.route for move in result.moves)):
        assert ways[planned.ports] == planned.passes
    for pair in set(live) - {move.ports for move in result.moves}:
        assert ways[pair] == trace(found, states, pair[0]).passes
    for move in result.moves:
        assert move.before == trace(found, states, move.ports[0]).passes
    assert now == {**states, **result.changes}


@settings(max_examples=60)
@given(crowded())
def test_what_fits_beside_the_live_circuits_moves_none_and_is_what_routing_finds(task):
    found, states, live, movable, demands = task
    try:
        beside = route(found, demands, states=states, live=live)
    except Unroutable:
        return
    result = rearrange(found, demands, states=states, live=live, movable=movable)
    assert (result.routes, result.moves, result.fewest) == (beside, (), True)
    assert result.changes == changes(states, beside)


@settings(max_examples=40)
@given(crowded())
def test_same_question_same_steps(task):
    found, states, live, movable, demands = task

    def answer():
        try:
            return rearrange(found, demands, states=states, live=live, movable=movable, effort=QUICK)
        except Unroutable as refused:
            return str(refused)

    assert answer() == answer()


def swapped(placed, states, failed, spare, *, movable):
    """The prototype's job after a swap, its states, and the live circuits beside it."""
    inventory = load_inventory(example("prototype"))
    geometry = inventory.devices["mesh"].geometry
    after = {job: tuple(spare if a == failed else a for a in ranks) for job, ranks in placed.items()}
    old, new = circuits_of(inventory, placed), circuits_of(inventory, after)
    live = [c.ports for c in new if c in old]
    shape = mesh(geometry.columns, geometry.rows)
    demands = [c.ports for c in new if c not in old]
    result = rearrange(shape, demands, states=states, live=live, movable=live if movable else ())
    return after, walked(shape, states, live, result)[0], result


def prototype():
    inventory = load_inventory(example("prototype"))
    placed = initial_assignment(inventory)
    geometry = inventory.devices["mesh"].geometry
    made = route(mesh(geometry.columns, geometry.rows), [c.ports for c in circuits_of(inventory, placed)], states={})
    return placed, changes({}, made)


CROSSES = (
    *(0, 1, 3, 6, 7, 8, 11, 12, 16, 17, 18, 19, 23, 24, 26, 28, 31, 34, 35, 36, 38, 39, 42, 43, 44, 46, 47, 48, 49, 50),
    *(51, 52, 53, 55, 56, 57, 61, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 79),
)


def test_prototype_s2_finds_room_in_the_place_of_s0_by_one_move_where_without_there_is_none():
    # What the mesh held after s3 for s1 and then the repaired s1 for s2; now the repaired s2 stands in for s0.
    shape, states = mesh(7, 3), dict.fromkeys(CROSSES, CROSS)
    live, demands = [(35, 9), (5, 34)], [(1, 13), (7, 0), (37, 17), (2, 6)]
    with pytest.raises(Unroutable):
        rearrange(shape, demands, states=states, live=live)
    result = rearrange(shape, demands, states=states, live=live, movable=live)
    assert (len(result.moves), result.fewest) == (1, True)
    walked(shape, states, live, result)


def test_prototype_a_long_row_of_swaps_never_ends_for_want_of_one_move():
    placed, states = prototype()
    spare, moves = "s3-gpu0", []
    rng = random.Random(3)  # noqa: S311 - the same choices in every run
    for _ in range(40):
        failed = rng.choice(placed["finetune"])
        placed, states, result = swapped(placed, states, failed, spare, movable=True)
        spare = failed
        moves.append(len(result.moves))
    assert max(moves) >= 1
    assert moves.count(0) > len(moves) / 2


def blocked_corner():
    """A 3 x 3 mesh on which one live circuit must make room for another."""
    found, live, wanted = mesh(3, 3), (9, 0), (5, 6)
    return found, changes({}, route(found, [live], states={})), live, wanted


def test_one_move_is_found_and_proven_to_be_the_fewest():
    found, states, live, wanted = blocked_corner()
    result = rearrange(found, [wanted], states=states, live=[live], movable=[live])
    assert [move.ports for move in result.moves] == [live]
    assert result.fewest
    walked(found, states, [live], result)


def test_nobody_is_moved_whom_the_caller_does_not_allow():
    found, states, live, wanted = blocked_corner()
    with pytest.raises(Unroutable) as refused:
        rearrange(found, [wanted], states=states, live=[live])
    assert refused.value.proven


def test_where_moving_all_does_not_help_it_is_proven():
    # Light that enters a single cell clockwise can only leave it clockwise.
    found = mesh(1, 1)
    with pytest.raises(Unroutable, match="whichever of the movable circuits are moved") as refused:
        rearrange(found, [(0, 2)], states={}, live=[(4, 5)], movable=[(4, 5)])
    assert refused.value.proven


def test_a_circuit_at_a_blocked_port_stays():
    found, states, live, wanted = blocked_corner()
    with pytest.raises(Unroutable):
        rearrange(found, [wanted], states=states, live=[live], movable=[live], blocked_ports={live[0]})


def test_a_new_circuit_at_a_blocked_port_is_refused_before_anything_is_tried():
    with pytest.raises(Unroutable, match="a port is blocked"):
        rearrange(mesh(3, 3), [(0, 7)], states={}, live=[(8, 9)], movable=[(8, 9)], blocked_ports={7})


def test_moves_keep_away_from_damaged_pucs():
    found, states, live, wanted = blocked_corner()
    way = rearrange(found, [wanted], states=states, live=[live], movable=[live]).moves[0].route
    for puc in set(way.pucs):
        try:
            result = rearrange(found, [wanted], states=states, live=[live], movable=[live], damaged={puc})
        except Unroutable:
            continue
        assert all(puc not in dict(step.passes) for step in result.steps)


def test_stuck_pucs_are_never_written():
    found, states, live, wanted = blocked_corner()
    stuck = {puc: states.get(puc, BAR) for puc in range(0, found.puc_count, 3)}
    try:
        result = rearrange(found, [wanted], states=states, live=[live], movable=[live], stuck=stuck)
    except Unroutable:
        return
    assert stuck.keys().isdisjoint(result.changes)


def crossing(found, first, second):
    """Two ways of each of two circuits, as passes, with the task that they stand by their first."""
    states = changes({}, route(found, [first, second], states={}))
    live = {pair: trace(found, states, pair[0]).passes for pair in (first, second)}
    return Task(found, states, (), live, (first, second), {}, frozenset())


def test_circuits_that_wait_for_each_other_are_told_where_there_is_no_way_out():
    # Each wants what the other stands in, and every PUC that could serve as a way out is damaged.
    found = mesh(3, 3)
    first, second = (2, 17), (26, 8)
    task = crossing(found, first, second)
    other = {
        pair: tuple((puc, BAR if state is CROSS else CROSS) for puc, state in task.live[other])
        for pair, other in ((first, second), (second, first))
    }
    jammed = Task(found, task.present, (), task.live, task.movable, {}, frozenset(range(found.puc_count)))
    with pytest.raises(Deadlock) as told:
        ordered(jammed, other)
    assert set(told.value.circuits) == {first, second}


def possible(found, demands):
    """By trying every setting of the mesh: whether it can make all of these circuits."""
    for setting in product((BAR, CROSS), repeat=found.puc_count):
        states = dict(enumerate(setting))
        if all(trace(found, states, a).exit == b for a, b in demands):
            return True
    return False


@pytest.mark.parametrize("shape", [(1, 1), (2, 1)])
def test_what_trying_everything_says_is_what_every_setting_says(shape):
    found = mesh(*shape)
    free = Prices([1.0] * (2 * found.puc_count), [0.0] * len(found.peers))
    rng = random.Random(11)  # noqa: S311 - the same choices in every run
    told = []
    for _ in range(40):
        ends = rng.sample(range(found.port_count), 4)
        demands = [tuple(ends[:2]), tuple(ends[2:])]
        answer = exhaust(found, demands, free, nodes=10_000)
        assert (answer is not None) == possible(found, demands)
        told.append(answer is not None)
    assert 0 < sum(told) < len(told)


def test_trying_everything_says_when_it_was_cut_short():
    found = mesh(9, 9)
    free = Prices([1.0] * (2 * found.puc_count), [0.0] * len(found.peers))
    with pytest.raises(Undecided):
        exhaust(found, [(1, 40), (74, 20)], free, nodes=1)


def test_a_wrong_step_never_leaves_the_room(monkeypatch):
    found, states, live, wanted = blocked_corner()
    right = rearrangement.fewest_moves

    def backwards(*question, **rest):
        answer = right(*question, **rest)
        return type(answer)(answer.steps[::-1], answer.moved, answer.fewest)

    monkeypatch.setattr(rearrangement, "fewest_moves", backwards)
    with pytest.raises(LumctlError, match="does not leave every circuit in place"):
        rearrange(found, [wanted], states=states, live=[live], movable=[live])
