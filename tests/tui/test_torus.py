"""The torus on the screen: layers, slices, fullest fibres; slices are planned and released from there."""

import pytest
from fake_torus import FakeRack

from lumctl.cli.output import ASCII_GLYPHS
from lumctl.errors import RefusedError
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.tui.actions import PlanView
from lumctl.tui.look.marks import Marks
from lumctl.tui.screens.plan import PlanScreen
from lumctl.tui.screens.torus import TorusScreen
from lumctl.tui.views.torus import torus_lines
from lumctl.tui.widgets.prompt import Question

PLAIN = Marks(ASCII_GLYPHS, ascii_only=True)


@pytest.fixture
def rack():
    made = FakeRack(load_inventory(example("torus64")))
    made.carry_out(made.planned("4x4x1", "tenant-a"))
    made.carry_out(made.planned("2x2x2", "tenant-b"))
    return made


def lines(rack, width=80):
    return [line.plain.rstrip() for line in torus_lines(rack.observe(), PLAIN, width)]


def test_each_accelerator_has_its_place_and_each_slice_its_letter(rack):
    head, titles, *layers = lines(rack)[:6]
    assert head == "torus64 4x4x4: 28 free, 2 slices; layers of z, lines of x, columns of y"
    assert titles.split() == ["z=0", "z=1", "z=2", "z=3"]
    cells = " ".join(layers).split()
    assert {mark: cells.count(mark) for mark in "AB#s."} == {"A": 16, "B": 8, "#": 8, "s": 4, ".": 28}
    # Host 16 is at (1, 1, 3) of the servers, whose accelerators are 2 x 2 x 1.
    assert [line.split()[-2:] for line in layers] == [[".", "."], [".", "."], ["s", "s"], ["s", "s"]]
    text = "\n".join(lines(rack))
    assert "A tenant-a  4x4x1  16 ranks" in text
    assert "B tenant-b  2x2x2  8 ranks" in text
    assert text.isascii()


def test_what_is_not_ok_and_what_is_full_is_marked(rack):
    lost = rack.placed["tenant-b"][0]
    rack.ill[lost] = State.FAILED
    text = "\n".join(lines(rack))
    assert f"B{ASCII_GLYPHS[State.FAILED]}" in text
    assert f"B tenant-b  2x2x2  8 ranks, 1 not ok: {lost}" in text
    name, carried = max(rack.carried().items(), key=lambda each: each[1])
    assert f"{carried}/4" in text
    assert (" full" in text) == (carried == 4), name
    rack.silent = ("m07",)
    assert "- " in lines(rack)[2] + lines(rack)[3] + lines(rack)[4] + lines(rack)[5]


@pytest.mark.parametrize("width", [0, 20, 40, 80, 160])
def test_layers_stand_side_by_side_as_far_as_they_fit(rack, width):
    titles = [line for line in lines(rack, width) if line.startswith("z=")]
    assert all(len(line) <= max(width, 11) for line in titles)
    assert "".join(titles).count("z=") == 4
    assert len(titles) == {0: 4, 20: 4, 40: 2, 80: 1, 160: 1}[width]


def test_a_slice_is_planned_and_released_by_keys(stage, rack, kit):
    asked = []

    def plan(*words):
        asked.append(words)
        if words == ("9x9x9", "big"):
            raise RefusedError("there is no place for it")
        return PlanView(f"place {words[-1]}", "sim", (), "the plan")

    stage.seen, stage.racks = rack.observe(), ("torus64",)
    stage.acts = {"place_slice": plan, "release_slice": plan}

    async def script(pilot):
        async def enter(key, text):
            await kit.until(pilot, lambda: isinstance(pilot.app.screen, TorusScreen))
            await pilot.press(key)
            await kit.until(pilot, lambda: pilot.app.screen.query_one(Question).opened)
            await pilot.press(*("space" if each == " " else each for each in text), "enter")

        await pilot.press("z")
        await enter("n", "4x4x2")
        await kit.until(pilot, lambda: "type a shape and a name" in kit.screen_text(pilot.app))
        assert not asked
        await pilot.press("escape")
        await enter("n", "9x9x9 big")
        await kit.until(pilot, lambda: "no plan: there is no place for it" in kit.screen_text(pilot.app))
        await pilot.press("escape")
        await enter("x", "tenant-a")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, PlanScreen) and "place tenant-a" in text_of(pilot))
        await pilot.press("y", "enter")
        stage.may_end.set()
        await kit.until(pilot, lambda: "run-7: done" in text_of(pilot))
        await pilot.press("escape")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, TorusScreen))

    def text_of(pilot):
        return kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script, size=(80, 24))
    assert asked == [("9x9x9", "big"), ("tenant-a",)]
    assert len(stage.applied) == 1


def test_read_only_nothing_is_asked(stage, rack, kit):
    stage.seen, stage.racks, stage.forbidden = rack.observe(), ("torus64",), "read-only, as requested"

    async def script(pilot):
        await pilot.press("z")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, TorusScreen))
        await pilot.press("n")
        await kit.until(pilot, lambda: "read-only, as requested" in kit.screen_text(pilot.app))
        assert not pilot.app.screen.query_one(Question).opened

    kit.drive(stage.dashboard(), script, size=(80, 24))


def test_an_inventory_without_a_torus_says_so(stage, kit):
    async def script(pilot):
        await pilot.press("z")
        await kit.until(pilot, lambda: "no rack of the inventory has a torus" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)
