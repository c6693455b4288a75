"""The example rings on a simulator: commissioned, every swap planned, and the light of some of them proved."""

from collections.abc import Iterator

import pytest
from racks import Rack, rack_of

from lumctl.change import Plan, apply
from lumctl.inventory.model import Role
from lumctl.swap import plan_rollback, plan_swap


@pytest.fixture(scope="module")
def ring4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from rack_of("ring4", tmp_path_factory.mktemp("ring4"))


@pytest.fixture(scope="module")
def ring8(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from rack_of("ring8", tmp_path_factory.mktemp("ring8"))


def spares_of(rack: Rack) -> list[str]:
    return [a.id for a in rack.inventory.accelerators.values() if a.role is Role.SPARE]


def require_beside(plan: Plan, ranks: int, new: int) -> None:
    """A plan that makes so many circuits of a ring again and leaves the others where they are."""
    added, kept = {c.id for c in plan.add}, {c.id for c in plan.keep}
    assert added == {c.id for c in plan.remove}
    assert (len(added), len(kept), len(added | kept)) == (new, ranks - new, ranks)


def test_any_rank_of_ring4_is_replaced_by_either_spare(ring4) -> None:
    assert ring4.ok_circuits("train") == [True] * 4
    seen = ring4.context.observe()
    for failed in ring4.inventory.jobs["train"].ranks:
        for spare in spares_of(ring4):
            plan = plan_swap(ring4.context, "train", [failed], [spare], even_if_healthy=True, seen=seen)
            require_beside(plan, ranks=4, new=2)


def test_any_rank_and_any_host_of_ring8_are_replaced(ring8) -> None:
    assert ring8.ok_circuits("train") == [True] * 8
    seen, ranks, spares = ring8.context.observe(), ring8.inventory.jobs["train"].ranks, spares_of(ring8)
    for failed in ranks:
        for spare in spares:
            plan = plan_swap(ring8.context, "train", [failed], [spare], even_if_healthy=True, seen=seen)
            require_beside(plan, ranks=8, new=2)
    for host in ("h1", "h2", "h3", "h4"):
        both = [a for a in ranks if ring8.inventory.accelerators[a].host == host]
        for ordered in (spares, spares[::-1]):
            plan = plan_swap(ring8.context, "train", both, ordered, even_if_healthy=True, seen=seen)
            require_beside(plan, ranks=8, new=3)


def test_both_spares_of_ring4_are_used_up_one_after_the_other(ring4) -> None:
    runs = []
    for failed in ("h2-gpu0", "h3-gpu0"):
        ring4.sim.inject(failed, "gpu-lost")
        runs.append(apply(ring4.context, plan_swap(ring4.context, "train", [failed])))
    assert set(ring4.context.assignment()["train"]) == {"h1-gpu0", "h4-gpu0", *spares_of(ring4)}
    assert ring4.ok_circuits("train") == [True] * 4
    ring4.clear()
    for run in reversed(runs):
        apply(ring4.context, plan_rollback(ring4.context, ring4.store.runs.get(run.run)))
    assert ring4.context.assignment()["train"] == ring4.inventory.jobs["train"].ranks
    assert ring4.ok_circuits("train") == [True] * 4


def test_a_host_of_ring8_that_is_gone_is_replaced_whole(ring8) -> None:
    ring8.sim.inject("h3", "unreachable")
    plan = plan_swap(ring8.context, "train", ["h3-gpu0", "h3-gpu1"])
    result = apply(ring8.context, plan)
    assert len(result.verified) == 6  # both ends of three circuits
    placed = ring8.context.assignment()["train"]
    assert set(placed[4:6]) == set(spares_of(ring8))
    assert ring8.ok_circuits("train") == [True] * 8
