"""Incidents, runs, plans under way, jobs and the log; see ``test_snapshots.py``."""

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


def test_an_incident_in_ascii(shows, incident):
    shown = shows(incident, "5", "enter", ascii_only=True, size=SMALL)
    assert shown.startswith("incident r1-h2-g1 TARGET sim\nX failed r1-h2-g1: XID 79\n")
    assert "what to do replace r1-h2-g1 by a spare (llm rank 5): press p" in shown
    assert "X failed llm/4-5 circuit 93 s circuit.dark" in shown
    assert "findings of r1-h2-g1\nX failed gpu.lost for 95 s" in shown


def test_an_acknowledgement(shows, incident):
    shown = shows(incident, "5", "enter", "a", *"spare ordered", size=SMALL)
    said = " ".join(shown.split())
    assert "Acknowledge 3 findings of r1-h2-g1? They stay in the lists, with your name and what you type" in said
    assert "lumctl check does not count them and no one is notified of them" in said
    assert "Type a reason and press enter; esc cancels." in said
    assert shown.splitlines()[-2] == "spare ordered"
    assert "known no one has noted it yet" in shown


def test_no_incident(shows, stage, kit):
    stage.seen = kit.observation(failed=None)
    shown = shows(stage, "5", size=SMALL)
    assert "● nothing is wrong: 16 accelerators, 12 circuits, 4 hosts\nno incidents\n" in shown
    assert "✖" not in shown
    assert "plan swap" not in shown


@pytest.fixture
def run_in(stage, kit):
    """A stage and a wait for the screen of a run, by its state and its journal."""

    def opened(state, journal):
        stage.records = kit.records()
        stage.sources["run"] = lambda _key: swap_journal.view(kit, state, getattr(swap_journal, journal))

        async def drawn(pilot):
            await kit.until(pilot, lambda: "light" in kit.screen_text(pilot.app))

        return stage, drawn

    return opened


def test_a_half_done_run(reads_as_before, run_in):
    stage, drawn = run_in("half-done", "rolled_back")
    assert reads_as_before(stage, "6", "enter", then=drawn)


def test_a_half_done_run_in_a_small_terminal(shows, run_in):
    stage, drawn = run_in("half-done", "rolled_back")
    shown = shows(stage, "6", "enter", then=drawn, size=SMALL)
    said = " ".join(shown.split())
    assert "✖ half-done by ops@bastion at 11:06:00, took 1.50 s\nit failed: mesh1 refused cell 17" in shown
    assert "what to do: continue with it: lumctl swap resume swap-0007 --target sim" in said
    assert "or undo it: lumctl swap abort swap-0007 --target sim" in said
    assert "✖ 2. program 14 cells of mesh1: failed: it could not be undone: no session to mesh1" in said
    assert shown.splitlines()[-1] == "esc back b runbook ? help q quit"


@pytest.mark.parametrize("size", [(110, 30), SMALL], ids=["wide", "small"])
def test_a_run_that_is_done(shows, run_in, size):
    stage, drawn = run_in("done", "done")
    shown = shows(stage, "6", "enter", then=drawn, size=size)
    said = " ".join(shown.split())
    assert "● done by ops@bastion at 11:06:00, took 1.50 s, 2 receivers proved" in shown
    assert "● 3. show that each receiver hears its transmitter: done in 1.10 s" in shown
    assert "r1-h4-g0-l0 - -> -4.2 dBm ○ heard r1-h2-g0-l1 (proved by lldp in 0.02 s); not shown since" in said
    assert "r1-h2-g0-l1 -5.5 -> -4.2 dBm ○ heard r1-h4-g0-l0 (proved by lldp in 0.02 s)" in said
    assert shown.splitlines()[-1] == "esc back b runbook u undo ? help q quit"
    assert "what to do" not in shown


@pytest.mark.parametrize("size", [(110, 30), SMALL], ids=["wide", "small"])
def test_a_run_under_way(shows, run_in, size):
    stage, drawn = run_in("running", "begun")
    shown = shows(stage, "6", "enter", then=drawn, size=size)
    assert "◐ running by ops@bastion at 11:06:00\n" in shown
    assert "● 1. check that r1-h4-g0 is healthy: done in 0.30 s" in shown
    assert "> 2. program 14 cells of mesh1: under way for 40 s" in shown
    assert "3. show that each receiver hears its transmitter: waiting" in shown
    assert "r1-h2-g0-l1 -5.5 -> -4.2 dBm ○ not proved yet" in shown
    assert shown.splitlines()[-1] == "esc back ? help q quit"


@pytest.fixture
def step_by_step(stage, kit):
    """Apply a plan whose steps are followed, to its second step or to its end."""
    followed = planned_steps(swap_journal.PLAN), planned_receivers(swap_journal.PLAN)
    stage.plan = lambda *_: PlanView("llm: replace", "sim", ("the plan",), "p", *followed)

    def applied(*, ended):
        async def apply(pilot):
            await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ASKING)
            await pilot.press("y", "enter")
            await kit.until(pilot, lambda: "done in 0.08 s" in kit.screen_text(pilot.app))
            if ended:
                stage.may_end.set()
                await kit.until(pilot, lambda: pilot.app.screen.phase is Phase.ENDED)

        return apply

    yield applied
    stage.may_end.set()


def test_a_plan_that_is_applied_step_by_step(reads_as_before, stage, step_by_step):
    assert reads_as_before(stage, "2", "p", then=step_by_step(ended=False), size=SMALL)


def test_a_plan_that_was_applied_step_by_step(shows, stage, step_by_step):
    shown = shows(stage, "2", "p", then=step_by_step(ended=True), size=SMALL)
    assert "● 3. show that each receiver hears its transmitter: done in 1.12 s" in shown
    assert "r1-h4-g0-l0 -4.2 -> -4.2 dBm ○ does not show that it hears r1-h2-g0-l1" in shown
    assert "run-7: done in 1.51 s, 4 receivers proved" in shown
    assert shown.splitlines()[-1] == "esc: back"
    assert "under way" not in shown
    assert "applying to" not in shown


@pytest.fixture
def job_run_by_lumctl(stage, kit):
    """A job that lumctl runs, and that has recovered once."""
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
    return stage


def test_a_job_that_lumctl_runs(reads_as_before, job_run_by_lumctl):
    assert reads_as_before(job_run_by_lumctl, "9", "enter", size=(110, 34))


def test_a_job_that_lumctl_runs_in_a_small_terminal(shows, job_run_by_lumctl):
    shown = shows(job_run_by_lumctl, "9", "enter", size=SMALL)
    said = " ".join(shown.split())
    assert shown.startswith("job llm TARGET sim\n✖ failed 12 ranks on 3 hosts\n")
    assert "running step 1234, loss 1.25, 41.5 steps/s, generation 2" in shown
    assert "ready to replace a rank: r1-h4-g1" in shown
    assert "✖ failed 5 r1-h2-g1 r1-h2 running 1234 never gpu.lost" in shown
    assert "worker of rank 5 died: r1-h2-g1 replaced by r1-h4-g0; next step after 1.6 s swap-0007" in said
    assert "failure detected 2 ms" in shown
    assert shown.splitlines()[-1] == "esc back enter details s shell l log y ticket ? help q quit"


def test_a_job_that_lumctl_does_not_run(shows, stage):
    shown = shows(stage, "9", "enter", size=SMALL)
    assert shown.startswith("job llm TARGET sim\n✖ failed 12 ranks on 3 hosts\n")
    assert "lumctl does not run it: its steps are unknown" in shown
    assert "✖ failed 5 r1-h2-g1 r1-h2 - - never gpu.lost" in shown
    assert "steps/s" not in shown
    assert "recoveries" not in shown


@pytest.fixture
def logged(stage, kit):
    """A log of a run that failed, and of health that changed."""
    run = kit.run(plan=swap_journal.PLAN)
    change = Transition(kit.START - 95, LOST, "accelerator", State.OK, State.FAILED, ("gpu.lost",), "XID 79")
    before = Transition(kit.START - 90_000, "r1-h3", "host", None, State.DEGRADED, ("host.slow",), "3.1 s")
    lines = log_of("r1", swap_journal.rolled_back(run.started_at), [run], [before, change])
    stage.records = Records(runs=(run,), log=tuple(lines))
    return stage


def test_the_log(reads_as_before, logged):
    assert reads_as_before(logged, "0")


def test_the_log_in_a_small_terminal(shows, logged):
    lines = shows(logged, "0", size=SMALL).splitlines()
    assert lines[4:7] == [
        "8 lines",
        "TIME RACK WHO WHAT",
        "11:06:00 r1 ops@bastion ✖ swap-0007 ends: half-done: mesh1 refused cell",
    ]
    assert lines[12:14] == [
        "11:05:05 r1 health ✖ r1-h2-g1 is failed, was ok (gpu.lost): XID 79",
        "11-17 10:06 r1 health ◐ r1-h3 is degraded (host.slow): 3.1 s",
    ]
