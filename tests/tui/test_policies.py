"""Policies on the dashboard: how they stand, what they decided, the switch, and plans that wait for a yes."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
import top_told as told

from lumctl.errors import RefusedError, UsageError
from lumctl.health.states import State
from lumctl.tui.actions import ApplyView, PlanView
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.policies import POLICIES, policy_rows
from lumctl.tui.screens.confirmation import typed_yes
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.views.policy_text import MEANINGS, STATES, autopilot_text, decision_text, policy_text
from lumctl.tui.views.records import RecordedLook

NOW = told.START
PLAIN = Marks({})


@pytest.fixture
def rack(stage, kit):
    """A dashboard on a rack with a policy, and what was ordered from it."""
    ordered = []

    def order(what):
        def do(rack, comment):
            ordered.append((what, rack, comment))
            return ApplyView(f"the autopilot of {rack} is told: {what}", done=True, lines=("by 4 of 4 ways",))

        return do

    def answer(rack, plan, comment, *, approve):
        ordered.append(("approve" if approve else "reject", rack, plan, comment))
        return ApplyView(f"{plan}: answered by ops@bastion", done=True)

    seen = kit.observation()
    stage.seen = replace(seen, inventory=replace(seen.inventory, policies=(told.policy(),)))
    stage.records = kit.Records(autopilots=(told.autopilot(),))
    stage.sources = {
        "explain": lambda _seen, _rack: (told.decision(NOW, act="nothing", conditions=[told.QUIET, told.HOUR]),),
        "asked_plan": lambda rack, plan: PlanView(f"{rack}: {plan}", "sim", kit.PLAN_LINES, None),
    }
    stage.acts = {"stop_autopilot": order("stop"), "start_autopilot": order("start"), "answer_plan": answer}
    return SimpleNamespace(stage=stage, ordered=ordered)


def standing(rack, **changed):
    """Have the autopilot stand another way."""
    rack.stage.records = replace(rack.stage.records, autopilots=(told.autopilot(**changed),))


def text(pilot, kit):
    """What stands on the screen, as if no line had been broken."""
    return " ".join(kit.screen_text(pilot.app).split())


async def type_in(pilot, words):
    """Type a line into the question that is open."""
    pilot.app.focused.insert_text_at_cursor(words)
    await pilot.press("enter")


def test_what_asks_for_a_person_is_counted_on_the_tab(kit):
    seen = RecordedLook(kit.observation(), kit.Records(autopilots=(told.autopilot(state="stopped", why="by ops"),)))
    rows = policy_rows(seen, PLAIN)
    assert [row.state for row in rows] == [State.DEGRADED] * 3 + [State.OK] * 2
    assert POLICIES.trouble(seen) == (State.DEGRADED,) * 3
    assert len({row.key for row in rows}) == len(rows)
    calm = replace(seen, records=kit.records())
    assert POLICIES.trouble(calm) == ()


def test_each_state_of_an_autopilot_is_told_in_words():
    assert set(STATES) == set(MEANINGS)
    for state, meaning in MEANINGS.items():
        shown = autopilot_text(told.autopilot(state=state, why="by ops@bastion: smoke"), PLAIN, NOW).plain
        assert f"{state}: {meaning}" in shown
        assert "by ops@bastion: smoke" in shown


def test_an_autopilot_with_its_policies_what_waits_and_what_it_decided():
    shown = autopilot_text(told.autopilot(), PLAIN, NOW).plain
    for words in (
        "policy replace: approve",
        "open for 90 s: 3 of 16 accelerators failed within 300 s",
        "1 of 1 (limit reached for now)",
        "1 of 3",
        "plan-1a2b3c4d: llm: replace r1-h2-g1 by r1-h4-g0",
        "60 s ago by autopilot: policy replace on console",
        "59 min",
        "r1-h2-g1: ask",
    ):
        assert words in shown
    assert shown.index("r1-h2-g1: ask") < shown.index("r1-h2-g1: nothing")


def test_a_policy_is_told_as_it_is_written():
    shown = policy_text(told.autopilot(), told.policy(), PLAIN, NOW).plain
    for words in (
        "gpu.lost, gpu.xid/restart-machine",
        "accelerator that are failed",
        "r1-h3-*",
        "mon-fri 08:00-23:00 (UTC)",
        "must last 30 s, and be at most 900 s old",
        "by someone who did not make the plan, within 60 min",
        "over 10% of a rack, and at least 2, fail within 300 s",
    ):
        assert words in shown


def test_a_decision_is_told_with_each_condition_then_and_now():
    decision = told.autopilot()["decisions"][0]
    again = (told.decision(NOW, act="nothing", conditions=[told.QUIET, told.HOUR]),)
    shown = decision_text(decision, again, "", PLAIN, NOW).plain
    assert "NO  stands           has lasted 0.0 s, must last 30 s" in shown
    assert "yes quiet            not on the list of components to leave alone" in shown
    assert "NO  rack-hour        1 of 1 swaps in r1 within an hour; may change in 30 min" in shown
    assert "nvidia-smi does not list it" in shown
    assert "being read" in decision_text(decision, None, "", PLAIN, NOW).plain
    assert "it has no fault any more" in decision_text(decision, (), "", PLAIN, NOW).plain


def test_a_decision_is_decided_again_on_its_screen(rack, kit):
    async def script(pilot):
        await pilot.press("8", "j", "j", "j", "enter")
        await kit.until(pilot, lambda: "not on the list of components to leave alone" in text(pilot, kit))
        assert "decision in r1" in text(pilot, kit)
        standing(rack, decisions=[])  # newer ones have pushed it out of the list: it stays in sight
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(rack.stage.dashboard(), script)


def test_what_cannot_be_decided_again_is_a_line(rack, kit):
    def unknown(_seen, _rack):
        raise UsageError("no store")

    rack.stage.sources["explain"] = unknown

    async def script(pilot):
        await pilot.press("8", "j", "j", "j", "enter")
        await kit.until(pilot, lambda: "no store" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)


def test_limits_and_lapses_go_on_while_the_screen_is_open(rack, kit):
    async def script(pilot):
        await pilot.press("8", "enter")
        assert "59 min" in text(pilot, kit)
        rack.stage.now += 600
        await kit.until(pilot, lambda: "49 min" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script, size=(110, 40))


def test_the_autopilot_is_stopped_by_a_typed_yes_only(rack, kit):
    async def script(pilot):
        await pilot.press("8", "enter", "x")
        shown = text(pilot, kit)
        assert "Stop the autopilot of r1 on TARGET sim?" in shown
        assert "finished or rolled back, not interrupted" in shown
        await type_in(pilot, "no")
        assert "The answer was not yes; nothing was done." in text(pilot, kit)
        await pilot.press("escape", "x")
        await type_in(pilot, "yes smoke in the hall")
        await kit.until(pilot, lambda: "the autopilot of r1 is told: stop" in text(pilot, kit))
        assert "by 4 of 4 ways" in text(pilot, kit)
        await kit.until(pilot, lambda: rack.stage.looks >= 2)  # what it made of it is looked at

    kit.drive(rack.stage.dashboard(), script)
    assert rack.ordered == [("stop", "r1", "smoke in the hall")]


def test_two_quick_enters_give_one_order(rack, kit):
    async def script(pilot):
        await pilot.press("8", "enter", "x")
        pilot.app.focused.insert_text_at_cursor("yes")
        for _ in range(2):
            await pilot.app.focused.action_submit()
        await kit.until(pilot, lambda: "the autopilot of r1 is told: stop" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)
    for thread in threading.enumerate():
        if thread.name == "lumctl-order":
            thread.join(20)
    assert rack.ordered == [("stop", "r1", "")]


@pytest.mark.parametrize("state", ["stopped", "halted"])
def test_an_autopilot_that_stands_still_is_started(rack, kit, state):
    standing(rack, state=state, why="how swap-0009 ended is not known")

    async def script(pilot):
        await pilot.press("8", "enter", "x")
        assert "Let the autopilot of r1 act again on TARGET sim?" in text(pilot, kit)
        assert ("look at that run first" in text(pilot, kit)) == (state == "halted")
        await type_in(pilot, "y")
        await kit.until(pilot, lambda: "is told: start" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)
    assert rack.ordered == [("start", "r1", "")]


def test_where_there_are_no_policies_there_is_nothing_to_stop(rack, kit):
    standing(rack, state="off", policies=[], waiting=[], decisions=[])

    async def script(pilot):
        await pilot.press("8", "enter", "x")
        assert "nothing is ever done automatically" in text(pilot, kit)

    kit.drive(rack.stage.dashboard(), script)
    assert rack.ordered == []


def test_an_order_that_fails_is_a_line(rack, kit):
    def failing(_rack, _comment):
        raise RefusedError("the stop file cannot be removed", hint="remove it as its owner")

    rack.stage.acts["stop_autopilot"] = failing

    async def script(pilot):
        await pilot.press("8", "enter", "x")
        await type_in(pilot, "yes")
        await kit.until(pilot, lambda: "not done: the stop file cannot be removed" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)


def test_a_plan_is_shown_before_it_is_approved(rack, kit):
    async def script(pilot):
        await pilot.press("8", "j", "j", "enter")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))
        assert "policy replace requires it" in text(pilot, kit)
        assert "expires in 59 min" in text(pilot, kit)
        await pilot.press("y")
        assert "Approve plan-1a2b3c4d" in text(pilot, kit)
        assert "the autopilot applies it at once" in text(pilot, kit)
        await type_in(pilot, "go")
        assert "The answer was not yes; nothing was done." in text(pilot, kit)
        await pilot.press("escape", "y")
        await type_in(pilot, "yes continue")
        await kit.until(pilot, lambda: "answered by ops@bastion" in text(pilot, kit))
        await pilot.press("n")
        assert "it no longer waits for an answer" in text(pilot, kit)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(rack.stage.dashboard(), script)
    assert rack.ordered == [("approve", "r1", "plan-1a2b3c4d", "continue")]


def test_a_plan_is_rejected(rack, kit):
    async def script(pilot):
        await pilot.press("8", "j", "j", "enter")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))
        await pilot.press("n")
        assert "Reject plan-1a2b3c4d" in text(pilot, kit)
        await type_in(pilot, "yes not today")
        await kit.until(pilot, lambda: "answered by" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)
    assert rack.ordered == [("reject", "r1", "plan-1a2b3c4d", "not today")]


def test_a_plan_whose_time_is_over_is_not_answered(rack, kit):
    async def script(pilot):
        await pilot.press("8", "j", "j", "enter")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))
        rack.stage.now += 3600
        await pilot.press("y")
        assert "it no longer waits for an answer" in text(pilot, kit)

    kit.drive(rack.stage.dashboard(), script)
    assert rack.ordered == []


def test_a_plan_that_cannot_be_read_cannot_be_approved(rack, kit):
    def unread(_rack, _plan):
        raise UsageError("r1 has no stored plan")

    rack.stage.sources["asked_plan"] = unread

    async def script(pilot):
        await pilot.press("8", "j", "j", "enter")
        await kit.until(pilot, lambda: "not read: r1 has no stored plan" in text(pilot, kit))
        await pilot.press("y")
        assert "it cannot be answered before it is shown" in text(pilot, kit)

    kit.drive(rack.stage.dashboard(), script)


def test_an_answer_that_is_refused_is_a_line(rack, kit):
    def refused(*_, **__):
        raise RefusedError("policy replace asks for another person's yes")

    rack.stage.acts["answer_plan"] = refused

    async def script(pilot):
        await pilot.press("8", "j", "j", "enter")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))
        await pilot.press("y")
        await type_in(pilot, "yes")
        await kit.until(pilot, lambda: "not answered: policy replace asks" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)


def test_where_nothing_may_be_changed_it_says_why(rack, kit):
    rack.stage.forbidden = "this dashboard is read-only"

    async def script(pilot):
        await pilot.press("8", "enter", "x")
        assert "this dashboard is read-only" in text(pilot, kit)
        await pilot.press("escape", "j", "j", "enter")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))
        await pilot.press("y")
        assert "this dashboard is read-only" in text(pilot, kit)

    kit.drive(rack.stage.dashboard(), script)
    assert rack.ordered == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("y", (True, "")), ("YES  smoke ", (True, "smoke")), ("", (False, "")), ("yesterday", (False, ""))],
)
def test_a_yes_is_typed(typed, meant):
    assert typed_yes(typed)[0] is meant[0]
    assert not meant[0] or typed_yes(typed) == meant


def test_the_meshes_as_a_waiting_plan_makes_them_are_a_key_away(on_mesh, rack, kit):  # noqa: ARG001 - a rack with room
    plan = PlanView("llm: replace", "sim", kit.PLAN_LINES, None, changes=(kit.mesh_change(),))
    rack.stage.sources["asked_plan"] = lambda _rack, _plan: plan

    async def script(pilot):
        await pilot.press("8", "j", "j", "enter")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))
        assert "v view" in text(pilot, kit)
        await pilot.press("v")
        await kit.until(pilot, lambda: "PUCs change" in text(pilot, kit))
        assert "10 circuits stay as they are" in text(pilot, kit)
        assert "spares considered" not in text(pilot, kit)
        await pilot.press("end")
        await kit.until(pilot, lambda: "go dark" in text(pilot, kit))
        await pilot.press("y", *"view", "enter")  # while something is typed, v is a letter
        assert "The answer was not yes" in text(pilot, kit)
        await pilot.press("escape", "v")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))
        await pilot.press("v", "escape")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))

    kit.drive(rack.stage.dashboard(), script)
    assert rack.ordered == []


def test_a_waiting_plan_that_changes_no_mesh_has_no_picture(rack, kit):
    async def script(pilot):
        await pilot.press("8", "j", "j", "enter")
        await kit.until(pilot, lambda: "spares considered" in text(pilot, kit))
        await pilot.press("v")
        assert "this plan changes no mesh that can be drawn" in text(pilot, kit)
        assert "spares considered" in text(pilot, kit)

    kit.drive(rack.stage.dashboard(), script)
