"""The log: one line for each thing that was done, decided or said, and for each change of health."""

from dataclasses import replace

import pytest
import swap_journal

from lumctl.cli.output import GLYPHS
from lumctl.cli.top.records import log_of
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store import JournalEntry
from lumctl.tui.look.marks import Marks, clock
from lumctl.tui.panes.incidents import log_rows
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.run import RunScreen
from lumctl.tui.views.records import RecordedLook, Records

MARKS = Marks(GLYPHS)
LOST = "r1-h2-g1"


def remark(kind, **data):
    return JournalEntry("r1", 1, "", 5.0, kind, "", data, 0, "0.1.0", "", "")


def texts(kit, journal):
    run = kit.run(plan=swap_journal.PLAN)
    return [line.text for line in log_of("r1", journal, [run])]


def changed(at):
    return Transition(at, LOST, "accelerator", State.OK, State.FAILED, ("gpu.lost",), "XID 79")


def test_steps_are_told_once_by_what_came_of_them_the_newest_first(kit):
    assert texts(kit, swap_journal.done(100.0)) == [
        "swap-0007 ends: done",
        "swap-0007 done: show that each receiver hears its transmitter, 2 receivers proved",
        "swap-0007 done: program 14 cells of mesh1",
        "swap-0007 done: check that r1-h4-g0 is healthy",
        "swap-0007 begins: llm: replace r1-h2-g1 by r1-h4-g0",
    ]
    assert texts(kit, swap_journal.begun(100.0))[0] == "swap-0007 begins to program 14 cells of mesh1"


def test_what_failed_has_the_state_failed_and_says_why(kit):
    run = kit.run(plan=swap_journal.PLAN, state="half-done")
    lines = log_of("r1", swap_journal.rolled_back(100.0), [run])
    assert [line.text for line in lines if line.state is State.FAILED] == [
        "swap-0007 ends: half-done: mesh1 refused cell 17",
        "swap-0007 not undone: program 14 cells of mesh1: no session to mesh1",
        "swap-0007 failed: program 14 cells of mesh1: mesh1 refused cell 17",
    ]
    assert all(line.run == "swap-0007" for line in lines)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (remark("autopilot", event="stop", comment="drill", who="ops"), "autopilot: stop, comment drill"),
        (
            remark("approval", state="approved", plan="plan-1", digest="0" * 64),
            "approval of plan-1: approved, plan plan-1",
        ),
        (
            remark("decision", decisions=[{"key": "k", "act": "apply", "policy": "replace", "because": "it is lost"}]),
            "k: apply by replace, it is lost",
        ),
        (remark("note", text="shelf moved", who="ops"), "note: text shelf moved"),
        (
            remark("phase-failed", job="train", phase="gradients", devices=["rail0"], why="t2 hears t9 instead of t0"),
            "train: phase gradients on rail0 has no right light: t2 hears t9 instead of t0",
        ),
    ],
)
def test_what_was_decided_and_said_is_a_line(entry, text):
    assert [line.text for line in log_of("r1", [entry], [])] == [text]


def test_a_change_of_health_is_a_line_in_its_place(kit):
    lines = log_of("r1", swap_journal.done(100.0), [kit.run(plan=swap_journal.PLAN)], [changed(99.0)])
    assert lines[-1].text == f"{LOST} is failed, was ok (gpu.lost): XID 79"
    assert (lines[-1].who, lines[-1].component, lines[-1].run, lines[-1].state) == ("health", LOST, None, State.FAILED)


def test_each_line_wears_the_state_that_it_reports(kit):
    run = kit.run(plan=swap_journal.PLAN)
    halt = remark("autopilot", event="halt", who="ops")
    back = replace(changed(kit.START - 1), before=State.FAILED, after=State.OK)
    lines = log_of("r1", (*swap_journal.done(kit.START - 50), halt), [run], [changed(kit.START - 95), back])
    rows = log_rows(RecordedLook(kit.observation(), Records(log=tuple(lines))), MARKS)
    marks = {line.text: row.cells[-1].text[:2] for line, row in zip(lines, rows, strict=True)}
    assert marks[f"{LOST} is failed, was ok (gpu.lost): XID 79"] == f"{GLYPHS[State.FAILED]} "
    assert marks[f"{LOST} is ok, was failed (gpu.lost): XID 79"] == f"{GLYPHS[State.OK]} "
    assert marks["swap-0007 ends: done"] == f"{GLYPHS[State.OK]} "
    assert marks["autopilot: halt"] == f"{GLYPHS[State.DEGRADED]} "
    assert marks["swap-0007 done: check that r1-h4-g0 is healthy"] == "  "


def test_a_moment_of_another_day_has_its_date(kit):
    assert clock(kit.START, kit.START).count(":") == 2
    assert clock(kit.START - 3 * 86400, kit.START).count("-") == 1


def test_a_new_line_leaves_the_others_their_keys(kit):
    def keys(*changes):
        records = Records(log=tuple(log_of("r1", swap_journal.done(kit.START - 50), [], changes)))
        return [row.key for row in log_rows(RecordedLook(kit.observation(), records), MARKS)]

    assert keys(changed(kit.START))[1:] == keys()


def test_enter_on_a_line_opens_its_run_or_its_component(stage, kit):
    run = kit.run(plan=swap_journal.PLAN)
    lines = log_of("r1", swap_journal.done(run.started_at), [run], [changed(kit.START - 95)])
    stage.records = Records(runs=(run,), log=tuple(lines))
    stage.sources["run"] = lambda _key: swap_journal.view(kit)

    async def script(pilot):
        await pilot.press("0")
        assert "swap-0007 ends: done" in kit.screen_text(pilot.app)
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        await pilot.press("escape", "slash", *"failed", "enter")
        assert "1 of 6 lines match" in kit.screen_text(pilot.app)
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
        assert kit.screen_text(pilot.app).startswith(f" {LOST}")

    kit.drive(stage.dashboard(), script)
