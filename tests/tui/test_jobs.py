"""Jobs: their ranks, and how the ones stand that lumctl runs."""

import threading
from dataclasses import replace

import pytest

from lumctl.cli.output import GLYPHS
from lumctl.errors import UnreachableError
from lumctl.health.states import State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.jobs import JOBS, job_rows
from lumctl.tui.screens.component import DetailScreen
from lumctl.tui.screens.list import JobScreen
from lumctl.tui.views.job_light import light_text
from lumctl.tui.views.job_waits import JobWaits, waits_text
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


ADVICE = "rank 5 (r1-h2-g1) is late; advice: look at its host: lumctl health explain r1-h2-g1"


def waits(kit, *steps):
    return JobWaits(steps, {0: "r1-h1-g0", 5: LOST}, kit.START - 3, ADVICE)


def lines_of(waits, kit, width=100, marks=MARKS):
    return waits_text(waits, marks, kit.START, width).plain.splitlines()


def test_whom_the_others_waited_for_is_a_line_for_each_rank(kit):
    shown = waits(kit, (5, 0.008), (0, 0.001), (5, 0.004), (5, 0.0))
    assert lines_of(shown, kit) == [
        "late ranks",
        "  whom the others waited for in the newest 4 steps, the last 3 s ago; █ is 8.0 ms",
        "  rank 5 r1-h2-g1       █ ▅▁ last in 3, 4.0 ms",
        "  rank 0 r1-h1-g0        ▂   last in 1, 1.0 ms",
        f"  {ADVICE}",
    ]
    assert (
        lines_of(shown, kit, marks=Marks(GLYPHS, ascii_only=True))[2]
        == "  rank 5 r1-h2-g1       + -. last in 3, 4.0 ms"
    )


def test_a_narrow_screen_has_fewer_steps_and_few_ranks_have_a_line(kit):
    many = waits(kit, *((at % 7, 0.001) for at in range(70)))
    lines = lines_of(many, kit, width=80)
    assert "newest 28 steps" in lines[1]
    assert [line for line in lines if "more ranks" in line] == ["  3 more ranks, each less often"]
    assert max(map(len, lines[2:-2])) <= 80


def test_nothing_is_shown_of_a_job_without_a_record_and_why_if_it_cannot_be_read(kit):
    assert lines_of(None, kit) == lines_of(JobWaits(), kit) == []
    assert lines_of(JobWaits(trouble="unknown: the coordinator does not answer"), kit) == [
        "late ranks",
        "  unknown: the coordinator does not answer",
    ]


def test_ranks_that_enter_together_wait_for_nobody(kit):
    assert lines_of(waits(kit, (0, 0.0), (5, 0.0)), kit)[1].endswith("█ is 0 s")


def test_its_screen_shows_the_waits_without_reading_them_in_its_own_thread(running, kit):
    asked = []

    def job_waits(observation, job):
        asked.append((observation.target, job, threading.current_thread() is threading.main_thread()))
        return waits(kit, (5, 0.008), (5, 0.004))

    running.sources["job_waits"] = job_waits

    async def script(pilot):
        await opened(pilot, kit)
        await kit.until(pilot, lambda: ADVICE in kit.screen_text(pilot.app))
        text = kit.screen_text(pilot.app)
        assert "█▅ last in 2" in text
        assert text.index("late ranks") < text.index("recoveries")
        assert asked == [("sim", "llm", False)]

    kit.drive(running.dashboard(), script, size=(110, 45))


def test_its_screen_says_why_who_is_late_is_unknown(running, kit):
    def job_waits(_observation, _job):
        raise UnreachableError("the job's coordinator does not answer")

    running.sources["job_waits"] = job_waits

    async def script(pilot):
        await opened(pilot, kit)
        await kit.until(pilot, lambda: "unknown: the job's coordinator does not answer" in kit.screen_text(pilot.app))

    kit.drive(running.dashboard(), script, size=(110, 45))


LIGHT = {
    "lit": {"rail0": "pipeline"},
    "changes": 8,
    "failed_changes": 1,
    "refused": {},
    "steps": [
        {"step": step, "changes": 2, "wait_s": wait_s, "hidden_s": 0.004, "worst_s": wait_s, "modes": {}}
        | {"change_s": 0.01, "step_s": 0.028}
        for step, wait_s in enumerate((0.008, 0.002, 0.004))
    ],
    "boundaries": [{"left": "pipeline", "entered": "gradients", "mode": "ahead", "pays": True}],
}


def test_light_between_phases_is_a_strip_of_waits_and_what_was_hidden():
    assert light_text(LIGHT, MARKS, 100).plain.splitlines() == [
        "light between phases",
        "  of each training step; █ is the longest",
        "  computing ▆█▇ 26 ms",
        "  waiting   █▃▅ 8.0 ms",
        "  changing  ███ 10 ms",
        "  rail0 pipeline; 8 changes of light, 1 failed",
        (
            "  2 changes a step: 4.0 ms waiting for light and for other ranks, 4.0 ms hidden, 40% of the changes "
            "(medians of 3 steps), worst wait 8.0 ms"
        ),
        "  pipeline to gradients ahead",
    ]
    assert light_text(LIGHT, MARKS, 23).plain.splitlines()[3] == "  waiting   ▅█ 4.0 ms"


def test_nothing_is_shown_of_the_light_of_a_job_without_phases():
    assert light_text(None, MARKS, 100).plain == ""
    assert light_text({**LIGHT, "steps": [], "boundaries": []}, MARKS, 100).plain.splitlines() == [
        "light between phases",
        "  rail0 pipeline; 8 changes of light, 1 failed",
    ]
