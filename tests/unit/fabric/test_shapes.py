"""Meshes given as data: those of known shapes come out as they are, wrong ones are refused, all of them trace."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import changes, exits, route, trace
from lumctl.fabric.geometry import FREE
from lumctl.fabric.shapes import from_data, hexagon, mesh, square
from lumctl.inventory.geometry import MeshData, flaws

CELL = MeshData(
    name="triangle",
    puc_count=3,
    junctions=((2, 4), (6, 8), (10, 0)),
    ports=(1, 3, 5, 7, 9, 11),
    positions=(((0, 0), (1, 0)), ((1, 0), (0.5, 0.87)), ((0.5, 0.87), (0, 0))),
)


def data_of(found):
    """A mesh written as data."""
    return MeshData(
        found.name,
        found.puc_count,
        tuple((a, b) for a, b in enumerate(found.peers) if a < b != FREE),
        found.ports,
        tuple((found.points[a], found.points[b]) for a, b in found.ends),
    )


@st.composite
def given_meshes(draw):
    """Any data that are a mesh: waveguide ends of different PUCs joined at random, two ports at least."""
    count = draw(st.integers(1, 12))
    shuffled = draw(st.permutations(range(4 * count)))
    pairs = [(a, b) for a, b in zip(shuffled[::2], shuffled[1::2], strict=True) if a >> 2 != b >> 2]
    wanted = draw(st.integers(0, len(pairs)))
    junctions = tuple(pairs[: min(wanted, 2 * count - 1)])
    joined = {terminal for pair in junctions for terminal in pair}
    free = [terminal for terminal in range(4 * count) if terminal not in joined]
    ports = tuple(draw(st.permutations(free))) if draw(st.booleans()) else ()
    return from_data(MeshData("random", count, junctions, ports))


@st.composite
def programmed(draw):
    found = draw(given_meshes())
    marks = draw(st.lists(st.sampled_from(PucState), min_size=found.puc_count, max_size=found.puc_count))
    return found, dict(enumerate(marks))


@given(programmed())
def test_any_setting_of_any_mesh_pairs_all_ports(case):
    found, states = case
    partner = exits(found, states)
    assert set(partner) == set(partner.values()) == set(range(found.port_count))
    assert all(partner[partner[port]] == port != partner[port] for port in partner)


@given(programmed())
def test_light_walks_over_both_ends_of_every_puc_and_the_same_way_back(case):
    found, states = case
    for port in range(found.port_count):
        there = trace(found, states, port)
        assert trace(found, states, there.exit).passes == there.passes[::-1]
        vertex = found.port_vertex(port)
        for puc in there.pucs:
            here, beyond = found.ends[puc]
            assert vertex in (here, beyond)
            vertex = here + beyond - vertex
        assert vertex == found.port_vertex(there.exit)


@pytest.mark.parametrize("known", [mesh(3, 2), hexagon(2), square(3, 4)], ids=lambda known: known.name)
def test_known_shapes_come_out_of_data_as_they_are(known):
    found = from_data(data_of(known))
    assert (found.name, found.peers, found.ports) == (known.name, known.peers, known.ports)
    places = [tuple(found.points[vertex] for vertex in ends) for ends in found.ends]
    for here, ends in zip(places, known.ends, strict=True):
        assert here == tuple(pytest.approx(known.points[vertex], abs=1e-5) for vertex in ends)
    assert len(found.points) == len(known.points)


@pytest.mark.parametrize("known", [mesh(3, 2), hexagon(2), square(3, 4)], ids=lambda known: known.name)
def test_without_places_the_vertices_are_where_waveguides_meet(known):
    found = from_data(replace(data_of(known), positions=()))
    assert found.points == ()
    same = dict(zip((v for ends in known.ends for v in ends), (v for ends in found.ends for v in ends), strict=True))
    assert all(found.ends[puc] == (same[a], same[b]) for puc, (a, b) in enumerate(known.ends))
    assert len(set(same.values())) == len(known.points)


def test_ports_are_in_the_order_that_the_data_give():
    assert from_data(CELL).ports == CELL.ports
    assert from_data(replace(CELL, ports=CELL.ports[::-1])).ports == CELL.ports[::-1]
    assert from_data(replace(CELL, ports=())).ports == (1, 3, 5, 7, 9, 11)


def test_circuits_are_routed_through_a_mesh_given_as_data():
    found = from_data(data_of(hexagon(2)))
    demands = [(0, 13), (4, 19)]
    states = changes({}, route(found, demands, states={}))
    assert [trace(found, states, a).exit for a, _ in demands] == [13, 19]


def test_the_same_data_are_the_same_mesh():
    assert from_data(replace(CELL)) is from_data(CELL)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"puc_count": 0}, "puc_count: found 0 PUCs, expected 1 to 50000"),
        ({"puc_count": 50_001}, "puc_count: found 50001 PUCs"),
        ({"junctions": ((2, 4), (6, 12))}, "junctions 1: found PUC 3 end 0 side 0, expected PUCs 0 to 2"),
        ({"junctions": ((-1, 4),)}, "junctions 0: found PUC -1 end 1 side 1"),
        ({"junctions": ((2, 4), (2, 8))}, "junctions 1: PUC 0 end 1 side 0 is connected twice, first in junction 0"),
        ({"junctions": ((2, 4), (4, 2))}, "junctions 1: PUC 1 end 0 side 0 is connected twice"),
        ({"junctions": ((0, 1),)}, "junctions 0: PUC 0 is connected to itself"),
        ({"junctions": ((0, 2),)}, "junctions 0: PUC 0 is connected to itself"),
        ({"junctions": ((5, 5),)}, "junctions 0: PUC 1 is connected to itself"),
        ({"ports": (1, 3, 5, 7, 9)}, "ports: PUC 2 end 1 side 1 is connected to nothing and is not here"),
        ({"ports": (1, 3, 5)}, "ports: PUC 1 end 1 side 1 and 2 more are connected to nothing and are not here"),
        ({"ports": (1, 3, 5, 7, 9, 0)}, "ports 5: PUC 0 end 0 side 0 is connected, so it is not a port"),
        ({"ports": (1, 3, 5, 7, 9, 12)}, "ports 5: PUC 3 end 0 side 0 is not on the mesh"),
        ({"ports": (1, 3, 5, 7, 9, 1)}, "ports 5: PUC 0 end 0 side 1 is listed twice"),
        ({"positions": CELL.positions[:2]}, "positions: found 2 positions, expected one for each of the 3 PUCs"),
        (
            {"positions": (*CELL.positions[:2], ((0, 0), (0, 0)))},
            "positions 2: both ends of PUC 2 have the same position",
        ),
        ({"positions": (((0, 0), (float("nan"), 0)), *CELL.positions[1:])}, "positions 0: found a number that is not"),
    ],
)
def test_what_is_wrong_with_data_is_named_in_one_line(wrong, message):
    with pytest.raises(UsageError) as refused:
        from_data(replace(CELL, **wrong))
    assert refused.value.message.startswith(f"mesh triangle: {message}")
    assert "\n" not in refused.value.message


def test_a_mesh_needs_ports():
    closed = MeshData("closed", 2, ((0, 4), (1, 5), (2, 6), (3, 7)))
    with pytest.raises(UsageError, match="no port is left"):
        from_data(closed)


def test_everything_wrong_is_found_at_once():
    wrong = replace(CELL, junctions=((0, 1), (2, 4), (4, 6)), positions=CELL.positions[:1])
    assert [(flaw.field, flaw.item) for flaw in flaws(wrong)] == [
        ("junctions", 0),
        ("junctions", 2),
        ("positions", None),
    ]
