"""Runbooks and policies as pictures: read, replayed, compared; calm and in trouble; small, plain and empty."""

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


@pytest.mark.parametrize("size", [(110, 48), SMALL], ids=["large", "small"])
def test_a_runbook(reads_as_before, filled, stands, size):
    assert reads_as_before(filled, "7", "enter", size=size, then=stands(["A replay runs"]))


def test_a_replay_that_waits(reads_as_before, filled, stands, kit):
    async def replay(pilot):
        await stands(["A replay runs"], "s")(pilot)
        await stands(["waits before step 1"], "n")(pilot)
        await kit.until(pilot, lambda: "waits before step 2" in kit.screen_text(pilot.app))

    assert reads_as_before(filled, "7", "enter", size=SMALL, then=replay)


@pytest.mark.parametrize("ascii_only", [False, True], ids=["marks", "ascii"])
def test_a_replay_that_differs(reads_as_before, filled, stands, kit, ascii_only):
    async def replay(pilot):
        await stands(["A replay runs"], "s")(pilot)
        await stands(["waits before step 1"], "g")(pilot)
        await kit.until(pilot, lambda: "first difference" in kit.screen_text(pilot.app))

    assert reads_as_before(filled, "7", "enter", size=SMALL, ascii_only=ascii_only, then=replay)


def test_two_runbooks(reads_as_before, filled, stands):
    keys = ("7", "enter", "c", "escape", "j", "enter", "c")
    assert reads_as_before(filled, *keys, size=SMALL, then=stands(["program 15 cells"]))


def test_policies_in_trouble(reads_as_before, filled):
    assert reads_as_before(filled, "8")


def test_an_autopilot(reads_as_before, filled):
    assert reads_as_before(filled, "8", "enter", size=(110, 36))


def test_a_stop_that_asks(reads_as_before, filled):
    assert reads_as_before(filled, "8", "enter", "x", size=SMALL)


def test_an_autopilot_without_policies(reads_as_before, filled, kit):
    filled.records = kit.Records(
        autopilots=(told.autopilot(state="off", policies=[], waiting=[], decisions=[], last_decided_at=None),)
    )
    assert reads_as_before(filled, "8", "enter", size=SMALL)


def test_a_decision(reads_as_before, filled, stands):
    keys = ("8", "j", "j", "j", "j", "enter")
    assert reads_as_before(filled, *keys, size=SMALL, then=stands(["1 of 1 swaps"]))


def test_a_plan_that_waits_for_approval(reads_as_before, filled, stands):
    assert reads_as_before(filled, "8", "j", "j", "enter", size=SMALL, then=stands(["spares considered"], "y"))


def test_the_meshes_of_a_plan_that_waits(reads_as_before, on_mesh, filled, stands, kit):  # noqa: ARG001 - with room
    plan = PlanView("llm: replace", "sim", kit.PLAN_LINES, None, changes=(kit.mesh_change(),))
    filled.sources["asked_plan"] = lambda _rack, _plan: plan

    async def view(pilot):
        await stands(["spares considered"], "v")(pilot)
        await kit.until(pilot, lambda: "PUCs change" in kit.screen_text(pilot.app))

    assert reads_as_before(filled, "8", "j", "j", "enter", size=(110, 48), then=view)
