"""The exact solver against flows and counts, and the fast search against the exact solver."""

import os
import random
import sys
from dataclasses import replace
from itertools import count
from math import prod

import networkx as nx
import pytest
from torus_states import faults_of, leads, random_demand, random_state, torus_of

from lumctl.errors import UsageError
from lumctl.slices import exact
from lumctl.slices.allocation import SliceDemand
from lumctl.slices.allocator import allocate
from lumctl.slices.exact import ExactPlacing, LevelProgram, like_slots
from lumctl.slices.fibre_graph import fibre_graph
from lumctl.slices.slot_search import SlotSearch, place_slots
from lumctl.slices.slots import divided, divisions

if os.environ.get("LUMCTL_REQUIRE_SYSTEM_PARTS") != "1":
    pytest.importorskip("highspy", reason="HiGHS is not installed: pip install 'lumctl[optimal]'")

CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))
SEED = int(os.environ.get("LUMCTL_CAMPAIGN_SEED", "3"))
STATES, MOST_SLOTS = (1000, 8) if CAMPAIGN else (40, 4)
DECIDE_S, DOUBT_S = (1800.0, 10.0) if CAMPAIGN else (60.0, 60.0)
SERVER = (2, 2, 1)


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - the same choices in every run


def question(rng, most_slots):
    """A random state, the free accelerators of each server, and the slots of a demand for few servers."""
    while True:
        torus = random_state(rng)
        slots = next(divisions(random_demand(rng, torus), 4))
        if 2 <= len(slots.needs) <= most_slots:
            return torus, tuple(len(torus.free_on[server]) for server in torus.servers), slots


def best_level(torus, free, slots, fast):
    """The lowest level of any placement by the program; ``None``: there is none; below every level: not decided.

    What the fast search claims to be the best is doubted for a shorter time than what it leaves open.
    """
    level = torus.levels[-1] if fast.placed is None else fast.level - 1
    best = None if fast.placed is None else fast.level
    seconds = DOUBT_S if fast.proven or fast.level == fast.bound else DECIDE_S
    while level >= torus.levels[0]:
        placed, refuted = LevelProgram(slots, fibre_graph(torus, level), free).solved(seconds)
        if placed is None:
            return best if refuted or seconds == DOUBT_S else -1
        best, level = level, level - 1
    return best


def wrong_ways(torus, free, slots, search):
    """Whether a search's placement breaks a rule: accelerators, ways, or what an edge may carry."""
    servers, ways = search.placed.servers, search.placed.ways
    needs = [sum(slots.needs[slot] for slot, at in enumerate(servers) if at == server) for server in range(len(free))]
    load = [edge.used for edge in torus.edges]
    for (a, b, circuits), own in zip(slots.links, ways, strict=True):
        if len(own) != circuits:
            return True
        for way in own:
            names = [torus.edges[edge].name for edge in way]
            if not leads(torus, names, torus.servers[servers[a]], torus.servers[servers[b]]):
                return True
            for edge in way:
                load[edge] += 1
    full = any(load[at] > max(edge.used, min(edge.capacity, search.level)) for at, edge in enumerate(torus.edges))
    return full or any(need > left for need, left in zip(needs, free, strict=True))


@pytest.mark.timeout(24 * 3600 if CAMPAIGN else 120)
def test_the_fast_search_against_the_exact_solver():
    """What the solver cannot decide in time counts against the fast search."""
    rng = seeded(SEED)
    feasible = missed = worse = 0
    for number in range(STATES):
        torus, free, slots = question(rng, MOST_SLOTS)
        fast = place_slots(slots, torus, free, seeded(number))
        assert fast.placed is None or not wrong_ways(torus, free, slots, fast), number
        best = best_level(torus, free, slots, fast)
        assert best is not None or fast.placed is None, number
        assert not fast.proven or best is None, number
        if best is None:
            continue
        feasible += 1
        missed += fast.placed is None
        worse += fast.placed is not None and fast.level > best
        assert best < 0 or best <= fast.level, number
    report = f"{STATES} states, {feasible} feasible: {missed} missed, {worse} with a fuller edge than the best"
    print(report)  # noqa: T201 - the campaign's figures
    assert feasible > STATES / 2
    assert missed <= feasible * 0.01, report
    assert worse <= feasible * 0.05, report


@pytest.mark.parametrize("shape", [(4, 4, 2), (8, 4, 1), (6, 2, 3), (3, 3, 1), (2, 2, 1), (5, 1, 1)])
@pytest.mark.parametrize("rings", [(False, False, False), (True, False, True)])
def test_like_slots_count_all_symmetries(shape, rings):
    slots = next(divisions(SliceDemand(shape, rings=rings), 4))
    graph = nx.Graph()
    graph.add_nodes_from((slot, {"need": need}) for slot, need in enumerate(slots.needs))
    graph.add_edges_from((a, b, {"circuits": circuits}) for a, b, circuits in slots.links)
    matches = nx.isomorphism.GraphMatcher(
        graph,
        graph,
        node_match=nx.isomorphism.categorical_node_match("need", 0),
        edge_match=nx.isomorphism.categorical_edge_match("circuits", 0),
    )
    assert prod(len(orbit) + 1 for _, orbit in like_slots(slots)) == sum(1 for _ in matches.isomorphisms_iter())


def test_very_many_symmetries_are_not_listed():
    assert like_slots(divided(SliceDemand((4, 4, 4), rings=(True, True, True)), (1, 1, 1))) == []


def test_the_exact_solver_improves_on_the_fast_one_or_proves_it(monkeypatch):
    """From the worst start, which finds nothing and proves nothing, the solver finds the same answers alone."""
    for number in range(12):
        torus, free, slots = question(seeded(number), 3)
        whole = ExactPlacing(60)(slots, torus, free, seeded(1))
        with monkeypatch.context() as patched:
            nothing = SlotSearch(None, torus.levels[-1], torus.levels[0])
            patched.setattr(exact, "place_slots", lambda *_, nothing=nothing: nothing)
            alone = ExactPlacing(60)(slots, torus, free, seeded(1))
        assert (alone.placed is None, alone.proven) == (whole.placed is None, whole.proven)
        if whole.placed is not None:
            assert whole.level == whole.bound == alone.level == alone.bound
            assert not wrong_ways(torus, free, slots, alone)


def left_open():
    """A question that the fast search leaves open."""
    for seed in count():
        torus, free, slots = question(seeded(seed), 4)
        fast = place_slots(slots, torus, free, seeded(1))
        if fast.placed is None and not fast.proven:
            return slots, torus, free, seeded(1)
    return None


def test_what_the_fast_search_leaves_open_is_decided_and_without_time_it_stays_open():
    assert ExactPlacing(60)(*left_open()).proven
    given_up = ExactPlacing(0.0)(*left_open())
    assert (given_up.placed, given_up.proven) == (None, False)
    assert "the time was up" in given_up.reason


def test_an_exact_plan_obeys_every_rule():
    torus = torus_of((2, 2, 4), SERVER, 4)
    torus = replace(torus, free=frozenset(at for at in torus.free if sum(torus.server_of(at)) % 2))
    demand = SliceDemand((4, 4, 1))
    answer = allocate(torus, [demand], place=ExactPlacing(60))
    assert (faults_of(torus, demand, answer.placement), answer.placement.optimal) == ([], True)


def test_without_the_solver_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(UsageError, match="not installed") as refused:
        ExactPlacing(60)(*left_open())
    assert refused.value.hint == "pip install 'lumctl[optimal]'"
