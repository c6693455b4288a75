"""Swaps on a simulated rack: real SSH, the real mesh protocol, a real database; the mesh is read back to see."""

import os
import random
import time
from dataclasses import replace

import pytest

from lumctl.change import Plan, apply
from lumctl.change.plan import Do, Step
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, RolledBackError, UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.swap import plan_rollback, plan_swap
from lumctl.swap.request import require_trouble_still

RACK64 = load_inventory(example("rack64"))
WORKERS = [(job.name, accelerator) for job in RACK64.jobs.values() for accelerator in job.ranks]
CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))
VICTIMS = WORKERS if CAMPAIGN else random.Random(64).sample(WORKERS, 4)  # noqa: S311 - a seeded sample, no secret


@pytest.mark.parametrize(("job", "victim"), VICTIMS)
def test_any_accelerator_that_works_in_a_job_can_be_replaced(rack64, job: str, victim: str) -> None:
    rack = rack64
    before = rack.cells()
    placed_before = rack.context.assignment()
    rack.sim.inject(victim, "gpu-lost")
    plan = plan_swap(rack.context, job, [victim])
    result = apply(rack.context, plan)
    spare = plan.replacements[0].spare

    after = rack.cells()
    changed = {(d, p) for d, cells in after.items() for p, state in cells.items() if before[d][p] is not state}
    assert changed == {(c.device, c.puc) for c in plan.changes}
    assert not changed & {puc for c in plan.keep for puc in c.pucs}
    assert {p.receiver for p in result.verified} == {
        r for c in plan.add for r in (c.ends[0]["lane"], c.ends[1]["lane"])
    }
    assert rack.context.assignment()[job] == tuple(spare if a == victim else a for a in placed_before[job])
    assert all(rack.ok_circuits(job))

    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(result.run)))
    rack.clear()
    assert rack.cells() == before
    assert rack.context.assignment() == placed_before
    assert all(all(rack.ok_circuits(name)) for name in rack.inventory.jobs)
    assert rack.store.first_break() is None


@pytest.mark.parametrize("fault", ["stuck", "mesh-lying", "dark"])
def test_light_that_is_not_proved_takes_everything_back(rack, fault: str) -> None:
    plan = rack.lost()
    before = rack.cells()
    if fault == "stuck":
        rack.spoil(plan)
    else:
        rack.sim.inject("mesh" if fault == "mesh-lying" else "s3-gpu0-a", fault)
    with pytest.raises(RolledBackError, match=r"rolled back: light was not verified within .* s: .* instead of"):
        apply(rack.context, plan)
    assert rack.cells() == before
    assert rack.context.assignment()["finetune"] == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
    assert rack.store.runs.all()[0].state == "rolled-back"
    assert rack.context.known_states("mesh") == before["mesh"]
    assert rack.context.devices.transponder("s1-gpu0-a").transmitting()


def test_a_mesh_that_is_gone_is_unreachable_and_nothing_is_done(rack) -> None:
    plan = rack.lost()
    rack.sim.inject("mesh", "mesh-down")
    runs = len(rack.store.runs.all())
    with pytest.raises(DeviceUnreachableError, match="mesh"):
        apply(rack.context, plan)
    assert len(rack.store.runs.all()) == runs


def test_a_spare_that_fell_ill_after_the_plan_is_refused_before_anything_is_touched(rack) -> None:
    plan = rack.lost()
    before = rack.cells()
    rack.sim.inject("s3-gpu0", "row-remap-failed")
    with pytest.raises(RefusedError, match="s3-gpu0 is failed"):
        apply(rack.context, plan)
    assert rack.cells() == before
    assert rack.store.runs.all()[0].state == "refused"
    assert rack.context.known_states("mesh") == before["mesh"]


def test_a_spare_that_is_ill_is_not_planned_with(rack) -> None:
    rack.sim.inject("s3-gpu0", "row-remap-failed")
    with pytest.raises(RefusedError, match="s3-gpu0: is failed"):
        rack.lost()


def test_a_plan_is_applied_once(rack) -> None:
    plan = rack.lost()
    apply(rack.context, plan)
    with pytest.raises(RefusedError, match="was already applied by"):
        apply(rack.context, plan)


def test_an_accelerator_that_is_well_is_not_replaced_unless_asked(rack) -> None:
    rack.sim.inject("s1-gpu0", "process-died")
    with pytest.raises(RefusedError, match="can restart on it in place"):
        plan_swap(rack.context, "finetune", ["s1-gpu0"])
    assert plan_swap(rack.context, "finetune", ["s1-gpu0"], even_if_healthy=True).replacements[0].spare == "s3-gpu0"


def test_an_old_plan_takes_no_spare_for_what_has_recovered(rack) -> None:
    plan = replace(rack.lost(), created_at=time.time() - 60)
    require_trouble_still(rack.context, plan)
    rack.sim.clear("s1-gpu0")
    with pytest.raises(RefusedError, match="s1-gpu0 is ok by now"):
        require_trouble_still(rack.context, plan)


def test_a_host_that_is_gone_is_replaced_all_the_same(rack) -> None:
    rack.sim.inject("s1", "unreachable")
    result = apply(rack.context, plan_swap(rack.context, "finetune", ["s1-gpu0"]))
    darkened = [e for e in rack.store.journal.of_run(result.run) if e.kind == "outcome" and "failed" in e.data]
    assert [e.step for e in darkened] == ["2", "3"]
    assert len(result.verified) == 4


def test_two_engines_never_change_one_rack_at_once(rack) -> None:
    plan = rack.lost()
    held = rack.store.leases.acquire("prototype", "somebody else", term_s=60.0, now=time.time())
    with pytest.raises(RefusedError, match="being changed by somebody else"):
        apply(rack.context, plan)
    rack.store.leases.release(held)
    apply(rack.context, plan)


@pytest.mark.parametrize(
    ("job", "failed", "spares", "says"),
    [
        ("finetun", ["s1-gpu0"], [], "no job 'finetun' in the inventory"),
        ("finetune", ["s1-gpu"], [], "no accelerator 's1-gpu' in the inventory"),
        ("finetune", ["s3-gpu0"], [], "s3-gpu0 is not used by finetune"),
        ("finetune", ["s1-gpu0", "s1-gpu0"], [], "given twice after"),
        ("finetune", ["s1-gpu0"], ["s3-gpu0", "s2-gpu0"], "1 accelerator failed, but 2 spares"),
        ("finetune", [], [], "no failed accelerator"),
    ],
)
def test_wrong_names_are_one_line_each(rack, job: str, failed: list[str], spares: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        plan_swap(rack.context, job, failed, spares)


def test_a_plan_that_became_stale_while_the_lease_was_awaited_is_refused(rack) -> None:
    plan = rack.lost()
    with rack.another_context() as other:
        acquire = rack.store.leases.acquire

        def late(*words: object, **more: object) -> object:
            apply(other, plan)
            return acquire(*words, **more)  # type: ignore[arg-type]

        rack.store.leases.acquire = late  # type: ignore[method-assign, assignment]
        with pytest.raises(RefusedError, match="was already applied by"):
            apply(rack.context, plan)


def test_a_plan_that_touches_or_does_not_watch_another_circuit_is_refused(rack) -> None:
    plan = rack.lost()
    before = rack.cells()
    (kept,) = {circuit.id for circuit in plan.keep if circuit.id.endswith(":ab")}
    program = next(step for step in plan.steps if step.do is Do.PROGRAM)
    verify = next(step for step in plan.steps if step.do is Do.VERIFY)

    def edited(old: Step, **data: object) -> Plan:
        steps = [replace(s, data={**s.data, **data}) if s is old else s for s in plan.steps]
        return replace(plan, steps=tuple(steps)).sealed()

    _, cell = next(c.pucs[0] for c in plan.keep if c.id == kept)
    flipped = [cell, *(("x", "=") if before["mesh"][cell] is PucState.CROSS else ("=", "x"))]
    with pytest.raises(RefusedError, match=r"would change circuit finetune/2-0:\w\w of finetune"):
        apply(rack.context, edited(program, changes=[*program.data["changes"], flipped]))
    with pytest.raises(RefusedError, match=f"without a proof that circuit {kept} still works"):
        apply(rack.context, edited(verify, kept=[name for name in verify.data["kept"] if name != kept]))
    assert rack.cells() == before
