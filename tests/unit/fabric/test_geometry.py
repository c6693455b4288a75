from math import hypot, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.errors import UsageError
from lumctl.fabric import mesh
from lumctl.fabric.geometry import FREE
from lumctl.inventory.model import Geometry

shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@pytest.mark.parametrize(
    ("columns", "rows", "pucs", "ports"),
    [
        (1, 1, 6, 12),
        (2, 1, 11, 16),
        (1, 2, 11, 16),
        (2, 2, 19, 20),
        (7, 3, 82, 44),
        (9, 9, 278, 76),
        (12, 12, 479, 100),
    ],
)
def test_counts_of_known_shapes(columns, rows, pucs, ports):
    found = mesh(columns, rows)
    assert (found.puc_count, found.port_count) == (pucs, ports)


@given(shapes)
def test_counts_follow_the_formulas_and_the_inventory_knows_them(shape):
    found, geometry = mesh(*shape), Geometry(*shape)
    assert found.puc_count == geometry.puc_count
    assert found.port_count == geometry.port_count == len(set(found.ports))


@given(shapes)
def test_every_terminal_is_joined_with_one_of_another_puc_or_is_a_port(shape):
    found = mesh(*shape)
    assert len(found.peers) == 4 * found.puc_count
    for terminal, peer in enumerate(found.peers):
        if peer == FREE:
            assert terminal in found.port_at
        else:
            assert found.peers[peer] == terminal
            assert peer >> 2 != terminal >> 2


@given(shapes)
def test_a_waveguide_stays_at_one_vertex(shape):
    found = mesh(*shape)

    def vertex(terminal):
        return found.ends[terminal >> 2][terminal >> 1 & 1]

    assert all(vertex(t) == vertex(peer) for t, peer in enumerate(found.peers) if peer != FREE)


@given(shapes)
def test_drawing_has_edges_of_one_length_and_three_at_most_at_a_vertex(shape):
    found = mesh(*shape)
    for upper, lower in found.ends:
        (x0, y0), (x1, y1) = found.vertices[upper], found.vertices[lower]
        assert y0 < y1
        assert hypot((x1 - x0) * sqrt(3) / 2, (y1 - y0) / 2) == pytest.approx(1)
    at_vertex = [vertex for pair in found.ends for vertex in pair]
    assert {at_vertex.count(vertex) for vertex in range(len(found.vertices))} <= {2, 3}


def test_numbering_of_pucs_is_reading_order():
    found = mesh(7, 3)
    middles = [
        (found.vertices[a][1] + found.vertices[b][1], found.vertices[a][0] + found.vertices[b][0])
        for a, b in found.ends
    ]
    assert middles == sorted(middles)


def test_numbering_of_the_2_by_2_mesh_is_as_the_manual_draws_it():
    found = mesh(2, 2)
    corners = {19: (-1, -1), 1: (0, -2), 3: (2, -2), 5: (3, -1), 7: (4, 2), 9: (4, 4), 11: (3, 5), 13: (1, 5)}
    corners |= {15: (0, 4), 17: (-1, 1)}
    for port, vertex in corners.items():
        assert found.port_vertex(port) == found.port_vertex((port + 1) % 20) == vertex
    beside = [terminal >> 2 for terminal in found.ports]
    assert beside == [0, 0, 1, 2, 3, 3, 6, 11, 14, 14, 18, 18, 17, 16, 15, 15, 12, 7, 4, 4]


@given(shapes)
def test_ports_run_clockwise_round_the_perimeter(shape):
    found = mesh(*shape)
    points = [found.port_vertex(port) for port in range(found.port_count)]
    twice_the_area = sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(points, points[1:] + points[:1], strict=True))
    assert twice_the_area > 0  # with y downwards, clockwise is positive
    assert points[0] == points[-1] == (-1, -1)


def test_same_shape_is_the_same_mesh():
    assert mesh(4, 3) is mesh(4, 3)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (-1, 2)])
def test_no_mesh_without_cells(shape):
    with pytest.raises(UsageError):
        mesh(*shape)
