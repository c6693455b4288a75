"""Jobs: their ranks, and how the ones stand that lumctl runs."""

from dataclasses import replace

import pytest

from lumctl.cli.output import GLYPHS
from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.jobs import JOBS, job_rows
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.list import JobScreen
from lumctl.tui.views.jobs import why_of
from lumctl.tui.views.records import RecordedLook, Working

MARKS = Marks(GLYPHS)
LOST = "r1-h2-g1"


def told(kit, **changed):
    """What the coordinator of that rack's job tells: it runs, and was recovered once."""
    ranks = kit.observation().assignment["llm"]
    recovery = {
        "at": kit.START - 30,
        "cause": "worker of rank 5 died",
        "failed": [LOST],
        "replaced_by": {LOST: "r1-h4-g0"},
        "without": [],
        "failure_to_circuits_s": 1.1,
        "failure_to_step_s": 1.6,
        "run": "swap-0007",
        "marks": {"detected": 0.002, "held": 0.03, "planned": 0.4, "circuits": 0.6, "verified": 1.1, "step": 1.6},
    }
    document = {
        "job": "llm",
        "state": "running",
        "why": "",
        "generation": 2,
        "of": len(ranks),
        "done": 1234,
        "loss": 1.25,
        "rate_steps_per_s": 41.5,
        "ranks": [
            {"rank": rank, "accelerator": name, "host": name[:5], "state": "running", "done": 1234}
            for rank, name in enumerate(ranks)
        ],
        "ready": [{"accelerator": "r1-h4-g1", "host": "r1-h4"}],
        "recoveries": [recovery],
    }
    return {**document, **changed}


@pytest.fixture
def running(stage, kit):
    """A dashboard of a rack whose job lumctl runs."""
    stage.records = replace(kit.records(), working=(Working("llm", told(kit)),))
    return stage


async def opened(pilot, kit):
    await pilot.press("9", "enter")
    await kit.until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
    await kit.until(pilot, lambda: "llm" in kit.screen_text(pilot.app))


def test_the_pane_tells_steps_loss_and_pace(kit):
    records = replace(kit.records(), working=(Working("llm", told(kit)),))
    (row,) = job_rows(RecordedLook(kit.observation(), records), MARKS)
    assert [cell.text for cell in row.cells] == [
        "✖ failed",
        "llm",
        "12",
        "running",
        "step 1234, loss 1.25, 41.5 steps/s",
        "1",
        "\nrank 5 r1-h2-g1: nvidia-smi does not list it; XID 79: GPU has fallen off the bus, and 2 more failed",
    ]


def test_a_job_that_recovers_or_was_left_asks_for_a_look(kit):
    for state, expected in (("running", ()), ("recovering", (State.DEGRADED,)), ("left", (State.FAILED,))):
        working = (Working("llm", told(kit, state=state)), Working("other", None))
        seen = RecordedLook(kit.observation(failed=None), replace(kit.records(), working=working))
        assert JOBS.trouble(seen) == expected
        assert [row.state for row in job_rows(seen, MARKS)] == list(expected or (State.OK,))


def test_a_job_is_as_bad_as_the_worst_of_its_ranks_and_circuits_and_says_why(kit):
    seen = kit.observation(failed=None)
    (row,) = job_rows(RecordedLook(seen), MARKS)
    assert (row.state, row.cells[-1].text) == (State.OK, "")
    assert why_of(RecordedLook(seen), "llm") == ""
    dark = kit.observation().report.circuits
    (row,) = job_rows(RecordedLook(replace(seen, report=replace(seen.report, circuits=dark))), MARKS)
    assert row.state is State.FAILED
    assert row.cells[-1].text.startswith("\nllm/4-5: no light at either receiver")
    silent = kit.unreachable(kit.observation(failed=None))
    (row,) = job_rows(RecordedLook(silent), MARKS)
    assert (row.state, row.cells[-1].text) == (
        State.UNKNOWN,
        "\nrank 0 r1-h1-g0: is unknown, and 11 more unknown; no spare that was read fits any rank",
    )


def test_the_order_of_lanes_is_no_job(kit):
    seen = kit.observation()
    with_order = replace(seen, assignment={**seen.assignment, "lanes of r1-h1-g0": ("r1-h1-g0-l1", "r1-h1-g0-l0")})
    names = [row.key for row in job_rows(RecordedLook(with_order), MARKS)]
    assert names == ["llm"]


def test_its_screen_tells_each_rank_and_the_moments_of_a_recovery(running, kit):
    async def script(pilot):
        await opened(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert "✖ failed  12 ranks on 3 hosts" in text
        assert "running  step 1234, loss 1.25, 41.5 steps/s, generation 2" in text
        assert "ready to replace a rank: r1-h4-g1" in text
        assert "r1-h2-g1 replaced by r1-h4-g0; next step after 1.6 s  swap-0007" in text
        lines = text.splitlines()
        found = [line.split("  ")[0].strip() for line in map(str.strip, lines) if "━" in line]
        assert found[:3] == ["failure detected", "all survivors parked", "swap planned"]
        for _ in range(5):
            await pilot.press("j")
        await pilot.press("enter")
        await kit.until(pilot, lambda: isinstance(pilot.app.screen, DetailScreen))
        assert kit.screen_text(pilot.app).startswith(f" {LOST}")

    kit.drive(running.dashboard(), script, size=(110, 40))


def test_a_job_that_lumctl_does_not_run_says_so_and_has_its_ranks(stage, kit):
    async def script(pilot):
        await opened(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert "lumctl does not run it" in text
        assert "gpu.lost" in text
        await pilot.press("p")
        await pilot.pause()
        assert "r1-h1-g0 and its links are ok" in kit.screen_text(pilot.app)

    kit.drive(stage.dashboard(), script)


def test_why_a_job_waits_and_a_recovery_under_way(running, kit):
    recovery = {**told(kit)["recoveries"][0], "failure_to_step_s": None, "run": None, "marks": {"detected": 0.002}}
    document = told(kit, state="recovering", why="circuit llm/4-5 is dark", recoveries=[recovery], ready=[])
    running.records = replace(running.records, working=(Working("llm", document),))

    async def script(pilot):
        await opened(pilot, kit)
        text = kit.screen_text(pilot.app)
        assert "circuit llm/4-5 is dark" in text
        assert "ready to replace a rank: none" in text
        assert "; under way" in text

    kit.drive(running.dashboard(), script, size=(110, 40))
