from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import exits, mesh, trace
from lumctl.fabric.shapes import hexagon, square

BAR, CROSS = PucState.BAR, PucState.CROSS

sizes = st.integers(1, 5)
drawn_meshes = st.builds(mesh, sizes, sizes) | st.builds(square, sizes, sizes) | st.builds(hexagon, st.integers(1, 4))


@st.composite
def programmed_meshes(draw):
    found = draw(drawn_meshes)
    marks = draw(st.lists(st.sampled_from(PucState), min_size=found.puc_count, max_size=found.puc_count))
    return found, dict(enumerate(marks))


@given(programmed_meshes())
def test_any_setting_pairs_all_ports(programmed):
    found, states = programmed
    partner = exits(found, states)
    assert set(partner) == set(partner.values()) == set(range(found.port_count))
    assert all(partner[partner[port]] == port != partner[port] for port in partner)


@given(programmed_meshes())
def test_light_takes_the_same_way_back(programmed):
    found, states = programmed
    for port in range(found.port_count):
        there = trace(found, states, port)
        back = trace(found, states, there.exit)
        assert (back.exit, back.passes) == (port, there.passes[::-1])


@given(programmed_meshes())
def test_a_pass_is_in_the_state_of_its_puc_and_leads_to_an_adjacent_one(programmed):
    found, states = programmed
    for port in range(found.port_count):
        way = trace(found, states, port)
        assert all(states[puc] is state for puc, state in way.passes)
        assert all(set(found.ends[a]) & set(found.ends[b]) for a, b in pairwise(way.pucs))
        # Never back out of the end it came in by: from vertex to vertex it walks over both ends of every PUC.
        vertex = found.port_vertex(port)
        for puc in way.pucs:
            assert vertex in found.ends[puc]
            vertex = sum(found.ends[puc]) - vertex
        assert vertex == found.port_vertex(way.exit)


@given(programmed_meshes())
def test_no_puc_is_passed_more_than_once_on_each_side(programmed):
    found, states = programmed
    used = [puc for port, end in exits(found, states).items() if port < end for puc in trace(found, states, port).pucs]
    assert all(used.count(puc) <= 2 for puc in set(used))


@given(drawn_meshes)
def test_unnamed_pucs_are_in_bar_and_light_keeps_outside(found):
    assert exits(found, {}) == {port: port ^ 1 for port in range(found.port_count)}


def test_one_cell_by_hand():
    cell = mesh(1, 1)
    # PUC 0 is the upper left edge, PUC 1 the upper right one: crossed into the cell and out again by the next edge.
    assert trace(cell, {0: CROSS, 1: CROSS}, 0).passes == ((0, CROSS), (1, CROSS))
    assert trace(cell, {0: CROSS, 1: CROSS}, 0).exit == 3
    # Crossed in and never out until it is back at the edge where it came from.
    round_the_cell = trace(cell, {0: CROSS}, 0)
    assert round_the_cell.pucs == (0, 1, 3, 5, 4, 2, 0)
    assert round_the_cell.exit == 1


@pytest.mark.parametrize("port", [-1, 12])
def test_a_port_off_the_mesh_is_named(port):
    with pytest.raises(UsageError, match=f"port {port} is not on the mesh") as refused:
        trace(mesh(1, 1), {}, port)
    assert refused.value.hint == "its ports are 0 to 11"
