"""Runbooks on the dashboard: read, replayed a step at a time, compared."""

import threading
from types import SimpleNamespace

import pytest
import top_told as told

from lumctl.errors import UsageError
from lumctl.tui.look.marks import Marks
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.runbook import ComparisonScreen, RunbookScreen
from lumctl.tui.threads.replay import ReplayView
from lumctl.tui.views.comparison import MOST, ComparisonView, Differing, comparison_text


class Simulator:
    """In place of a simulator: goes through the steps and ends as it is told."""

    def __init__(self, ends=None):
        self.ends = ends or ReplayView("identical: done as recorded", identical=True)
        self.done = []
        self.up, self.over = threading.Event(), threading.Event()
        self.up.set()

    def __call__(self, key, progress, gate):
        assert key == "r1/swap-0007"
        try:
            assert self.up.wait(20)
            for number, title, _ in told.STEPS:
                if not gate(number):
                    return ReplayView(f"stopped before step {number}", None)
                self.done.append(number)
                progress(f"{number}. {title}: 0.01 s")
            if isinstance(self.ends, Exception):
                raise self.ends
            return self.ends
        finally:
            self.over.set()


@pytest.fixture
def rack(stage, kit):
    """A dashboard with two runbooks, of which the first can be replayed."""
    stage.records = kit.Records(runs=(kit.run(7), kit.run(6)))
    simulator = Simulator()
    compared = []

    def compare(a, b):
        compared.append((a, b))
        found = (Differing("steps", "step 2", "program 14 cells", "program 15 cells"),)
        return ComparisonView("swap-0007", "swap-0006", found, (("recorded", 1.51, None),))

    stage.sources = {"runbook": lambda _key: told.runbook(), "compare": compare}
    stage.acts = {"replay": simulator}
    return SimpleNamespace(stage=stage, simulator=simulator, compared=compared)


def text(pilot, kit):
    return kit.screen_text(pilot.app)


async def opened(pilot, kit, *keys):
    """Open the runbook under the cursor and wait until it stands there."""
    await pilot.press(*(keys or ("7", "enter")))
    await kit.until(pilot, lambda: "A replay runs on a private simulator" in text(pilot, kit))


def test_a_runbook_is_read_with_what_each_step_needs_and_proves(rack, kit):
    async def script(pilot):
        await opened(pilot, kit)
        shown = text(pilot, kit)
        for words in (
            "llm: replace r1-h2-g1 by r1-h4-g0",
            "A replay runs on a private simulator: no rack is changed",
            "ops@bastion",
            "the accelerator to replace (default r1-h2-g1)",
            "the rack (must be given)",
            "r1-h4-g0 has the shortest light paths",
            "10 others on the same devices stay as they are",
            "what step 1 needs",
            "what step 2 proves",
            "the cells as they were",
            "done, 1.12 s",
        ):
            assert words in shown
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(rack.stage.dashboard(), script, size=(110, 60))


def test_what_failed_and_what_was_taken_back_is_told():
    from lumctl.tui.views.runbook_text import runbook_text

    document = told.runbook(taken_back=[{"step": "2", "at": "", "outcome": {}}])
    document["steps"][2]["outcome"] = {"failed": "no light at r1-h4-g0-l0"}
    document["steps"][1]["outcome"] = None
    shown = runbook_text(document).plain
    assert "failed: no light at r1-h4-g0-l0" in shown
    assert "2. program 14 cells of mesh1  not reached" in shown
    assert "undone at once" in shown


def test_a_runbook_that_cannot_be_read_is_a_line(rack, kit):
    def unread(_key):
        raise UsageError("no run 'swap-0007'", hint="lumctl runbook list")

    rack.stage.sources["runbook"] = unread

    async def script(pilot):
        await pilot.press("7", "enter")
        await kit.until(pilot, lambda: "not read: no run 'swap-0007' (hint: lumctl runbook list)" in text(pilot, kit))
        await pilot.press("s")
        assert "has not been read yet" in text(pilot, kit)

    kit.drive(rack.stage.dashboard(), script)


def test_a_replay_waits_before_each_step(rack, kit):
    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("s")
        await kit.until(pilot, lambda: "waits before step 1" in text(pilot, kit))
        assert rack.simulator.done == []
        await pilot.press("n")
        await kit.until(pilot, lambda: "waits before step 2" in text(pilot, kit))
        assert rack.simulator.done == ["1"]
        await pilot.press("s")  # one at a time
        assert "it is being replayed" in text(pilot, kit)
        await pilot.press("space")
        await kit.until(pilot, lambda: "waits before step 3" in text(pilot, kit))
        await pilot.press("n")
        await kit.until(pilot, lambda: "identical: done as recorded" in text(pilot, kit))
        assert text(pilot, kit).count("the same") == 3

    kit.drive(rack.stage.dashboard(), script)


def test_a_key_that_comes_before_a_step_waits_does_not_let_it_go(rack, kit):
    rack.simulator.up.clear()

    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("n", "g")
        assert "nothing is being replayed" in text(pilot, kit)
        await pilot.press("s", "n", "n")
        assert "a private simulator starts" in text(pilot, kit)
        rack.simulator.up.set()
        await kit.until(pilot, lambda: "waits before step 1" in text(pilot, kit))
        assert rack.simulator.done == []
        await pilot.press("g")
        await kit.until(pilot, lambda: "identical" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)


def test_a_replay_runs_to_its_end_and_marks_the_step_where_it_differs(rack, kit):
    rack.simulator.ends = ReplayView(
        "first difference at step 2: program", identical=False, step="2", recorded="14 cells", replayed="15 cells"
    )

    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("s")
        await kit.until(pilot, lambda: "waits before step 1" in text(pilot, kit))
        await pilot.press("g")
        await kit.until(pilot, lambda: "first difference at step 2" in text(pilot, kit))
        shown = text(pilot, kit)
        assert "recorded       14 cells" in shown
        assert "replayed       15 cells" in shown
        marked = [line for line in shown.splitlines() if "DIFFERS" in line]
        assert len(marked) == 1
        assert "2. program 14 cells" in marked[0]
        assert shown.count("the same") == 1
        await pilot.press("s")
        await kit.until(pilot, lambda: "waits before step 1" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)


def test_escape_stops_a_replay_and_a_second_one_leaves(rack, kit):
    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("s")
        await kit.until(pilot, lambda: "waits before step 1" in text(pilot, kit))
        await pilot.press("n")
        await kit.until(pilot, lambda: "waits before step 2" in text(pilot, kit))
        await pilot.press("escape")
        await kit.until(pilot, lambda: "stopped before step 2" in text(pilot, kit))
        assert "the same" not in text(pilot, kit)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(rack.stage.dashboard(), script)
    assert rack.simulator.done == ["1"]


def test_the_program_is_quit_in_a_replay_which_ends_by_itself(rack, kit):
    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("s")
        await kit.until(pilot, lambda: "waits before step 1" in text(pilot, kit))
        await pilot.press("q")

    kit.drive(rack.stage.dashboard(), script)
    assert rack.simulator.over.wait(20)
    assert rack.simulator.done == []


def test_a_replay_that_cannot_begin_is_a_line(rack, kit):
    rack.simulator.ends = UsageError("swap-0007 names r9-h1-g0, which is not in the inventory")

    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("s", "g")
        await kit.until(pilot, lambda: "not replayed: swap-0007 names r9-h1-g0" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)


def test_two_runbooks_are_marked_and_compared(rack, kit):
    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("c")
        assert "marked; go to another runbook" in text(pilot, kit)
        await pilot.press("c")
        assert "no longer marked" in text(pilot, kit)
        await pilot.press("c", "escape")
        await opened(pilot, kit, "j", "enter")
        await pilot.press("c")
        await kit.until(pilot, lambda: "program 15 cells" in text(pilot, kit))
        assert isinstance(pilot.app.screen, ComparisonScreen)
        assert "swap-0007 beside swap-0006" in text(pilot, kit)
        assert "recorded: 1.51 s and not known" in text(pilot, kit)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, RunbookScreen)
        await pilot.press("c")
        assert "marked" in text(pilot, kit)

    kit.drive(rack.stage.dashboard(), script)
    assert rack.compared == [("r1/swap-0007", "r1/swap-0006")]


def test_runbooks_that_cannot_be_compared_are_a_line(rack, kit):
    def uncompared(_a, _b):
        raise UsageError("the store is gone")

    rack.stage.sources["compare"] = uncompared

    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("c", "escape")
        await opened(pilot, kit, "j", "enter")
        await pilot.press("c")
        await kit.until(pilot, lambda: "not compared: the store is gone" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)


def test_many_differences_are_counted_before_they_are_told():
    found = tuple(Differing("cells", f"mesh1/{n}", "to bar", None) for n in range(MOST + 5))
    shown = comparison_text(ComparisonView("a", "b", found, counts=("cells on mesh1: 405",)), Marks({})).plain
    assert f"{MOST + 5} differences" in shown
    assert "cells on mesh1: 405" in shown
    assert "5 more; all of them" in shown
    assert "they are the same" in comparison_text(ComparisonView("a", "b", ()), Marks({})).plain
