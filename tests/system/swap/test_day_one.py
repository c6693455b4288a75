"""Day one on a lit rack: what a switch or a mesh holds is read, shown, cut only by name, and put back."""

import json
from contextlib import closing
from dataclasses import replace

import pytest

from lumctl.change import apply
from lumctl.change.plan import Do, programmed
from lumctl.cli.plan_lines import plan_lines
from lumctl.context import Context
from lumctl.devices.protocols import DriverContext
from lumctl.errors import RefusedError, RolledBackError
from lumctl.inventory.load import example, load_inventory
from lumctl.runbook import document, yaml_text
from lumctl.runbook.replay import replay_on_simulator
from lumctl.sim.launch import launch
from lumctl.sim.switches.driver import SimSwitch
from lumctl.store import store_at
from lumctl.swap import plan_fabric, plan_rollback, plan_swap, require_cuts_agreed

LIVE = {0: 24, 1: 25, 2: 26, 3: 20, 4: 28, 5: 21, 7: 30, 9: 16}
"""Live cross-connects at ports of our lanes; 7 is in nobody's way, and 9 holds an output that is ours."""
KEPT = {3, 7}
"""What fabric apply leaves alone: 3 is a circuit of the inventory's job already."""
COMMAND = "lumctl fabric apply --target sim"


@pytest.fixture(scope="module", params=["polatis-scpi", "sim-switch"])
def sim(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lit")
    path = folder / "switched.yaml"
    text = (
        example("prototype")
        .with_name("switched.yaml")
        .read_text()
        .replace("driver: polatis-scpi", f"driver: {request.param}")
    )
    path.write_text(text + "\nthresholds: {light_deadline_s: 1.0}\n")
    with launch(load_inventory(path), folder=folder / "sim", tied=True) as running:
        yield running


@pytest.fixture
def switch(sim):
    """The switch past its own protocol and driver, with the cross-connects of somebody else."""
    driver_context = DriverContext("ocs", f"unix:{sim.control}", port_count=32, input_count=16)
    with closing(SimSwitch(driver_context)) as switch:
        switch.commit(switch.stage({**dict.fromkeys(range(16)), **LIVE}))
        yield switch
        sim.clear()


@pytest.fixture
def context(sim, tmp_path):
    store = store_at(str(tmp_path / "store"), rack="switched")
    with Context(sim.inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as context:
        yield context
    store.close()


def named(plan):
    return ",".join(str(cut.ingress) for cut in plan.cuts)


def test_what_it_would_cut_is_listed_with_its_light_and_refused_until_it_is_named(context, switch):
    plan = plan_fabric(context, "switched")
    wanted = {c.puc for c in plan.changes if c.after != c.before}
    assert {(cut.ingress, cut.egress) for cut in plan.cuts} == {join for join in LIVE.items() if join[0] in wanted}
    assert {cut.ingress for cut in plan.cuts} == set(LIVE) - KEPT
    assert all(cut.owner is None and (cut.dark or cut.power_dbm is not None) for cut in plan.cuts)
    assert all(change.before is not None for change in plan.changes)
    lines = plan_lines(plan, wide=True)
    assert any("ocs port 9 to port 16" in line and "needs --cut 9" in line for line in lines)
    assert not any("?" in line for line in lines)
    with pytest.raises(RefusedError) as refused:
        require_cuts_agreed(context, plan, COMMAND)
    assert refused.value.hint.endswith(f"{COMMAND} --cut {named(plan)}")
    with pytest.raises(RefusedError, match="light paths that belong to no job in the inventory"):
        apply(context, plan)
    with pytest.raises(RefusedError, match="cuts a light path"):
        apply(context, plan_fabric(context, "switched", cut=[str(n) for n in set(LIVE) - {*KEPT, 9}]))
    assert switch.read_circuits() == LIVE


def test_what_was_named_is_cut_and_a_rollback_restores_it(context, switch):
    plan = plan_fabric(context, "switched", cut=named(plan_fabric(context, "switched")).split(","))
    run = apply(context, plan).run
    after = switch.read_circuits()
    assert after[7] == LIVE[7]
    assert 9 not in after
    assert len(context.observe().report.circuits) == 6
    assert plan_fabric(context, "switched").steps == ()
    done = context.store("switched").runs.get(run)
    apply(context, plan_rollback(context, done))
    assert switch.read_circuits() == LIVE
    book = yaml_text.load(yaml_text.dump(document.make(done, context.store("switched"), context.inventory)), "x")
    replayed = replay_on_simulator(book, context.inventory, progress=print, before_step=lambda _step: None)
    assert replayed.identical, replayed.first_difference


@pytest.mark.parametrize("knows", [True, False])
def test_a_proof_that_fails_restores_it(context, switch, sim, knows):
    """Also where the plan does not say what the switch held, as plans of earlier versions: the switch itself told."""
    sim.inject("h1-gpu0-a", "dark")
    plan = plan_fabric(context, "switched", cut=named(plan_fabric(context, "switched")).split(","))
    plan = plan if knows else ignorant(plan)
    with pytest.raises(RolledBackError):
        apply(context, plan)
    assert switch.read_circuits() == LIVE
    assert context.store("switched").runs.all()[0].state == "rolled-back"


def ignorant(plan):
    """The same plan without what devices held before."""
    steps = tuple(
        replace(s, data={**s.data, "changes": [[cell, None, after] for cell, _, after in s.data["changes"]]})
        if s.do is Do.PROGRAM
        else s
        for s in plan.steps
    )
    return replace(plan, steps=steps, changes=programmed(steps)).sealed()


def test_a_cross_connect_that_came_after_the_plan_is_not_cut(context, switch):
    plan = plan_fabric(context, "switched", cut=named(plan_fabric(context, "switched")).split(","))
    switch.commit(switch.stage({6: 31}))
    with pytest.raises(RefusedError, match="is not in the state that it had"):
        apply(context, plan)
    assert switch.read_circuits() == {**LIVE, 6: 31}


def test_the_jobs_own_cross_connects_are_kept_and_recorded(context, switch):
    """Somebody has patched the rack as the inventory says: nothing goes dark, and swaps can be planned."""
    switch.commit(switch.stage(dict.fromkeys(range(16))))
    first = plan_fabric(context, "switched")
    apply(context, first)
    made = switch.read_circuits()
    store = store_at(str(context.store("switched").files / "again"), rack="switched")
    with Context(context.inventory, "sim", endpoints=context.endpoints, store=lambda _rack: store) as again:
        plan = plan_fabric(again, "switched")
        assert (plan.add, plan.cuts) == ((), ())
        assert all(change.before == change.after for change in plan.changes)
        apply(again, plan)
        assert plan_swap(again, "finetune", ["h2-gpu0"], even_if_healthy=True).steps
    assert switch.read_circuits() == made
    store.close()


@pytest.mark.parametrize("sim", ["polatis-scpi"], indirect=True)
def test_the_command_names_the_command(sim, switch, shell_of):
    """Refused with 5 although --yes was given; what the hint says then does it, and the rollback undoes it."""
    lumctl = shell_of(sim.inventory.path, sim.folder)
    refused = lumctl("fabric", "apply", "--yes", code=5)
    assert switch.read_circuits() == LIVE
    hint = refused.stderr.split("to do it anyway: lumctl ")[1].split()
    done = lumctl(*hint, "--yes", "-o", "json", code=0)
    assert switch.read_circuits() != LIVE
    lumctl("swap", "rollback", json.loads(done.stdout)["run"], "--yes", code=0)
    assert switch.read_circuits() == LIVE


def test_a_mesh_that_can_be_read_is_put_back_too(rack_of, tmp_path):
    """Its cells are those of a job of nobody's inventory: one is cut by name, and undone where the proof fails."""
    made = rack_of("prototype", tmp_path, driver="sim-mesh")
    rack = next(made)
    swap = apply(rack.context, plan_swap(rack.context, "finetune", ["s1-gpu0"], even_if_healthy=True))
    assert swap.verified
    before = rack.cells()
    empty = store_at(str(tmp_path / "empty"), rack="prototype")
    with Context(rack.inventory, "sim", endpoints=rack.sim.endpoints(), store=lambda _rack: empty) as context:
        plan = plan_fabric(context, "prototype")
        assert {(cut.transmitter, cut.receiver) for cut in plan.cuts} <= {
            ("s3-gpu0-a", "s0-gpu0-b"),
            ("s0-gpu0-b", "s3-gpu0-a"),
            ("s3-gpu0-b", "s2-gpu0-a"),
            ("s2-gpu0-a", "s3-gpu0-b"),
        }
        assert plan.cuts
        assert all(change.before is not None for change in plan.changes)
        with pytest.raises(RefusedError):
            apply(context, plan)
        agreed = plan_fabric(context, "prototype", cut=[str(cut.ingress) for cut in plan.cuts])
        rack.sim.inject("s0-gpu0-b", "dark")
        with pytest.raises(RolledBackError):
            apply(context, agreed)
        assert rack.cells() == before
    empty.close()
    next(made, None)
