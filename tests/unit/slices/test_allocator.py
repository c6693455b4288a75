"""Slices placed on random and on chosen tori, checked by rules and by flows that share no code with the allocator."""

import random
from dataclasses import replace
from itertools import combinations, permutations, product

import networkx as nx
import pytest
from torus_states import faults_of, random_demand, random_state, torus_of

from lumctl.slices.allocation import SliceDemand, SliceVerdict, with_slice
from lumctl.slices.allocator import allocate, shapes_of
from lumctl.slices.bounds import assignment, least_leaving
from lumctl.slices.boxes import find_box
from lumctl.slices.fibre_graph import UNREACHABLE, fibre_graph
from lumctl.slices.slot_search import place_slots
from lumctl.slices.slots import divided

SERVER = (2, 2, 1)


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - the same choices in every run


def torus64(**changes):
    return replace(torus_of((2, 2, 4), SERVER, 4), **changes)


def without(torus, *servers):
    """The torus with all accelerators of some servers taken."""
    return replace(torus, free=frozenset(at for at in torus.free if torus.server_of(at) not in servers))


def test_random_slices_on_random_states_obey_every_rule():
    kinds = set()
    for seed in range(70):
        rng = seeded(seed)
        torus = random_state(rng)
        demand = random_demand(rng, torus)
        answer = allocate(torus, [demand], seed=seed)
        kinds.add((answer.verdict, answer.placement is not None and answer.placement.contiguous))
        if answer.placement is None:
            assert answer.verdict is not SliceVerdict.PLACED
            assert answer.reasons
        else:
            assert (faults_of(torus, demand, answer.placement), answer.demand) == ([], demand), seed
            assert answer.placement.bound <= answer.placement.fullest
    assert kinds == {
        (SliceVerdict.PLACED, True),
        (SliceVerdict.PLACED, False),
        (SliceVerdict.IMPOSSIBLE, False),
        (SliceVerdict.GAVE_UP, False),
    }


def test_the_same_seed_gives_the_same_answer():
    for seed in range(8):
        rng = seeded(seed)
        torus = random_state(rng)
        demand = random_demand(rng, torus)
        assert allocate(torus, [demand], seed=7) == allocate(torus, [demand], seed=7)


def test_a_box_crosses_wrap_around_edges_and_turns():
    torus = torus64()
    cells = {(x % 4, y, z % 4) for x, y, z in product((3, 4), range(4), (3, 4))}
    answer = allocate(replace(torus, free=frozenset(cells)), [SliceDemand((4, 2, 2))])
    assert answer.placement.contiguous
    assert set(answer.placement.accelerators) == cells
    assert answer.reasons == ()


def test_a_box_takes_the_edge_between_neighbours_and_no_other():
    torus = torus64()
    answer = allocate(torus, [SliceDemand((4, 4, 2))])
    ways = [circuit.edges for circuit in answer.placement.circuits]
    assert max(map(len, ways)) == 1
    assert len({torus.server_of(at) for at in answer.placement.accelerators}) == 8
    assert (answer.placement.fullest, answer.placement.optimal) == (4, True)


def test_the_first_box_leaves_the_largest_gap():
    torus = without(torus64(), (0, 0, 1))
    box = find_box(torus, SliceDemand((2, 2, 1))).placement
    assert torus.server_of(box.accelerators[0]) in {(0, 0, 0), (0, 0, 2), (1, 0, 1), (0, 1, 1)}
    assert box.fibres_used == 0


def test_a_slice_that_fits_no_box_is_scattered_and_says_why():
    torus = without(torus64(), *((x, (x + z) % 2, z) for x in range(2) for z in range(4)))
    answer = allocate(torus, [SliceDemand((4, 4, 2))])
    assert (answer.placement.contiguous, faults_of(torus, answer.demand, answer.placement)) == (False, [])
    assert answer.reasons == ("no box of 4x4x2 is free; the nearest one lacks 16 accelerators",)
    assert len(answer.in_the_way) == 16


def test_accelerators_of_servers_that_are_partly_used_make_a_slice_of_small_parts():
    torus = torus64(free=frozenset((x, y, z) for x, y, z in torus64().free if x % 2 == y % 2))
    demand = SliceDemand((2, 2, 2))
    answer = allocate(torus, [demand])
    assert faults_of(torus, demand, answer.placement) == []
    assert any("2 groups of 4 accelerators on one server are needed and 0 are free" in why for why in answer.reasons)


def test_only_allowed_servers_are_taken():
    allowed = frozenset({(0, 0, 0), (1, 1, 2), (1, 0, 3)})
    demand = SliceDemand((4, 2, 1), servers=allowed)
    answer = allocate(torus64(), [demand])
    assert faults_of(torus64(), demand, answer.placement) == []
    more = SliceDemand((4, 4, 1), servers=allowed)
    refused = allocate(torus64(), [more])
    assert refused.verdict is SliceVerdict.IMPOSSIBLE
    assert "16 accelerators are needed and 12 are free" in refused.reasons[-1]


def test_of_several_shapes_the_first_box_wins_over_a_better_shape_that_must_be_scattered():
    torus = torus64(free=frozenset((x, y, 0) for x in range(4) for y in range(2)))
    answer = allocate(torus, [SliceDemand(shape) for shape in shapes_of(8)])
    assert (answer.demand.shape, answer.placement.contiguous) == ((4, 2, 1), True)
    assert len(answer.reasons) == 1


@pytest.mark.parametrize("count", [1, 7, 8, 12, 36, 64])
def test_shapes_of_a_number_are_its_factors(count):
    brute = {shape for shape in product(range(1, count + 1), repeat=3) if shape[0] >= shape[1] >= shape[2]}
    assert set(shapes_of(count)) == {shape for shape in brute if shape[0] * shape[1] * shape[2] == count}
    assert shapes_of(8)[0] == (2, 2, 2)


def test_a_slice_that_no_torus_could_hold_is_refused_at_once():
    answer = allocate(torus64(), [SliceDemand((100_000, 100_000, 100_000))])
    assert answer.verdict is SliceVerdict.IMPOSSIBLE
    assert answer.reasons == (
        "no box: 100000x100000x100000 fits a torus of 4x4x4 in no direction",
        "1000000000000000 accelerators are needed and 64 are free",
    )


def test_reasons_count_one_thing_as_one():
    answer = allocate(torus64(free=frozenset()), [SliceDemand((1, 1, 1))])
    assert answer.reasons[-1] == "1 accelerator is needed and 0 are free"
    few = allocate(torus64(free=frozenset({(0, 0, 0)})), [SliceDemand((2, 1, 1))])
    assert few.reasons[-1] == "2 accelerators are needed and 1 is free"


def test_a_ring_that_a_box_does_not_span_goes_around():
    torus = torus_of((1, 1, 4), SERVER, 4)
    demand = SliceDemand((2, 2, 3), rings=(False, False, True))
    answer = allocate(torus, [demand])
    assert (faults_of(torus, demand, answer.placement), answer.placement.contiguous) == ([], True)
    assert answer.placement.fibres_used == 4 * 4  # The ring closes through the fourth server.


def test_dead_fibres_are_named():
    torus = torus64()
    dead = tuple(replace(edge, capacity=0) if edge.name.startswith("z") else edge for edge in torus.edges)
    answer = allocate(replace(torus, edges=dead), [SliceDemand((4, 4, 4))])
    assert answer.verdict is SliceVerdict.IMPOSSIBLE
    assert answer.reasons[0] == "a box is free, but the fibres have no room for its circuits (z-0-0-0 is too full)"


def test_what_is_released_and_taken_is_counted():
    torus = torus64()
    answer = allocate(torus, [SliceDemand((4, 4, 2))])
    after = with_slice(torus, answer.placement)
    assert len(after.free) == 32
    assert after.fullest == answer.placement.fullest
    assert sum(edge.used for edge in after.edges) == answer.placement.fibres_used
    again = allocate(after, [SliceDemand((4, 4, 2))])
    assert faults_of(after, again.demand, again.placement) == []
    assert allocate(with_slice(after, again.placement), [SliceDemand((1, 1, 1))]).verdict is SliceVerdict.IMPOSSIBLE


def test_fibres_that_reach_too_few_servers_are_proof_for_parts_of_every_size():
    torus = torus64()
    lit = {"z-0-0-0", "z-0-0-1"}
    dark = tuple(edge if edge.name in lit else replace(edge, capacity=0) for edge in torus.edges)
    answer = allocate(replace(torus, edges=dark), [SliceDemand((4, 2, 2))])
    assert answer.verdict is SliceVerdict.IMPOSSIBLE
    assert answer.reasons[-1].endswith("16 accelerators are needed and 12 are free where fibres join them")
    narrow = tuple(replace(edge, capacity=1) for edge in torus.edges)
    answer = allocate(replace(torus, edges=narrow), [SliceDemand((4, 4, 4), widths=(4, 4, 4))])
    assert answer.verdict is SliceVerdict.IMPOSSIBLE
    assert answer.reasons[-1].endswith("64 accelerators are needed and 0 are on servers with enough free fibres")


@pytest.mark.parametrize("shape", [(4, 2, 1), (3, 3, 1), (2, 2, 2), (5, 1, 2)])
@pytest.mark.parametrize("rings", [(False, False, False), (True, True, True)])
def test_the_fewest_circuits_leave_the_best_group_of_slots(shape, rings):
    slots = divided(SliceDemand(shape, rings=rings), (1, 1, 1))
    counted = {}
    for size in range(1, 5):
        for group in map(set, combinations(range(len(slots.needs)), size)):
            leaving = sum(count for a, b, count in slots.links if (a in group) != (b in group))
            counted[size] = min(counted.get(size, leaving), leaving)
    assert least_leaving(slots, 4) == counted


def test_the_assignment_is_the_least_of_all_permutations():
    for seed in range(200):
        rng = seeded(seed)
        rows = rng.randint(1, 4)
        columns = rng.randint(rows, 6)
        costs = [[rng.randint(0, 9) for _ in range(columns)] for _ in range(rows)]
        tried = permutations(range(len(costs[0])), rows)
        assert assignment(costs) == min(sum(costs[row][at] for row, at in enumerate(way)) for way in tried)


def test_flow_costs_are_those_of_minimum_cost_flows():
    for seed in range(15):
        torus = random_state(seeded(seed), grid=(2, 2, 2))
        fibres = fibre_graph(torus, torus.levels[-1])
        found = fibres.flow_costs({2, 5})
        for (a, b), circuits in product(combinations(range(8), 2), (2, 5)):
            graph = nx.DiGraph()
            graph.add_nodes_from((server, {"demand": 0}) for server in range(8))
            for (c, d), room in zip(fibres.ends, fibres.room, strict=True):
                for here, there in ((c, d), (d, c)):
                    before = graph.get_edge_data(here, there, {"capacity": 0})["capacity"]
                    graph.add_edge(here, there, capacity=before + room, weight=1)
            graph.nodes[a]["demand"], graph.nodes[b]["demand"] = -circuits, circuits
            try:
                least = nx.min_cost_flow_cost(graph)
            except nx.NetworkXUnfeasible:
                least = UNREACHABLE
            assert found[circuits][a][b] == found[circuits][b][a] == least


def least_level_by_flows(torus, circuits, free):
    """The lowest level at which some two servers can be joined by so many circuits, by maximum flows."""
    for level in torus.levels:
        graph = nx.Graph()
        graph.add_nodes_from(torus.servers)
        for edge in torus.edges:
            a, b = edge.ends
            before = graph.get_edge_data(a, b, {"capacity": 0})["capacity"]
            graph.add_edge(a, b, capacity=before + max(0, min(level, edge.capacity) - edge.used))
        for a, b in combinations(free, 2):
            if nx.maximum_flow_value(graph, a, b) >= circuits:
                return level
    return None


def test_two_servers_are_joined_whenever_a_maximum_flow_says_so_and_at_its_level():
    found = refused = proven = 0
    for seed in range(40):
        rng = seeded(seed)
        torus = random_state(rng)
        free = [4 * (len(torus.free_on[server]) == 4) for server in torus.servers]
        slots = divided(SliceDemand((2, 2, 2), widths=(1, 1, rng.randint(1, 3))), SERVER)
        level = least_level_by_flows(torus, slots.circuits, [s for s, n in zip(torus.servers, free, strict=True) if n])
        search = place_slots(slots, torus, free, rng)
        assert (search.placed is None) == (level is None)
        if level is None:
            refused += 1
            proven += search.proven
        else:
            assert search.bound <= level == search.level
            found += 1
    assert (found > 20, refused > 3, proven > refused // 2) == (True, True, True)
