"""Training steps with changes of light: the published series, their fit, and that a broken model changes a verdict."""

import pytest
from study_claims import changed, claims_of

from lumctl.errors import UsageError
from lumctl.studies import rail_steps
from lumctl.studies.rail_steps import STUDY, fitted, published_series
from lumctl.training.phase_model import ChangeMode


def test_the_fitted_changes_per_step_are_no_whole_numbers():
    fits = {(each.plan, each.mode): fitted(each) for each in published_series()}
    three_dimensional = [fit.changes for (plan, _), fit in fits.items() if "3D" in plan]
    assert 4.7 < min(three_dimensional) < max(three_dimensional) < 5.7
    assert all(fit.window_s == 0.0 for (_, mode), fit in fits.items() if mode is ChangeMode.ON_DEMAND)


def test_a_series_of_the_model_is_fitted_exactly():
    steps = {each: 10.0 + 4 * max(0.0, each / 1e3 - 0.25) for each in (0.0, 100.0, 250.0, 500.0, 1000.0)}
    fit = fitted(rail_steps.PublishedSeries("one", ChangeMode.AHEAD, 10.0, steps))
    assert (fit.base_s, fit.changes, fit.window_s) == pytest.approx((10.0, 4.0, 0.25))


def test_one_plan_is_slower_ahead_at_every_change():
    of = {each.mode: each.step_s for each in published_series() if each.plan == "DeepSeek-16B 3D 16 GPU"}
    ahead, on_demand = of[ChangeMode.AHEAD], of[ChangeMode.ON_DEMAND]
    assert ahead.keys() == on_demand.keys()
    assert all(ahead[change] > on_demand[change] for change in ahead)


def test_the_recorded_verdicts_hold():
    assert not any(each.has_changed for each in claims_of(STUDY).values())


def test_a_model_that_counts_changes_once_reproduces_no_step(monkeypatch):
    monkeypatch.setattr(rail_steps, "_CHANGES", 1)
    assert changed(STUDY) == {"rail-steps.on-demand"}


def test_without_the_longest_changes_the_claim_on_all_is_not_judged():
    found = claims_of(STUDY, "longest_ms=100")
    assert found["rail-steps.under"].verdict is None
    assert not found["rail-steps.on-demand"].has_changed
    with pytest.raises(UsageError, match="longest_ms"):
        STUDY.settings(["longest_ms=-1"])
