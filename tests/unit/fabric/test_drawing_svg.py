import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import Route, exits, mesh, trace
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.drawing import svg
from lumctl.fabric.drawing.colours import DASHES, ON_PAPER, dashes, line_colour
from lumctl.fabric.shapes import shape

BAR, CROSS = PucState.BAR, PucState.CROSS
WELL = MeshCondition()
SVG = "{http://www.w3.org/2000/svg}"
SHAPES = ("1x1", "2x2", "9x9", "1x5", "hexagon:3", "square:1x1", "square:5x4")


def everything_lit(name, *, seed=7):
    """A mesh in mixed states with a circuit wherever light goes."""
    found = shape(name)
    states = {puc: CROSS if puc * seed % 5 < 2 else BAR for puc in range(found.puc_count)}
    pairs = [(a, b) for a, b in exits(found, states).items() if a < b]
    return found, states, [Route(pair, trace(found, states, pair[0]).passes) for pair in pairs]


def parsed(drawn):
    return ET.fromstring(drawn)  # noqa: S314 - our own


def groups(root, kind):
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == kind]


def curves(path):
    """The start of a path and the points of each of its curves."""
    start, *rest = path.get("d").removeprefix("M").rstrip("Z").split("C")
    pieces = [[float(number) for number in piece.split()] for piece in rest]
    assert all(len(piece) == 6 for piece in pieces)
    return [float(number) for number in start.split()], pieces


@pytest.mark.parametrize("name", SHAPES)
def test_a_circuit_goes_in_through_each_puc_round_each_corner_and_out(name):
    found, states, routes = everything_lit(name)
    circuits = groups(parsed(svg(found, states, routes, condition=WELL)), "circuit")
    assert len(circuits) == len(routes)
    for group, route in zip(circuits, routes, strict=True):
        for path in group.iter(f"{SVG}path"):
            _, pieces = curves(path)
            assert len(pieces) == 2 * len(route.passes) + 1
        a, b = route.ports
        assert f"ports {a} and {b}, {len(route.passes)} PUCs" in group.findtext(f"{SVG}title")


@pytest.mark.parametrize("name", SHAPES)
def test_light_runs_smoothly(name):
    found, states, routes = everything_lit(name)
    for group in groups(parsed(svg(found, states, routes, condition=WELL)), "circuit"):
        _, pieces = curves(group.find(f"{SVG}path"))
        for this, after in pairwise(pieces):
            joint = complex(*this[4:])
            arriving, leaving = joint - complex(*this[2:4]), complex(*after[:2]) - joint
            assert min(abs(arriving), abs(leaving)) > 0.5
            assert (arriving * leaving.conjugate()).real > 0.97 * abs(arriving) * abs(leaving)


@pytest.mark.parametrize("name", SHAPES)
def test_nothing_lies_outside_the_sheet(name):
    found, states, routes = everything_lit(name)
    condition = MeshCondition(stuck={0: CROSS, 1: BAR}, damaged=frozenset({2}), blocked_ports=frozenset({0, 3}))
    names = [f"rack64/a-rather-long-name-of-a-ring/{at}" for at in range(len(routes))]
    root = parsed(svg(found, states, routes, condition=condition, names=names, title="a title " * 8))
    left, top, width, height = (float(number) for number in root.get("viewBox").split())
    assert (left, top) == (0, 0)
    for path in root.iter(f"{SVG}path"):
        start, pieces = curves(path)
        numbers = [*start, *(number for piece in pieces for number in piece)]
        assert min(numbers) > 0
        assert max(numbers[::2]) < width
        assert max(numbers[1::2]) < height
    for words in root.iter(f"{SVG}text"):
        x, y, size = float(words.get("x")), float(words.get("y")), float(words.get("font-size"))
        room = 0.55 * size * len(words.text)
        begin = x - room / 2 if words.get("text-anchor") else x
        assert 0 < begin < begin + room < width
        assert size < y < height


@pytest.mark.parametrize("name", SHAPES)
def test_every_port_has_its_number_and_every_puc_its_name(name):
    found, states, routes = everything_lit(name)
    root = parsed(svg(found, states, routes, condition=WELL))
    ports = groups(root, "port")
    assert [group.findall(f"{SVG}text")[-1].text for group in ports] == [str(p) for p in range(found.port_count)]
    titles = [group.findtext(f"{SVG}title") for group in groups(root, "puc")]
    for puc, title in enumerate(titles):
        assert title.startswith(f"PUC {puc}, {states[puc].word}, carries ")
    assert len(titles) == found.puc_count


def test_gates_show_their_state_by_shape():
    found = mesh(1, 1)
    condition = MeshCondition(stuck={2: BAR}, damaged=frozenset({3}))
    pucs = groups(parsed(svg(found, {1: CROSS}, [], condition=condition)), "puc")
    middles = []
    for puc in (0, 1):
        start, pieces = curves(pucs[puc].findall(f"{SVG}path")[1])
        middles.append((complex(*start), complex(*pieces[0][4:])))
    (bar_start, bar_end), (cross_start, cross_end) = middles
    assert abs(cross_end - cross_start) > abs(bar_end - bar_start) + 1  # over to the other side
    assert pucs[2].findtext(f"{SVG}title") == "PUC 2, bar, stuck"
    assert pucs[3].findtext(f"{SVG}title") == "PUC 3, bar, damaged"
    frames = [group.find(f"{SVG}path") for group in pucs]
    assert float(frames[2].get("stroke-width")) > 2 * float(frames[0].get("stroke-width"))
    assert len({frame.get("fill") for frame in frames[:4]}) == 4


def test_it_stands_alone_and_says_what_it_is():
    found, states, routes = everything_lit("2x2")
    drawn = svg(found, states, routes, condition=WELL, names=[f"ring{at}" for at in range(len(routes))], title="rack")
    root = parsed(drawn)
    assert root.get("role") == "img"
    by_id = {element.get("id"): element.text for element in root.iter() if element.get("id")}
    title, description = (by_id[name] for name in root.get("aria-labelledby").split())
    assert title == "rack: 19 PUCs, 20 ports, 10 circuits"
    assert "A: ring0, ports 0 and " in description
    assert not re.search(r"href|url\(|<style|<script|<image|@import", drawn)
    assert drawn.count("http") == 1  # the name space


def test_circuits_are_told_apart_by_colour_or_pattern():
    looks = {(line_colour(number), dashes(number)) for number in range(32)}
    assert len(looks) == len(ON_PAPER) * len(DASHES) == 32
    found, states, routes = everything_lit("9x9")
    seen = set()
    for group in groups(parsed(svg(found, states, routes[:32], condition=WELL)), "circuit"):
        seen.add(tuple((p.get("stroke"), p.get("stroke-dasharray")) for p in group.iter(f"{SVG}path")))
    assert len(seen) == 32


@settings(max_examples=40)
@given(st.text(max_size=20))
def test_any_name_makes_xml(name):
    found, states, routes = everything_lit("1x1")
    names = [name, *map(str, range(1, len(routes)))]
    root = parsed(svg(found, states, routes, condition=WELL, names=names, title=name or "-"))
    if name.isprintable() and name.strip():
        assert name in [words.text for words in root.iter(f"{SVG}text")]


def test_same_question_same_drawing():
    one, other = (svg(*everything_lit("3x3"), condition=WELL) for _ in range(2))
    assert one == other
    assert "nan" not in one
    assert "-0 " not in one


def test_no_positions_no_drawing():
    with pytest.raises(UsageError, match="its positions"):
        svg(replace(mesh(1, 1), points=()), {}, [], condition=WELL)


def test_two_ends_in_one_place_cannot_be_drawn():
    found = mesh(1, 1)
    with pytest.raises(UsageError, match="both ends of PUC 0 have the same position"):
        svg(replace(found, points=(found.points[0],) * len(found.points)), {}, [], condition=WELL)


def test_names_come_one_for_each_route():
    found, states, routes = everything_lit("1x1")
    with pytest.raises(ValueError, match="zip"):
        svg(found, states, routes, condition=WELL, names=["only one"])
