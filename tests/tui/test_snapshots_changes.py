"""Incidents, runs, plans under way, jobs and the log as pictures; see ``test_snapshots.py``."""

from dataclasses import replace

import pytest
import swap_journal

from lumctl.cli.top.records import log_of
from lumctl.health.states import Incident, State
from lumctl.health.transitions import Transition
from lumctl.tui.actions import PlanView
from lumctl.tui.screens.plan import Phase
from lumctl.tui.views.light import planned_receivers
from lumctl.tui.views.records import Records, Working
from lumctl.tui.views.steps import planned_steps

SMALL = (80, 24)
LOST = "r1-h2-g1"
RECOVERY = {
    "at": 1_794_999_970.0,
    "cause": "worker of rank 5 died",
    "failed": [LOST],
    "replaced_by": {LOST: "r1-h4-g0"},
    "without": [],
    "failure_to_step_s": 1.6,
    "run": "swap-0007",
    "marks": {"detected": 0.002, "held": 0.03, "planned": 0.4, "circuits": 0.6, "verified": 1.1, "step": 1.6},
}


@pytest.fixture
def incident(stage, kit):
    """An accelerator is lost, and its circuits with it."""
    seen = kit.observation()
    members = (LOST, "llm/4-5", "llm/5-6")
    found = Incident("accelerator:" + LOST, LOST, "gpu.lost", State.FAILED, seen.at - 95, members, f"{LOST}: XID 79")

    def part(health):
        return replace(health, findings=tuple(replace(f, incident=found.id) for f in health.findings))

    report = seen.report
    groups = {
        name: {key: part(health) for key, health in getattr(report, name).items()}
        for name in ("accelerators", "circuits")
    }
    stage.seen = replace(seen, report=replace(report, incidents=(found,), **groups))
    return stage


def test_an_incident(looks_as_before, incident):
    assert looks_as_before(incident, "5", "enter", "j")


def test_an_incident_in_a_small_terminal(reads_as_before, incident):
    assert reads_as_before(incident, "5", "enter", "j", size=SMALL)


def test_an_incident_in_ascii(reads_as_before, incident):
    assert reads_as_before(incident, "5", "enter", ascii_only=True, size=SMALL)


def test_an_acknowledgement(reads_as_before, incident):
    assert reads_as_before(incident, "5", "enter", "a", *"spare ordered", size=SMALL)


def test_no_incident(reads_as_before, stage, kit):
    stage.seen = kit.observation(failed=None)
    assert reads_as_before(stage, "5", size=SMALL)


@pytest.mark.parametrize(
    ("state", "journal"),
    [("done", "done"), ("running", "begun"), ("half-done", "rolled_back")],
    ids=["done", "running", "half-done"],
)
@pytest.mark.parametrize("size", [(110, 30), SMALL], ids=["wide", "small"])
def test_a_run(reads_as_before, stage, kit, state, journal, size):
    stage.records = kit.records()
    stage.sources["run"] = lambda _key: swap_journal.view(kit, state, getattr(swap_journal, journal))

    async def shown(pilot):
        await kit.until(pilot, lambda: "light" in kit.screen_text(pilot.app))

    assert reads_as_before(stage, "6", "enter", then=shown, size=size)


@pytest.mark.parametrize("ended", [False, True], ids=["under-way", "ended"])
def test_a_plan_that_is_applied_step_by_step(reads_as_before, stage, kit, ended):
    followed = planned_steps(swap_journal.PLAN), planned_receivers(swap_journal.PLAN)
    stage.plan = lambda *_: PlanView("llm: replace", "sim", ("the plan",), "p", *followed)

    async def apply(pilot):
        await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
        await pilot.press("y", "enter")
        await kit.until(pilot, lambda: "done in 0.08 s" in kit.screen_text(pilot.app))
        if ended:
            stage.may_end.set()
            await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ENDED)

    assert reads_as_before(stage, "2", "p", then=apply, size=SMALL)
    stage.may_end.set()


@pytest.mark.parametrize("size", [(110, 34), SMALL], ids=["wide", "small"])
def test_a_job_that_lumctl_runs(reads_as_before, stage, kit, size):
    ranks = kit.observation().assignment["llm"]
    told = {
        "job": "llm",
        "state": "running",
        "why": "",
        "generation": 2,
        "of": len(ranks),
        "done": 1234,
        "loss": 1.25,
        "rate_steps_per_s": 41.5,
        "ranks": [{"rank": n, "accelerator": name, "state": "running", "done": 1234} for n, name in enumerate(ranks)],
        "ready": [{"accelerator": "r1-h4-g1", "host": "r1-h4"}],
        "recoveries": [RECOVERY],
    }
    stage.records = Records(working=(Working("llm", told),))
    assert reads_as_before(stage, "9", "enter", size=size)


def test_a_job_that_lumctl_does_not_run(reads_as_before, stage):
    assert reads_as_before(stage, "9", "enter", size=SMALL)


@pytest.mark.parametrize("size", [(110, 30), SMALL], ids=["wide", "small"])
def test_the_log(reads_as_before, stage, kit, size):
    run = kit.run(plan=swap_journal.PLAN)
    change = Transition(kit.START - 95, LOST, "accelerator", State.OK, State.FAILED, ("gpu.lost",), "XID 79")
    before = Transition(kit.START - 90_000, "r1-h3", "host", None, State.DEGRADED, ("host.slow",), "3.1 s")
    lines = log_of("r1", swap_journal.rolled_back(run.started_at), [run], [before, change])
    stage.records = Records(runs=(run,), log=tuple(lines))
    assert reads_as_before(stage, "0", size=size)
