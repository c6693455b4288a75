"""A rank that is late for some time degrades its accelerator, until it was on time for a while; no swap is advised."""

from dataclasses import replace

import pytest

from lumctl.fleet.readings import Snapshot
from lumctl.health.explanation import explain
from lumctl.health.lateness import Lateness, RankLateness
from lumctl.health.observation import Observation
from lumctl.health.remedy import remedies
from lumctl.health.replaced_faults import faults_of, unproven
from lumctl.health.states import State
from lumctl.training.stragglers import causes_of

GPU, OTHER = "h03-gpu2", "h03-gpu1"
RULE = "gpu.straggler"
RANKS = frozenset({GPU, OTHER})
ON_TIME = {"lateness": Lateness(judged=RANKS)}


def late(watched, for_s=30.0, **changed):
    known = RankLateness("train-a", 10, GPU, "", 0.007, 0.12, watched.now - for_s, watched.now)
    return {"lateness": Lateness({GPU: replace(known, **changed)}, judged=RANKS)}


def look(watched, said, after=10.0):
    watched.said = said
    health = watched.look(after).accelerators[GPU]
    return health.state, [finding.evidence for finding in health.findings]


def test_it_is_a_finding_once_the_rank_was_late_for_some_time(watched):
    assert look(watched, late(watched, for_s=29.9)) == (State.OK, [])
    found = (State.DEGRADED, ["train-a rank 10 is late: the others wait 7.0 ms of each 120 ms step"])
    assert look(watched, late(watched)) == found
    (finding,) = watched.report.accelerators[GPU].findings
    assert finding.rule == RULE
    assert finding.advice.endswith(": lumctl job stragglers train-a")
    assert finding.since == watched.said["lateness"].late[GPU].since
    assert watched.report.accelerators[OTHER].state is State.OK


def test_it_ends_after_a_minute_without_and_not_before(watched):
    look(watched, late(watched))
    for _ in range(6):
        state, (evidence,) = look(watched, ON_TIME)
        assert state is State.DEGRADED
        assert "last seen" in evidence
        (finding,) = watched.report.accelerators[GPU].findings
        assert finding.advice.endswith(": lumctl job stragglers train-a")
    watched.restart()
    assert look(watched, ON_TIME) == (State.OK, [])
    look(watched, late(watched))
    for _ in range(5):
        look(watched, ON_TIME)
    look(watched, late(watched))
    assert look(watched, ON_TIME, 50)[0] is State.DEGRADED


def test_it_ends_at_once_with_the_job_or_when_a_swap_has_moved_the_rank(watched):
    look(watched, late(watched))
    assert look(watched, {"lateness": Lateness(judged=RANKS - {GPU})}) == (State.OK, [])
    assert look(watched, ON_TIME) == (State.OK, [])


def test_an_accelerator_without_a_job_does_not_show_that_it_is_late_no_longer(watched):
    look(watched, late(watched))
    faults = faults_of(watched.report, watched.rack.inventory, (), GPU)
    assert [fault.rule for fault in faults] == [RULE]
    look(watched, {"lateness": Lateness()})
    assert unproven(watched.report, faults) == faults
    look(watched, ON_TIME)
    assert unproven(watched.report, faults) == ()


def test_what_nobody_has_judged_neither_ends_nor_begins_anything(watched):
    unknown = {"lateness": Lateness(unknown=frozenset({GPU}))}
    assert look(watched, unknown) == (State.OK, [])
    look(watched, late(watched))
    for _ in range(20):
        assert look(watched, unknown)[0] is State.DEGRADED


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"group": "2-14 by 4"}, "rank 10 is late: the others of ranks 2-14 by 4 wait 7.0 ms of each 120 ms step"),
        ({"worked_around": True}, "rank 10 is late: the others work around 7.0 ms of each 120 ms step by a schedule"),
    ],
)
def test_it_says_who_waits_or_that_nobody_does(watched, changed, words):
    assert words in look(watched, late(watched, **changed))[1][0]


def test_what_makes_it_late_is_another_finding_and_comes_first(watched):
    watched.rack.gpu(GPU, temperature_c=93.0)
    look(watched, late(watched))
    assert [finding.rule for finding in watched.report.accelerators[GPU].findings] == ["gpu.temperature", RULE]


def test_no_swap_is_advised_for_it_alone(watched):
    look(watched, late(watched))
    (remedy,) = remedies(watched.report, watched.rack.inventory, watched.rack.assignment)
    assert (remedy.cause, remedy.replace, remedy.command) == (GPU, (), "")
    assert remedy.by_hand.endswith(": lumctl job stragglers train-a")


def test_it_is_no_cause_of_itself(watched):
    watched.rack.gpu(GPU, temperature_c=93.0)
    look(watched, late(watched))
    inventory, report = watched.rack.inventory, watched.report
    seen = Observation(watched.now, "sim", inventory, {}, (), {}, None, report)
    assert [finding.rule for finding in causes_of(seen, GPU)] == ["gpu.temperature"]


def test_explain_says_whether_it_was_judged(watched):
    def told():
        (found,) = explain(watched.report, GPU, inventory=watched.rack.inventory, snapshot=snapshot, devices={})
        (check,) = [each for each in found.checks if each.rule == RULE]
        return check.told, check.found, [reading.value for reading in check.readings]

    snapshot = Snapshot(watched.now, 0.1, dict(watched.rack.hosts))
    look(watched, late(watched))
    assert told() == (True, True, ["recorded"])
    look(watched, {"lateness": Lateness(judged=RANKS - {GPU})})
    assert told() == (False, False, ["not recorded"])
    look(watched, ON_TIME)
    assert told() == (True, False, ["recorded"])
