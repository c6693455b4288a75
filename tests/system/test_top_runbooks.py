"""What the dashboard does with runbooks and policies, on real stores and on simulators of their own."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from lumctl.change import apply, to_document
from lumctl.change.approval import ask
from lumctl.cli.invocation import Invocation
from lumctl.cli.top import policies as top_policies
from lumctl.cli.top import runbooks as top_runbooks
from lumctl.cli.top.records import RENEWED_S, Recorder
from lumctl.context import Context
from lumctl.daemon.autopilot import stop_switch
from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.runbook.stage import no_guard
from lumctl.swap import commission, plan_swap

POLICY = """
policies:
  - {name: ask, how: approve, rules: [gpu.lost], stands_s: 0}
thresholds: {light_deadline_s: 0.6}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The inventory's folder: the four-server example with one policy and little patience for light."""
    (tmp_path / "rack.yaml").write_text(example("prototype").read_text() + POLICY)
    return tmp_path


@pytest.fixture
def rack(place, simulate, monkeypatch):
    """A simulated rack that is commissioned, with a store of its own, and a plan to swap a well accelerator."""
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))
    (place / "run").mkdir(mode=0o700, exist_ok=True)
    inventory = load_inventory(place / "rack.yaml")
    simulated = simulate(inventory)
    with Context(inventory, "sim", endpoints=simulated.endpoints) as context:
        commission(context)
        plan = plan_swap(context, "finetune", ["s1-gpu0"], even_if_healthy=True)
        cx = Invocation.compose({"inventory": str(place / "rack.yaml"), "target": "sim"}, {})
        yield SimpleNamespace(cx=cx, context=context, rack=plan.rack, plan=plan, simulated=simulated)


def test_a_swap_is_read_compared_and_replayed_a_step_at_a_time(rack):
    key = f"{rack.rack}/{apply(rack.context, rack.plan, arm=no_guard).run}"
    document = top_runbooks.runbook_of(rack.cx, key)
    assert document["title"] == "finetune: replace s1-gpu0 by s3-gpu0"
    assert document["parameters"]["failed"]["default"] == "s1-gpu0"
    assert any(step["verification"] for step in document["steps"])

    steps: list[str] = []
    lines: list[str] = []
    view = top_runbooks.replayed(rack.cx, key, lines.append, lambda step: bool(steps.append(step)) or True)
    assert (view.identical, view.step) == (True, ""), view
    assert steps == [step["id"] for step in document["steps"]]
    assert [step for step in steps if any(line.startswith(f"{step}. ") for line in lines)] == steps

    before = len(rack.context.store(rack.rack).runs.all())
    stopped = top_runbooks.replayed(rack.cx, key, lines.append, lambda step: step != steps[2])
    assert stopped.identical is None
    assert f"stopped before step {steps[2]}" in stopped.outcome
    assert len(rack.context.store(rack.rack).runs.all()) == before  # nothing of a replay is kept

    same = top_runbooks.compared(rack.cx, key, key)
    assert same.found == ()
    (other,) = [run.id for run in rack.context.store(rack.rack).runs.all() if run.kind == "fabric"]
    unlike = top_runbooks.compared(rack.cx, key, f"{rack.rack}/{other}")
    assert any(count.startswith("cells on ") for count in unlike.counts)
    with pytest.raises(UsageError):
        top_runbooks.runbook_of(rack.cx, f"{rack.rack}/swap-9999")

    seen = rack.context.observe()
    assert top_policies.explained(rack.cx, seen, rack.rack) == ()
    rack.simulated.process.inject("s0-gpu0", "gpu-lost")
    (decision,) = top_policies.explained(rack.cx, rack.context.observe(), rack.rack)
    assert (decision["component"], decision["policy"]) == ("s0-gpu0", "ask")
    assert {"quiet", "stands", "rack-hour"} <= {each["name"] for each in decision["conditions"]}


def test_a_plan_that_waits_is_shown_and_answered_and_lapses_with_time_alone(rack):
    context, store = rack.context, rack.context.store(rack.rack)
    (policy,) = context.inventory.policies
    plan = rack.plan
    store.runs.save_plan(to_document(plan))
    asked = ask(context, plan, policy, made_by="autopilot: policy ask on console")
    clock = [asked.asked_at + 1]
    with Recorder(context.inventory, "sim", now=lambda: clock[0]) as records:
        assert [each["plan"] for each in records().autopilots[0]["waiting"]] == [plan.id]
        clock[0] = asked.expires_at + RENEWED_S
        assert records().autopilots[0]["waiting"] == []

    shown = top_policies.asked_plan(rack.cx, rack.rack, plan.id)
    assert shown.title == plan.title
    assert [step.title for step in shown.steps] == [step.title for step in plan.steps]
    meshes = {change.device.id: change for change in shown.changes}
    assert meshes
    assert all(meshes[each.devices[0]].added.names for each in plan.add)
    assert {c.puc for c in plan.changes} == {p for m in shown.changes for p in m.after if m.before[p] != m.after[p]}
    answered = top_policies.answer_plan(rack.cx, rack.rack, plan.id, "continue", approve=True)
    assert answered.outcome.startswith(f"{plan.id} ({plan.title}): approved by ")
    assert answered.lines == ("the autopilot applies it if the fault still persists",)
    with pytest.raises(RefusedError):
        top_policies.answer_plan(rack.cx, rack.rack, plan.id, "", approve=False)

    told = top_policies.stop_autopilot(rack.cx, rack.rack, "smoke")
    assert told.done, told
    assert stop_switch.thrown(stop_switch.places([rack.rack], [store.files]))
    with Recorder(context.inventory, "sim") as records:
        (autopilot,) = records().autopilots
        assert (autopilot["state"], "smoke" in autopilot["why"]) == ("stopped", True)
        assert top_policies.start_autopilot(rack.cx, rack.rack, "no smoke").done
        assert records().autopilots[0]["state"] == "ready"  # no daemon answers here
    assert not top_policies.daemon_answers(rack.cx)
    assert [run.title for run in store.runs.all() if run.kind == "policy"] == [
        f"start the autopilot of {rack.rack}: no smoke",
        f"stop the autopilot of {rack.rack}: smoke",
    ]
