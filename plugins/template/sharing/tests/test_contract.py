"""The contract of sharing policies on this one: subclass the suite, and give it the policy."""

import pytest
from lumctl_example_sharing import smallest_first

from lumctl.spares import Demand, FreeSpare, SharingPolicy, SharingQuestion
from lumctl.spares.testing import SharingContract


class TestSmallestFirst(SharingContract):
    """Every promise that lumctl relies on."""

    @pytest.fixture
    def policy(self) -> SharingPolicy:
        """Give the policy."""
        return smallest_first


def test_one_rank_comes_before_two() -> None:
    """Although the two have waited for longer."""
    spares = {name: FreeSpare(name, "X100", 8) for name in ("a", "b")}
    both = (("a", "b"), ("a", "b"))
    pair = Demand("demand-0001", "pair", 1.0, both, frozenset({"X100"}))
    single = Demand("demand-0002", "single", 2.0, both[:1], frozenset({"X100"}))
    assert set(smallest_first(SharingQuestion(3.0, (pair, single), spares))) == {"demand-0002"}
