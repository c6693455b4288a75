"""The permission to change light between phases, on a simulated rack behind a gateway."""

from dataclasses import replace
from queue import SimpleQueue

import pytest
from gateways import serving, through
from permitted_phases import record

from lumctl.change.engine import apply
from lumctl.change.light_proof import LightProof
from lumctl.change.live_paths import hear
from lumctl.context import Context, phase_log
from lumctl.devices.errors import DeviceRefusedError
from lumctl.errors import RefusedError
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.phase_records import phase_of, phase_permit
from lumctl.sim.launch import launch
from lumctl.store import store_at
from lumctl.store.journal import LIGHT_CHANGES, LIGHT_FAILED
from lumctl.swap.fabric import plan_fabric
from lumctl.swap.planning import plan_swap
from lumctl.swap.rollback import plan_rollback
from lumctl.training.phase_permission import end_permit, obtain_permit, permitted, plan_phases, rest
from lumctl.training.phase_prover import PhaseProver
from lumctl.training.phases import plan_phase

RACK, JOB = "rails", "train"


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """The rack of two rails, whose first phase has light, behind its gateway."""
    folder = tmp_path_factory.mktemp("g")
    inventory = load_inventory(example(RACK))
    with launch(inventory, folder=folder / "sim", tied=True) as sim:
        url, socket = f"sqlite:///{folder}/lumctl.db", folder / "r.sock"
        store = lambda _rack: store_at(url, files=folder, rack=RACK)  # noqa: E731
        with (
            serving(inventory, sim.endpoints(), url, socket, rack=RACK),
            Context(inventory, "sim", endpoints=through(sim.endpoints(), socket, RACK), store=store) as made,
        ):
            apply(made, plan_fabric(made, RACK))
            yield made


def runs(context):
    return [run.plan.get("title") for run in context.store(RACK).runs.all()]


def joins(context, device="rail0"):
    return context.devices.switch(device).read_circuits()


def test_each_phase_is_proved_by_a_run_before_one_plan_permits_both(context):
    permit = obtain_permit(context, JOB, "me")
    assert runs(context)[:3] == [
        "train: permit changes between the phases pipeline, gradients",
        "train: give phase pipeline light",
        "train: give phase gradients light",
    ]
    assert [rail.devices for rail in permit.rails] == [("rail0",), ("rail1",)]
    assert permit.pairs == {
        "pipeline": [(0, 2), (1, 3), (4, 6), (5, 7)],
        "gradients": [(0, 4), (1, 5), (2, 6), (3, 7)],
    }
    assert permit.lit == "pipeline"


def test_a_permit_in_force_is_used_again_unless_each_phase_must_be_proved_anew(context):
    permit = obtain_permit(context, JOB, "me")
    before = len(runs(context))
    assert obtain_permit(context, JOB, "me") == permit
    assert len(runs(context)) == before
    assert obtain_permit(context, JOB, "me", again=True).rails == permit.rails
    assert len(runs(context)) == before + 3


def test_the_gateway_lights_what_the_plan_permits_and_rest_gives_back_what_is_on_record(context):
    permit = obtain_permit(context, JOB, "me")
    on_record = joins(context)
    context.devices.phases(RACK).light(JOB, permit.plan, "rail0", "gradients")
    assert joins(context) != on_record
    rest(context, JOB)
    assert joins(context) == on_record


def test_while_phases_may_change_no_circuit_of_the_job_is_ok_or_failed(context):
    def states():
        return {circuit.state for circuit in context.observe().report.circuits.values()}

    permit = obtain_permit(context, JOB, "me")
    assert states() == {"unknown"}
    context.devices.phases(RACK).light(JOB, permit.plan, "rail0", "gradients")
    # Each host announces itself, so that receivers show whom they hear now.
    hear(context, ["rail0", "rail1"])
    assert states() == {"unknown"}
    end_permit(context, JOB, "me")
    hear(context, ["rail0", "rail1"])
    assert states() == {"ok"}


def test_a_swap_is_possible_in_any_phase_and_ends_the_permit_which_its_rollback_restores(context):
    permit = obtain_permit(context, JOB, "me")
    context.devices.phases(RACK).light(JOB, permit.plan, "rail1", "gradients")
    plan = plan_swap(context, JOB, ["h1-gpu0"], even_if_healthy=True)

    def pause(step):
        if step is plan.steps[2]:  # as a job does that pauses, which is the step before
            rest(context, JOB)

    apply(context, plan, before_step=pause, stopped_by="me")
    assert phase_permit(JOB, context.assignment()) is None
    assert permitted(context, JOB) is None
    moved = obtain_permit(context, JOB, "me")
    assert moved.plan != permit.plan
    assert moved.pairs == permit.pairs
    swap = next(run for run in context.store(RACK).runs.all() if run.plan["kind"] == "swap" and run.plan["candidates"])
    end_permit(context, JOB, "me")
    apply(context, plan_rollback(context, swap), stopped_by="me")
    assert obtain_permit(context, JOB, "me") == permit


def test_what_a_running_job_may_change_is_in_no_other_plan_that_leaves_it_its_permit(context):
    permit = obtain_permit(context, JOB, "me")
    context.devices.phases(RACK).light(JOB, permit.plan, "rail0", "gradients")
    with pytest.raises(RefusedError, match=r"would use rail0/port/\d, which job train may change") as refused:
        apply(context, plan_fabric(context, RACK), stopped_by="me")
    assert "lumctl job stop train --target sim" in refused.value.hint
    rest(context, JOB)


@pytest.fixture
def prove(context):
    """Prove that a phase has its light on a rail; return what is wrong, and why a proof was not possible."""
    found = SimpleQueue()
    prover = PhaseProver(
        lambda pause: LightProof(context.inventory, context.fleet, context.devices, now=context.now, pause=pause),
        lambda _permit, result: found.put((result.wrong, result.unknown)),
        context.inventory.thresholds.light_deadline_s,
    )
    prover.begin()

    def proved(permit, rail, phase):
        prover.prove(permit, rail, phase)
        return found.get(timeout=30)

    yield proved
    prover.close()


def test_a_proof_beside_traffic_finds_light_that_is_not_that_of_the_phase(context, prove):
    permit = obtain_permit(context, JOB, "me")
    assert not any(each.blinks for each in permit.circuits)
    assert permit.single == {phase: frozenset(pairs) for phase, pairs in permit.pairs.items()}
    assert prove(permit, 0, "pipeline") == ("", "")
    context.devices.phases(RACK).light(JOB, permit.plan, "rail0", "gradients")
    wrong, unknown = prove(permit, 0, "pipeline")
    assert "hears h3-gpu0-a instead of h2-gpu0-a" in wrong
    assert unknown == ""
    assert prove(permit, 1, "pipeline") == ("", "")
    assert prove(permit, 0, "gradients") == ("", "")
    rest(context, JOB)


def test_circuits_of_a_job_that_changes_light_are_ok_if_it_has_shown_that_lately(context):
    obtain_permit(context, JOB, "me")
    store, permit = context.store(RACK), phase_permit(JOB, context.assignment())

    def states():
        found = context.observe(remember=False).report.circuits.values()
        return {str(each.state) for each in found}

    def shows(at, phase="pipeline", permit=permit, job=JOB):
        data = {"job": job, "permit": permit, "shown": {phase: at}}
        store.journal.remark(LIGHT_CHANGES, data, at=context.now(), who="me")
        return states()

    assert states() == {"unknown"}
    context.devices.phases(RACK).light(JOB, permitted(context, JOB).id, "rail0", "gradients")
    assert shows(context.now()) == {"ok"}
    assert shows(context.now() - phase_log.FRESH_S) == {"unknown"}
    assert shows(context.now(), phase="gradients") == {"unknown"}
    assert shows(context.now(), permit="another") == {"unknown"}
    assert shows(context.now()) == {"ok"}
    store.journal.remark(LIGHT_FAILED, {"job": JOB, "why": "it hears another"}, at=context.now(), who="me")
    assert states() == {"unknown"}
    assert shows(context.now(), job="other") == {"unknown"}
    assert shows(context.now() + 60) == {"unknown"}
    assert shows(context.now()) == {"ok"}
    rest(context, JOB)


def test_a_device_that_is_written_as_a_whole_ends_the_permit(context):
    obtain_permit(context, JOB, "me")
    context.devices.phases(RACK).light(JOB, permitted(context, JOB).id, "rail0", "gradients")
    apply(context, plan_fabric(context, RACK, rewrite=True))
    assert phase_permit(JOB, context.assignment()) is None
    assert obtain_permit(context, JOB, "me").lit == "pipeline"


def test_an_earlier_plan_for_the_same_phases_permits_nothing_any_more(context):
    earlier = obtain_permit(context, JOB, "me")
    later = obtain_permit(context, JOB, "me", again=True)
    assert earlier.plan != later.plan
    with pytest.raises(DeviceRefusedError, match="does not permit job train to change its phase any more"):
        context.devices.phases(RACK).light(JOB, earlier.plan, "rail0", "gradients")


def test_a_permit_whose_plan_is_lost_is_no_rest(context):
    obtain_permit(context, JOB, "me")
    record(context.store(RACK), RACK, {phase_of(JOB): ("pipeline", "permit-0")}, now=context.now())
    with pytest.raises(RefusedError, match="has no plan for the permit of train"):
        rest(context, JOB)
    assert obtain_permit(context, JOB, "me").lit == "pipeline"


def test_a_plan_that_gives_another_phase_light_ends_the_permit(context):
    obtain_permit(context, JOB, "me")
    for phase in ("gradients", "pipeline"):
        apply(context, plan_phase(context, JOB, phase), stopped_by="me")
        assert permitted(context, JOB) is None


def test_the_permit_of_a_job_that_has_ended_ends(context):
    obtain_permit(context, JOB, "me")
    end_permit(context, JOB, "me")
    assert context.assignment()[phase_of(JOB)] == ("pipeline",)
    before = len(runs(context))
    end_permit(context, JOB, "me")
    assert len(runs(context)) == before


def test_the_plan_names_all_cells_that_change_and_no_other(context):
    plan = plan_phases(context, JOB)
    assert plan.kind == "phases"
    assert plan.writes == {}
    by_phase = {phase.name: phase.cells for phase in plan.phases}
    assert by_phase["pipeline"].keys() == by_phase["gradients"].keys() == {"rail0", "rail1"}
    assert by_phase["pipeline"]["rail0"].keys() == by_phase["gradients"]["rail0"].keys() == {0, 1, 2}


def test_a_rack_without_a_gateway_is_refused_with_the_way_to_start_one(context):
    endpoints = replace(context.endpoints, gateways={})
    direct = Context(context.inventory, "sim", endpoints=endpoints, store=context.store)
    with pytest.raises(RefusedError, match="only a gateway of rack rails may do") as refused:
        obtain_permit(direct, JOB, "me")
    assert refused.value.hint.startswith("start it: lumctl gateway run rails --target sim")


def test_a_job_with_one_phase_has_nothing_to_try_and_gets_a_permit_for_it(tmp_path):
    text = example(RACK).read_text()
    alone = text[: text.index("      gradients:")] + text[text.index("    run:") :]
    path = tmp_path / "one.yaml"
    path.write_text(alone)
    inventory, socket = load_inventory(path), tmp_path / "r.sock"
    store = lambda _rack: store_at(f"sqlite:///{tmp_path}/lumctl.db", files=tmp_path, rack=RACK)  # noqa: E731
    with (
        launch(inventory, folder=tmp_path / "sim", tied=True) as sim,
        serving(inventory, sim.endpoints(), f"sqlite:///{tmp_path}/lumctl.db", socket, rack=RACK),
        Context(inventory, "sim", endpoints=through(sim.endpoints(), socket, RACK), store=store) as made,
    ):
        apply(made, plan_fabric(made, RACK))
        permit = obtain_permit(made, JOB, "me")
        assert list(permit.pairs) == ["pipeline"]
        rest(made, JOB)
        end_permit(made, JOB, "me")
