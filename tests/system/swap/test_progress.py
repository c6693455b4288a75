"""Devices that continue with a change after their answer, or after none, under the change engine."""

from collections.abc import Iterator

import pytest

from lumctl.change import apply
from lumctl.change.resumption import abort, resume
from lumctl.context.device_report import report
from lumctl.devices.errors import DeviceBusyError, OutcomeUnknownError
from lumctl.devices.types import PucState
from lumctl.errors import ExitCode, HalfDoneError
from lumctl.sim.meshes.driver import SimMesh
from lumctl.swap import plan_fabric, plan_rollback

FOR_EVER = 1e6


@pytest.fixture(scope="module")
def swap(tmp_path_factory, rack_of) -> Iterator[tuple]:
    """A rack whose mesh says whether it is still at work, with a dead GPU, and the plan of its swap."""
    for rack in rack_of("prototype", tmp_path_factory.mktemp("progress"), driver="sim-mesh"):
        plan = rack.lost()
        yield rack, plan, rack.cells()


@pytest.fixture
def lost_answers(monkeypatch) -> None:
    """The mesh takes each change, and its answer is lost."""
    commit = SimMesh.commit

    def committed(self, staged, **more):
        commit(self, staged, **more)
        raise OutcomeUnknownError(f"{self.context.device}: no answer came")

    monkeypatch.setattr(SimMesh, "commit", committed)


def is_back(rack, before) -> None:
    assert rack.cells() == before
    assert rack.context.known_states("mesh") == before["mesh"]
    assert rack.store.first_break() is None


@pytest.mark.usefixtures("lost_answers")
def test_a_commit_whose_answer_is_lost_is_verified_when_the_device_has_ended(swap) -> None:
    rack, plan, before = swap
    rack.sim.inject("mesh", "slow-commit", 0.5)
    said: list[str] = []
    result = apply(rack.context, plan, progress=said.append)
    assert result.outcome == "done"
    assert {proof.circuit for proof in result.verified} == {circuit.id for circuit in plan.add}
    half = len(plan.changes) // 2
    assert f"mesh is still at work: {half} of {len(plan.changes)} cells; commit in progress" in said
    rack.sim.clear("mesh")
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(result.run)))
    is_back(rack, before)


@pytest.fixture
def half_done(swap, monkeypatch) -> Iterator[tuple]:
    """A run that ended half done, for its mesh was still at work; nothing else is known of the mesh."""
    rack, plan, before = swap
    monkeypatch.setattr(type(rack.context.devices.mesh("mesh")), "slow_calls", {"commit": 0.1})
    rack.sim.inject("mesh", "slow-commit", FOR_EVER)
    with pytest.raises(HalfDoneError, match="still at work") as ended:
        apply(rack.context, plan)
    assert ended.value.exit_code == ExitCode.HALF_DONE
    run = rack.store.runs.all()[0]
    assert run.state == "half-done"
    assert rack.context.known_cells("mesh") == {}
    yield rack, plan, run, before
    rack.sim.clear("mesh")


def shown(rack):
    """What `lumctl device show mesh` shows."""
    return report(rack.context, "mesh")


def test_nothing_that_it_shows_meanwhile_is_believed(half_done) -> None:
    rack, _, run, before = half_done
    with pytest.raises(DeviceBusyError, match="mesh is still at work"):
        resume(rack.context, run)
    with pytest.raises(DeviceBusyError, match="mesh is still at work"):
        plan_fabric(rack.context, "prototype")
    assert any("still at work" in note for note in shown(rack).notes)
    with pytest.raises(HalfDoneError, match="still at work"):
        abort(rack.context, run)
    assert rack.store.runs.get(run.id).state == "half-done"
    rack.sim.clear("mesh")
    assert abort(rack.context, rack.store.runs.get(run.id)).outcome == "rolled-back"
    is_back(rack, before)


def test_a_device_that_can_be_read_again_is_read_again_and_the_run_goes_on(half_done) -> None:
    rack, plan, run, before = half_done
    rack.sim.clear("mesh")
    result = resume(rack.context, run)
    assert {proof.circuit for proof in result.verified} == {circuit.id for circuit in plan.add}
    planned = {change.puc: change.after for change in plan.changes}
    assert rack.cells() == {"mesh": {puc: planned.get(puc, state) for puc, state in before["mesh"].items()}}
    assert all(rack.ok_circuits("finetune"))
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(run.id)))
    is_back(rack, before)


def test_fabric_apply_goes_by_what_it_shows_then(half_done) -> None:
    rack, _, run, before = half_done
    rack.sim.clear("mesh")
    held = rack.cells()["mesh"]
    assert held != before["mesh"]
    crossed = sum(state is PucState.CROSS for state in held.values())
    assert f"the device reports {crossed} of {len(held)} PUCs are in cross" in shown(rack).notes
    plan = plan_fabric(rack.context, "prototype")
    assert {change.puc: change.before for change in plan.changes} == {puc: str(state) for puc, state in held.items()}
    apply(rack.context, plan)
    assert rack.context.known_states("mesh") == rack.cells()["mesh"]
    abort(rack.context, rack.store.runs.get(run.id), leave_later=True)
