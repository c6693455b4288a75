import sys
from io import BytesIO
from xml.etree import ElementTree as ET

import pytest

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric import Route, exits, mesh, trace
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.drawing import png, svg
from lumctl.fabric.drawing.colours import ON_PAPER, tint

WELL = MeshCondition()


def lit(columns, rows, count):
    found = mesh(columns, rows)
    states = {puc: PucState.CROSS for puc in range(found.puc_count) if puc % 3 == 0}
    pairs = [(a, b) for a, b in exits(found, states).items() if a < b][:count]
    return found, states, [Route(pair, trace(found, states, pair[0]).passes) for pair in pairs]


def rgb(colour):
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))


@pytest.fixture
def opened():
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    return lambda data: image.open(BytesIO(data))


@pytest.mark.parametrize("scale", [1, 1.5])
def test_it_has_the_size_of_the_svg(opened, scale):
    task = lit(2, 2, 3)
    root = ET.fromstring(svg(*task, condition=WELL))  # noqa: S314 - our own
    picture = opened(png(*task, condition=WELL, scale=scale))
    assert picture.format == "PNG"
    for size, name in zip(picture.size, ("width", "height"), strict=True):
        assert size == pytest.approx(float(root.get(name)) * scale, abs=1)


def test_the_colour_of_every_circuit_is_there(opened):
    found, states, routes = lit(3, 3, 8)
    counts = dict(map(reversed, opened(png(found, states, routes, condition=WELL, scale=1)).getcolors(1 << 20)))
    assert all(counts.get(rgb(colour), 0) > 50 for colour in ON_PAPER[: len(routes)])
    bare = dict(map(reversed, opened(png(found, states, [], condition=WELL, scale=1)).getcolors(1 << 20)))
    assert not any(rgb(colour) in bare for colour in ON_PAPER[:6])


def test_dashes_leave_pale_gaps(opened):
    found, states, routes = lit(3, 3, 9)
    solid = opened(png(found, states, routes[8:], condition=WELL, scale=1)).getcolors(1 << 20)
    dashed = opened(png(found, states, routes, condition=WELL, scale=1)).getcolors(1 << 20)
    pale = rgb(tint(ON_PAPER[0]))
    assert pale not in dict(map(reversed, solid))
    assert dict(map(reversed, dashed))[pale] > 20


def test_same_question_same_picture(opened):
    one, other = (png(*lit(2, 1, 4), condition=WELL, scale=1) for _ in range(2))
    assert opened(one)
    assert one == other


@pytest.mark.parametrize("scale", [0, 200])
def test_scales_that_make_no_picture_are_refused(opened, scale):
    assert opened
    with pytest.raises(UsageError, match="pixels is not possible"):
        png(mesh(1, 1), {}, [], condition=WELL, scale=scale)


def test_without_pillow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UsageError, match="needs the package Pillow") as refused:
        png(mesh(1, 1), {}, [], condition=WELL)
    assert "lumctl[png]" in refused.value.hint
