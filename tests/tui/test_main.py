"""The main screen, used by its keys."""

import re
from dataclasses import replace

import pytest
from textual.widgets import ContentSwitcher

from lumctl.context.health_memory import LastRead
from lumctl.errors import LumctlError
from lumctl.health.states import State
from lumctl.tui.look.marks import STALE_STYLE
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.widgets.table import PaneTable

LOST = "r1-h2-g1"


def pane(app):
    current = app.screen.query_one(ContentSwitcher).current
    return "racks" if current == "rack-view" else current


def table(app):
    return app.screen.query_one(f"#{pane(app)}", PaneTable)


def components(app):
    return [row.component for row in table(app)._rows.values()]


async def enter(pilot, before, text, after):
    """Keys, a text into the line they have opened, keys."""
    await pilot.press(*before)
    pilot.app.focused.insert_text_at_cursor(text)
    await pilot.press(*after)


def test_numbers_and_tab_turn_to_panes(stage, kit):
    async def script(pilot):
        turned = []
        for key in ("0", "tab", "tab", "shift+tab", "3"):
            await pilot.press(key)
            turned.append(pane(pilot.app))
        assert turned == ["log", "racks", "accelerators", "racks", "circuits"]

    kit.drive(stage.dashboard(), script)


def test_what_is_wrong_stands_first(stage, kit):
    async def script(pilot):
        await pilot.press("2")
        assert components(pilot.app)[0] == LOST
        await pilot.press("3")
        assert components(pilot.app)[:2] == ["llm/4-5", "llm/5-6"]

    kit.drive(stage.dashboard(), script)


def test_a_filter_narrows_while_it_is_typed_and_escape_takes_it_away(stage, kit):
    async def script(pilot):
        await pilot.press("2", "slash", *"G2 sp")
        assert components(pilot.app) == ["r1-h4-g2"]
        await pilot.press("enter")
        assert pilot.app.focused is table(pilot.app)
        assert "1 of 16 accelerators match" in kit.screen_text(pilot.app)
        await pilot.press("escape")
        assert len(components(pilot.app)) == 16

    kit.drive(stage.dashboard(), script)


def test_a_filter_belongs_to_its_pane_and_may_match_nothing(stage, kit):
    async def script(pilot):
        await enter(
            pilot,
            (
                "2",
                "slash",
            ),
            "nonsense",
            ("enter",),
        )
        assert components(pilot.app) == []
        assert table(pilot.app).selected is None
        await pilot.press("enter", "j")
        assert isinstance(pilot.app.screen, MainScreen)
        await pilot.press("3")
        assert len(components(pilot.app)) == 12

    kit.drive(stage.dashboard(), script)


def test_going_to_names(stage, kit):
    async def script(pilot):
        for typed, expected_pane, expected_component in (
            ("circuits", "circuits", "llm/4-5"),
            ("r1-h4-g3", "accelerators", "r1-h4-g3"),
            ("R1-H3", "racks", "r1-h3"),
            ("llm/9-10", "circuits", "llm/9-10"),
        ):
            await enter(pilot, ["colon"], typed, ["enter"])
            assert pane(pilot.app) == expected_pane
            assert table(pilot.app).selected.component == expected_component

    kit.drive(stage.dashboard(), script)


def test_going_to_a_line_that_the_filter_hides(stage, kit):
    async def script(pilot):
        await enter(pilot, ["2", "slash"], "h1", ["enter"])
        await enter(pilot, ["colon"], "r1-h4-g3", ["enter"])
        assert table(pilot.app).selected.component == "r1-h4-g3"

    kit.drive(stage.dashboard(), script)


def test_a_name_without_a_line_opens_its_details(stage, kit):
    async def script(pilot):
        await enter(pilot, ("colon",), "r1-h2-g1-l0", ("enter",))
        await pilot.pause()
        assert isinstance(pilot.app.screen, DetailScreen)
        assert "port 10" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_tab_completes_a_name(stage, kit):
    async def script(pilot):
        await enter(pilot, ("colon",), "acc", ())
        await kit.until(pilot, lambda: "accelerators" in kit.screen_text(pilot.app).splitlines()[-2])
        await pilot.press("tab", "enter")
        assert pane(pilot.app) == "accelerators"

    kit.drive(stage.dashboard(), script)


def test_an_unknown_name_is_answered_with_the_nearest(stage, kit):
    async def script(pilot):
        await enter(pilot, ("colon",), "r1-h2-q1", ("enter",))
        await pilot.pause()
        assert "no pane or component 'r1-h2-q1'; did you mean 'r1-h2-g1'?" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_details_from_a_finding_and_back(stage, kit):
    async def script(pilot):
        await pilot.press("4", "down", "enter")
        await pilot.pause()
        assert "no light at either receiver" in kit.screen_text(pilot.app)
        assert "r1-h2-g1-l0" in kit.screen_text(pilot.app)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(stage.dashboard(), script)


def test_every_kind_of_component_has_details(stage, kit):
    async def script(pilot):
        for component in ("r1-h2", "llm/0-1"):
            await enter(pilot, ["colon"], component, ["enter", "enter"])
            await pilot.pause()
            assert isinstance(pilot.app.screen, DetailScreen)
            assert kit.screen_text(pilot.app).startswith(f" {component}  TARGET sim")
            await pilot.press("escape")

    kit.drive(stage.dashboard(), script)


def test_a_refresh_keeps_the_cursor_on_its_component(stage, kit):
    async def script(pilot):
        app = pilot.app
        await pilot.press("2", "down", "down", "down")
        selected = table(app).selected.component
        stage.seen = kit.with_states(kit.observation(at=kit.START + 2), {"r1-h4-g3": State.DEGRADED})
        await pilot.press("r")
        await kit.until(pilot, lambda: app.seen.observation.at == stage.seen.at)
        assert components(app)[:2] == [LOST, "r1-h4-g3"]
        assert table(app).selected.component == selected
        assert table(app).cursor_row == 4

    kit.drive(stage.dashboard(), script)


def test_a_refresh_draws_the_rows_that_changed_and_no_others(stage, kit, monkeypatch):
    async def script(pilot):
        app = pilot.app
        await pilot.press("2")
        drawn = []
        stage.seen = kit.observation(at=kit.START + 2)
        host = stage.seen.snapshot.hosts["r1-h1"]
        hot = replace(host, gpus=(replace(host.gpus[0], temperature_c=104), *host.gpus[1:]))
        stage.seen = replace(
            stage.seen, snapshot=replace(stage.seen.snapshot, hosts={**stage.seen.snapshot.hosts, "r1-h1": hot})
        )
        monkeypatch.setattr(PaneTable, "refresh", lambda _table, *regions, **_how: drawn.extend(regions))
        await pilot.press("r")
        await kit.until(pilot, lambda: app.seen.observation.at == stage.seen.at)
        assert [region.y for region in drawn] == [2]
        monkeypatch.undo()
        table(app).refresh()
        await kit.until(pilot, lambda: " 104C " in kit.screen_text(app))

    kit.drive(stage.dashboard(), script)


def test_ages_that_were_told_within_the_last_second_are_not_drawn_again(stage, kit):
    async def script(pilot):
        await pilot.press("2")
        drawn = []
        show = table(pilot.app).show
        table(pilot.app).show = lambda *told: drawn.append(stage.now - kit.START) or show(*told)
        for later in (0.4, 0.4, 0.4, -3600.0):  # and the clock of this machine may be put back
            stage.now += later
            pilot.app._tick()
            await pilot.pause()
        assert drawn == pytest.approx([1.2, 1.2 - 3600.0], abs=1e-3)

    kit.drive(stage.dashboard(), script)


def test_ages_grow_between_readings_and_an_old_one_is_marked(stage, kit):
    async def script(pilot):
        await pilot.press("2")
        stage.now += 12
        pilot.app._tick()
        await pilot.pause()
        assert "read 12 s ago" in kit.screen_text(pilot.app)
        assert " 12 s" in kit.screen_text(pilot.app).splitlines()[6]
        stage.now += 30
        pilot.app._tick()
        await pilot.pause()
        assert "42 s !" in kit.screen_text(pilot.app).splitlines()[6]

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (LumctlError("the simulator has gone", hint="lumctl sim up"), "the simulator has gone (hint: lumctl sim up)"),
        (ZeroDivisionError("division by zero"), "unexpected ZeroDivisionError: division by zero"),
    ],
)
def test_a_reading_that_fails_is_a_line_and_the_next_one_takes_it_away(stage, kit, error, line):
    async def script(pilot):
        app = pilot.app
        await pilot.press("2")
        stage.seen = error
        await pilot.press("r")
        await kit.until(pilot, lambda: app.trouble)
        assert line in kit.screen_text(app)
        assert "failing, read 0 s ago" in kit.screen_text(app)
        assert len(components(app)) == 16
        stage.seen = None
        await pilot.press("r")
        await kit.until(pilot, lambda: app.trouble is None)
        assert line not in kit.screen_text(app)

    kit.drive(stage.dashboard(), script)


def test_hosts_that_did_not_answer_are_said_in_the_header_and_old_readings_keep_their_age(stage, kit):
    async def script(pilot):
        app = pilot.app
        last_read = LastRead()
        last_read.recall(kit.observation(at=stage.now).report)
        stage.now += 5
        silent = kit.unreachable(kit.observation(at=stage.now))
        stage.seen = replace(silent, report=last_read.recall(silent.report))
        await pilot.press("2", "r")
        await kit.until(pilot, lambda: app.seen.observation.at == stage.now)
        assert "0 of 4 hosts answer, asked 0 s ago" in kit.screen_text(app)
        assert "live" not in kit.screen_text(app)
        assert app._freshness().style == STALE_STYLE
        lines = {line.split()[2]: line for line in kit.screen_text(app).splitlines() if " r1-h" in line}
        assert lines["r1-h1-g0"].endswith(" 5 s")
        assert lines[LOST].endswith(" never")

    kit.drive(stage.dashboard(), script)


def test_what_was_lost_is_counted_in_the_tabs(stage, kit):
    async def script(pilot):
        stage.seen = kit.unreachable(kit.observation(at=stage.now + 1, failed=None))
        await pilot.press("r")
        await kit.until(pilot, lambda: pilot.app.seen.observation.at > stage.now)
        assert "2 Accelerators ○16 " in kit.screen_text(pilot.app).splitlines()[1]

    kit.drive(stage.dashboard(), script)


@pytest.mark.parametrize("key", ["t", "2", "3", "4"])
def test_ages_are_in_sight_at_eighty_columns_whatever_else_is_said(stage, kit, key):
    stage.seen = kit.swapped_out(kit.observation(), LOST)
    stage.now += 119

    async def script(pilot):
        await pilot.press(key)
        await kit.until(pilot, lambda: re.search(r"\d+ (s !|min )", kit.screen_text(pilot.app)))

    kit.drive(stage.dashboard(), script, size=(80, 24))


def test_what_to_do_is_in_sight_under_a_long_evidence(stage, kit):
    async def script(pilot):
        await pilot.press("4")
        text = kit.screen_text(pilot.app)
        assert "replace it by a spare: lumctl swap plan" in text

    kit.drive(stage.dashboard(), script, size=(100, 24))


def test_an_interval_that_no_clock_knows_does_not_end_the_reading(stage, kit):
    stage.interval_s = float("inf")

    async def script(pilot):
        await kit.until(pilot, lambda: pilot.app.trouble)
        assert "unexpected" in pilot.app.trouble
        await pilot.press("r")
        await kit.until(pilot, lambda: stage.looks == 2)

    kit.drive(stage.dashboard(), script)


def test_ascii_means_ascii_on_every_screen(stage, kit):
    async def script(pilot):
        for keys in (["1"], ["2"], ["3"], ["4"], ["2", "enter"], ["escape", "question_mark"], ["escape", "2", "p"]):
            await pilot.press(*keys)
            await pilot.pause()
            assert kit.screen_text(pilot.app).isascii(), kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(ascii_only=True), script, size=(60, 12))


def test_without_colour_no_colour_is_sent(stage, kit, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(pilot):
        styles = [
            segment.style
            for strip in pilot.app.screen._compositor.render_strips()
            for segment in strip.apply_filter(pilot.app._filters[-1], pilot.app.screen.background_colors[0])
            if segment.style is not None
        ]
        assert styles
        assert all(s.color.is_default and s.bgcolor.is_default for s in styles if s.color and s.bgcolor)

    kit.drive(stage.dashboard(), script)


def test_q_quits(stage, kit):
    dashboard = stage.dashboard()

    async def script(pilot):
        await pilot.press("q")
        await kit.until(pilot, lambda: not dashboard.is_running)

    kit.drive(dashboard, script)


@pytest.mark.parametrize("gone", ["#freshness", "#banner"])
def test_a_tick_while_the_screen_is_removed_is_no_error(stage, kit, gone):
    async def script(pilot):
        await pilot.app.screen.query_one(gone).remove()
        pilot.app._tick()

    kit.drive(stage.dashboard(), script)
