"""The screen of a mesh and of a switch, and the change of a plan as a picture, used by their keys."""

import re
from dataclasses import replace

import pytest
from textual.widgets import Input

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.errors import UsageError
from lumctl.fabric import condition_of, mesh, mesh_of
from lumctl.fabric.drawing import Glyph, difference
from lumctl.fabric.drawing.text import grid
from lumctl.inventory.model import Device, DeviceKind
from lumctl.tui.look.circuit_styles import circuit_styles
from lumctl.tui.look.themes import THEMES
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.mesh import MeshScreen
from lumctl.tui.screens.plan import Phase
from lumctl.tui.views.meshes import MeshView, circuits_on
from lumctl.tui.views.ports import with_powers
from lumctl.tui.widgets.picture import PictureWidget
from lumctl.tui.widgets.table import PaneTable

SMALL, WIDE = (80, 24), (160, 40)


async def open_mesh(pilot, kit):
    pilot.app.screen.go_to("mesh1")
    await kit.until(pilot, lambda: isinstance(pilot.app.screen, MeshScreen) and not pilot.app.screen._reading)


def picture(app):
    """The lines of the drawing, with what is out of sight."""
    shown = app.screen.query_one("#chip", PictureWidget)
    return [shown._line(number) for number in range(shown._lines)]


def styles(lines):
    return {str(span.style) for line in lines for span in line.spans}


def a_switch(ports=64):
    return Device(
        "mesh1", "r1", DeviceKind.SWITCH, "polatis", "10.0.0.9:830", None, ports, 0, 1.0, 20, input_count=ports
    )


def test_circuits_are_traced_with_letters_and_listed_worst_first(on_mesh, kit):
    async def script(pilot):
        await open_mesh(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert "device read 3 s ago" in text
        assert "circuits: 2 failed, 10 ok" in text
        rows = [row.cells[0].text + row.component for row in pilot.app.screen.query_one(PaneTable)._order]
        assert rows[:3] == ["Ellm/4-5", "Fllm/5-6", "Allm/0-1"]
        assert "E   ✖ failed    llm/4-5    28:31  dark / dark" in text
        drawn = "".join(line.plain for line in picture(pilot.app))
        assert all(letter in drawn for letter in "ABCDEFGHJKLM")

    kit.drive(on_mesh.dashboard(), script, size=WIDE)


def test_a_chosen_circuit_stands_out_until_all_are_drawn_alike(on_mesh, kit):
    async def script(pilot):
        await open_mesh(pilot, kit)
        assert "circuit:0" in styles(picture(pilot.app))
        await pilot.press("down")
        await pilot.pause()
        seen = styles(picture(pilot.app))
        assert {style for style in seen if ":" in style} == {"chosen:5"}
        await pilot.press("k")
        assert "chosen:4" in styles(picture(pilot.app))
        await pilot.press("a")
        assert not any(style.startswith("chosen") for style in styles(picture(pilot.app)))

    kit.drive(on_mesh.dashboard(), script)


def test_the_chosen_circuit_is_scrolled_into_sight_in_a_small_terminal(on_mesh, kit):
    async def script(pilot):
        await open_mesh(pilot, kit)
        chip = pilot.app.screen.query_one("#chip", PictureWidget)
        assert chip.scroll_offset.y == 0
        await pilot.press("down", *["down"] * 7)
        await pilot.pause()
        assert chip.scroll_offset.y > 0
        await pilot.press(*["shift+up"] * 12)
        await pilot.pause()
        assert chip.scroll_offset.y == 0

    kit.drive(on_mesh.dashboard(), script, size=SMALL)


def test_enter_opens_the_circuit_and_i_the_device(on_mesh, kit):
    async def script(pilot):
        await open_mesh(pilot, kit)
        for key, name in (("enter", "llm/4-5"), ("i", "mesh1")):
            await pilot.press(key)
            await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
            assert kit.screen_text(pilot.app).startswith(f" {name}  TARGET sim")
            await pilot.press("escape")
            assert isinstance(pilot.app.screen, MeshScreen)

    kit.drive(on_mesh.dashboard(), script)


def test_a_device_that_cannot_be_read_shows_the_record_and_says_so(on_mesh, kit):
    on_mesh.holds = replace(on_mesh.holds, read_at=None, trouble="mesh1 cannot be read back")

    async def script(pilot):
        await open_mesh(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert "from the record" in text
        assert "mesh1 cannot be read back; the picture shows the record of the last write" in text
        assert "4 PUCs" in text

    kit.drive(on_mesh.dashboard(), script, size=WIDE)


def test_of_a_device_of_which_nothing_is_known_the_circuits_are_listed(on_mesh, kit):
    on_mesh.holds = DeviceUnreachableError("no answer from mesh1", hint="is it on?")

    async def script(pilot):
        await open_mesh(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert "no answer from mesh1 (hint: is it on?)" in text
        assert text.count("not known") >= 8

    kit.drive(on_mesh.dashboard(), script)


def test_cells_that_are_not_as_written_are_named_and_so_is_where_light_really_goes(on_mesh, kit):
    view = on_mesh.holds
    first = next(iter(circuits_on(kit.observation(), kit.inventory().devices["mesh1"], view)))
    puc = first.route.pucs[1]
    on_mesh.holds = replace(view, cells={**view.cells, puc: "=" if view.cells[puc] == "x" else "x"})

    async def script(pilot):
        await open_mesh(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert f"it differs from what was written at 1 cell: {puc}" in text
        assert ", not 7" in text

    kit.drive(on_mesh.dashboard(), script, size=WIDE)


def test_stuck_and_damaged_pucs_are_marked(on_mesh, kit, monkeypatch):
    rack = kit.inventory()
    broken = replace(rack.devices["mesh1"], stuck={140: "bar"}, damaged=frozenset({150}))
    monkeypatch.setattr(kit, "inventory", lambda: replace(rack, devices={"mesh1": broken}))

    async def script(pilot):
        await open_mesh(pilot, kit)
        assert {"stuck", "damaged"} <= styles(picture(pilot.app))
        assert "! stuck in bar" in kit.screen_text(pilot.app)

    kit.drive(on_mesh.dashboard(), script)


def test_it_is_drawn_again_only_if_something_has_changed(on_mesh, kit, monkeypatch):
    drawn = []
    draw = MeshScreen._draw
    monkeypatch.setattr(MeshScreen, "_draw", lambda screen: (drawn.append(screen.size), draw(screen))[1])

    async def script(pilot):
        await open_mesh(pilot, kit)
        await pilot.pause()
        drawn.clear()
        pilot.app.screen._show()
        assert drawn == []
        await pilot.resize_terminal(*SMALL)
        await kit.until(pilot, lambda: drawn)
        assert set(drawn) == {SMALL}

    kit.drive(on_mesh.dashboard(), script, size=WIDE)


def test_a_picture_that_could_not_be_drawn_is_reported_until_it_can(on_mesh, kit, monkeypatch):
    def refuse(*_, **__):
        raise UsageError("the mesh is too large to draw")

    async def script(pilot):
        with monkeypatch.context() as patch:
            patch.setattr("lumctl.tui.screens.mesh.chip", refuse)
            await open_mesh(pilot, kit)
            assert "the mesh is too large to draw" in kit.screen_text(pilot.app)
        await pilot.press("down")
        await pilot.pause()
        assert "the mesh is too large to draw" not in kit.screen_text(pilot.app)

    kit.drive(on_mesh.dashboard(), script, size=WIDE)


def test_the_device_s_own_powers_are_shown(on_mesh, kit):
    on_mesh.holds = replace(on_mesh.holds, powers=dict.fromkeys(range(76), -3.5))

    async def script(pilot):
        await open_mesh(pilot, kit)
        assert "4 PUCs, at the ports -3.5 / -3.5" in kit.screen_text(pilot.app)

    kit.drive(on_mesh.dashboard(), script, size=(200, 30))


def test_where_there_is_room_they_stand_at_the_ports_in_the_drawing(on_mesh, kit):
    powers = {port: -3.5 - port / 10 for port in range(76)} | {25: float("-inf")}
    on_mesh.holds = replace(on_mesh.holds, powers=powers)

    async def script(pilot):
        await open_mesh(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert "at the ports" not in text
        for circuit in kit.observation().circuits:
            for port in circuit.ports:
                said = "dark" if port == 25 else f"{powers[port]:.1f}"
                beside = rf"{port}\S? {said}|{said} {port}|{port}:{said}"  # to the right, to the left, above or below
                assert re.search(rf"(?<!\d){beside}(?!\d)", text), (port, said)
        dark = [line for line in picture(pilot.app) if "dark" in line.plain]
        assert len(dark) == 1
        assert "removed" in styles(dark)  # as bold and as red as what has failed

    kit.drive(on_mesh.dashboard(), script, size=(200, 50))


def test_a_power_stands_nowhere_where_something_else_does():
    chip = mesh(9, 9)
    places = grid(chip, 60)
    rows = tuple(tuple(Glyph("#") for _ in range(places.columns)) for _ in range(places.lines))
    written = with_powers(rows, chip, places, dict.fromkeys(range(76), -3.5))
    assert written.ports
    assert sum(glyph.char == "#" for row in written.rows for glyph in row) == places.columns * places.lines


def test_a_switch_is_a_table_of_joined_ports(stage, kit, monkeypatch):
    rack = kit.inventory()
    monkeypatch.setattr(kit, "inventory", lambda: replace(rack, devices={"mesh1": a_switch()}))
    stage.holds = MeshView("mesh1", {1: "2", 3: "5", 40: "41", 9: "-"}, kit.START - 3)

    async def script(pilot):
        await open_mesh(pilot, kit)
        lines = {
            line[line.index("llm/") :].split()[0]: line
            for line in kit.screen_text(pilot.app).splitlines()
            if "llm/" in line
        }
        assert "connected" in lines["llm/0-1"]
        assert "to 5, not 4" in lines["llm/1-2"]
        assert "not connected" in lines["llm/3-4"]
        assert "not known" not in kit.screen_text(pilot.app)
        await pilot.press("end")
        assert "no job needs it  40:41" in kit.screen_text(pilot.app)
        assert "of joined ports" not in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_ascii_means_ascii_in_pictures(on_mesh, kit):
    on_mesh.changes = (kit.mesh_change(),)

    async def script(pilot):
        await open_mesh(pilot, kit)
        await pilot.press("down")
        assert kit.screen_text(pilot.app).isascii()
        await pilot.press("escape", "colon", *"r1", "enter")
        await pilot.pause()
        assert kit.screen_text(pilot.app).isascii()
        await pilot.press("p")
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("v")
        await pilot.pause()
        assert "PUCs change" in kit.screen_text(pilot.app)
        assert kit.screen_text(pilot.app).isascii()

    kit.drive(on_mesh.dashboard(ascii_only=True), script, size=SMALL)


def test_v_shows_the_change_of_a_plan_before_it_is_applied_and_its_text_again(on_mesh, kit):
    on_mesh.changes = (kit.mesh_change(),)

    async def script(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("v")
        await pilot.pause()
        text = kit.screen_text(pilot.app)
        assert "10 circuits stay as they are" in text
        assert pilot.app.screen.query_one(Input).value == ""
        shown = pilot.app.screen.query_one("#change", PictureWidget)
        lines = [shown._line(number).plain for number in range(shown._lines)]
        assert any(line.startswith("+  A llm/4-5  28:71") for line in lines)
        assert any(line.startswith("-    llm/4-5  28:31  4 PUCs go dark") for line in lines)
        await pilot.press("v")
        await pilot.press("v", "escape")
        await pilot.pause()
        assert "spares considered" in kit.screen_text(pilot.app)

    kit.drive(on_mesh.dashboard(), script)


def test_a_plan_without_meshes_says_that_there_is_nothing_to_draw(stage, kit):
    async def script(pilot):
        await pilot.press("2", "p")
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("v")
        await pilot.pause()
        assert "this plan changes no mesh that can be drawn" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


@pytest.mark.usefixtures("on_mesh")
def test_written_pucs_bear_what_they_become_and_dark_ways_are_dotted(kit):
    change = kit.mesh_change()
    drawn = difference(
        mesh_of(change.device),
        change.before,
        change.after,
        added=change.added,
        removed=change.removed.routes,
        kept=change.kept,
        condition=condition_of(change.device),
        ascii_only=True,
    )
    marks = [glyph for row in drawn.rows for glyph in row if glyph.style == "changed"]
    written = [puc for puc, state in change.after.items() if change.before[puc] is not state]
    assert len(marks) >= len(written) > 0
    assert {glyph.char for glyph in marks} <= {"+", "-"}
    assert any(glyph == (".", "removed") for row in drawn.rows for glyph in row)
    assert [circuit.letter for circuit in drawn.added] == ["A", "B"]


@pytest.mark.parametrize("theme", THEMES)
def test_every_theme_has_a_style_for_every_circuit(theme):
    named = circuit_styles(THEMES[theme])
    assert {f"{kind}:{number}" for kind in ("circuit", "chosen") for number in range(16)} <= set(named)
    assert all(style.reverse for name, style in named.items() if name.startswith("chosen"))
