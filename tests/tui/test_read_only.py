"""Where nothing may be changed: it is said, it is not offered, and no way leads to a change."""

import os
from dataclasses import replace

import pytest

from lumctl.cli.top.operations import VARIABLE, why_read_only
from lumctl.errors import RefusedError
from lumctl.store import open_store
from lumctl.tui.actions import Acts, only_shown
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.incident import IncidentScreen
from lumctl.tui.screens.main import MainScreen

WHY = "read-only: the store of r1 is not writable: Permission denied"


@pytest.fixture
def forbidden(stage):
    stage.forbidden = WHY
    return stage


@pytest.fixture
def rack(kit, tmp_path, monkeypatch):
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    return kit.inventory()


def test_it_is_a_word_in_the_top_bar_of_every_screen(forbidden, kit):
    async def script(pilot):
        for keys in (["1"], ["2", "enter"], ["escape", "question_mark"]):
            await pilot.press(*keys)
            await pilot.pause()
            assert " read-only" in kit.screen_text(pilot.app).splitlines()[0]

    kit.drive(forbidden.dashboard(), script, size=(80, 24))


def test_no_change_is_offered_and_the_reason_is_told(forbidden, kit):
    async def script(pilot):
        await pilot.press("2")
        assert "plan swap" not in kit.screen_text(pilot.app)
        await pilot.press("p")
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)
        assert WHY in kit.screen_text(pilot.app)
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
        assert "plan swap" not in kit.screen_text(pilot.app)
        await pilot.press("p")
        await kit.until(pilot, lambda: WHY in kit.screen_text(pilot.app))

    kit.drive(forbidden.dashboard(), script)
    assert forbidden.planned == []


def test_the_help_says_why_and_leaves_out_what_may_not_be_done(forbidden, kit):
    async def script(pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        assert WHY in kit.screen_text(pilot.app)
        assert "Plan to replace it by a spare" not in kit.screen_text(pilot.app)

    kit.drive(forbidden.dashboard(), script, size=(110, 90))


def test_whoever_may_is_offered_it(stage, kit):
    async def script(pilot):
        await pilot.press("2")
        assert "plan swap" in kit.screen_text(pilot.app)
        assert "read-only" not in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_no_act_is_done_by_whatever_way_it_is_asked_for(stage):
    acts = only_shown(Acts(stage.plan, stage.apply, forbidden=WHY))
    for act in (acts.plan, acts.apply, acts.acknowledge, acts.undo):
        with pytest.raises(RefusedError, match="read-only"):
            act("llm", "r1-h2-g1")
    assert stage.planned == stage.applied == []


def test_a_store_that_can_be_written_allows_it(rack):
    assert why_read_only(rack, "sim", asked=False) == ""


def test_asked_for_by_the_option_or_the_environment(rack, monkeypatch):
    assert "--read-only" in why_read_only(rack, "sim", asked=True)
    monkeypatch.setenv(VARIABLE, "1")
    assert f"${VARIABLE}" in why_read_only(rack, "sim", asked=False)
    monkeypatch.setenv(VARIABLE, "0")
    assert why_read_only(rack, "sim", asked=False) == ""


def test_a_store_that_may_only_be_read(rack, monkeypatch):
    open_store(rack, "r1", "sim").close()
    monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
    assert why_read_only(rack, "sim", asked=False) == WHY


def test_a_store_that_cannot_be_made(rack, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "file"))
    assert why_read_only(rack, "sim", asked=False).startswith("read-only: the store at ")


def test_a_store_out_of_reach_says_nothing_of_rights(rack, monkeypatch):
    rack = replace(rack, racks={"r1": replace(rack.racks["r1"], store="postgresql://127.0.0.1:1/none")})
    monkeypatch.delenv("LUMCTL_STATE")
    assert why_read_only(rack, "rack", asked=False) == ""


def test_a_plan_is_refused_with_the_reason_and_the_command(shows, forbidden):
    lines = shows(forbidden, "2", "p", size=(80, 24)).splitlines()
    assert lines[0].startswith("lumctl r1 TARGET sim read-only live, read 0 s ago")
    assert " ".join(lines[2:4]).startswith(
        "✖ r1-h2-g1 fell off the bus; llm rank 5 is down; lumctl swap plan --failed r1-h2-g1; also: llm/4-5 is dark"
    )
    assert lines[-2] == WHY
    assert lines[-1] == "5 incidents enter details m mark s shell l log ? all keys q quit"


def test_an_incident_names_no_key_that_may_not_be_used(forbidden, kit):
    async def script(pilot):
        await pilot.press("5")
        await pilot.pause()
        text = kit.screen_text(pilot.app)
        assert "p: " not in text
        assert "plan swap" not in text
        assert "replace it by a spare: lumctl swap plan" in text
        await pilot.press("1", "p")
        await pilot.pause()
        assert WHY in kit.screen_text(pilot.app)
        await pilot.press("5", "enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, IncidentScreen))
        text = kit.screen_text(pilot.app)
        assert "press p" not in text
        assert "plan swap" not in text
        assert "replace it by a spare: lumctl swap plan" in text
        await pilot.press("p")
        await kit.until(pilot, lambda: WHY in kit.screen_text(pilot.app))

    kit.drive(forbidden.dashboard(), script, size=(140, 30))
    assert forbidden.planned == []
