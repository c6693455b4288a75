"""What the dashboard reads of runs, undoes and acknowledges, on a simulated rack with a store of its own."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from lumctl import context as rooms
from lumctl.change import apply
from lumctl.cli.invocation import Invocation
from lumctl.cli.swap_show import run_row
from lumctl.cli.top.operations import acknowledge, maintain, plan
from lumctl.cli.top.runbooks import runbook_of
from lumctl.cli.top.runs import run_view, undoing
from lumctl.context import Context
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.runbook.stage import no_guard
from lumctl.swap import commission, plan_swap
from lumctl.tui.views.steps import Stand


@pytest.fixture
def rack(tmp_path: Path, simulate, monkeypatch):
    """The four-server example with its circuits, and what opens it as the dashboard does."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "rack.yaml"
    path.write_text(example("prototype").read_text() + "\nthresholds: {light_deadline_s: 0.6}\n")
    inventory = load_inventory(path)
    simulated = simulate(inventory)

    def opened(inventory, target):
        return Context(inventory, target, endpoints=simulated.endpoints)

    monkeypatch.setattr(rooms, "Context", opened)
    with opened(inventory, "sim") as context:
        commission(context)
        cx = Invocation.compose({"inventory": str(path), "target": "sim"}, {})
        yield SimpleNamespace(cx=cx, context=context, simulated=simulated)


def test_a_run_is_read_by_its_journal_and_taken_back_by_a_plan(rack):
    plan = plan_swap(rack.context, "finetune", ["s1-gpu0"], even_if_healthy=True)
    result = apply(rack.context, plan, arm=no_guard)
    key = f"{plan.rack}/{result.run}"
    view = run_view(rack.cx, key)
    # One measurement, shown the same by swap apply, this screen and the runbook.
    book = runbook_of(rack.cx, key)
    took = [stage.seconds for stage in result.stages]
    assert [step.seconds for step in view.steps] == [step["seconds"] for step in book["steps"]] == took
    shown = run_row(view.run)["seconds"], view.run.seconds, book["recorded"]["seconds"]
    assert shown == (result.seconds,) * 3
    assert (view.run.state, view.live, view.cut, len(view.proved)) == ("done", False, False, 4)
    assert {step.stand for step in view.steps} == {Stand.DONE}
    assert {receiver.transponder for receiver in view.receivers} >= {"s3-gpu0-a", "s3-gpu0-b"}

    back = undoing(rack.cx, key)
    assert back.title.startswith(f"undo {view.run.id}")
    assert [step.title for step in back.steps] == [step.title for step in back.plan.steps]
    assert {receiver.transponder for receiver in back.receivers} >= {"s1-gpu0-a", "s1-gpu0-b"}
    apply(rack.context, back.plan, arm=no_guard)
    with pytest.raises(RefusedError, match="is no longer in force: it was rolled back by rollback-0001"):
        undoing(rack.cx, key)
    with pytest.raises(UsageError, match="no run"):
        run_view(rack.cx, f"{plan.rack}/swap-9999")


def test_components_are_put_in_maintenance_as_one_run_and_a_circuit_never(rack):
    told = maintain(rack.cx, ["s1", "s2-gpu0"], 7200.0, "new fans")
    assert told.startswith("2 components in maintenance for 2h (maintain-")
    windows = rack.context.store("prototype").health.windows(now=rack.context.now())
    assert sorted((w.component, w.comment, round(w.ends - w.starts)) for w in windows) == [
        ("s1", "new fans", 7200),
        ("s2-gpu0", "new fans", 7200),
    ]
    circuit = rack.context.observe().circuits[0].id
    with pytest.raises(UsageError, match="is a circuit: it cannot be in maintenance"):
        maintain(rack.cx, ["s3", circuit], 60.0, "no")
    assert len(rack.context.store("prototype").health.windows(now=rack.context.now())) == len(windows)


def test_a_drain_plans_to_move_what_is_well(rack):
    with pytest.raises(RefusedError):
        plan(rack.cx, "finetune", "s1-gpu0")
    view = plan(rack.cx, "finetune", "s1-gpu0", even_if_healthy=True)
    assert [(each.failed, each.spare) for each in view.plan.replacements] == [("s1-gpu0", "s3-gpu0")]
    assert view.warnings
    assert view.summary[0] == "replacements"
    assert not any("warning" in line or line == "steps" for line in view.lines)


def test_what_is_found_is_acknowledged_as_one_run_and_what_is_not_found_is_refused(rack):
    with pytest.raises(RefusedError, match="s0-gpu0 has no more findings"):
        acknowledge(rack.cx, ["s0-gpu0"], "known")
    rack.simulated.process.inject("s0-gpu0", "ecc")
    said = acknowledge(rack.cx, ["s2-gpu0", "s0-gpu0"], "a spare is ordered")
    assert said.startswith("s0-gpu0 acknowledged until its findings clear (ack-0001); s2-gpu0 has no findings")
    findings = rack.context.observe().report.accelerators["s0-gpu0"].findings
    assert all("a spare is ordered" in (finding.acknowledged or "") for finding in findings)
