"""Runbooks and policies: read, replayed, compared; calm and in trouble; small, plain and empty."""

import pytest
import top_told as told

from lumctl.tui.actions import PlanView
from lumctl.tui.threads.replay import ReplayView
from lumctl.tui.views.comparison import ComparisonView, Differing

SMALL = (80, 24)
UNLIKE = (
    Differing("start", "where llm runs", "rank 5 on r1-h2-g1", "rank 5 on r1-h2-g2"),
    Differing("steps", "step 2", "program 14 cells of mesh1", "program 15 cells of mesh1"),
    Differing("cells", "mesh1/17", "to bar", None),
)


@pytest.fixture
def filled(stage, kit):
    """A rack with two runbooks, and a policy by which a plan waits."""

    def replay(_key, progress, gate):
        for number, title, _ in told.STEPS[:2]:
            if not gate(number):
                return ReplayView("stopped before step 1; the changes on the simulator were undone", None)
            progress(f"{number}. {title}: 0.01 s")
        recorded, replayed = "cell 17 bar (of 14)", "cell 17 cross (of 14)"
        return ReplayView("first difference at step 2: program 14 cells of mesh1", False, "2", recorded, replayed)  # noqa: FBT003

    stage.records = kit.Records(runs=(kit.run(7), kit.run(6)), autopilots=(told.autopilot(),))
    again = told.decision(told.START, act="nothing", because="limits", conditions=[told.QUIET, told.HOUR])
    stage.sources = {
        "runbook": lambda _key: told.runbook(),
        "compare": lambda _a, _b: ComparisonView("swap-0007", "swap-0006", UNLIKE, (("recorded", 1.51, 1.62),)),
        "explain": lambda _seen, _rack: (again,),
        "asked_plan": lambda _rack, _plan: PlanView("llm: replace r1-h2-g1 by r1-h4-g0", "sim", kit.PLAN_LINES, None),
    }
    stage.acts = {"replay": replay}
    return stage


@pytest.fixture
def stands(kit):
    """Wait until some words stand on the screen."""

    def wait(words, *keys):
        async def then(pilot):
            for each in words:
                await kit.until(pilot, lambda each=each: each in kit.screen_text(pilot.app))
                if keys:
                    await pilot.press(*keys)

        return then

    return wait


def test_a_runbook(reads_as_before, filled, stands):
    assert reads_as_before(filled, "7", "enter", size=(110, 48), then=stands(["A replay runs"]))


def test_a_runbook_in_a_small_terminal(shows, filled, stands):
    shown = shows(filled, "7", "enter", size=SMALL, then=stands(["A replay runs"]))
    assert shown.startswith("runbook swap-0007 TARGET sim\nllm: replace r1-h2-g1 by r1-h4-g0\n")
    assert "A replay runs on a private simulator: no rack is changed, and no run is\nrecorded." in shown
    assert "outcome done\n" in shown
    assert "failed the accelerator to replace (default r1-h2-g1)" in shown
    assert shown.splitlines()[-1] == "esc back s replay on sim n next step g to end c compare ? help q quit"


def test_a_replay_that_waits(shows, filled, stands, kit):
    async def replay(pilot):
        await stands(["A replay runs"], "s")(pilot)
        await stands(["waits before step 1"], "n")(pilot)
        await kit.until(pilot, lambda: "waits before step 2" in kit.screen_text(pilot.app))

    shown = shows(filled, "7", "enter", size=SMALL, then=replay)
    assert "On a private simulator: no rack is changed, and no run is recorded." in shown
    assert "● done 1. check that r1-h4-g0 is healthy then: done, 0.31 s" in shown
    assert "> next 2. program 14 cells of mesh1 then: done, 0.08 s" in shown
    assert "progress\n1. check that r1-h4-g0 is healthy: 0.01 s\n" in shown
    assert "waits before step 2: n or space does it, g continues to the end, esc stops" in shown
    assert "DIFFERS" not in shown


@pytest.fixture
def replayed(stands, kit):
    """Replay a runbook to its first difference."""

    async def replay(pilot):
        await stands(["A replay runs"], "s")(pilot)
        await stands(["waits before step 1"], "g")(pilot)
        await kit.until(pilot, lambda: "first difference" in kit.screen_text(pilot.app))

    return replay


def test_a_replay_that_differs(reads_as_before, filled, replayed):
    assert reads_as_before(filled, "7", "enter", size=SMALL, then=replayed)


def test_a_replay_that_differs_in_ascii(shows, filled, replayed):
    shown = shows(filled, "7", "enter", size=SMALL, ascii_only=True, then=replayed)
    assert "+ the same 1. check that r1-h4-g0 is healthy then: done, 0.31 s" in shown
    assert "X DIFFERS 2. program 14 cells of mesh1 then: done, 0.08 s" in shown
    assert "X first difference at step 2: program 14 cells of mesh1" in shown
    assert "recorded cell 17 bar (of 14)\nreplayed cell 17 cross (of 14)\n" in shown
    assert "s: replay it again esc: back" in shown


def test_two_runbooks(reads_as_before, filled, stands):
    keys = ("7", "enter", "c", "escape", "j", "enter", "c")
    assert reads_as_before(filled, *keys, size=SMALL, then=stands(["program 15 cells"]))


def test_policies_in_trouble(reads_as_before, filled):
    assert reads_as_before(filled, "8")


def test_an_autopilot(reads_as_before, filled):
    assert reads_as_before(filled, "8", "enter", size=(110, 36))


def test_a_stop_that_asks(shows, filled):
    shown = shows(filled, "8", "enter", "x", size=SMALL)
    said = " ".join(shown.split())
    assert "● running: it does what its policies allow" in shown
    assert "breaker ◐ open for 90 s: 3 of 16 accelerators failed within 300 s" in shown
    assert "Stop the autopilot of r1 on TARGET sim? Then it does nothing automatically" in said
    assert "A swap in progress is finished or rolled back, not interrupted." in said
    assert "Type yes (and a reason, if you like) and press enter; esc cancels." in said


def test_an_autopilot_without_policies(shows, filled, kit):
    filled.records = kit.Records(
        autopilots=(told.autopilot(state="off", policies=[], waiting=[], decisions=[], last_decided_at=None),)
    )
    shown = shows(filled, "8", "enter", size=SMALL)
    assert "– off: there are no policies: nothing is ever done automatically\ndecided last never\n" in shown
    assert "decisions, newest first\nnone within a week\n" in shown
    assert "For example policies: lumctl-inventory(5)." in shown
    assert "running" not in shown
    assert "breaker" not in shown


def test_a_decision(reads_as_before, filled, stands):
    keys = ("8", "j", "j", "j", "j", "enter")
    assert reads_as_before(filled, *keys, size=SMALL, then=stands(["1 of 1 swaps"]))


def test_a_plan_that_waits_for_approval(reads_as_before, filled, stands):
    assert reads_as_before(filled, "8", "j", "j", "enter", size=SMALL, then=stands(["spares considered"], "y"))


def test_the_meshes_of_a_plan_that_waits(shows, on_mesh, filled, stands, kit):  # noqa: ARG001 - with room
    plan = PlanView("llm: replace", "sim", kit.PLAN_LINES, None, changes=(kit.mesh_change(),))
    filled.sources["asked_plan"] = lambda _rack, _plan: plan

    async def view(pilot):
        await stands(["spares considered"], "v")(pilot)
        await kit.until(pilot, lambda: "PUCs change" in kit.screen_text(pilot.app))

    lines = shows(filled, "8", "j", "j", "enter", size=(110, 48), then=view).splitlines()
    assert lines[0] == "approval of plan-1a2b3c4d TARGET sim"
    assert lines[1].startswith("policy replace requires it; made by autopilot: policy replace on console; expires in")
    assert lines[2] == "mesh1: 35 PUCs change, 10 circuits stay as they are"
    legend = lines.index("+ becomes cross - becomes bar · goes dark A added B stays")
    assert lines[legend + 1 : legend + 5] == [
        "+ A llm/4-5 28:71 25 PUCs",
        "+ B llm/5-6 72:37 34 PUCs",
        "- llm/4-5 28:31 4 PUCs go dark",
        "- llm/5-6 34:37 3 PUCs go dark",
    ]
    assert lines[-1] == "esc back v view y approve n reject ? help q quit"
