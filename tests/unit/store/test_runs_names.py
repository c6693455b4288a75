"""Which run a mistyped name probably means: one of the same kind, because to undo another kind would do harm."""

import pytest

from lumctl.store.records import nearest_run, run_seconds

KNOWN = ("fabric-0001", "swap-0001", "swap-0012", "rollback-0001")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("swap-0013", "swap-0012"), ("swpa-0001", "swap-0001"), ("slice-0001", None), ("rollbak-0001", "rollback-0001")],
)
def test_the_nearest_run_is_of_the_same_kind(typed, meant):
    assert nearest_run(typed, KNOWN) == meant


def test_the_fabric_is_not_what_a_swap_means():
    assert nearest_run("swap-0001", ["fabric-0001"]) is None


@pytest.mark.parametrize(("ended_at", "seconds"), [(101.51549, 1.515), (100.0, 0.0), (40.0, 0.0)])
def test_a_run_takes_the_time_from_its_begin_to_its_end_and_never_less_than_none(ended_at, seconds):
    assert run_seconds(100.0, ended_at) == seconds
