"""From a fault to its end: the incident, what it touches, the swap in few keys, the acknowledgement."""

import re
import threading
from dataclasses import replace

import pytest

from lumctl.errors import RefusedError
from lumctl.health.acknowledgements import Acknowledgement, CoveredFinding
from lumctl.health.states import Incident, State
from lumctl.process_exit import FinishingThread
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.incident import IncidentScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.plan import Phase, PlanScreen
from lumctl.tui.views.incidents import accelerators_of, case_of
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.widgets.prompt import Question

LOST = "r1-h2-g1"


def correlated(seen, cause, members, *, known=None):
    """The same look, with the findings of some components as one incident; ``known``: who knows of them."""
    kind = "accelerator" if cause in seen.inventory.accelerators else "host"
    incident = Incident(f"{kind}:{cause}", cause, "gpu.lost", State.FAILED, seen.at - 95, members, f"{cause}: lost")

    def part(health):
        findings = tuple(replace(f, incident=incident.id, acknowledged=known) for f in health.findings)
        return replace(health, findings=findings) if health.id in members else health

    def parts(group):
        return {name: part(health) for name, health in group.items()}

    report = seen.report
    report = replace(
        report, accelerators=parts(report.accelerators), circuits=parts(report.circuits), incidents=(incident,)
    )
    return replace(seen, report=report)


def both_lost(kit):
    """Two accelerators of one host are lost at once."""
    seen = kit.observation()
    lost = seen.report.accelerators[LOST].findings[0]
    other = replace(lost, component="r1-h2-g2")
    failed = replace(seen.report.accelerators["r1-h2-g2"], state=State.FAILED, findings=(other,))
    report = replace(seen.report, accelerators={**seen.report.accelerators, "r1-h2-g2": failed})
    return correlated(replace(seen, report=report), "r1-h2", (LOST, "r1-h2-g2"))


@pytest.fixture
def one(stage, kit):
    """A dashboard with one incident: an accelerator and the two circuits that it has left dark."""
    stage.seen = correlated(kit.observation(), LOST, (LOST, "llm/4-5", "llm/5-6"))
    return stage


async def opened(pilot, kit):
    await pilot.press("5", "enter")
    await kit.until(pilot, lambda: isinstance(pilot.app.screen, IncidentScreen))
    await kit.until(pilot, lambda: "cause" in kit.screen_text(pilot.app))


def join_threads(name):
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(20)


def foot(kit, pilot):
    return kit.screen_text(pilot.app).splitlines()[-1]


@pytest.mark.parametrize("by_screen", [False, True])
@pytest.mark.parametrize("small", [False, True])
def test_from_the_fault_to_a_verified_swap_in_six_keys_that_all_stand_in_the_foot_line(one, kit, by_screen, small):
    one.may_end.set()
    way = ["5", *(["enter"] if by_screen else []), "p", "y", "enter"]
    assert len(way) <= 6

    async def script(pilot):
        # The fault appears while the operator looks at something else, and the tab says so.
        assert re.search(r"5 Incid(ents)? ?.1 ", kit.screen_text(pilot.app).splitlines()[1])
        for key in way:
            shown = "y enter" if isinstance(pilot.app.screen, PlanScreen) else f"{key} "
            assert shown in foot(kit, pilot), (key, foot(kit, pilot))
            await pilot.press(key)
            if key == "p":
                await kit.until(pilot, lambda: getattr(pilot.app.screen, "phase", None) is Phase.ASKING)
            await pilot.pause()
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ENDED)
        assert "4 receivers proved" in kit.screen_text(pilot.app)

    kit.drive(one.dashboard(), script, size=(80, 24) if small else (110, 30))
    assert one.planned == [("llm", LOST)]
    assert len(one.applied) == 1


def test_the_count_stands_in_the_tab_and_the_pane_says_what_to_do(one, kit):
    async def script(pilot):
        await pilot.press("5")
        text = kit.screen_text(pilot.app)
        assert "Incidents ✖1" in text
        assert f"p: replace {LOST} by a spare" in text

    kit.drive(one.dashboard(), script, size=(140, 30))


def test_its_screen_tells_cause_members_and_each_finding_with_advice(one, kit):
    async def script(pilot):
        await opened(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert f"{LOST} (gpu.lost), for 95 s" in text
        assert "no one has noted it yet" in text
        assert f"replace {LOST} by a spare" in text
        for member in (LOST, "llm/4-5", "llm/5-6"):
            assert re.search(rf"✖ failed +{member} ", text)
        assert "XID 79: GPU has fallen off the bus" in text
        assert "replace it by a spare" in text
        await pilot.press("j")
        await pilot.pause()
        text = kit.screen_text(pilot.app)
        assert "findings of llm/4-5" in text
        assert "no light at either receiver" in text
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
        assert kit.screen_text(pilot.app).startswith(" llm/4-5")
        await pilot.press("escape", "escape")
        assert isinstance(pilot.app.screen, MainScreen)

    kit.drive(one.dashboard(), script)


def test_who_knows_of_it_is_said_and_it_is_not_acknowledged_twice(stage, kit):
    stage.seen = correlated(
        kit.observation(), LOST, (LOST, "llm/4-5", "llm/5-6"), known="by ops: a spare is on its way"
    )

    async def script(pilot):
        await opened(pilot, kit)
        assert "by ops: a spare is on its way" in kit.screen_text(pilot.app)
        await pilot.press("a")
        await pilot.pause()
        assert "every finding is already acknowledged" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_which_rules_an_acknowledgement_covers_is_said_of_the_incident_and_of_the_component(stage, kit):
    covers = (CoveredFinding(LOST, "gpu.lost", "", "failed"),)
    given = Acknowledgement(LOST, None, "ops", "ordered", kit.START, None, covers)
    seen = correlated(kit.observation(), LOST, (LOST, "llm/4-5", "llm/5-6"), known="by ops: ordered")
    stage.seen = replace(seen, acknowledgements=(given,))

    async def script(pilot):
        await opened(pilot, kit)
        assert "by ops: ordered; covers gpu.lost (failed)" in kit.screen_text(pilot.app)
        await pilot.press("enter")
        await kit.until(pilot, lambda: not isinstance(pilot.app.screen, IncidentScreen))
        assert "by ops: ordered; covers gpu.lost (failed)" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_an_incident_that_is_over_says_so(one, kit):
    async def script(pilot):
        await opened(pilot, kit)
        one.seen = kit.observation(at=kit.START + 2, failed=None)
        pilot.app._collector.refresh()
        await kit.until(pilot, lambda: pilot.app.seen.observation.at > kit.START)
        pilot.app.screen.show()
        await pilot.press("p")
        await pilot.pause()
        assert "it has ended" in kit.screen_text(pilot.app)
        assert "there is nothing to swap" in kit.screen_text(pilot.app)
        await pilot.press("a")
        await pilot.pause()
        assert "there is nothing to acknowledge" in kit.screen_text(pilot.app)

    kit.drive(one.dashboard(), script)


@pytest.mark.parametrize("by_screen", [False, True])
def test_the_accelerators_of_one_cause_are_replaced_together(stage, kit, by_screen):
    stage.seen = both_lost(kit)

    async def script(pilot):
        await pilot.press("5")
        assert "p: replace r1-h2-g1, r1-h2-g2 by spares" in kit.screen_text(pilot.app)
        await pilot.press(*(["enter"] if by_screen else []), "p")
        await kit.until(pilot, lambda: getattr(pilot.app.screen, "phase", None) is Phase.ASKING)
        assert "swap of r1-h2-g1, r1-h2-g2" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)
    assert stage.planned == [("llm", LOST, "r1-h2-g2")]


def test_the_accelerator_to_swap_is_the_cause_the_one_of_a_transponder_or_the_only_one_at_fault(kit):
    seen = RecordedLook(correlated(kit.observation(), "r1-h2", (LOST, "llm/4-5")))
    assert accelerators_of(seen, case_of(seen, "host:r1-h2")) == (LOST,)
    link = replace(case_of(seen, "host:r1-h2"), component=f"{LOST}-l0")
    assert accelerators_of(seen, link) == (LOST,)
    circuit = case_of(seen, "circuit:llm/5-6")
    assert accelerators_of(seen, circuit) == ()


@pytest.fixture
def acknowledging(one):
    """What is acknowledged from the dashboard, in the order of it; an error in it is raised."""
    said = []

    def acknowledge(components, comment):
        said.append((components, comment))
        return "3 components acknowledged until its findings clear (ack-0001)"

    one.acts["acknowledge"] = acknowledge
    return said


def test_an_acknowledgement_says_what_follows_and_asks_why(one, kit, acknowledging):
    async def script(pilot):
        await opened(pilot, kit)
        looks = one.looks
        assert "a acknowledge" in foot(kit, pilot)
        await pilot.press("a")
        await pilot.pause()
        assert "lumctl check does not count them" in " ".join(kit.screen_text(pilot.app).split())
        await pilot.press("enter")
        await pilot.pause()
        assert "an acknowledgement needs a reason; nothing was done" in kit.screen_text(pilot.app)
        assert acknowledging == []
        await pilot.press(*"spare", "enter")
        await kit.until(pilot, lambda: "ack-0001" in kit.screen_text(pilot.app))
        assert not pilot.app.screen.query_one(Question).opened
        await kit.until(pilot, lambda: one.looks > looks)

    kit.drive(one.dashboard(), script)
    assert acknowledging == [((LOST, "llm/4-5", "llm/5-6"), "spare")]


def test_two_quick_enters_give_one_acknowledgement(one, kit, acknowledging):
    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("a", *"spare")
        for _ in range(2):
            await pilot.app.focused.action_submit()
        await kit.until(pilot, lambda: "ack-0001" in kit.screen_text(pilot.app))

    kit.drive(one.dashboard(), script)
    join_threads("lumctl-ack")
    assert acknowledging == [((LOST, "llm/4-5", "llm/5-6"), "spare")]


@pytest.mark.parametrize("keys", [("enter", "a"), ("a",)], ids=["incident", "rows"])
def test_an_acknowledgement_is_recorded_even_if_the_operator_quits_at_once(one, kit, keys):
    may_end, recorded = threading.Event(), []

    def acknowledge(_components, comment):
        assert may_end.wait(20)
        recorded.append(comment)
        return "3 components acknowledged"

    async def script(pilot):
        await pilot.press("5", *keys, *"spare", "enter")
        await kit.until(pilot, threads)

    def threads():
        return [thread for thread in threading.enumerate() if thread.name in {"lumctl-ack", "lumctl-rows"}]

    one.acts["acknowledge"] = acknowledge
    kit.drive(one.dashboard(), script)
    (thread,) = threads()
    may_end.set()
    assert isinstance(thread, FinishingThread)
    assert not thread.daemon
    thread.join(20)
    assert recorded == ["spare"]


def test_an_acknowledgement_can_be_left_and_fail_in_one_line(one, kit, acknowledging):
    def refuse(_components, _comment):
        raise RefusedError("it has cleared", hint="lumctl status")

    async def script(pilot):
        await opened(pilot, kit)
        await pilot.press("a", "x", "escape")
        await pilot.pause()
        assert "nothing was acknowledged" in kit.screen_text(pilot.app)
        assert isinstance(pilot.app.screen, IncidentScreen)
        await pilot.press("a", "x", "enter")
        await kit.until(pilot, lambda: "not acknowledged: it has cleared" in kit.screen_text(pilot.app))
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)

    one.acts["acknowledge"] = refuse
    kit.drive(one.dashboard(), script)
    assert acknowledging == []


def test_where_nothing_may_be_changed_it_says_why(one, kit, acknowledging):
    one.forbidden = "read-only: started with --read-only"

    async def script(pilot):
        await opened(pilot, kit)
        for key in ("a", "p"):
            pilot.app.screen.say("")
            await pilot.press(key)
            await pilot.pause()
            assert "read-only: started with --read-only" in kit.screen_text(pilot.app)

    kit.drive(one.dashboard(), script)
    assert acknowledging == []
    assert one.planned == []


@pytest.mark.parametrize("way", [("5", "enter"), ("9", "enter", "right_square_bracket")])
def test_a_swap_is_offered_only_where_a_spare_fits(stage, kit, way):
    seen = kit.observation()

    def foot(pilot):
        return kit.screen_text(pilot.app).splitlines()[-1]

    async def offered(pilot):
        await pilot.press(*way)
        await kit.until(pilot, lambda: "enter details" in foot(pilot) and "p plan swap" in foot(pilot))

    async def not_offered(pilot):
        await pilot.press(*way)
        await kit.until(pilot, lambda: "enter details" in foot(pilot) and "p plan swap" not in foot(pilot))

    kit.drive(stage.dashboard(), offered, size=(120, 30))
    stage.seen = kit.with_states(seen, {f"r1-h4-g{number}": State.FAILED for number in range(4)})
    kit.drive(stage.dashboard(), not_offered, size=(120, 30))
