"""Which steps of a job are proven while its light changes, and when light must be proved."""

import math

import pytest

from lumctl.training.phase_control import Rail
from lumctl.training.phase_evidence import MOST_GRANTS, MOST_STEPS, PROVED_EVERY_S, PhaseEvidence
from lumctl.training.phase_traffic import MOST_ROWS, NO_PEER, Traffic, TrafficCount, TransferPart

PIPELINE, GRADIENTS = "pipeline", "gradients"
PAIR = (0, 1)
RAIL = Rail(("rail0",), {PIPELINE: frozenset({PAIR}), GRADIENTS: frozenset({PAIR})})
SINGLE = {phase: frozenset({PAIR}) for phase in RAIL.pairs}
SENT, RECEIVED, EXCHANGED = TransferPart(1, sends=1), TransferPart(0, receives=1), TransferPart(1, exchanges=1)


class Job:
    """Two ranks that use light and report; ``at`` is the time."""

    def __init__(self, single=SINGLE):
        self.at, self.done, self.change = 100.0, 0, 0
        self.evidence = PhaseEvidence([RAIL], single, 0, dict.fromkeys(RAIL.pairs, self.at))
        self.counts = [TrafficCount(), TrafficCount()]
        self.rows = [[], []]

    def uses(self, phase, *parts):
        """Both ranks use a phase in new light; ``parts`` has what each transfer does at both ranks."""
        self.change += 1
        self.evidence.dark(0)
        self.evidence.lit(0, phase, self.change, self.at)
        for rank, count in enumerate(self.counts):
            self.evidence.granted(rank, self.change, self.change)
            for both in parts:
                count.count(both[rank])
            count.close(phase, self.change)

    def steps(self):
        """Both ranks end a step."""
        self.done += 1
        for rank, count in enumerate(self.counts):
            self.evidence.stepped(rank, self.done, count.take(), self.at)


FORTH = (TransferPart(1, sends=1), TransferPart(0, receives=1))
BACK = (TransferPart(1, receives=1), TransferPart(0, sends=1))
BOTH = (TransferPart(1, exchanges=1), TransferPart(0, exchanges=1))
ONE_WAY = (TransferPart(1), TransferPart(0))
MANY = (NO_PEER, NO_PEER)


@pytest.mark.parametrize(
    ("parts", "is_proven"),
    [
        ([BOTH], True),
        ([FORTH, BACK], True),
        ([ONE_WAY, BOTH], True),
        ([FORTH], False),
        ([BACK], False),
        ([ONE_WAY], False),
        ([MANY], False),
        ([MANY, BOTH], False),
    ],
)
def test_a_step_is_proven_by_what_arrived_in_both_directions(parts, is_proven):
    job = Job()
    job.uses(PIPELINE, *parts)
    job.steps()
    assert job.evidence.proven == int(is_proven)
    assert job.evidence.provisional == int(not is_proven)
    assert job.evidence.by_traffic == int(is_proven)


def test_a_message_that_waited_since_an_earlier_light_proves_nothing():
    job = Job()
    job.uses(PIPELINE, BACK, (TransferPart(1, sends=1), TransferPart(0)))  # sent, but not received yet
    job.uses(PIPELINE, BACK, (TransferPart(1), TransferPart(0, receives=1)))
    job.steps()
    assert job.evidence.proven == 0


def test_two_circuits_between_two_ranks_are_not_proven_by_traffic():
    job = Job(single={PIPELINE: frozenset(), GRADIENTS: frozenset({PAIR})})
    job.uses(PIPELINE, BOTH)
    job.uses(GRADIENTS, BOTH)
    job.steps()
    assert job.evidence.proven == 0
    job.evidence.proved(0, GRADIENTS, job.at + 1)
    assert job.evidence.proven == 0
    job.evidence.proved(0, PIPELINE, job.at + 1)
    assert job.evidence.proven == 1


def test_a_proof_that_began_before_the_step_ended_does_not_prove_it():
    job = Job()
    job.uses(PIPELINE, MANY)
    job.steps()
    job.evidence.proved(0, PIPELINE, job.at - 0.1)
    assert job.evidence.proven == 0
    job.evidence.proved(0, PIPELINE, job.at)
    assert job.evidence.proven == 1


def test_later_traffic_proves_earlier_steps_too():
    job = Job()
    job.uses(PIPELINE, MANY)
    job.steps()
    job.uses(GRADIENTS, BOTH)
    job.steps()
    assert job.evidence.proven == 0
    job.uses(PIPELINE, BOTH)
    job.steps()
    assert job.evidence.proven == 3


def test_a_step_of_which_a_rank_has_not_reported_is_not_proven():
    job = Job()
    job.uses(PIPELINE, BOTH)
    job.evidence.stepped(0, 1, job.counts[0].take(), job.at)
    assert job.evidence.proven == 0
    job.evidence.stepped(1, 1, job.counts[1].take(), job.at)
    assert job.evidence.proven == 1


def test_light_that_traffic_proves_is_proved_only_if_it_is_used_for_long():
    job = Job()
    job.uses(PIPELINE, BOTH)
    assert job.evidence.due_at(0) == job.at + PROVED_EVERY_S
    job.steps()
    job.at += 10
    job.uses(PIPELINE, BOTH)
    assert job.evidence.due_at(0) == job.at + PROVED_EVERY_S


def test_light_that_traffic_does_not_prove_is_proved_when_it_comes_back():
    job = Job()
    job.uses(PIPELINE, MANY)
    job.steps()
    job.at += PROVED_EVERY_S
    job.uses(PIPELINE, MANY)
    assert job.evidence.due_at(0) <= job.at
    job.evidence.proved(0, PIPELINE, job.at)
    assert job.evidence.due_at(0) == job.at + PROVED_EVERY_S


def test_a_proof_that_was_not_possible_is_tried_again_later():
    job = Job()
    job.uses(PIPELINE, MANY)
    job.at += 5
    job.evidence.not_proved(0, job.at)
    assert job.evidence.due_at(0) == job.at + PROVED_EVERY_S


def test_light_that_changes_is_not_proved():
    job = Job()
    job.uses(PIPELINE, BOTH)
    job.evidence.dark(0)
    assert job.evidence.due_at(0) == math.inf


def test_a_row_for_light_that_was_never_granted_leaves_the_step_provisional():
    job = Job()
    job.uses(PIPELINE, BOTH)
    job.evidence.stepped(0, 1, [*job.counts[0].take(), Traffic(999, 1, 0, 0, 1, 1)], job.at)
    job.evidence.stepped(1, 1, job.counts[1].take(), job.at)
    assert job.evidence.proven == 0


@pytest.mark.parametrize("row", [[], [1], [1, 0, "x", 0, 0, 0], [1, 0, 0, 0, 0, 0, 0], None, 7])
def test_a_malformed_row_is_an_error(row):
    with pytest.raises((TypeError, ValueError)):
        Job().evidence.stepped(0, 1, [row], 0.0)


def test_what_is_remembered_is_bounded():
    job = Job(single={})
    for _ in range(3 * MOST_STEPS):
        job.uses(PIPELINE, BOTH)
        job.uses(GRADIENTS, BOTH)
        job.steps()
    assert job.evidence.provisional == MOST_STEPS
    assert len(job.evidence._changes) <= MOST_GRANTS
    assert all(len(each) <= MOST_GRANTS for each in job.evidence._grants.values())
    assert len(job.evidence._steps) <= 1
    for phase in RAIL.pairs:
        job.evidence.proved(0, phase, job.at)
    assert job.evidence.proven == 3 * MOST_STEPS


def test_a_report_with_too_many_rows_leaves_the_step_provisional():
    job = Job()
    for _ in range(MOST_ROWS + 1):
        job.uses(PIPELINE, BOTH)
    job.steps()
    assert job.evidence.proven == 0


def test_transfers_under_way_at_the_end_of_a_step_leave_it_provisional():
    job = Job()
    job.uses(PIPELINE, BOTH)
    for count in job.counts:
        count.count(BOTH[0])
        count.close(PIPELINE, 1, all_ended=False)
    job.steps()
    assert job.evidence.proven == 0


def test_traffic_over_one_circuit_of_a_phase_does_not_prove_the_others():
    pairs = frozenset({(0, 1), (2, 3)})
    rail = Rail(("rail0",), {PIPELINE: pairs})
    evidence = PhaseEvidence([rail], {PIPELINE: pairs}, 0, {PIPELINE: 100.0})
    exchanged = {rank: [Traffic(1, rank ^ 1, 0, 0, 0, 1)] for rank in range(4)}
    silent = {rank: [Traffic(1, rank ^ 1)] for rank in range(4)}
    evidence.lit(0, PIPELINE, 1, 101.0)
    for rank in range(4):
        evidence.granted(rank, 1, 1)
        evidence.stepped(rank, 1, silent[rank] if rank > 1 else exchanged[rank], 102.0)
    for rank in range(4):
        evidence.stepped(rank, 2, exchanged[rank] if rank < 2 else [], 103.0)
    assert (evidence.proven, evidence.shown) == (0, {PIPELINE: 100.0})
    for rank in range(4):
        evidence.stepped(rank, 3, exchanged[rank], 104.0)
    assert (evidence.proven, evidence.shown) == (3, {PIPELINE: 101.0})


def test_a_step_whose_reports_were_lost_stays_provisional_until_all_phases_are_shown():
    job = Job()
    job.uses(PIPELINE, MANY)
    job.evidence.stepped(0, 1, job.counts[0].take(), job.at)  # the report of the other rank is lost
    job.counts[1].take()
    job.done = 1
    job.uses(GRADIENTS, BOTH)
    job.steps()
    assert (job.evidence.proven, job.evidence.provisional) == (0, 1)
    job.evidence.proved(0, PIPELINE, job.at)
    job.evidence.proved(0, GRADIENTS, job.at)
    assert job.evidence.proven == 2


def test_nothing_is_believed_of_a_rail_whose_light_is_wrong():
    job = Job()
    job.evidence.is_wrong(0)
    assert job.evidence.shown == {}


def test_steps_before_a_group_are_proven_if_each_phase_was_proved_since():
    for proved, proven in (({PIPELINE, GRADIENTS}, 9), ({PIPELINE}, 4), ((), 4)):
        evidence = PhaseEvidence([RAIL], SINGLE, 9, {})
        evidence.doubt(4, proved, 100.0)
        assert (evidence.proven, evidence.provisional) == (proven, int(proven == 4))
        for phase in RAIL.pairs:
            evidence.proved(0, phase, 100.0)
        assert evidence.proven == 9
