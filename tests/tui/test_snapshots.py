"""The screens as text, and as pictures where colour matters.

After a wanted change: pytest tests/tui --snapshot-update, and look at what differs.
"""

import pytest

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.tui.panes import PANES
from lumctl.tui.screens.plan import Phase

SMALL = (80, 24)


@pytest.mark.parametrize("pane", [*"1234567890"], ids=[pane.id for pane in PANES])
def test_panes(reads_as_before, stage, kit, pane):
    stage.records = kit.records()
    assert reads_as_before(stage, pane)


def test_accelerators_in_a_small_terminal(reads_as_before, stage):
    assert reads_as_before(stage, "2", size=SMALL)


def test_all_is_well(reads_as_before, stage, kit):
    stage.seen = kit.observation(failed=None)
    assert reads_as_before(stage, "4")


def test_the_rack_itself_is_told_from_the_simulator(reads_as_before, kit):
    assert reads_as_before(kit.Stage(target="rack"))


def test_ascii_only(reads_as_before, stage):
    assert reads_as_before(stage, "3", ascii_only=True)


def test_without_colour(looks_as_before, stage, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert looks_as_before(stage, "2", "down")


def test_filtered(reads_as_before, stage):
    assert reads_as_before(stage, "2", "slash", *"h2", "enter")


def test_a_component(reads_as_before, stage):
    assert reads_as_before(stage, "2", "enter")


def test_help(reads_as_before, stage):
    assert reads_as_before(stage, "question_mark", size=(110, 48))


def test_never_read(reads_as_before, stage):
    stage.seen = DeviceUnreachableError("no session to r1-h1", hint="is the simulator up? lumctl sim up")
    assert reads_as_before(stage)


def test_old_data_stand_with_their_age_when_the_source_is_lost(reads_as_before, stage, kit):
    async def lose_the_source(pilot):
        stage.seen = DeviceUnreachableError("no session to any host")
        stage.now += 75
        await pilot.press("r")
        await kit.until(pilot, lambda: pilot.app.trouble)

    assert reads_as_before(stage, "2", then=lose_the_source)


def test_a_plan_that_asks(looks_as_before, stage, kit):
    async def asked(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)

    assert looks_as_before(stage, "2", "p", then=asked)


def test_an_apply_under_way(looks_as_before, stage, kit):
    async def apply(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: "2. program" in kit.screen_text(pilot.app))

    assert looks_as_before(stage, "2", "p", then=apply)
    stage.may_end.set()


def test_an_apply_that_is_done(reads_as_before, stage, kit):
    async def apply(pilot):
        stage.may_end.set()
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ENDED)

    assert reads_as_before(stage, "2", "p", then=apply)
