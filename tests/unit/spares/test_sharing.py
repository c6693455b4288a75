"""Sharing policies: who gets which spares, with random questions and the order that each policy promises."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.spares.policies import POLICIES, best_fit, fifo, las, priority, scarce, srsf
from lumctl.spares.sharing import (
    Demand,
    FreeSpare,
    InvalidAnswer,
    Reserve,
    SharingQuestion,
    check_answer,
    serve,
    tightest_first,
)

COMMON, RARE = "common", "rare"


def demand(name, *usable, asked_at=0.0, classes=(COMMON, RARE), **more):
    able = (frozenset(classes),) * len(usable)
    return Demand(name, f"job-{name}", asked_at, tuple(map(tuple, usable)), able, **more)


def question(*demands, spares=("c1", "c2", "r1"), **more):
    each = {s: FreeSpare(s, RARE if s[0] == "r" else COMMON, 2 if s[0] == "r" else 1) for s in spares}
    return SharingQuestion(100.0, demands, each, **more)


@st.composite
def questions(draw):
    spares = [f"c{n}" for n in range(draw(st.integers(0, 6)))] + [f"r{n}" for n in range(draw(st.integers(0, 4)))]
    demands = []
    for number in range(draw(st.integers(0, 8))):
        classes = draw(st.sampled_from([(RARE,), (COMMON, RARE)]))
        mine = draw(st.permutations([s for s in spares if s[0] == "r" or COMMON in classes]))
        size = draw(st.integers(1, 4))
        weight, known = draw(st.floats(0.1, 9)), draw(st.none() | st.floats(0, 1e6))
        demands.append(
            demand(
                f"d{number}",
                *[mine] * size,
                asked_at=float(number),
                classes=classes,
                weight=weight,
                remaining_s=known,
                attained_s=known,
            )
        )
    return question(*demands, spares=spares, seed=draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", POLICIES)
@given(asked=questions())
def test_an_answer_can_be_followed_and_leaves_no_demand_that_could_be_served(name, asked):
    answer = check_answer(asked, POLICIES[name](asked))
    assert isinstance(answer, dict)
    left = asked.spares.keys() - {spare for given in answer.values() for spare in given}
    assert not any(serve([each], left) for each in asked.demands if each.id not in answer)


@pytest.mark.parametrize("name", POLICIES)
@given(asked=questions())
def test_the_same_question_has_the_same_answer(name, asked):
    assert POLICIES[name](asked) == POLICIES[name](asked)


@pytest.mark.parametrize("prefer", [None, tightest_first])
@given(asked=questions())
def test_demands_that_share_a_row_are_served_as_one_after_the_other(prefer, asked):
    key = prefer and prefer(asked)
    left, expected = set(asked.spares), {}
    for each in asked.demands:
        rows = [[spare for spare in row if spare in left] for row in each.usable]
        rows = rows if key is None else [sorted(row, key=key) for row in rows]
        found = serve([each._replace(usable=tuple(map(tuple, rows)))], left)
        assert not found or each.size > 1 or found == {each.id: (rows[0][0],)}
        expected |= found
        left -= {spare for spares in found.values() for spare in spares}
    assert serve(asked.demands, asked.spares, key) == expected


@given(asked=questions(), held=st.integers(0, 5))
def test_held_back_spares_go_only_to_those_that_can_use_nothing_else(asked, held):
    answer = POLICIES["best-fit"](Reserve({RARE: held}).applied(asked))
    flexible = {each.id for each in asked.demands if COMMON in each.classes}
    rare_to_flexible = sum(spare[0] == "r" for name in answer.keys() & flexible for spare in answer[name])
    assert rare_to_flexible <= max(sum(spare[0] == "r" for spare in asked.spares) - held, 0)


def test_a_group_is_served_whole_or_not_at_all_and_blocks_nobody():
    spares = ["c1", "c2"]
    asked = question(demand("large", spares, spares, spares), demand("small", spares, asked_at=1.0), spares=spares)
    assert best_fit(asked) == {"small": ("c1",)}


def test_a_spare_that_one_member_needs_is_left_to_it():
    assert serve([demand("d", ["c1", "c2"], ["c1"])], ["c1", "c2"]) == {"d": ("c2", "c1")}
    assert serve([demand("d", ["c1", "c2"], ["c1", "c3"], ["c1"])], ["c1", "c2"]) == {}


def test_best_fit_spends_a_common_part_where_it_serves_and_fifo_the_first():
    asked = question(demand("any", ["r1", "c1"]), demand("needy", ["r1"], asked_at=1.0, classes=[RARE]))
    assert fifo(asked) == {"any": ("r1",)}
    assert best_fit(asked) == {"any": ("c1",), "needy": ("r1",)}


def test_each_policy_puts_its_own_demand_first():
    long = demand("long", ["c1"], asked_at=1.0, weight=1.0, remaining_s=900.0, attained_s=5.0)
    short = demand("short", ["c1"], asked_at=2.0, weight=1.0, remaining_s=100.0, attained_s=9.0)
    heavy = demand("heavy", ["c1"], asked_at=3.0, weight=4.0)
    asked = question(long, short, heavy, spares=["c1"])
    assert set(fifo(asked)) == set(best_fit(asked)) == {"long"}
    assert set(srsf(asked)) == {"short"}
    assert set(las(asked)) == {"heavy"}  # nothing is known to have run
    assert set(priority(asked)) == {"heavy"}
    # It has waited 2 s longer, which adds 4 to its weight if one is added each half second.
    assert set(priority(replace(asked, ageing_s=0.5))) == {"long"}


def test_scarce_serves_those_first_that_can_use_nothing_else():
    spares = ["r1"]
    asked = question(demand("any", spares), demand("needy", spares, asked_at=1.0, classes=[RARE]), spares=spares)
    assert set(best_fit(asked)) == {"any"}
    assert set(scarce(asked)) == {"needy"}


def test_scarce_lets_a_long_queue_take_a_part_of_the_scarce_share():
    spares = ["r1", "r2", "r3", "r4"]
    many = [demand(f"any{n}", spares, asked_at=float(n)) for n in range(9)]
    asked = question(*many, demand("needy", spares, asked_at=20.0, classes=[RARE]), spares=spares)
    answer = scarce(asked)
    assert "needy" in answer
    assert len(answer) == len(spares)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (None, "NoneType, not a mapping"),
        ({"x": ("c1",)}, "there is no demand 'x'"),
        ({3: ("c1",)}, "there is no demand 3"),
        ({"a": ("c1",)}, "a needs 2 spares"),
        ({"a": "c1"}, "a needs 2 spares"),
        ({"a": ("c1", "r1")}, "'r1' cannot be used for a"),
        ({"a": ("c1", ["c2"])}, "cannot be used for a"),
        ({"a": ("c1", "c1")}, "c1 goes to a and to a"),
        ({"a": ("c1", "c2"), "b": ("c1",)}, "c1 goes to a and to b"),
    ],
)
def test_nonsense_is_told(answer, complaint):
    asked = question(demand("a", ["c1", "c2"], ["c1", "c2"]), demand("b", ["c1"]))
    found = check_answer(asked, answer)
    assert isinstance(found, InvalidAnswer)
    assert complaint in found.text


def test_a_demand_of_many_is_answered_soon_although_nothing_fits():
    # Every augmenting path fails: without a memory of tried spares this takes 40! steps.
    rng = Random(1)  # noqa: S311 - a seed repeats the question
    spares = [f"c{n}" for n in range(39)]
    rows = [rng.sample(spares, 39) for _ in range(40)]
    assert serve([demand("d", *rows)], spares) == {}


def test_a_group_gets_of_the_reserve_only_what_nothing_else_can_replace():
    """Two accelerators fail together: one of them can use both classes, the other only the rare one."""
    both, rare = frozenset({COMMON, RARE}), frozenset({RARE})
    mixed = Demand("mixed", "job", 0.0, (("c1", "r1", "r2"), ("r1", "r2")), (both, rare))
    asked = Reserve({RARE: 2}).applied(question(mixed, spares=("c1", "r1", "r2")))
    assert asked.demands[0].usable == (("c1",), ("r1", "r2"))
    assert best_fit(asked) == {"mixed": ("c1", "r1")}
    assert mixed.classes == both
