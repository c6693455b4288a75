"""Programming the fabric: on day one, with a lane that is dark, and where the light denies what the record claims."""

from pathlib import Path

import pytest

from lumctl.change import apply
from lumctl.context import Context
from lumctl.errors import HalfDoneError, RefusedError
from lumctl.store import store_at
from lumctl.swap import plan_fabric, plan_swap


def test_an_unprogrammed_mesh_is_not_planned_on_until_the_fabric_is_applied(rack, tmp_path: Path) -> None:
    empty = store_at(str(tmp_path / "empty"))
    with Context(rack.inventory, "sim", endpoints=rack.sim.endpoints(), store=lambda _rack: empty) as context:
        rack.sim.inject("s1-gpu0", "gpu-lost")
        with pytest.raises(RefusedError, match="never programmed from this store"):
            plan_swap(context, "finetune", ["s1-gpu0"])
        result = apply(context, plan_fabric(context, "prototype"))
        assert len(result.verified) == 6
        assert plan_fabric(context, "prototype").steps == ()
        apply(context, plan_swap(context, "finetune", ["s1-gpu0"]))


def test_one_dark_lane_does_not_keep_the_fabric_from_being_programmed(rack, tmp_path: Path) -> None:
    empty = store_at(str(tmp_path / "empty"))
    with Context(rack.inventory, "sim", endpoints=rack.sim.endpoints(), store=lambda _rack: empty) as context:
        rack.sim.inject("s0-gpu0-a", "dark")
        with pytest.raises(HalfDoneError, match=r"s2-gpu0-b hears .* instead of s0-gpu0-a"):
            apply(context, plan_fabric(context, "prototype"))
        assert context.known_states("mesh") == rack.cells()["mesh"]
        rack.sim.inject("s1-gpu0", "gpu-lost")
        apply(context, plan_swap(context, "finetune", ["s1-gpu0"]))


def test_fabric_apply_mends_what_the_light_denies_and_the_record_claims(rack) -> None:
    assert plan_fabric(rack.context, "prototype").steps == ()
    rack.sim.inject(f"mesh/puc/{rack.crossed()}", "stuck-bar")
    rack.clear()  # the cell moves again, and stays where the fault has left it
    assert not all(rack.ok_circuits("finetune"))
    result = apply(rack.context, plan_fabric(rack.context, "prototype"))
    assert result.verified
    assert all(rack.ok_circuits("finetune"))


def test_a_mesh_that_can_be_read_and_was_changed_by_somebody_is_not_built_on(timed_rack) -> None:
    plan = timed_rack.lost()
    timed_rack.sim.inject("mesh/puc/40", "stuck-cross")
    timed_rack.sim.inject("mesh/puc/43", "stuck-cross")
    with pytest.raises(RefusedError, match="differs from what was last written to it in 2 cells;"):
        apply(timed_rack.context, plan)
