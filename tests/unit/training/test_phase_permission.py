"""What a permit names, and what no other plan may use while it is in force."""

from dataclasses import replace
from random import Random
from types import SimpleNamespace

import pytest
from permitted_phases import plan_of

from lumctl.change.phase_cells import require_clear_of_phases
from lumctl.change.plan import Do, PlannedCircuit, Step, to_document
from lumctl.errors import RefusedError
from lumctl.fabric import Segment
from lumctl.inventory.load import load_inventory
from lumctl.inventory.phase_records import phase_of
from lumctl.inventory.wiring import initial_assignment
from lumctl.training.phase_permission import _changing_cells, _circuits, _rails

TWO_LANES = """\
lumctl: 1
racks: {r1: }
hosts:
  - name: h[0-3]
    accelerators: [{id: "{host}-g", model: X100, memory_gib: 80, pci: "0000:17:00.0"}]
devices:
  - {id: "s[0-1]", kind: switch, driver: x, address: "{id}:1", port_count: 8, input_count: 8}
transponders:
  - {id: "h[0-3]-a", accelerator: "h[0-3]-g", interface: eth2, device: s0, port: [0, 1, 2, 3]}
  - {id: "h[0-3]-b", accelerator: "h[0-3]-g", interface: eth3, device: s1, port: [0, 1, 2, 3]}
jobs:
  - name: job
    ranks: h[0-3]-g
    phases:
      a: [{kind: pairs, pairs: [[0, 1], [2, 3], [1, 2], [3, 0]]}]
      b: [{kind: pairs, pairs: [[0, 2], [1, 3], [1, 2], [3, 0]]}]
"""


@pytest.mark.parametrize("seed", range(50))
def test_the_cells_of_a_phase_turn_any_other_phase_into_it_and_no_cell_is_named_that_never_changes(seed):
    draw = Random(seed)  # noqa: S311 - the same choices in every run
    phases = [{"mesh": {cell: draw.choice(["bar", "cross"]) for cell in range(20)}, "s": {}} for _ in range(3)]
    cells = _changing_cells(phases)
    for one in phases:
        for other in phases:
            written = {**one["mesh"], **{cell: other["mesh"][cell] for cell in cells.get("mesh", ())}}
            assert written == other["mesh"]
    assert all(len({phase["mesh"][cell] for phase in phases}) > 1 for cell in cells.get("mesh", ()))
    assert "s" not in cells


def test_a_rail_has_the_devices_that_change_and_not_others_that_its_ranks_use_too(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text(TWO_LANES)
    inventory = load_inventory(path)
    plan = plan_of({"a": {"s0": {0: "1"}}, "b": {"s0": {0: "2"}}}, "r1")
    context = SimpleNamespace(inventory=inventory, assignment=lambda: initial_assignment(inventory))
    (rail,) = _rails(_circuits(context, inventory.jobs["job"]), plan)
    assert rail.devices == ("s0",)
    assert rail.ranks == {0, 1, 2, 3}


PERMIT = plan_of({"a": {"mesh": {4: "bar", 5: "cross"}}, "b": {"mesh": {4: "cross", 5: "bar"}}}, "r1")


def context(record):
    """A rack on which job ``train`` may change PUCs 4 and 5 of ``mesh``, according to this record."""
    run = SimpleNamespace(plan=to_document(PERMIT), state="done")
    return SimpleNamespace(
        inventory=SimpleNamespace(jobs={"train": None}, devices={"mesh": SimpleNamespace(geometry=True)}),
        assignment=lambda sound: {phase_of("train"): record},  # noqa: ARG005
        store=lambda _rack: SimpleNamespace(runs=SimpleNamespace(all=lambda: [run])),
        target="sim",
    )


def plan_with(cells=(), path=(), record=None):
    """A plan that writes these cells, has a circuit over these PUCs, and puts this on record for the job."""
    steps = [Step("1", Do.PROGRAM, "", {"device": "mesh", "changes": [[cell, None, "cross"] for cell in cells]})]
    if record is not None:
        steps.append(Step("2", Do.ASSIGN, "", {"assignment": {phase_of("train"): list(record)}, "before": {}}))
    circuit = PlannedCircuit("k/0-1", "k", "duplex", (), (Segment("mesh", (0, 1), tuple(path)),))
    return replace(PERMIT, kind="swap", phases=(), steps=tuple(steps), add=(circuit,) if path else ())


@pytest.mark.parametrize(
    "plan", [plan_with(cells=[3, 5]), plan_with(path=[7, 4]), plan_with(cells=[4], record=("b", PERMIT.permit))]
)
def test_a_plan_must_not_use_what_a_running_job_may_change(plan):
    lit = ("b" if len(plan.steps) > 1 else "a", PERMIT.permit)
    with pytest.raises(RefusedError, match=r"would use mesh/puc/[45], which job train may change") as refused:
        require_clear_of_phases(context(lit), plan)
    assert refused.value.hint.endswith("lumctl job stop train --target sim")


@pytest.mark.parametrize(
    ("plan", "record"),
    [
        (plan_with(cells=[3], path=[6]), ("a", PERMIT.permit)),
        (plan_with(cells=[4], record=("a",)), ("a", PERMIT.permit)),
        (plan_with(cells=[4]), ("a",)),
        (plan_with(cells=[4]), ("a", "permit-of-another-plan")),
    ],
)
def test_what_no_permit_names_or_what_ends_the_permit_may_be_used(plan, record):
    require_clear_of_phases(context(record), plan)
