"""Clocks of machines are compared by the collectives that they time."""

import pytest
from drawn_arrivals import COLLECTIVE_S, STEP_S, drawn_steps

from lumctl.training.clocks import STEPS, clock_offsets, on_one_clock


def test_offsets_follow_a_clock_that_drifts():
    hosts = ["a", "a", "b", "b"]
    drifting = [
        step
        for part in range(4)
        for step in drawn_steps(part, ranks=4, steps=STEPS, clocks_s=[0.0, 0.0, part * 0.3, part * 0.3])
    ]
    aligned, offsets = on_one_clock(drifting, hosts)
    assert len(aligned) == len(drifting)
    assert offsets["b"].offset_s == pytest.approx(-0.9, abs=offsets["b"].error_s)
    assert max(abs(step.left_s[0] - step.left_s[2]) for step in aligned) < COLLECTIVE_S
    assert offsets["a"].error_s == 0.0


def test_a_lonely_late_host_leaves_its_gap_in_the_error():
    steps = drawn_steps(1, ranks=2, steps=30, slow=1, slow_s=0.5 * STEP_S)
    error_s = clock_offsets(steps, ["a", "b"])["b"].error_s
    assert 0.4 * STEP_S < error_s < 0.6 * STEP_S
