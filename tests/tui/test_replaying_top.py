"""The dashboard while it plays a recorded run: every screen says so, and where the run stands."""

import pytest

from lumctl.cli.output import GLYPHS
from lumctl.tui.actions import Acts
from lumctl.tui.app import Dashboard
from lumctl.tui.look.marks import Marks
from lumctl.tui.sources import Sources
from lumctl.tui.widgets.playback import Playback, PlaybackLine, PlayedLine

TITLE = "REPLAY of swap-0002, recorded 2026-11-21 03:12:07, at 1x"
NEXT = PlaybackLine("next is step 2 of 8: program 9 PUCs of mesh1", 4)
ODD = PlaybackLine("swap-0002 has ended; first difference at step 7: a circuit", grave=True)


@pytest.fixture
def playing(stage):
    """A dashboard that plays a run, and where that stands, which the test may change."""
    stands = [NEXT]
    dashboard = Dashboard(
        Sources(stage.observe, lambda: stage.records),
        Acts(stage.plan, stage.apply, "this is a replay of swap-0002, which only shows past steps"),
        racks=["r1"],
        target="replay",
        marks=Marks(GLYPHS, ascii_only=False),
        interval_s=3600,
        now=lambda: stage.now,
        playback=Playback(TITLE, lambda: stands[0]),
    )
    return dashboard, stands


def test_the_top_bar_and_the_line_beneath_it_tell_of_the_replay_on_every_screen(playing, kit):
    dashboard, _ = playing

    async def script(pilot):
        first, second = kit.screen_text(dashboard).splitlines()[:2]
        assert TITLE in first
        assert "TARGET replay" in first
        assert "read-only" in first
        assert second.strip() == "next is step 2 of 8: program 9 PUCs of mesh1 (in 4 s)"
        await pilot.press("2", "enter")
        await kit.until(pilot, lambda: dashboard.screen is not dashboard._main and dashboard.screen.query(PlayedLine))
        assert "TARGET replay" in kit.screen_text(dashboard).splitlines()[0]
        assert "next is step 2 of 8" in kit.screen_text(dashboard).splitlines()[1]

    kit.drive(dashboard, script)


def test_what_the_run_has_done_is_looked_at_at_once_and_a_countdown_alone_is_not(playing, stage, kit):
    dashboard, stands = playing

    async def script(pilot):
        await pilot.pause()
        looks = stage.looks
        stands[0] = PlaybackLine(NEXT.text, 1)
        dashboard._tick()
        stands[0] = ODD
        dashboard._tick()
        await kit.until(pilot, lambda: stage.looks > looks)
        assert stage.looks == looks + 1
        (line,) = dashboard.screen.query(PlayedLine)
        assert line.has_class("-grave")
        assert ODD.text in kit.screen_text(dashboard)

    kit.drive(dashboard, script)


def test_nothing_is_planned_from_a_replay(playing, stage, kit):
    dashboard, _ = playing

    async def script(pilot):
        await pilot.press("2", "p")
        await pilot.pause()
        assert "this is a replay of swap-0002" in kit.screen_text(dashboard)
        assert stage.planned == []

    kit.drive(dashboard, script)


def test_without_a_replay_there_is_no_such_line(stage, kit):
    dashboard = stage.dashboard()

    async def script(pilot):
        dashboard._tick()
        await pilot.pause()
        assert not dashboard.screen.query(PlayedLine)

    kit.drive(dashboard, script)
