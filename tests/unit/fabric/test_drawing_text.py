# ruff: noqa: RUF001 - box drawing is meant
import re
from dataclasses import replace
from math import cos, radians, sin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import InconsistentFabricError, Route, exits, mesh, trace
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.drawing import legend, terminal_style, text
from lumctl.fabric.drawing.text import grid
from lumctl.fabric.geometry import FREE
from lumctl.fabric.shapes import from_data, shape
from lumctl.inventory.geometry import MeshData

BAR, CROSS = PucState.BAR, PucState.CROSS
WELL = MeshCondition()

names = st.one_of(
    st.builds("{}x{}".format, st.integers(1, 9), st.integers(1, 9)),
    st.builds("square:{}x{}".format, st.integers(1, 6), st.integers(1, 6)),
    st.builds("hexagon:{}".format, st.integers(1, 4)),
)


@st.composite
def lit_meshes(draw):
    """A mesh in any states, with a circuit wherever light goes."""
    found = shape(draw(names))
    rng = draw(st.randoms(use_true_random=False))
    states = {puc: rng.choice((BAR, CROSS)) for puc in range(found.puc_count)}
    pairs = [(a, b) for a, b in exits(found, states).items() if a < b]
    chosen = rng.sample(pairs, rng.randint(0, len(pairs)))
    return found, states, [Route((a, b), trace(found, states, a).passes) for a, b in chosen]


def lines(rows):
    return ["".join(glyph.char for glyph in row) for row in rows]


def traced(found, states, *ports):
    return [Route((a, trace(found, states, a).exit), trace(found, states, a).passes) for a in ports]


def test_a_small_mesh_in_characters():
    found, states = mesh(2, 2), dict.fromkeys((0, 4, 8, 9, 13), CROSS)
    condition = MeshCondition(stuck={2: BAR, 18: CROSS}, damaged=frozenset({12}), blocked_ports=frozenset({7}))
    routes = traced(found, states, 1, 16, 5)
    drawn = [line.rstrip() for line in lines(text(found, states, routes, condition=condition))]
    assert drawn == [
        "      1 2     3 4",
        "      A         C",
        "  0  ╳   ╲   !   ╲ C5",
        "19 ╳A      │       │ 6",
        "18A╳       │       │",
        " 17B ╲   ╳   ╳   ╱   ╲ ▒7",
        "      B▒       ╳       │ 8",
        "    16B▒       ╳       │ 9",
        "     15  ╲   ╱   ╲   *  10",
        "",
        "         14 13   12 11",
    ]


@settings(max_examples=40)
@given(lit_meshes(), st.booleans())
def test_rows_are_equally_long_and_fit(task, ascii_only):
    found, states, routes = task
    rows = text(found, states, routes, condition=WELL, ascii_only=ascii_only, width=120)
    assert len({len(row) for row in rows}) == 1
    assert len(rows[0]) <= 120
    assert all(len(glyph.char) == 1 for row in rows for glyph in row)
    if ascii_only:
        assert "".join(lines(rows)).isascii()


@settings(max_examples=40)
@given(names)
def test_every_port_and_every_puc_has_its_place(name):
    found = shape(name)
    places = grid(found, 120)
    drawn = lines(text(found, {}, [], condition=WELL))
    for port, cells in enumerate(places.numbers):
        assert "".join(drawn[line][column] for line, column in cells) == str(port)
    written = [int(number) for line in drawn for number in re.findall("[0-9]+", line)]
    assert sorted(written) == list(range(found.port_count))  # none runs into another
    marks = [drawn[line][column] for cells in places.pucs for line, column in cells]
    assert set(marks) <= set("│─╱╲")
    taken = [*places.letters, *(cell for cells in (*places.pucs, *places.numbers) for cell in cells)]
    waveguides = sum(peer > terminal for terminal, peer in enumerate(found.peers))
    assert len(set(taken)) == len(taken) - waveguides


@settings(max_examples=40)
@given(lit_meshes())
def test_every_waveguide_of_a_circuit_has_its_letter_and_no_other_has_one(task):
    found, states, routes = task
    places, drawn = grid(found, 120), lines(text(found, states, routes, condition=WELL))
    key = legend(found, states, routes, condition=WELL)[2:]
    letters = {route.ports: row[0].char for route, row in zip(routes, key, strict=False)}
    lit = {}
    for route in routes:
        terminal = found.ports[route.ports[0]]
        for _, state in route.passes:
            out = terminal ^ (3 if state is CROSS else 2)
            lit[terminal] = lit[out] = letters[route.ports]
            terminal = found.peers[out]
        assert terminal == FREE
    for terminal, (line, column) in enumerate(places.letters):
        assert drawn[line][column] == lit.get(terminal, " ")


@settings(max_examples=40)
@given(lit_meshes())
def test_letters_and_styles_of_circuits_differ(task):
    found, states, routes = task
    rows = legend(found, states, routes, condition=WELL, ascii_only=True)
    if not routes:
        assert lines(rows)[1] == "no circuits"
        return
    entries = rows[2:]
    assert len(entries) == len(routes)
    assert len({row[0] for row in entries}) == len({row[0].char for row in entries}) == len(routes)
    assert all(terminal_style(row[0].style) for row in entries)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_large_mesh_fits_common_terminals(width):
    assert len(text(mesh(9, 9), {}, [], condition=WELL, width=width)[0]) <= width


def test_a_mesh_too_wide_is_refused_with_what_it_needs():
    with pytest.raises(UsageError, match="does not fit 40 columns: it needs 59"):
        text(mesh(9, 9), {}, [], condition=WELL, width=40)
    assert len(text(mesh(9, 9), {}, [], condition=WELL, width=59)[0]) == 59


def test_both_circuits_of_a_puc_show_and_its_mark_takes_neither_style():
    found = mesh(2, 2)
    states = dict.fromkeys(range(found.puc_count), CROSS)
    first = trace(found, states, 0)
    second = next(
        trace(found, states, port)
        for port in range(1, found.port_count)
        if port != first.exit and set(first.pucs) & set(trace(found, states, port).pucs)
    )
    shared = min(set(first.pucs) & set(second.pucs))
    rows = text(found, states, traced(found, states, 0, second.port), condition=WELL)
    line, column = grid(found, 120).pucs[shared][0]
    assert rows[line][column] == ("╳", "shared")
    around = {rows[cell[0]][cell[1]].char for cell in grid(found, 120).letters[4 * shared : 4 * shared + 4]}
    assert around == {"A", "B"}


def test_a_plan_is_drawn_as_it_wants_the_pucs_and_a_stuck_puc_as_it_is():
    found = mesh(2, 2)
    (planned,) = traced(found, {0: CROSS}, 0)
    line, column = grid(found, 120).pucs[0][0]
    assert text(found, {}, [planned], condition=WELL)[line][column].char == "╳"
    stuck = text(found, {}, [planned], condition=MeshCondition(stuck={0: BAR}))[line][column]
    assert (stuck.char, stuck.style) == ("!", "stuck")


def test_closed_parts_are_marked_and_the_key_says_so():
    found = mesh(2, 2)
    condition = MeshCondition(stuck={1: CROSS}, damaged=frozenset({2}), blocked_ports=frozenset({9}))
    places, rows = grid(found, 120), text(found, {}, [], condition=condition, ascii_only=True)

    def at(cell):
        return rows[cell[0]][cell[1]].char

    assert at(places.pucs[1][0]) == "*"
    assert at(places.pucs[2][0]) == "#"
    assert at(places.letters[found.ports[9]]) == "#"
    (key,) = lines(legend(found, {}, [], condition=condition, ascii_only=True)[:1])
    assert key == r"| - / \ bar   x cross   * stuck in cross   # damaged or blocked   PUC: programmable unit cell"


def test_the_legend_says_ports_pucs_and_loss():
    found = mesh(2, 2)
    routes = traced(found, {}, 0, 2)
    condition = MeshCondition(loss_per_puc_db=0.5, loss_per_port_db=1.0, puc_loss_db={0: 2.0})
    shown = lines(legend(found, {}, routes, condition=condition, names=("a/ring\x1b[31m0", "b")))
    assert shown[1:] == [
        "   CIRCUIT       PORTS  PUCS  LOSS dB",
        "A  a/ring?[31m0    0:1     1      4.5",
        "B  b               2:3     2      3.0",
    ]


def test_no_positions_no_drawing():
    with pytest.raises(UsageError, match="its positions"):
        text(replace(mesh(1, 1), points=()), {}, [], condition=WELL)


def test_a_route_of_another_mesh_is_refused():
    (other,) = traced(mesh(4, 4), {}, 30)
    with pytest.raises(InconsistentFabricError, match=r"30:31 is not a path through the mesh 2x2"):
        text(mesh(2, 2), {}, [other], condition=WELL)
    (first,) = traced(mesh(2, 2), {}, 0)
    with pytest.raises(InconsistentFabricError):
        text(mesh(2, 2), {}, [replace(first, ports=(0, 5))], condition=WELL)


def mirrored(found):
    """The same mesh as data whose sides are all named the other way round."""
    pairs = tuple((t ^ 1, peer ^ 1) for t, peer in enumerate(found.peers) if peer > t)
    places = tuple((found.points[a], found.points[b]) for a, b in found.ends)
    return from_data(MeshData("mirrored", found.puc_count, pairs, tuple(t ^ 1 for t in found.ports), places))


@pytest.mark.parametrize("name", ["3x2", "hexagon:2", "square:3x2"])
def test_data_that_name_the_sides_the_other_way_round_are_drawn_the_same(name):
    found = shape(name)
    states = dict.fromkeys(range(0, found.puc_count, 3), CROSS)
    routes = traced(found, states, 0, 5)
    expected = lines(text(found, states, routes, condition=WELL))
    assert lines(text(mirrored(found), states, routes, condition=WELL)) == expected


@pytest.mark.parametrize(("name", "degrees"), [("square:6x6", 15), ("hexagon:2", 30), ("4x3", 90)])
def test_a_mesh_that_lies_askew_is_drawn_too_and_its_numbers_stay_apart(name, degrees):
    found, turn = shape(name), radians(degrees)
    points = tuple((x * cos(turn) - y * sin(turn), x * sin(turn) + y * cos(turn)) for x, y in found.points)
    drawn = lines(text(replace(found, points=points), {}, [], condition=WELL))
    written = [int(number) for line in drawn for number in re.findall("[0-9]+", line)]
    assert sorted(written) == list(range(found.port_count))
