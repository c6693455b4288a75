"""What changes of light cost a training step: the published figures, and a simulation event by event beside it."""

from random import Random

import pytest

from lumctl.training.phase_model import BoundaryTimes, ChangeMode, StepTimes

PACKET_S, CHANGE_S = 62.2416, 0.050


def test_the_published_steps_are_consistent_with_two_changes():
    # The windows are inferred from these figures, so this reproduces nothing.
    step = StepTimes(compute_s=60.0, exposed_s=PACKET_S - 60.0, windows_s=(CHANGE_S, 0.0011))
    assert step.cost(0.0, ChangeMode.ON_DEMAND).step_s == pytest.approx(PACKET_S, abs=1e-4)
    assert step.cost(CHANGE_S, ChangeMode.ON_DEMAND).step_s == pytest.approx(62.3416, abs=1e-4)
    assert step.cost(CHANGE_S, ChangeMode.AHEAD).step_s == pytest.approx(62.2905, abs=1e-4)


def test_a_window_hides_at_most_itself_and_at_most_the_change():
    cost = StepTimes(1.0, 0.5, (0.02, 0.3)).cost(0.1, ChangeMode.AHEAD)
    assert (cost.changes_s, cost.stall_s, cost.hidden_s) == pytest.approx((0.2, 0.08, 0.12))
    assert cost.utilisation == pytest.approx(1.0 / 1.58)
    assert cost.overhead == pytest.approx(0.08 / 1.5)


@pytest.mark.parametrize("mode", ChangeMode)
def test_without_changes_of_phase_a_step_costs_what_it_did(mode):
    assert StepTimes(1.0, 0.0, ()).cost(10.0, mode).step_s == 1.0


def test_negative_times_are_refused():
    with pytest.raises(ValueError, match="at least 0"):
        StepTimes(1.0, 0.0, (-0.1,)).cost(0.1, ChangeMode.AHEAD)


def simulated_s(phases, change_s, mode):
    """One step, event by event.

    ``phases`` has for each phase how long each rank communicates in it, and then computes until it asks for the next;
    the collectives of a phase begin together.
    """
    now = 0.0
    for ranks in phases:
        left = [now + communicates for communicates, _ in ranks]
        asked = [at + computes for at, (_, computes) in zip(left, ranks, strict=True)]
        begins = max(left) if mode is ChangeMode.AHEAD else max(asked)
        now = max(*asked, begins + change_s)
    return now


@pytest.mark.parametrize("seed", range(50))
def test_the_model_agrees_with_a_simulation(seed):
    draw = Random(seed)  # noqa: S311 - no secret
    phases = [
        [(draw.uniform(0, 0.1), draw.expovariate(20)) for _ in range(draw.randint(2, 8))]
        for _ in range(draw.randint(1, 6))
    ]
    windows = [
        BoundaryTimes([sent for sent, _ in ranks], [sent + computed for sent, computed in ranks]).window_s
        for ranks in phases
    ]
    still = simulated_s(phases, 0.0, ChangeMode.ON_DEMAND)
    step = StepTimes(still - sum(windows), sum(windows), tuple(windows))
    for change_s in (0.0, 0.001, 0.01, 0.1, 1.0):
        for mode in ChangeMode:
            assert step.cost(change_s, mode).step_s == pytest.approx(simulated_s(phases, change_s, mode))
        assert step.cost(change_s, ChangeMode.AHEAD).step_s <= step.cost(change_s, ChangeMode.ON_DEMAND).step_s
