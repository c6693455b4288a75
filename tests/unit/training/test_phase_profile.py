"""The windows between phases that ranks report, and what the model says of such a step."""

from dataclasses import replace

import pytest

from lumctl.inventory.load import example, load_inventory
from lumctl.training.phase_model import ChangeMode
from lumctl.training.phase_profile import (
    MOST_CROSSINGS,
    MOST_PROFILES,
    NEWEST,
    PhaseProfiles,
    modelled,
    phases_digest,
    with_newest,
)

PIPELINE, GRADIENTS = "pipeline", "gradients"
PLAN = "plan-1"


def row(position, wait_s, window_s, change_s=0.05, mode="ahead"):
    names = (PIPELINE, GRADIENTS) if position else (GRADIENTS, PIPELINE)
    return [*names, mode, None, position, wait_s, window_s, change_s]


def said(*rows, step_s=1.0, blocked_s=0.3):
    times = {"wait_s": sum(each[5] for each in rows), "step_s": step_s}
    return {**times, **({} if blocked_s is None else {"blocked_s": blocked_s}), "boundaries": list(rows)}


def profile(*reports, steps=1):
    """A profile in which each rank reports the same in each step."""
    made = PhaseProfiles("phases")
    for _ in range(steps):
        for rank, report in enumerate(reports):
            made.note(PLAN, rank, report)
    return made.document()[PLAN]


def test_each_boundary_and_rank_has_its_own_median_and_p90():
    made = PhaseProfiles("phases")
    for step in range(10):
        made.note(PLAN, 0, said(row(1, 0.001 * (step + 1), 0.02 * (step + 1))))
        made.note(PLAN, 1, said(row(1, 0.5, None, mode="on-demand")))
    first, second = made.document()[PLAN]["boundaries"]
    assert (first["left"], first["entered"], first["rank"], first["mode"], first["steps"]) == (
        *(PIPELINE, GRADIENTS, 0, "ahead", 10),
    )
    assert first["wait_s"] == pytest.approx({"median": 0.0055, "p90": 0.009})
    assert first["window_s"] == pytest.approx({"median": 0.11, "p90": 0.18})
    assert (second["rank"], second["window_s"], second["mode"]) == (1, None, "on-demand")


def test_only_the_newest_times_are_kept_and_all_steps_are_counted():
    made = PhaseProfiles("phases")
    for step in range(3 * NEWEST):
        made.note(PLAN, 0, said(row(1, 9.0 if step < NEWEST else 1.0, 1.0)))
    (found,) = made.document()[PLAN]["boundaries"]
    assert (found["steps"], found["wait_s"]) == (3 * NEWEST, {"median": 1.0, "p90": 1.0})


def test_it_is_bounded_whatever_ranks_say():
    made = PhaseProfiles("phases")
    for step in range(MOST_CROSSINGS // 16 + 10):
        made.note(PLAN, 0, said(*(row(step * 100 + at, 0.1, 0.1) for at in range(100))))
    assert len(made.document()[PLAN]["boundaries"]) == MOST_CROSSINGS
    for number in range(2 * MOST_PROFILES):
        made.note(f"plan-{number}", 0, said())
    assert list(made.document()) == [f"plan-{number}" for number in range(MOST_PROFILES, 2 * MOST_PROFILES)]


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), "soon", None])
def test_a_malformed_time_is_an_error_that_its_reader_counts(wrong):
    with pytest.raises((TypeError, ValueError)):
        PhaseProfiles("phases").note(PLAN, 0, {**said(), "step_s": wrong})


def test_the_newest_profiles_of_all_runs_are_kept():
    earlier = {f"plan-{number}": {"ranks": []} for number in range(MOST_PROFILES)}
    found = with_newest(earlier, {"plan-0": {"ranks": [1]}, "plan-new": {}})
    assert list(found) == [f"plan-{number}" for number in range(2, MOST_PROFILES)] + ["plan-0", "plan-new"]
    assert found["plan-0"] == {"ranks": [1]}


def test_the_last_rank_to_ask_waits_for_light_alone_and_the_model_begins_without_that():
    # Rank 1 is the last at both boundaries: it waits 40 ms of 50 ms, after a window of 10 ms.
    made = profile(
        said(row(0, 0.09, 0.05), row(1, 0.04, 0.03), blocked_s=0.3),
        said(row(0, 0.04, 0.01), row(1, 0.04, 0.01), blocked_s=0.3),
    )
    step = modelled(made)
    assert step.measured_s == pytest.approx(1.0)
    assert step.change_s == pytest.approx(0.05)
    still_s = 1.0 - 0.08
    ahead, on_demand = step.costs[ChangeMode.AHEAD], step.costs[ChangeMode.ON_DEMAND]
    assert (ahead.step_s, ahead.stall_s) == pytest.approx((1.0, 0.08))
    assert (on_demand.step_s, on_demand.stall_s) == pytest.approx((still_s + 0.1, 0.1))
    # Half of the ranks wait 130 ms, of which 80 ms are the stall: 25 ms at the median are for other ranks.
    assert on_demand.utilisation == pytest.approx((still_s - 0.325) / (still_s + 0.1))
    assert on_demand.overhead == pytest.approx(0.1 / still_s)
    assert step.is_split


def test_what_was_not_measured_is_not_claimed():
    assert modelled(profile(said(step_s=1.0))) is None
    assert modelled(profile({**said(row(1, 0.1, 0.1)), "step_s": 0.2} | {"boundaries": []})) is None
    without_windows = modelled(profile(said(row(1, 0.1, None), blocked_s=None)))
    assert list(without_windows.costs) == [ChangeMode.ON_DEMAND]
    assert not without_windows.is_split


def test_a_boundary_of_the_first_step_only_is_not_in_the_model():
    made = PhaseProfiles("phases")
    made.note(PLAN, 0, said(row(1, 0.05, 0.0), [PIPELINE, "experts", "on-demand", None, 2, 9.0, 0.0, 0.05]))
    for _ in range(9):
        made.note(PLAN, 0, said(row(1, 0.05, 0.0)))
    assert modelled(made.document()[PLAN]).costs[ChangeMode.ON_DEMAND].stall_s == pytest.approx(0.05)


def test_other_links_or_another_order_are_other_phases():
    job = load_inventory(example("rails")).jobs["train"]
    first, second = job.phases
    others = [
        replace(job, order=job.order[::-1]),
        replace(job, phases=(replace(first, links=second.links), second)),
        replace(job, phases=(replace(first, name="other"), second)),
    ]
    assert len({phases_digest(each) for each in (job, *others)}) == 4
    assert phases_digest(replace(job, ranks=job.ranks[::-1])) == phases_digest(job)
