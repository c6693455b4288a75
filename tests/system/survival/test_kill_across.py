"""kill -9 at every boundary of the journal of a swap that writes two meshes: all of it holds, or none of it."""

from itertools import product

import pytest
from crash_assertions import VICTIMS, WAYS, WORKS, CrashAssertions
from crash_fixture import crash_rack_across

FEW_MOMENTS = 2


@pytest.fixture(scope="module")
def across(tmp_path_factory):
    with crash_rack_across(tmp_path_factory.mktemp("across")) as made:
        yield made


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("work", WORKS)
def test_a_kill_at_any_boundary_leaves_both_meshes_as_planned_or_as_before(across, sample, tell, work, victim) -> None:
    labels = across.moments(work)
    assert sum(label.startswith("before commit") for label in labels) >= 5
    ways = WAYS if victim == "kill-both" else WAYS[:1]
    assertions = CrashAssertions(across)
    for number, way in sample(list(product(range(1, len(labels) + 1), ways)), FEW_MOMENTS):
        assertions.at_moment(work, victim, number, way)
    assert across.rack.store.first_break() is None
    tell(f"two meshes, {work}, {victim}, {len(labels)} moments: {dict(sorted(assertions.outcomes.items()))}")
