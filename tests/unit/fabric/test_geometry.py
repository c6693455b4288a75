from math import dist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.errors import UsageError
from lumctl.fabric.geometry import FREE
from lumctl.fabric.shapes import hexagon, mesh, mesh_with, shape, square
from lumctl.inventory.geometry import Geometry, Shape

shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))
geometries = st.builds(
    Geometry, st.integers(1, 6), st.integers(1, 6), st.sampled_from([Shape.PARALLELOGRAM, Shape.SQUARE])
) | st.integers(1, 5).map(Geometry.hexagon)
drawn = geometries.map(mesh_with)
HONEYCOMBS = (Shape.PARALLELOGRAM, Shape.HEXAGON)


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


@pytest.mark.parametrize(("side", "pucs", "ports"), [(1, 6, 12), (2, 30, 24), (3, 72, 36), (4, 132, 48)])
def test_counts_of_hexagons(side, pucs, ports):
    assert (hexagon(side).puc_count, hexagon(side).port_count) == (pucs, ports)


@pytest.mark.parametrize(("columns", "rows", "pucs", "ports"), [(1, 1, 4, 8), (2, 1, 7, 12), (4, 4, 40, 32)])
def test_counts_of_squares(columns, rows, pucs, ports):
    found = square(columns, rows)
    assert (found.puc_count, found.port_count) == (pucs, ports)


@given(geometries)
def test_counts_follow_the_formulas_and_the_inventory_knows_them(geometry):
    found = mesh_with(geometry)
    assert found.puc_count == geometry.puc_count
    assert found.port_count == geometry.port_count == len(set(found.ports))
    assert shape(geometry.name) is found


@given(drawn)
def test_every_terminal_is_joined_with_one_of_another_puc_or_is_a_port(found):
    assert len(found.peers) == 4 * found.puc_count
    for terminal, peer in enumerate(found.peers):
        if peer == FREE:
            assert terminal in found.port_at
        else:
            assert found.peers[peer] == terminal
            assert peer >> 2 != terminal >> 2


@given(drawn)
def test_a_waveguide_stays_at_one_vertex(found):
    def vertex(terminal):
        return found.ends[terminal >> 2][terminal >> 1 & 1]

    assert all(vertex(t) == vertex(peer) for t, peer in enumerate(found.peers) if peer != FREE)


@given(drawn)
def test_a_waveguide_round_a_corner_stays_on_the_inner_side(found):
    """The two sides that it joins lie within the corner: on the right hand of one edge and the left of the other."""

    def away(terminal):
        ends = found.ends[terminal >> 2]
        (x0, y0), (x1, y1) = (found.points[vertex] for vertex in (ends if not terminal & 2 else ends[::-1]))
        on_the_right = (terminal & 1) == (terminal >> 1 & 1)
        return x1 - x0, y1 - y0, 1 if on_the_right else -1

    for terminal, peer in enumerate(found.peers):
        if peer != FREE:
            (x0, y0, hand), (x1, y1, other_hand) = away(terminal), away(peer)
            assert hand == -other_hand
            assert (x0 * y1 - x1 * y0) * hand > 0.8  # 90 or 120 degrees, and towards that hand


@given(geometries)
def test_drawing_has_edges_of_one_length_and_few_at_a_vertex(geometry):
    found = mesh_with(geometry)
    for upper, lower in found.ends:
        (x0, y0), (x1, y1) = found.points[upper], found.points[lower]
        assert (y0, x0) < (y1, x1)
        assert dist((x0, y0), (x1, y1)) == pytest.approx(1)
    at_vertex = [vertex for pair in found.ends for vertex in pair]
    most = 3 if geometry.shape in HONEYCOMBS else 4
    assert {at_vertex.count(vertex) for vertex in range(len(found.points))} <= set(range(2, most + 1))


@pytest.mark.parametrize("found", [mesh(7, 3), hexagon(3), square(4, 3)], ids=lambda found: found.name)
def test_numbering_of_pucs_is_reading_order(found):
    middles = [
        tuple(round(sum(found.points[vertex][axis] for vertex in ends), 6) for axis in (1, 0)) for ends in found.ends
    ]
    assert middles == sorted(middles)


def test_numbering_of_the_2_by_2_mesh_is_as_the_manual_draws_it():
    found = mesh(2, 2)
    corners = {19: (-1, -1), 1: (0, -2), 3: (2, -2), 5: (3, -1), 7: (4, 2), 9: (4, 4), 11: (3, 5), 13: (1, 5)}
    corners |= {15: (0, 4), 17: (-1, 1)}
    for port, (x, y) in corners.items():
        assert found.port_vertex(port) == found.port_vertex((port + 1) % 20)
        assert found.points[found.port_vertex(port)] == pytest.approx((x * 3**0.5 / 2, y / 2))
    beside = [terminal >> 2 for terminal in found.ports]
    assert beside == [0, 0, 1, 2, 3, 3, 6, 11, 14, 14, 18, 18, 17, 16, 15, 15, 12, 7, 4, 4]


def test_numbering_of_the_2_by_1_squares_by_hand():
    found = square(2, 1)
    beside = [terminal >> 2 for terminal in found.ports]
    assert beside == [0, 0, 1, 1, 4, 4, 6, 6, 5, 5, 2, 2]
    corners = [found.points[found.port_vertex(port)] for port in range(0, 12, 2)]
    assert corners == [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1)]


@given(drawn)
def test_ports_run_clockwise_round_the_perimeter_from_the_upper_left(found):
    points = [found.points[found.port_vertex(port)] for port in range(found.port_count)]
    twice_the_area = sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(points, points[1:] + points[:1], strict=True))
    assert twice_the_area > 0  # with y downwards, clockwise is positive
    assert points[0] == points[-1]
    # The first edge runs along the top, the last one goes down.
    first, last = ([found.points[vertex] for vertex in found.ends[found.ports[port] >> 2]] for port in (0, -1))
    assert min(y for _, y in first) == min(y for _, y in found.points)
    assert max(y for _, y in last) > points[0][1]


def test_same_shape_is_the_same_mesh():
    assert mesh(4, 3) is mesh(4, 3) is shape("4x3")
    assert hexagon(2) is shape("hexagon:2")
    assert square(4, 3) is shape("square:4x3")


@pytest.mark.parametrize("size", [(0, 3), (3, 0), (-1, 2)])
@pytest.mark.parametrize("make", [mesh, square])
def test_no_mesh_without_cells(make, size):
    with pytest.raises(UsageError):
        make(*size)


def test_no_hexagon_without_cells():
    with pytest.raises(UsageError, match="a side of 0 cells"):
        hexagon(0)


@pytest.mark.parametrize("text", ["", "9", "9x", "9x9x9", "hexagon:3x3", "square:4", "ring:3", "-1x2", "9 x 9", "1ex1"])
def test_what_names_no_shape_is_refused(text):
    with pytest.raises(UsageError, match="is not a mesh shape"):
        shape(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [("hexogon:3", "hexagon:3"), ("hexagon:3x3", "hexagon:3"), ("9by9", "9x9"), ("square4", "square:4x4"),
     ("5y5", "5x5"), ("9x9x9", "9x9"), ("ring:3", None), ("0x0", None), ("", None)],
)  # fmt: skip
def test_the_nearest_shape_is_named_and_is_one(text, near):
    with pytest.raises(UsageError) as refused:
        shape(text)
    named = refused.value.hint.partition("did you mean '")[2].partition("'")[0]
    assert named == (near or "")
    assert near is None or shape(near)


@pytest.mark.parametrize("text", ["65x1", "1x9999", "hexagon:33", "square:1x65"])
def test_a_shape_beyond_all_measure_is_refused(text):
    with pytest.raises(UsageError, match="too large"):
        shape(text)


def reached(found, port):
    """The ports at which light from a port can leave, whatever the states."""
    seen, left = set(), [found.ports[port]]
    ends = set()
    while left:
        terminal = left.pop()
        for out in (terminal ^ 2, terminal ^ 3):
            if found.peers[out] == FREE:
                ends.add(found.port_at[out])
            elif found.peers[out] not in seen:
                seen.add(found.peers[out])
                left.append(found.peers[out])
    return ends


@given(shapes)
def test_in_squares_a_port_reaches_the_ports_of_the_other_mark_and_no_others(size):
    columns, rows = size
    marks, mark = [], 0
    for side in (columns, rows, columns, rows):
        for edge in range(side):
            mark ^= edge > 0
            marks += (mark, not mark)
    found = square(columns, rows)
    for port in range(found.port_count):
        assert reached(found, port) == {other for other, its in enumerate(marks) if its != marks[port]}


@pytest.mark.parametrize("found", [mesh(2, 1), mesh(4, 3), hexagon(2), hexagon(3)], ids=lambda found: found.name)
def test_in_a_honeycomb_of_several_cells_a_port_reaches_all(found):
    everywhere = set(range(found.port_count))
    assert all(reached(found, port) | {port} == everywhere for port in everywhere)
