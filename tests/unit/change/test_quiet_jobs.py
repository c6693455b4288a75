"""Jobs without a hook on a rack: somebody must say that they are stopped, and the journal keeps who did."""

from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from lumctl.change import engine, resumption
from lumctl.change.disturbance import jobs_to_stop
from lumctl.change.guard_scope import GuardScope
from lumctl.change.plan import Do, plan_digest
from lumctl.change.resumption import abort, resume
from lumctl.change.run import RunInProgress
from lumctl.cli import fabric, swap_finish
from lumctl.cli.changes import carry_out, say_result
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.output import Output, OutputFormat
from lumctl.errors import RefusedError, RolledBackError, UsageError
from lumctl.inventory.job_run import JobHook
from lumctl.store import store_at
from lumctl.swap import plan_fabric, plan_rollback

PLACED = ("s0-gpu0", "s1-gpu0", "s2-gpu0")
MUST = "job finetune has no hook; stop it before its light paths change"


@pytest.fixture
def rack(rack):
    """The rack itself, not its simulator."""
    rack.context.target = "rack"
    return rack


def job_is(rack, **changed) -> None:
    jobs = {**rack.inventory.jobs, "finetune": replace(rack.inventory.jobs["finetune"], **changed)}
    rack.inventory = rack.context.inventory = replace(rack.inventory, jobs=jobs)


def vouched(rack):
    """What the journal of the newest run says of jobs that are stopped."""
    return [entry.data for entry in rack.store.journal.of_run(rack.store.runs.all()[0].id) if entry.kind == "vouched"]


def test_a_swap_is_refused_and_nothing_is_touched(rack):
    plan = rack.plan()
    with pytest.raises(RefusedError, match=MUST) as error:
        rack.apply(plan)
    assert "--job-is-stopped" in error.value.hint
    assert (rack.acts(), rack.seen("begin", "arm"), rack.placed()) == ([], [], PLACED)


def test_unless_somebody_says_that_it_is_stopped_which_is_kept(rack):
    rack.apply(rack.plan(), stopped_by="ann@console")
    assert vouched(rack) == [{"stopped": "finetune", "by": "ann@console"}]
    assert not [odd for odd in rack.store.verify(plan_digest) if "swap" in odd.reason]


@pytest.mark.parametrize(
    "changed", [{"needs_no_pause": True}, {"hook": JobHook(("true",), ("true",))}], ids=["needs-no-pause", "hook"]
)
def test_where_the_inventory_sees_to_it_nobody_need(rack, changed):
    job_is(rack, **changed)
    plan = rack.plan()
    assert not any("no hook" in warning for warning in plan.warnings)
    assert rack.apply(plan).outcome == "done"
    assert vouched(rack) == []


def test_on_a_simulator_no_job_runs(rack):
    rack.context.target = "sim"
    plan = rack.plan()
    assert any("finetune has no hook" in warning for warning in plan.warnings)
    assert rack.apply(plan).outcome == "done"


def test_a_fabric_is_written_where_no_job_runs_yet(rack, tmp_path):
    with closing(store_at(str(tmp_path / "new"))) as rack.store:
        plan = plan_fabric(rack.context, "prototype")
        assert plan.add
        rack.apply(plan)


def light_moves(rack, plan):
    """It is refused unless somebody says that the job is stopped, and that is kept."""
    rack.events.clear()
    with pytest.raises(RefusedError, match=MUST):
        rack.apply(plan)
    assert rack.acts() == []
    rack.apply(plan, stopped_by="ann@console")
    assert vouched(rack) == [{"stopped": "finetune", "by": "ann@console"}]


def test_a_fabric_that_is_written_anew_over_standing_light_is_no_first_one(rack):
    light_moves(rack, plan_fabric(rack.context, "prototype", rewrite=True))


def test_nor_is_one_that_places_jobs_as_written_after_a_swap(rack):
    rack.apply(rack.plan(), stopped_by="ann@console")
    light_moves(rack, plan_fabric(rack.context, "prototype", placement={"finetune": PLACED}))
    assert rack.placed() == PLACED


def test_one_that_is_written_again_as_it_stands_takes_nothing_away(rack, monkeypatch):
    monkeypatch.setattr("lumctl.swap.fabric._unsound", lambda _inventory, carried, _light: list(carried)[:1])
    plan = plan_fabric(rack.context, "prototype")
    assert any(step.do is Do.PROGRAM for step in plan.steps)
    rack.apply(plan)


@pytest.mark.parametrize("says", ["remove", "add", "both"])
def test_a_fabric_by_hand_is_judged_by_its_cells_whatever_it_says(rack, says):
    """The cells of a swap, or its placement: neither is a commissioning where a job has light."""
    hidden = {"remove": ("add",), "add": ("remove",), "both": ("add", "remove")}[says]
    made = replace(rack.plan(), kind="fabric", replacements=(), **dict.fromkeys(hidden, ())).sealed()
    assert jobs_to_stop(rack.context, made) == ("finetune",)
    placing = tuple(step for step in made.steps if step.do is Do.ASSIGN)
    rack.apply(rack.plan(), stopped_by="ann@console")
    back = replace(placing[0], data={"assignment": {"finetune": PLACED}, "before": {}})
    assert jobs_to_stop(rack.context, replace(made, add=(), remove=(), steps=(back,)).sealed()) == ("finetune",)


def test_a_rollback_is_a_change_like_the_swap(rack):
    run = rack.apply(rack.plan(), stopped_by="ann@console").run
    back = plan_rollback(rack.context, rack.store.runs.get(run))
    with pytest.raises(RefusedError, match=MUST):
        rack.apply(back)
    rack.apply(back, stopped_by="ann@console")
    assert rack.placed() == PLACED


def cut(rack, steps=6):
    """A swap that its engine has left after some steps."""
    plan = rack.plan()
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time - 31.0)
    run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope())
    for step in plan.steps[:steps]:
        run.perform(step)
    rack.events.clear()
    return rack.store.runs.get(run.id)


@pytest.mark.parametrize("way", ["rollback", "abort", "resume"])
def test_what_was_cut_is_taken_back_without_a_word(rack, way):
    run = cut(rack)
    if way == "rollback":
        rack.apply(plan_rollback(rack.context, run))
    elif way == "abort":
        abort(rack.context, run, who="you")
    else:
        rack.collected.lose_gpu("s3-gpu0")
        with pytest.raises(RolledBackError, match="it cannot continue"):
            resume(rack.context, run, who="you", arm=rack.guard.arm)
    assert rack.placed() == PLACED


@pytest.mark.parametrize("steps", [1, 6])
def test_it_goes_on_only_where_somebody_says_again_that_the_job_is_stopped(rack, steps):
    run = cut(rack, steps)
    with pytest.raises(RefusedError, match=MUST) as error:
        resume(rack.context, run, who="you", arm=rack.guard.arm)
    assert "--job-is-stopped" in error.value.hint
    assert (rack.acts(), rack.seen("arm"), rack.store.runs.get(run.id).state) == ([], [], "running")
    resume(rack.context, run, who="you", stopped_by="ann@console", arm=rack.guard.arm)
    assert vouched(rack) == [{"stopped": "finetune", "by": "ann@console"}]
    assert rack.placed() != PLACED
    assert not [odd for odd in rack.store.verify(plan_digest) if run.id in odd.reason]


def test_where_no_light_is_left_to_move_nobody_is_asked(rack):
    assert jobs_to_stop(rack.context, rack.plan(), left=()) == ()


@pytest.mark.parametrize("forged", ["undoes", "kind", "fabric", "fabric without replacements"])
def test_a_plan_that_calls_itself_something_else_passes_no_more_than_a_swap(rack, forged):
    """A plan is a file: a word of it and an honest digest are written quickly."""
    lease = rack.store.leases.acquire("prototype", "me", term_s=30.0, now=rack.time - 31.0)
    run = RunInProgress.begun(rack.context, rack.plan(), rack.store, lease, "me", GuardScope())
    run.end("half-done", {})
    said = {"undoes": {"undoes": run.id}, "kind": {"kind": "finishing"}}.get(forged, {"kind": "fabric"})
    if forged == "fabric without replacements":
        said["replacements"] = ()
    with pytest.raises(RefusedError, match=MUST):
        rack.apply(replace(rack.plan(), **said).sealed())
    assert rack.acts() == []


# -- as a command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def command(rack, monkeypatch):
    """Apply a plan as the commands do, at a terminal that answers."""
    monkeypatch.setitem(engine.apply.__kwdefaults__, "arm", rack.guard.arm)
    monkeypatch.setitem(resumption.resume.__kwdefaults__, "arm", rack.guard.arm)
    for module in ("changes", "swap_finish"):
        monkeypatch.setattr(f"lumctl.cli.{module}.origin", lambda: "ops@console")

    @contextmanager
    def context(_inventory, _target):
        yield rack.context

    for module in (swap_finish, fabric):
        monkeypatch.setattr(module, "Context", context)

    def call(answer=None, *, does=None, plan=None, **options):
        if answer is not None:
            monkeypatch.setattr("sys.stdin", Terminal(answer))
            monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        cx = Invocation(None, Target.RACK, Output(OutputFormat.TABLE))
        cx.__dict__["inventory"] = rack.inventory
        if does is not None:
            does(cx, **options)
        else:
            carry_out(cx, rack.context, plan or rack.plan(), **{"yes": False, "dry_run": False, **options})

    return call


class Terminal:
    """Its operator types one word."""

    def __init__(self, word) -> None:
        self.word = word

    def isatty(self):
        return True

    def fileno(self):
        raise OSError("this terminal is no file")

    def readline(self):
        return f"{self.word}\n"


def test_a_yes_beforehand_does_not_say_that_it_is_stopped(rack, command):
    with pytest.raises(RefusedError, match=f"{MUST}; --yes does not confirm that"):
        command(yes=True)
    command(yes=True, stopped=True)
    assert [said["by"] for said in vouched(rack)] == ["ops@console"]


def test_a_yes_at_the_terminal_does_for_the_question_says_it(rack, command, capsys):
    with pytest.raises(RefusedError, match="not confirmed"):
        command("n")
    asked = capsys.readouterr().err
    assert asked.startswith(f"J{MUST[1:]}. Apply plan-")
    assert asked.endswith("[target: rack] [y/N] ")
    command("y")
    assert [said["by"] for said in vouched(rack)] == ["ops@console"]


def test_without_a_terminal_it_still_needs_a_confirmation(command):
    with pytest.raises(UsageError) as error:
        command(stopped=True)
    assert error.value.message == "confirmation required, but stdin is not a terminal"
    assert error.value.hint.endswith("add --yes")


def test_a_dry_run_says_what_will_be_needed(rack, command, capsys):
    command(dry_run=True)
    assert f"{MUST}: --job-is-stopped" in capsys.readouterr().err
    assert rack.acts() == []


RESUME = "resume job finetune now: it has no hook; where its ranks run: lumctl job show finetune\n"


def test_who_stopped_the_job_is_reminded_to_resume_it_once_the_light_is_proved(command, capsys):
    command(yes=True, stopped=True)
    assert capsys.readouterr().out.endswith(RESUME)


def test_a_job_is_not_to_be_resumed_on_an_accelerator_that_is_not_ok(rack, command, capsys):
    run = rack.apply(rack.plan(), stopped_by="ann@console").run
    rack.collected.lose_gpu("s1-gpu0")
    back = plan_rollback(rack.context, rack.store.runs.get(run))
    command(yes=True, stopped=True, plan=back)
    assert capsys.readouterr().out.endswith(
        "do not resume job finetune yet: s1-gpu0 is failed; replace it first: "
        "lumctl swap plan --failed s1-gpu0 --target rack\n"
    )


def test_a_run_that_is_continued_ends_with_the_reminder_too(rack, command, capsys):
    run = cut(rack).id
    command(does=swap_finish.resume, run=run, yes=True, job_is_stopped=True)
    assert capsys.readouterr().out.endswith(RESUME)


def test_and_one_that_is_undone_because_the_job_was_stopped_for_it(rack, command, capsys):
    command(does=swap_finish.abort, run=cut(rack).id, yes=True)
    assert capsys.readouterr().out.endswith(RESUME)


@pytest.mark.parametrize("changed", [{"needs_no_pause": True}, {"hook": JobHook(("true",), ("true",))}])
def test_a_job_that_nobody_had_to_stop_is_not_to_be_resumed(rack, command, capsys, changed):
    job_is(rack, **changed)
    command(yes=True)
    assert "resume job" not in capsys.readouterr().out


def test_a_slice_that_has_no_ranks_afterwards_is_not_to_be_resumed(rack, capsys):
    plan = rack.plan()
    (placing,) = (step for step in plan.steps if step.do is Do.ASSIGN)
    released = replace(placing, data={"assignment": {"finetune": ()}, "before": {"finetune": PLACED}})
    result = replace(rack.apply(plan, stopped_by="ann@console"), plan=replace(plan, steps=(released,)))
    cx = Invocation(None, Target.RACK, Output(OutputFormat.TABLE))
    cx.__dict__["inventory"] = rack.inventory
    say_result(cx, rack.context, result, None)
    assert "resume job" not in capsys.readouterr().out
    say_result(cx, rack.context, replace(result, outcome="rolled-back"), None)
    assert capsys.readouterr().out.endswith(RESUME)


def test_resume_asks_about_the_job_at_the_terminal(rack, command, capsys):
    run = cut(rack).id
    with pytest.raises(RefusedError, match="not confirmed"):
        command("n", does=swap_finish.resume, run=run)
    asked = capsys.readouterr().err
    assert asked.startswith(f"J{MUST[1:]}. Continue with {run} (")
    command("y", does=swap_finish.resume, run=run)
    assert [said["by"] for said in vouched(rack)] == ["ops@console"]


def test_and_unattended_wants_it_said(rack, command, capsys):
    run = cut(rack).id
    command(does=swap_finish.resume, run=run, dry_run=True)
    assert f"{MUST}: --job-is-stopped" in capsys.readouterr().err
    with pytest.raises(RefusedError, match=MUST):
        command(does=swap_finish.resume, run=run, yes=True)
    assert rack.acts() == []
    command(does=swap_finish.resume, run=run, yes=True, job_is_stopped=True)
    assert [said["by"] for said in vouched(rack)] == ["ops@console"]


def test_where_it_is_taken_back_the_question_is_not_about_the_job(rack, command, capsys):
    run = cut(rack).id
    rack.collected.lose_gpu("s3-gpu0")
    with pytest.raises(RolledBackError):
        command("y", does=swap_finish.resume, run=run)
    assert capsys.readouterr().err.startswith(f"Undo {run} (")


def test_fabric_apply_takes_the_word_too(rack, command):
    with pytest.raises(RefusedError, match=f"{MUST}; --yes does not confirm that"):
        command(does=fabric.apply, rewrite=True, yes=True)
    command(does=fabric.apply, rewrite=True, yes=True, job_is_stopped=True)
    assert [said["by"] for said in vouched(rack)] == ["ops@console"]
