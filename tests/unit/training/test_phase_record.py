"""What is kept of the changes of light in training steps."""

import pytest

from lumctl.training.phase_record import MOST_STEPS, PhaseRecord, light_words, order_faults


def said(wait_s, mode="on-demand", hidden_s=0.0, pays=None, changes=2):
    row = ["pipeline", "gradients", mode, pays]
    return {
        "changes": changes,
        "wait_s": wait_s,
        "hidden_s": hidden_s,
        "worst_s": wait_s / 2,
        "boundaries": [row],
    }


def test_a_step_has_the_longest_wait_of_its_ranks_and_the_last_one_is_not_complete():
    record = PhaseRecord()
    for rank, wait_s in enumerate((0.02, 0.05, 0.01)):
        record.note(1, said(wait_s, hidden_s=0.001 * rank))
    record.note(2, said(1.0))
    (step,) = record.document()["steps"]
    assert step == {
        "step": 1,
        "changes": 2,
        "wait_s": 0.05,
        "hidden_s": 0.002,
        "worst_s": 0.025,
        "change_s": 0.0,
        "step_s": 0.0,
        "modes": {"on-demand": 3},
    }


def timed(rank_wait_s, change_s, step_s=0.1, **more):
    """What a rank with a clock says of a step with one boundary."""
    rows = [["pipeline", "gradients", "ahead", True, 1, rank_wait_s, 0.02, change_s]]
    return {**said(rank_wait_s, **more), "boundaries": rows, "step_s": step_s}


def test_totals_are_those_of_the_longest_rank_of_each_step():
    record = PhaseRecord()
    for step in (1, 2):
        for wait_s, hidden_s in ((0.02, 0.01), (0.05, 0.004), (0.01, 0.0)):
            record.note(step, timed(wait_s, 0.02, step_s=wait_s + 0.1, hidden_s=hidden_s))
    assert record.totals() == pytest.approx({"wait_s": 0.1, "hidden_s": 0.02, "worst_s": 0.025})
    (step,) = record.document()["steps"]
    assert (step["step_s"], step["change_s"]) == pytest.approx((0.15, 0.02))
    assert "10 ms hidden, 50% of the changes" in light_words(light(record))[1]
    assert "5 changes of light under plan-1" in light_words(light(record, plan="plan-1"))[0]


def test_the_modes_stand_beside_each_other_and_a_mixed_step_belongs_to_none():
    record = PhaseRecord()
    for step in range(5):
        record.note(step, said(0.02))
    record.note(5, said(0.02))
    record.note(5, said(0.02, mode="ahead"))
    for step in range(6, 10):
        record.note(step, said(0.004, mode="ahead", hidden_s=0.016, pays=True))
    modes = record.document()["by_mode"]
    assert modes["on-demand"] == {"steps": 5, "changes": 2, "wait_s": 0.02, "hidden_s": 0.0, "worst_s": 0.01}
    assert modes["ahead"]["steps"] == 3
    assert modes["ahead"]["wait_s"] == 0.004
    boundary = {"left": "pipeline", "entered": "gradients", "mode": "ahead", "pays": True}
    assert record.document()["boundaries"] == [boundary]


def test_it_is_bounded_whatever_ranks_say():
    record = PhaseRecord()
    for step in range(2 * MOST_STEPS):
        rows = [[f"{step}-{number}", "b", "ahead", None] for number in range(100)]
        record.note(step, {**said(0.1), "boundaries": rows})
    document = record.document(shown=10**6)
    assert len(document["steps"]) == MOST_STEPS - 1
    assert len(document["boundaries"]) == 32


@pytest.mark.parametrize("broken", [{}, {"changes": 1}, {**said(0.1), "boundaries": [["a", "b", "sideways", None]]}])
def test_a_malformed_report_is_an_error_that_its_reader_counts(broken):
    with pytest.raises((KeyError, TypeError, ValueError)):
        PhaseRecord().note(1, broken)


def light(record, **fields):
    """The light of a job as its status has it."""
    found = {"lit": {"rail0": "pipeline", "rail1": None}, "changes": 5, "failed_changes": 0, "refused": {}}
    return {**found, **record.document(), **fields}


def test_it_is_told_in_words():
    record = PhaseRecord()
    for step in range(4):
        record.note(step, said(0.02, hidden_s=0.01, mode="ahead", pays=True))
    assert light_words(light(record)) == (
        "rail0 pipeline, rail1 changes; 5 changes of light",
        (
            "2 changes a step: 20 ms waiting for light and for other ranks, 10 ms hidden (medians of 3 steps), "
            "worst wait 10 ms"
        ),
        "pipeline to gradients ahead",
    )
    assert light_words(light(PhaseRecord(), lit={}, failed_changes=2, refused={"unproved": 3})) == (
        "at rest; 5 changes of light, 2 failed, 3 refused requests",
    )


def test_words_of_ranks_are_safe_to_print():
    record = PhaseRecord()
    rows = {**said(0.1), "boundaries": [["a\x1b[31m\n", "b", "on-demand", False]]}
    record.note(1, rows)
    assert light_words(light(record))[-1] == "a[31m to b on demand: neither is faster"


@pytest.mark.parametrize(
    ("order", "made", "faults"),
    [
        (["p", "g"], [("p", "g"), ("g", "p")], ()),
        (["p"], [], ()),
        (["p", "e", "p", "g"], [("p", "e"), ("e", "p"), ("p", "g"), ("g", "p")], ()),
        (["p", "g"], [("p", "g")], ("no rank changes from g to p, as the order does",)),
        (
            ["p", "e", "g"],
            [("p", "g"), ("g", "p")],
            (
                "ranks change from p to g, which the order does not",
                "no rank changes from e to g, as the order does",
                "no rank changes from p to e, as the order does",
            ),
        ),
    ],
)
def test_the_order_of_the_inventory_is_compared_with_the_changes_of_ranks(order, made, faults):
    assert order_faults(order, made) == faults
