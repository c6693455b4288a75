"""``swap resume`` and ``swap abort`` as commands, on the rack in memory: what they print, ask and exit with."""

import json
from contextlib import contextmanager

import pytest

from lumctl.change import resumption
from lumctl.change.guard_scope import GuardScope
from lumctl.change.run import RunInProgress
from lumctl.cli import swap_finish
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.output import Output, OutputFormat
from lumctl.errors import ExitCode, LumctlError, RefusedError, UsageError
from lumctl.store import StoreError


@pytest.fixture
def command(rack, monkeypatch):
    """Call one of the commands with words of its own; the context is that of the rack in memory."""

    @contextmanager
    def context(_inventory, _target):
        yield rack.context

    monkeypatch.setattr(swap_finish, "Context", context)
    monkeypatch.setitem(resumption.resume.__kwdefaults__, "arm", rack.guard.arm)
    monkeypatch.setattr("lumctl.change.resumption.origin", lambda: "ops@console from 10.0.0.7")

    def call(act, run, *, output=OutputFormat.TABLE, **options):
        cx = Invocation(None, Target.SIM, Output(output))
        cx.__dict__["inventory"] = rack.inventory
        getattr(swap_finish, act)(cx, run, **options)

    return call


@pytest.fixture
def run(rack):
    """A run that was cut after its cells were written."""
    plan = rack.plan()
    lease = rack.store.leases.acquire(plan.rack, "me", term_s=30.0, now=rack.time - 31.0)
    run = RunInProgress.begun(rack.context, plan, rack.store, lease, "me", GuardScope())
    for step in plan.steps[:6]:
        run.perform(step)
    run.intend([plan.steps[6]])
    rack.events.clear()
    return run.id


def test_a_dry_run_shows_exactly_what_would_be_done(rack, command, run, capsys):
    command("resume", run, dry_run=True)
    said = capsys.readouterr()
    head, where, _, what, verify, write = said.out.splitlines()
    assert head == f"{run}  finetune: replace s1-gpu0 by s3-gpu0"
    assert where == "target sim, rack prototype; it was interrupted, 6 of 8 steps are done"
    assert what == "left to do"
    assert verify.startswith("  7. verify ")
    assert verify.endswith("(again: whether it was done is unknown)")
    assert write == "  8. record where finetune runs"
    assert said.err == "dry run: nothing was done\n"
    command("abort", run, dry_run=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "rolled back, in this order"
    assert [line.split(".")[0].strip() for line in lines[4:]] == ["7", "6", "5", "4", "3", "2", "1"]
    assert lines[5].endswith(": write the 9 earlier states")
    assert (rack.acts(), rack.store.runs.get(run).state) == ([], "running")


@pytest.mark.parametrize(("act", "steps"), [("resume", ["7", "8"]), ("abort", ["7", "6", "5", "4", "3", "2", "1"])])
def test_and_as_data(command, run, capsys, act, steps):
    command(act, run, dry_run=True, output=OutputFormat.JSON)
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["act"], document["run"]) == ("lumctl/prospect/v1", act, run)
    assert [step["id"] for step in document["steps"]] == steps
    assert {step["known"] for step in document["steps"]} <= {"done", "not done", "unknown"}
    assert document["why_not"] is None


@pytest.mark.parametrize(("act", "outcome"), [("resume", "done"), ("abort", "rolled-back")])
def test_what_came_of_it_is_a_run_document_with_its_runbook(rack, command, run, capsys, act, outcome):
    command(act, run, yes=True, output=OutputFormat.JSON)
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["run"], document["outcome"]) == ("lumctl/run/v1", run, outcome)
    assert document["runbook"].endswith(f"{run}.yaml")
    assert any(e.data.get("by") == "ops@console from 10.0.0.7" for e in rack.store.journal.of_run(run) if e.kind == act)
    with pytest.raises(RefusedError, match=f"{run} has nothing to {act}: it ended {outcome}"):
        command(act, run, yes=True)


def test_without_a_terminal_it_needs_a_yes(rack, command, run, capsys):
    with pytest.raises(UsageError) as error:
        command("resume", run)
    assert error.value.hint == "to confirm in advance, add --yes"
    assert "left to do" in capsys.readouterr().out
    assert (rack.acts(), rack.store.runs.get(run).state) == ([], "running")


def test_where_it_cannot_go_on_it_says_why_before_it_asks(rack, command, run, capsys):
    rack.collected.lose_gpu("s3-gpu0")
    command("resume", run, dry_run=True)
    said = capsys.readouterr().out
    assert "it cannot continue: s3-gpu0 is failed, not ok" in said
    assert "rolled back, in this order" in said
    with pytest.raises(LumctlError) as error:
        command("resume", run, yes=True)
    assert error.value.exit_code is ExitCode.ROLLED_BACK


def test_a_store_that_is_gone_when_all_is_done_does_not_make_it_look_refused(rack, command, run, capsys, monkeypatch):
    def gone():
        raise StoreError("the store cannot be read: it is gone")

    monkeypatch.setattr(rack.store.journal, "head", gone)
    command("resume", run, yes=True, output=OutputFormat.JSON)
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["outcome"], document["journal_head"]) == ("done", None)
    assert "warning: the end of the journal is unknown: the store cannot be read" in said.err


@pytest.mark.parametrize("output", [OutputFormat.TABLE, OutputFormat.JSON])
def test_circuits_that_could_not_be_shown_are_named(rack, command, run, capsys, output):
    rack.dark.add("s2-gpu0-b")
    rack.collected.host("s2", reachable=False)
    kept = next(
        name
        for step in rack.store.runs.get(run).plan["steps"]
        if step["do"] == "verify"
        for name in step["data"]["kept"]
    )
    command("resume", run, yes=True, output=output)
    said = capsys.readouterr().out
    if output is OutputFormat.JSON:
        assert json.loads(said)["silent"] == [kept]
    else:
        assert f"\nnot shown, because their hosts do not answer: {kept}\n" in said


def test_where_all_were_shown_none_is_named(command, run, capsys):
    command("resume", run, yes=True)
    assert "not shown" not in capsys.readouterr().out
