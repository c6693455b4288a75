"""Which phase a group of ranks needs, and what is said of a group that no phase joins."""

import pytest

from lumctl.errors import UsageError
from lumctl.training.phase_pairs import PhasePairs

RAILS = {
    "pairs": {
        "pipeline": [[0, 2], [1, 3], [4, 6], [5, 7]],
        "gradients": [[0, 4], [1, 5], [2, 6], [3, 7]],
        "ring": [[0, 2], [2, 4], [4, 6], [6, 0]],
    },
    "hosts": ["h1", "h1", "h2", "h2", "h3", "h3", "h4", "h4"],
}


@pytest.fixture
def phases():
    return PhasePairs.of(RAILS)


@pytest.mark.parametrize(
    ("ranks", "phase"),
    [
        ([0, 2], "pipeline"),
        ([6, 4], "pipeline"),
        ([3, 7], "gradients"),
        ([0, 2, 4, 6], "ring"),
        ([0, 2, 4], "ring"),
        ([2, 3], None),
        ([5], None),
        (range(8), None),
    ],
)
def test_a_group_needs_the_first_phase_that_joins_its_ranks(phases, ranks, phase):
    assert phases.phase_for(ranks) == phase


def test_a_group_that_no_phase_joins_is_an_error_that_names_ranks_and_phases(phases):
    with pytest.raises(UsageError) as refused:
        phases.phase_for([0, 3])
    assert "ranks 0, 3 " in refused.value.message
    assert "pipeline joins 0-2, 1-3, 4-6, 5-7; gradients joins 0-4" in refused.value.message


def test_ranks_outside_a_group_forward_nothing(phases):
    with pytest.raises(UsageError):
        phases.phase_for([0, 6, 2, 5])


def test_the_error_of_a_large_job_stays_short():
    many = {f"phase{number}": [[a, a + 1] for a in range(0, 2000, 2)] for number in range(50)}
    phases = PhasePairs.of({"pairs": many, "hosts": [f"h{rank}" for rank in range(2001)]})
    with pytest.raises(UsageError) as refused:
        phases.phase_for(range(0, 2000, 2))
    assert "and 992 more" in refused.value.message
    assert len(refused.value.message) < 1500
