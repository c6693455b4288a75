"""The alpha-beta model: ratios to ring, break-even, and the bound on what a schedule can gain."""

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.collectives import ring, stragglar
from lumctl.collectives.cost import LinkCost, cost_of, stragglar_cost

BANDWIDTH_ONLY = LinkCost(0.0, 1e-9)
SIZE = 1e9


@pytest.mark.parametrize(("ranks", "ratio"), [(4, 1.125), (8, 1.361), (16, 1.562), (64, 1.824), (256, 1.939)])
def test_the_gain_after_the_arrival(ranks, ratio):
    assert stragglar_cost(ranks, SIZE, BANDWIDTH_ONLY).gain_after == pytest.approx(ratio, abs=0.001)


@pytest.mark.parametrize(("ranks", "gain"), [(4, 1.083), (8, 1.217), (16, 1.316)])
def test_the_gain_of_the_whole_at_the_best_delay(ranks, gain):
    cost = stragglar_cost(ranks, SIZE, BANDWIDTH_ONLY)
    assert cost.best_gain == pytest.approx(gain, abs=0.001)
    assert cost.gain(cost.before_s) == cost.best_gain


def test_without_a_delay_eight_ranks_lose():
    assert stragglar_cost(8, SIZE, BANDWIDTH_ONLY).gain(0.0) == pytest.approx(0.82, abs=0.005)


@given(st.integers(4, 1024), st.floats(0, 10), st.floats(0, 1e-3))
def test_no_delay_gains_more_than_half(ranks, delay_s, alpha_s):
    cost = stragglar_cost(ranks, SIZE, LinkCost(0.0, 1e-9))
    assert cost.gain(delay_s) <= cost.best_gain + 1e-12 < 1.5
    with_alpha = stragglar_cost(ranks, SIZE, LinkCost(alpha_s, 1e-9))
    assert with_alpha.gain(delay_s) <= with_alpha.best_gain + 1e-12


@given(st.sampled_from([4, 8, 16, 64, 256]), st.floats(0, 1e-4))
def test_the_break_even_of_powers_of_two_is_exact(ranks, alpha_s):
    cost = stragglar_cost(ranks, SIZE, LinkCost(alpha_s, 1e-9))
    length = ranks.bit_length() - 1
    exact = (length - 2) * alpha_s + ((length - 2) / (ranks - 1) + 2 / ranks) * SIZE * 1e-9
    assert cost.break_even_s == pytest.approx(exact)
    assert cost.gain(cost.break_even_s) == pytest.approx(1.0)
    assert cost.gain(1.01 * cost.break_even_s) > 1 > cost.gain(0.99 * cost.break_even_s)


def test_with_three_ranks_no_delay_is_long_enough():
    assert stragglar_cost(3, SIZE, BANDWIDTH_ONLY).break_even_s is None


@pytest.mark.parametrize("ranks", [2, 5, 8, 13])
def test_the_cost_of_a_built_schedule_is_that_of_the_formula(ranks):
    link = LinkCost(1e-5, 1e-9)
    assert astuple(cost_of(stragglar(ranks, 0), SIZE, link)) == pytest.approx(
        astuple(stragglar_cost(ranks, SIZE, link))
    )
    assert cost_of(ring(ranks), SIZE, link).gain_after == pytest.approx(1.0)
    assert cost_of(ring(ranks), SIZE, link).before_s == 0


def test_halving_and_doubling_beats_ring_on_small_buffers():
    link = LinkCost(1e-5, 1e-9)
    assert link.halving_doubling_s(8, 1000.0) < link.ring_s(8, 1000.0)
    assert link.halving_doubling_s(6, 1000.0) is None
