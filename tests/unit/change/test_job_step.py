"""A job's pause and its going on as steps of a run: in which order, and what each way of failing leaves."""

from contextlib import suppress
from dataclasses import replace

import pytest

from lumctl.change import from_document, to_document
from lumctl.change.guard_action import take_over
from lumctl.change.guard_scope import GuardScope
from lumctl.change.plan import Do
from lumctl.change.resumption import abort, resume
from lumctl.change.run import RunInProgress
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.errors import ExitCode, HalfDoneError, RefusedError, RolledBackError
from lumctl.inventory.job_run import JobHook
from lumctl.jobs import HookRefusedError
from lumctl.jobs.hooks import END_S
from lumctl.programs import Ended
from lumctl.runbook.document import NEEDS
from lumctl.swap import plan_rollback

PLACED = ("s0-gpu0", "s1-gpu0", "s2-gpu0")
SWAPPED = ("s0-gpu0", "s3-gpu0", "s2-gpu0")
PAUSED, RESUMED = ("hook", "pause"), ("hook", "resume")


class Program:
    """The hook of a job, in memory: it does as it is told, or as a test says."""

    def __init__(self, rack) -> None:
        self.rack, self.state, self.told = rack, "running", []
        self.answers: dict[str, Ended | BaseException] = {}
        self.at_status = lambda: None

    def __call__(self, command, *, timeout_s, variables, begun, **_more):
        assert callable(begun)
        act = command[-1]
        assert (act, timeout_s, variables["LUMCTL_JOB"]) == (variables["LUMCTL_ACT"], 30.0, "finetune")
        if act == "status":
            self.at_status()
            return self.answers.get(act, Ended(0, late=False, said=f"{self.state}\n"))
        self.rack.happens("hook", act)
        self.told.append(variables)
        answer = self.answers.get(act)
        if isinstance(answer, BaseException):
            raise answer
        if answer is not None:
            return answer
        self.state = {"pause": "paused", "resume": "running"}[act]
        return Ended(0, late=False, said=f"{act}d\n")


NO = Ended(3, late=False, said="the queue is closed\n")
LATE = Ended(-9, late=True, said="")


@pytest.fixture
def program(rack, monkeypatch):
    """The job ``finetune`` has a hook with all that there is."""
    hook = JobHook(("true", "pause"), ("true", "resume"), ("true", "status"), on_sim=True)
    jobs = {**rack.inventory.jobs, "finetune": replace(rack.inventory.jobs["finetune"], hook=hook)}
    rack.inventory = rack.context.inventory = replace(rack.inventory, jobs=jobs)
    program = Program(rack)
    monkeypatch.setattr("lumctl.jobs.hooks.run_program", program)
    return program


def without_status(rack) -> None:
    jobs = rack.inventory.jobs
    job = replace(jobs["finetune"], hook=replace(jobs["finetune"].hook, status=None))
    rack.inventory = rack.context.inventory = replace(rack.inventory, jobs={**jobs, "finetune": job})


def acts(rack):
    return [event for event in rack.events if event[0] in {"hook", "transmit", "commit", "roll_back"}]


def is_as_it_was(rack, before, program, state="running") -> None:
    assert rack.twin.cells == before == rack.context.known_states("mesh")
    assert rack.placed() == PLACED
    assert rack.on == {lane: not lane.startswith("s3") for lane in rack.on}
    assert program.state == state


def test_a_job_is_paused_once_its_spare_reads_well_and_goes_on_when_all_is_written_down(rack, program):
    plan = rack.plan()
    assert [step.do.value for step in plan.steps] == [
        *("check", "job", "transmit", "transmit", "transmit", "transmit", "program", "verify", "assign", "job")
    ]
    assert [step.title for step in plan.steps if step.do is Do.JOB] == ["pause job finetune", "resume job finetune"]
    assert not any("hook" in warning for warning in plan.warnings)
    assert from_document(to_document(plan)) == plan
    assert all(NEEDS[Do.JOB] <= step.data.keys() for step in plan.steps if step.do is Do.JOB)
    result = rack.apply(plan)
    assert acts(rack)[0] == PAUSED
    assert acts(rack)[-1] == RESUMED
    assert rack.events.index(("outcome", "9")) < rack.events.index(RESUMED)
    assert [told["LUMCTL_RUN"] for told in program.told] == [result.run] * 2
    assert ("s1-gpu0" in program.told[0]["LUMCTL_RANKS"], "s3-gpu0" in program.told[1]["LUMCTL_RANKS"]) == (True, True)
    assert (program.told[0]["LUMCTL_FAILED"], program.told[0]["LUMCTL_SPARES"]) == ("s1-gpu0", "s3-gpu0")
    outcome = next(e for e in rack.store.journal.of_run(result.run) if (e.kind, e.step) == ("outcome", "2"))
    assert outcome.data == {
        "done": True,
        "job": "finetune",
        "act": "pause",
        "was": "running",
        "hook": {"is": "paused", "said": "paused"},
        "seconds": outcome.seconds,
    }


def test_a_job_without_one_is_warned_of(rack):
    assert rack.plan().warnings[-1].startswith("job finetune has no hook: pause or stop it before you apply this")


def test_a_rollback_pauses_and_resumes_too(rack, program):
    run = rack.apply(rack.plan()).run
    rack.events.clear()
    rack.apply(plan_rollback(rack.context, rack.store.runs.get(run)))
    assert (acts(rack)[0], acts(rack)[-1]) == (PAUSED, RESUMED)
    assert "s1-gpu0" in program.told[-1]["LUMCTL_RANKS"]


@pytest.mark.parametrize("says", [{"pause": NO}, {"status": Ended(1, late=False, said="")}], ids=["no", "no-word"])
def test_where_it_says_no_nothing_is_touched(rack, program, says):
    plan, before = rack.plan(), dict(rack.twin.cells)
    program.answers = says
    with pytest.raises(HookRefusedError) as error:
        rack.apply(plan)
    assert error.value.exit_code is ExitCode.REFUSED
    assert [event for event in acts(rack) if event[0] != "hook"] == []
    assert rack.store.runs.all()[0].state == "refused"
    is_as_it_was(rack, before, program)


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_a_swap_that_fails_sets_the_job_going_again_if_it_was(rack, program, state):
    plan, before = rack.plan(), dict(rack.twin.cells)
    program.state = state
    rack.dark.add("s3-gpu0-a")
    with pytest.raises(RolledBackError):
        rack.apply(plan)
    is_as_it_was(rack, before, program, state)
    assert [event for event in acts(rack) if event[0] == "hook"] == ([PAUSED, RESUMED] if state == "running" else [])
    assert acts(rack)[-1] == (RESUMED if state == "running" else ("transmit", "s1-gpu0-a", True))


def test_a_pause_that_took_too_long_is_taken_back(rack, program):
    plan, before = rack.plan(), dict(rack.twin.cells)
    without_status(rack)
    program.answers = {"pause": LATE}
    with pytest.raises(RolledBackError, match="did not end within 30 s"):
        rack.apply(plan)
    assert acts(rack) == [PAUSED, RESUMED]
    is_as_it_was(rack, before, program)


@pytest.mark.parametrize("answer", [NO, LATE, KeyboardInterrupt()], ids=["no", "late", "interrupted"])
def test_where_it_does_not_go_on_the_light_stays_and_the_run_says_so(rack, program, answer):
    program.answers = {"resume": answer}
    with pytest.raises(HalfDoneError, match="all light paths are as planned and stay so, but job finetune") as error:
        rack.apply(rack.plan())
    run = rack.store.runs.get(error.value.run)
    assert (
        error.value.hint
        == f"once the job can be resumed, or was resumed by hand: lumctl swap resume {run.id} --target sim"
    )
    assert (run.state, rack.placed(), program.state) == ("half-done", SWAPPED, "paused")
    assert "roll_back" not in [event[0] for event in rack.events]
    assert "finetune" in rack.store.journal.of_run(run.id)[-1].data["not_resumed"]
    rack.events.clear()
    program.answers = {}
    assert resume(rack.context, run, who="you", arm=rack.guard.arm).outcome == "done"
    assert (acts(rack), program.state, rack.store.runs.get(run.id).state) == ([RESUMED], "running", "done")


def test_a_job_that_was_resumed_by_hand_is_only_asked(rack, program):
    program.answers = {"resume": NO}
    with pytest.raises(HalfDoneError) as error:
        rack.apply(rack.plan())
    program.state = "running"
    rack.events.clear()
    assert resume(rack.context, rack.store.runs.get(error.value.run), who="you", arm=rack.guard.arm).outcome == "done"
    assert acts(rack) == []


def test_where_it_never_goes_on_the_swap_can_still_be_taken_back(rack, program):
    plan, before = rack.plan(), dict(rack.twin.cells)
    program.answers = {"resume": NO}
    with pytest.raises(HalfDoneError) as error:
        rack.apply(plan)
    with pytest.raises(HalfDoneError, match="the resume hook of job finetune failed"):
        abort(rack.context, rack.store.runs.get(error.value.run), who="you")
    program.answers = {}
    abort(rack.context, rack.store.runs.get(error.value.run), who="you")
    is_as_it_was(rack, before, program)


class Killed(BaseException):
    """What ends an engine without a word."""


def cut(rack, plan, event, do=Killed):
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time - 31.0)
    run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope())
    if do is not None:
        rack.at(*event, do=do())
    with suppress(Killed):
        for step in plan.steps:
            run.perform(step)
    assert event in rack.events
    rack.events.clear()
    return lease, run


def test_a_guard_has_a_job_go_on_that_its_engine_was_about_to(rack, program):
    lease, run = cut(rack, rack.plan(), RESUMED)
    said = []
    take_over(rack.context, lease, "it is gone", say=said.append)
    assert (acts(rack), program.state, rack.placed()) == ([RESUMED], "running", SWAPPED)
    assert run.journal.state == "done"


def test_a_guard_that_cannot_leaves_the_light_as_well(rack, program):
    lease, run = cut(rack, rack.plan(), RESUMED)
    program.answers = {"resume": NO}
    take_over(rack.context, lease, "it is gone", say=list)
    assert (run.journal.state, rack.placed()) == ("half-done", SWAPPED)


def test_a_guard_sets_a_job_going_whose_pause_was_cut(rack, program):
    plan, before = rack.plan(), dict(rack.twin.cells)
    lease, run = cut(rack, plan, PAUSED)
    program.state = "paused"
    take_over(rack.context, lease, "it is gone", say=list)
    assert run.journal.state == "rolled-back"
    is_as_it_was(rack, before, program)


@pytest.mark.parametrize("state", ["stopped", "paused"])
def test_but_not_one_that_a_person_had_stopped_before(rack, program, state):
    """Its hook is called only to learn that; the engine dies in the middle of it."""
    plan, before = rack.plan(), dict(rack.twin.cells)
    program.state = state
    asked = []

    def cut_off():
        asked.append("status")
        if len(asked) > 1:  # the intent is on disk
            raise Killed

    program.at_status = cut_off
    lease, run = cut(rack, plan, ("intent", "2"), do=None)
    program.at_status = lambda: None
    take_over(rack.context, lease, "it is gone", say=list)
    assert run.journal.state == "rolled-back"
    assert program.told == []
    is_as_it_was(rack, before, program, state)


def test_its_guard_is_told_before_its_hook_is_asked_that_this_may_take_long(rack, program):
    told = []
    program.at_status = lambda: told.append(rack.guard.heard[-1])
    rack.apply(rack.plan())
    ((_, silent_s),) = rack.seen("arm")
    assert told[0] == silent_s + 3 * (30.0 + END_S)


def test_of_several_jobs_it_is_told_before_each_for_they_are_asked_one_after_the_other(rack, program):
    plan, told = rack.plan(), []
    pause = next(step for step in plan.steps if step.do is Do.JOB)
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time)
    run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope(rack.guard, 7.0))
    program.at_status = lambda: told.append(list(rack.guard.heard))
    run.journal.job_states_before([replace(pause, id=f"2.{number}") for number in range(5)])
    assert told == [[7.0 + 3 * (30.0 + END_S)] * count for count in range(1, 6)]


@pytest.mark.parametrize("state", ["stopped", "running"])
@pytest.mark.parametrize("asked", [1, 2])
def test_an_interrupt_while_its_hook_is_asked_leaves_it_as_it_was(rack, program, state, asked):
    """First before the intent, then by the pause itself."""
    plan, before, left = rack.plan(), dict(rack.twin.cells), [asked]
    program.state = state

    def interrupt():
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    program.at_status = interrupt
    with pytest.raises(RolledBackError, match="it was interrupted"):
        rack.apply(plan)
    assert program.told == []
    is_as_it_was(rack, before, program, state)


@pytest.mark.usefixtures("program")
def test_where_nobody_can_tell_a_guard_leaves_the_job_alone_and_says_so(rack):
    without_status(rack)
    lease, run = cut(rack, rack.plan(), PAUSED)
    said = []
    take_over(rack.context, lease, "it is gone", say=said.append)
    assert (run.journal.state, acts(rack)) == ("half-done", [])
    assert "whether this run has paused job finetune is unknown: the job is left as it is" in said[-1]
    rack.time += 31.0
    abort(rack.context, rack.store.runs.get(run.id), who="you")
    assert acts(rack) == [RESUMED]
    assert run.journal.state == "rolled-back"


@pytest.mark.usefixtures("program")
def test_what_a_job_did_is_on_disk_before_it_is_paused(rack):
    result = rack.apply(rack.plan())
    intent = next(e for e in rack.store.journal.of_run(result.run) if (e.kind, e.step) == ("intent", "2"))
    assert intent.data["was"] == "running"
    assert rack.events.index(("intent", "2")) < rack.events.index(PAUSED)


def test_a_job_that_runs_again_is_paused_again_before_the_rest_is_done(rack, program):
    plan = rack.plan()
    _, run = cut(rack, plan, ("commit", "mesh", None))
    program.state = "running"
    resume(rack.context, rack.store.runs.get(run.id), who="you", arm=rack.guard.arm)
    assert [event for event in acts(rack) if event[0] in {"hook", "commit"}] == [
        PAUSED,
        ("commit", "mesh", None),
        RESUMED,
    ]
    assert (program.state, rack.placed()) == ("running", SWAPPED)


def test_one_that_was_paused_by_the_cut_run_is_set_going_when_that_is_taken_back(rack, program):
    plan, before = rack.plan(), dict(rack.twin.cells)
    _, run = cut(rack, plan, PAUSED)
    program.state = "paused"  # by the hook that was cut: the run never heard of it
    rack.dark.add("s3-gpu0-a")
    with pytest.raises(RolledBackError):
        resume(rack.context, rack.store.runs.get(run.id), who="you", arm=rack.guard.arm)
    is_as_it_was(rack, before, program)


def test_on_a_simulator_it_is_passed_over_unless_it_is_meant_for_one(rack, program):
    jobs = rack.inventory.jobs
    job = replace(jobs["finetune"], hook=replace(jobs["finetune"].hook, on_sim=False))
    rack.inventory = rack.context.inventory = replace(rack.inventory, jobs={**jobs, "finetune": job})
    result = rack.apply(rack.plan())
    assert program.told == []
    outcome = next(e for e in rack.store.journal.of_run(result.run) if (e.kind, e.step) == ("outcome", "2"))
    assert outcome.data["hook"]["passed_over"].startswith("hooks are not run on a simulator")


def test_a_hook_that_is_not_there_is_found_out_before_the_run_begins(rack, program):
    plan = rack.plan()
    jobs = rack.inventory.jobs
    job = replace(jobs["finetune"], hook=replace(jobs["finetune"].hook, resume=("no-such-program", "resume")))
    rack.context.inventory = replace(rack.inventory, jobs={**jobs, "finetune": job})
    with pytest.raises(RefusedError, match="the resume hook of job finetune cannot be run"):
        rack.apply(plan)
    assert program.told == []
    assert rack.seen("begin") == []


def test_a_job_does_not_go_on_where_what_it_needs_was_not_put_back(rack, program):
    plan = rack.plan()
    rack.dark.add("s3-gpu0-a")
    rack.at("roll_back", do=DeviceUnreachableError("it does not answer"))
    with pytest.raises(HalfDoneError, match="job finetune stays paused: its light paths may be wrong") as error:
        rack.apply(plan)
    assert program.state == "paused"
    assert RESUMED not in acts(rack)
    rack.dark.clear()
    abort(rack.context, rack.store.runs.get(error.value.run), who="you")
    assert program.state == "running"


def test_nor_where_that_was_put_back_and_is_not_heard(rack, program):
    plan = rack.plan()
    rack.at("commit", do=lambda: rack.dark.add("s0-gpu0-b"))  # it carried a replaced circuit
    with pytest.raises(HalfDoneError, match=r"but: light was not verified.*job finetune stays paused"):
        rack.apply(plan)
    assert program.state == "paused"


@pytest.mark.parametrize(
    ("runs_at", "done"),
    [
        (",".join(SWAPPED), True),
        ("s0,s3,s2", True),
        ("s0-gpu0,s3,s2-gpu0", True),
        (",".join(PLACED), False),
        ("s0,s1,s2", False),
        ("s3-gpu0,s0-gpu0,s2-gpu0", False),
        ("s0-gpu0,s3-gpu0", False),
    ],
)
@pytest.mark.parametrize("says", ["status", "resume"])
def test_a_job_whose_hook_says_that_it_runs_elsewhere_is_not_reported_as_resumed(rack, program, says, runs_at, done):
    """Somebody started it with its old ranks, or its resume hook did."""
    if says == "status":

        def started():
            if program.told:
                program.state = f"running\nLUMCTL_RUNS_AT={runs_at}"

        rack.at("commit", do=lambda: setattr(program, "at_status", started))
    else:
        program.answers["resume"] = Ended(0, late=False, said=f"LUMCTL_RUNS_AT={runs_at}\n")
    plan = rack.plan()
    if done:
        rack.apply(plan)
    else:
        with pytest.raises(HalfDoneError, match=rf"runs on .*, but is placed on {', '.join(SWAPPED)}: stop it there"):
            rack.apply(plan)
        assert rack.store.runs.all()[0].state == "half-done"
