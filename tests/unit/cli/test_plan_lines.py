"""A plan as a difference to read: what goes and comes at what power, by which steps in what time, and why."""

from dataclasses import replace

from lumctl.change.plan import (
    Candidate,
    Do,
    Plan,
    PlannedChange,
    PlannedCircuit,
    Replacement,
    Start,
    Step,
    from_document,
    plan_digest,
    to_document,
)
from lumctl.cli.plan_lines import expected_line, plan_lines, styled_lines, summary
from lumctl.fabric import Segment

ENDS = ({"lane": "s0-a", "device": "mesh", "port": 1}, {"lane": "s1-a", "device": "mesh", "port": 2})


def path(*pucs):
    return (Segment("mesh", (1, 2), pucs),)


OLD = PlannedCircuit("job/0-1", "job", "duplex", ENDS, path(3), (), 2.25, -0.25, 15.55)
NEW = replace(
    OLD,
    ends=(ENDS[0], {"lane": "s3-a", "device": "mesh", "port": 9}),
    segments=path(3, 4),
    loss_db=2.5,
    expected_rx_dbm=-0.5,
    margin_db=15.3,
)
MOVED = replace(OLD, id="job/1-2", segments=path(7, 8, 9), loss_db=2.75, expected_rx_dbm=-0.75, margin_db=15.05)
PLAN = Plan(
    kind="swap", title="job: replace s1 by s3", rack="r1", target="sim", created_at=1.5, inventory_digest="i",
    start=Start({"job": ("s0", "s1")}, {"mesh": (3,)}),
    replacements=(Replacement("job", 1, "s1", "s3"),),
    candidates=(
        Candidate("s1", "s3", chosen=True, reasons=("the best of all", "2 PUCs"), rank=1, score={"loss_db": 2.5}),
        Candidate("s1", "s4", chosen=False, reasons=("is failed: dead",)),
    ),
    add=(NEW, MOVED), remove=(OLD, replace(MOVED, segments=path(7), expected_rx_dbm=-0.25)),
    keep=(replace(OLD, id="other/0-1"),),
    changes=(PlannedChange("mesh", 3, "x", "="), PlannedChange("mesh", 5, None, "x")),
    steps=(
        Step("1", Do.PROGRAM, "program 2 PUCs of mesh", {}, "mesh holds what it did", expected_seconds=0.25),
        Step("2", Do.VERIFY, "verify 2 new circuits", {}, expected_seconds=0.5),
    ),
    warnings=("circuit job/1-2 is moved",), why=("s3 replaces s1: it ranks first",), measured={"1": 7},
).sealed()  # fmt: skip


def shown(*, wide=False):
    return [" ".join(line.split()) for line in plan_lines(PLAN, wide=wide)]


def test_what_goes_and_comes_is_told_with_its_power_before_and_after():
    lines = shown()
    assert "~ replace s1 by s3 (job rank 1)" in lines
    gone = lines.index("- job/0-1 s0-a (port 1) <-> s1-a (port 2)")
    assert lines[gone + 1] == "1 PUC, 2.25 dB lost, -0.25 dBm, margin 15.6 dB"
    new = lines.index("+ job/0-1 s0-a (port 1) <-> s3-a (port 9)")
    assert lines[new + 1] == "2 PUCs, 2.50 dB lost, -0.25 -> -0.50 dBm, margin 15.3 dB"
    led = next(at for at, line in enumerate(lines) if line.startswith("~ job/1-2"))
    assert "-0.25 -> -0.75 dBm" in lines[led + 1]
    assert not any(line.startswith("- job/1-2") for line in lines)
    assert "1 other on the same device stays as it is" in lines


def test_a_summary_and_warnings_come_first():
    lines = plan_lines(PLAN, to_stop=["job"])
    assert lines[2] == "2 circuits to move, 2 PUCs (programmable unit cells), job job must be stopped"
    assert lines[3] == "  first"
    assert lines[5] == "warning: circuit job/1-2 is moved"
    assert summary(replace(PLAN, remove=()), ["a", "b"]).endswith("jobs a, b must be stopped first")
    assert summary(replace(PLAN, remove=())).startswith("2 circuits to make, ")
    assert summary(replace(PLAN, add=())).startswith("2 circuits to remove, ")
    assert summary(replace(PLAN, add=(), remove=(), changes=())) == "2 steps"


def test_what_comes_goes_and_changes_has_the_colours_of_a_difference():
    styles = {line.text.strip()[:1]: line.style for line in styled_lines(PLAN)}
    assert (styles["+"], styles["-"], styles["~"]) == ("green", "red", "yellow")
    assert next(line.style for line in styled_lines(PLAN) if line.text.startswith("warning")) == "bold yellow"


def test_no_line_is_too_long_and_no_word_broken():
    long = "a circuit whose reason is told in many more words than a line of a terminal of eighty columns can hold"
    steps = (replace(PLAN.steps[0], title=f"program PUCs of mesh: {long}"), *PLAN.steps[1:])
    plan = replace(PLAN, title=long, warnings=(long,), why=(long,), steps=steps, candidates=tuple(
        replace(each, reasons=(long,)) for each in PLAN.candidates
    ), changes=tuple(PlannedChange("mesh", puc, "x", "=") for puc in range(60)))  # fmt: skip
    for wide in (False, True):
        lines = plan_lines(plan, wide=wide, to_stop=[f"job-{n}" for n in range(12)])
        assert max(map(len, lines)) <= 79
        assert long in " ".join(" ".join(lines).split())


def test_candidates_stand_by_rank_and_the_reason_is_told():
    lines = shown()
    assert "* 1 s3 the best of all; 2 PUCs" in lines
    assert "- s4 is failed: dead" in lines
    assert "s3 replaces s1: it ranks first" in lines
    assert "warning: circuit job/1-2 is moved" in lines


def test_each_step_has_its_time_and_the_plan_says_where_times_come_from():
    lines = shown()
    assert "1. program 2 PUCs of mesh 0.25 s" in lines
    assert "expected time about 0.75 s (medians of the last 7 runs; 1 step by the" in lines
    assert "PUCs of mesh: 2 written (1 to bar, 1 to cross)" in lines
    assert "3 cross to bar, 5 ? to cross" in lines


def test_an_expected_time_below_the_sum_of_the_steps_names_those_at_the_same_time():
    steps = tuple(replace(PLAN.steps[0], id=str(number), stage=min(number, 2) - 1) for number in (1, 2, 3))
    plan = replace(PLAN, steps=steps)
    assert f"{plan.expected_seconds:.2f} s (steps 2 to 3 at the same time; " in expected_line(plan)


def test_wide_tells_what_stays_and_what_each_step_needs():
    lines = shown(wide=True)
    assert any(line.startswith("other/0-1") for line in lines)
    assert "needs: mesh holds what it did" in lines
    assert "time: median of 7 runs" in lines


def test_plans_from_before_there_were_ranks_margins_and_reasons_are_read_and_written_again():
    old = to_document(PLAN)
    for key in ("why", "measured"):
        del old[key]
    for candidate in old["candidates"]:
        candidate.pop("rank", None), candidate.pop("score", None)
    for circuit in (c for group in old["circuits"].values() for c in group):
        circuit.pop("margin_db", None)
    old |= {"digest": plan_digest(old)}
    old |= {"id": f"plan-{old['digest'][:8]}"}
    plan = from_document(old)
    assert from_document(to_document(plan)) == plan  # as the journal holds it
    assert to_document(plan) == old
    assert plan_lines(plan)


def test_who_stays_is_counted_or_in_the_wide_form_named():
    wide = shown(wide=True)
    assert any(line.startswith("other/0-1 ") for line in wide)
    assert not any("as it is" in line or "as they are" in line for line in wide)
