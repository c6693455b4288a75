"""The first screen, used by its keys: the racks drawn or as a table, the selection, its details and its links."""

from dataclasses import replace

import pytest

from lumctl.health.states import State
from lumctl.inventory.model import Rack
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.rack import RackScreen
from lumctl.tui.widgets.pane_area import PaneArea
from lumctl.tui.widgets.rack_view import RackView


def chosen(app):
    return app.screen.query_one(RackView).chosen


def test_the_accelerator_that_the_headline_names_is_selected_and_arrows_move_on(rack64, kit):
    async def script(pilot):
        assert chosen(pilot.app) == "h03-gpu2"
        await pilot.press("down", "right", "j", "k", "left")
        await pilot.pause()
        assert chosen(pilot.app) == "h04-gpu2"
        assert " h04-gpu2  ● ok  train-a/19" in kit.screen_text(pilot.app)
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))

    kit.drive(rack64("lost-gpu").dashboard(), script, size=(120, 36))


def test_the_selection_stays_where_it_is_when_a_fault_comes(rack64, kit):
    stage = rack64("all-ok")

    async def script(pilot):
        await pilot.press("down", "down")
        selected = chosen(pilot.app)
        stage.seen = rack64("lost-gpu").seen
        await pilot.press("r")
        await kit.until(pilot, lambda: "h03-gpu2 fell off the bus" in kit.screen_text(pilot.app))
        assert chosen(pilot.app) == selected
        await pilot.press("p")
        await kit.until(pilot, lambda: stage.planned == [("train-a", "h03-gpu2")])

    kit.drive(stage.dashboard(), script, size=(120, 36))


def test_the_accelerators_of_a_dead_host_are_planned_together(rack64, kit):
    stage = rack64("dead-host")

    async def script(pilot):
        await pilot.press("p")
        await kit.until(pilot, lambda: stage.planned)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == [("train-a", *(f"h07-gpu{n}" for n in range(4)))]


def test_a_key_turns_to_temperature_and_power_and_back(rack64, kit):
    async def script(pilot):
        for said, unit in (("utilisation in %", "%"), ("temperature in C", "C"), ("power in W", "W")):
            text = kit.screen_text(pilot.app)
            assert said in text
            assert next(line for line in text.splitlines() if line.startswith(" h01")).count(f"{unit} ") >= 3
            await pilot.press("m")
            await pilot.pause()
        assert "utilisation in %" in kit.screen_text(pilot.app)

    kit.drive(rack64("all-ok").dashboard(), script, size=(120, 36))


def test_a_key_shows_the_table_and_the_picture_again(stage, kit):
    async def script(pilot):
        await pilot.press("t")
        assert "NAME" in kit.screen_text(pilot.app)
        await pilot.press("2", "1")
        assert "NAME" in kit.screen_text(pilot.app)
        await pilot.press("t")
        assert "NAME" not in kit.screen_text(pilot.app)
        await pilot.press("2", "1", "m")
        await kit.until(pilot, lambda: "temperature in" in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script)


def test_a_filter_is_for_the_table(stage, kit):
    async def script(pilot):
        await pilot.press("slash", *"r1-h3", "enter")
        assert "1 of 6 racks, meshes and hosts" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize(("width", "beside"), [(139, False), (140, True), (220, True)])
def test_from_140_columns_the_details_stand_beside(rack64, kit, width, beside):
    async def script(pilot):
        text = kit.screen_text(pilot.app)
        assert ("what to do" in text) == beside
        if beside:
            await pilot.press("down")
            await pilot.pause()
            assert any("heat, power and clocks" in line[80:] for line in kit.screen_text(pilot.app).splitlines())

    kit.drive(rack64("lost-gpu").dashboard(), script, size=(width, 40))


def test_a_dark_transmitter_is_named_beside_its_accelerator(rack64, kit):
    async def script(pilot):
        text = kit.screen_text(pilot.app)
        assert "h05-gpu1-a: sends no light" in text
        assert text.count("✖ gpu1") == 1  # the one that sends nothing
        assert text.count("◐ gpu1") == 1  # the one that only hears nothing

    kit.drive(rack64("dark-transmitter").dashboard(), script, size=(120, 36))


def test_ages_go_on_while_nothing_is_read(rack64, kit):
    stage = rack64("all-ok")
    stage.records = replace(kit.records(), watched=True)

    async def script(pilot):
        assert "last change swap-0007 done 38 s ago" in kit.screen_text(pilot.app)
        stage.now += 10
        pilot.app._tick()
        await pilot.pause()
        assert "last change swap-0007 done 48 s ago" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script, size=(120, 36))


def two_racks(kit):
    """The same hosts in two racks, with a fault in the second."""
    seen = kit.observation(failed=None)
    inventory = seen.inventory
    second = {"r1-h3", "r1-h4"}
    hosts = {name: replace(h, rack="r2") if name in second else h for name, h in inventory.hosts.items()}
    accelerators = {
        name: replace(each, rack="r2") if each.host in second else each for name, each in inventory.accelerators.items()
    }
    racks = {"r1": Rack("r1"), "r2": Rack("r2")}
    both = replace(inventory, racks=racks, hosts=hosts, accelerators=accelerators)
    return kit.with_states(replace(seen, inventory=both), {"r1-h3-g1": State.FAILED})


def test_each_of_several_racks_is_drawn_small_and_space_opens_the_selected_one(stage, kit):
    stage.seen = two_racks(kit)

    async def script(pilot):
        lines = kit.screen_text(pilot.app).splitlines()
        title = next(line for line in lines if line.startswith(" r1 "))
        assert "r2" in title
        assert chosen(pilot.app) == "r1-h3-g1"
        await pilot.press("space")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, RackScreen))
        await kit.until(pilot, lambda: "g1 llm/9" in kit.screen_text(pilot.app))
        text = kit.screen_text(pilot.app)
        assert text.splitlines()[0].startswith(" r2 ")
        assert "2 hosts, 8 accelerators: 1 failed, 7 ok" in text

    kit.drive(stage.dashboard(), script)


def test_a_click_selects_on_the_first_screen_and_a_second_one_opens(stage, kit):
    async def script(pilot):
        picture = pilot.app.screen.query_one(RackView).picture
        line, column = picture.layout_of_cells.spots["r1-h3-g2"]
        await pilot.click("#heat", offset=(column + 1, line))
        await pilot.pause()
        assert chosen(pilot.app) == "r1-h3-g2"
        await pilot.click("#heat", offset=(column + 1, line))
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))

    kit.drive(stage.dashboard(), script)


def test_a_fault_is_never_out_of_sight_without_a_word(stage, kit, monkeypatch):
    for name, value in (("HOSTS", 128), ("PER_HOST", 8), ("WORKERS", 8 * 126)):
        monkeypatch.setattr(kit, name, value)

    async def script(pilot):
        assert "with a fault" not in kit.screen_text(pilot.app)
        await pilot.press("end")
        await kit.until(pilot, lambda: "1 with a fault above (pgup, pgdn)" in kit.screen_text(pilot.app))
        await pilot.press("home")
        await kit.until(pilot, lambda: "with a fault" not in kit.screen_text(pilot.app))

    kit.drive(stage.dashboard(), script, size=(80, 24))


def test_the_details_of_what_a_run_replaces_say_what_the_run_does(rack64, kit):
    async def script(pilot):
        text = " ".join(kit.screen_text(pilot.app).split())
        assert "nothing: swap-0008" in text
        assert "replace it by a spare" not in text

    kit.drive(rack64("swap-under-way").dashboard(), script, size=(160, 50))


def test_the_details_of_an_accelerator_begin_with_the_fault_of_its_transmitter(rack64, kit):
    async def script(pilot):
        lines = [line[106:].rstrip() for line in kit.screen_text(pilot.app).splitlines()]
        found = next(number for number, line in enumerate(lines) if "h05-gpu1-a: link.tx-power" in line)
        assert found < next(n for n, line in enumerate(lines) if "heat, power" in line)
        evidence = next(number for number, line in enumerate(lines) if "evidence" in line)
        start = lines[evidence].index("sends no light")
        assert lines[evidence + 1] == f"{' ' * start}but a circuit needs it"  # below the value, not below the label

    kit.drive(rack64("dark-transmitter").dashboard(), script, size=(160, 50))


@pytest.mark.parametrize(("ascii_only", "sign"), [(False, "…"), (True, "..")])
def test_a_headline_that_is_too_long_ends_with_the_sign_of_a_cut(rack64, kit, ascii_only, sign):
    async def script(pilot):
        lines = kit.screen_text(pilot.app).splitlines()
        assert lines[3].rstrip().endswith(sign)
        await pilot.resize_terminal(120, 36)
        await kit.until(pilot, lambda: "check its power, network" in kit.screen_text(pilot.app))

    kit.drive(rack64("dark-rack").dashboard(ascii_only=ascii_only), script, size=(60, 24))


@pytest.mark.parametrize("height", [36, 24, 18])
def test_faults_are_counted_as_out_of_sight_only_where_they_are(rack64, kit, monkeypatch, height):
    """Before the picture has its height, its last lines only seem to be out of sight."""
    shown, count = [], PaneArea._show_rows

    def record(area):
        count(area)
        shown.append(area.line)

    monkeypatch.setattr(PaneArea, "_show_rows", record)
    stage = rack64("lost-gpu")
    states = dict.fromkeys(("h08-gpu1", "h15-gpu2", "h16-gpu1"), State.FAILED)
    stage.seen = kit.with_states(stage.seen, states)

    async def script(pilot):
        await pilot.pause()
        assert "with a fault" not in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script, size=(120, height))
    assert shown
    assert not [line for line in shown if "with a fault" in line]
