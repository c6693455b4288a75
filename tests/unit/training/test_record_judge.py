"""Who is late is saved for health; a job that may use a schedule by itself is told to while that is faster."""

import threading
from collections import deque
from types import SimpleNamespace

import pytest
from drawn_arrivals import COLLECTIVE_S, drawn_steps

from lumctl.context.job_files import LIGHT_TOTALS
from lumctl.inventory.job_run import StragglerSchedule
from lumctl.training.collective_record import CollectiveRecord
from lumctl.training.coordinator import late_rank
from lumctl.training.coordinator.state import JobStage
from lumctl.training.phase_record import PhaseRecord
from lumctl.training.record_judge import RecordJudge

RANKS, LATE = 8, 5
GAP_S = 0.47 * COLLECTIVE_S
"""About the best one for eight ranks: as long as the reduce-scatter of the others."""
WITHIN_S = 30.0
NOW = 2000.0


class Posted:
    """A coordinator's state, and what it tells the ranks."""

    def __init__(self, setting=StragglerSchedule.ON):
        self.told = deque()
        self.turns, self._change = 0, threading.Condition()
        members = {rank: f"w{rank}" for rank in range(RANKS)}
        workers = {
            name: SimpleNamespace(name=name, host="h1", accelerator=f"gpu{rank}") for rank, name in members.items()
        }
        self.state = SimpleNamespace(
            phase=JobStage.RUNNING,
            group=SimpleNamespace(generation=3, members=members),
            workers=workers,
            ordered_schedule=(0, None),
            job=SimpleNamespace(name="train"),
            run=SimpleNamespace(straggler_schedule=setting),
            effects=SimpleNamespace(ask=self._ask, say=[].append, now=lambda: NOW),
            light=None,
            collectives=CollectiveRecord(),
        )
        self.record(GAP_S)

    def record(self, slow_s, generation=3, after=0):
        """Steps of a group whose late rank is so late."""
        drawn = drawn_steps(1, ranks=RANKS, steps=60, slow=LATE, slow_s=slow_s, gap_s=0.0002)
        record = CollectiveRecord()
        record.begin(generation, [f"gpu{rank}" for rank in range(RANKS)], ["one"] * RANKS)
        for step in drawn:
            for rank in range(RANKS):
                times = [["", RANKS, step.entered_s[rank], step.left_s[rank]]]
                record.note(rank, step.step, times, 1000.0 + after + step.step)
        self.state.collectives = record  # whole, for another thread reads it

    def _ask(self, host, request):
        self.told.append((host, request["worker"], request["message"]))

    def post(self, event, *arguments):
        with self._change:
            event(self.state, *arguments)
            self.turns += 1
            self._change.notify_all()

    def some_turns(self):
        """Wait until the record has been judged again."""
        with self._change:
            until = self.turns + 6
            assert self._change.wait_for(lambda: self.turns >= until, WITHIN_S)

    def messages(self):
        found = list(self.told)
        self.told.clear()
        return found


@pytest.fixture
def posted():
    return Posted()


@pytest.fixture
def adviser(posted):
    made = RecordJudge(posted.post, [].append, schedules=True, every_s=0.001)
    made.begin()
    yield made
    made.close()


def order(rank, generation=3):
    return ("h1", "w0", {"do": "late", "generation": generation, "rank": rank})


class Saved:
    """What was saved for health, and how often."""

    def __init__(self):
        self.documents, self._change = [], threading.Condition()

    def __call__(self, document):
        with self._change:
            self.documents.append(document)
            self._change.notify_all()

    def next(self):
        """The document of a judgement that begins from now on."""
        with self._change:
            until = len(self.documents) + 2
            assert self._change.wait_for(lambda: len(self.documents) >= until, WITHIN_S)
            return self.documents[-1]


@pytest.fixture
def saved(posted):
    """What is saved of a job whose operator decides about schedules."""
    found = Saved()
    judge = RecordJudge(posted.post, found, schedules=False, every_s=0.001)
    judge.begin()
    yield found
    judge.close()


def test_the_late_rank_is_saved_with_the_wait_and_since_when(posted, saved):
    document = saved.next()
    (rank,) = document["ranks"]
    assert (rank["rank"], rank["accelerator"], rank["group"], rank["worked_around"]) == (LATE, f"gpu{LATE}", "", False)
    assert rank["gap_s"] == pytest.approx(GAP_S, rel=0.2)
    assert rank["since"] == document["at"] == 1059.0
    posted.record(GAP_S, after=100)
    document = saved.next()
    assert (document["at"], document["ranks"][0]["since"]) == (1159.0, 1059.0)
    posted.state.ordered_schedule = (3, LATE)
    assert saved.next()["ranks"][0]["worked_around"]
    posted.record(0.0, after=200)
    assert saved.next()["ranks"] == []
    posted.record(GAP_S, after=300)
    assert saved.next()["ranks"][0]["since"] == 1359.0
    assert posted.messages() == []


def test_nothing_is_saved_of_a_group_that_has_done_too_few_steps(posted):
    found = Saved()
    posted.state.group.generation = 4
    judge = RecordJudge(posted.post, found, schedules=False, every_s=0.001)
    judge.begin()
    posted.some_turns()
    judge.close()
    assert found.documents == []


def test_what_changes_of_light_cost_is_saved_for_metrics_even_if_nobody_can_be_late(posted):
    record = PhaseRecord()
    record.note(1, {"changes": 2, "wait_s": 0.5, "hidden_s": 0.25, "worst_s": 0.5, "boundaries": []})
    posted.state.light = SimpleNamespace(changes=3, failed_changes=1, record=record)
    posted.record(GAP_S, generation=2)
    found = Saved()
    judge = RecordJudge(posted.post, [].append, schedules=False, every_s=0.001, save_light=found)
    judge.begin()
    document = found.next()
    judge.close()
    totals = {"changes": 3, "failed_changes": 1, "wait_s": 0.5, "hidden_s": 0.25, "worst_s": 0.5}
    assert document == {"at": NOW, **totals}
    assert set(LIGHT_TOTALS) == set(totals)


def test_a_disk_that_is_full_does_not_end_the_judge(posted):
    def full(_document):
        raise OSError(28, "No space left on device")

    judge = RecordJudge(posted.post, full, schedules=True, every_s=0.001)
    judge.begin()
    posted.some_turns()
    judge.close()
    assert posted.messages() == [order(LATE)]


@pytest.mark.usefixtures("adviser")
def test_the_ranks_are_told_once_of_a_late_one_and_when_it_is_no_longer_late(posted):
    posted.some_turns()
    assert posted.messages() == [order(LATE)]
    posted.record(GAP_S / 8)
    posted.some_turns()
    assert posted.messages() == [order(None)]


@pytest.mark.usefixtures("adviser")
def test_a_new_group_is_judged_by_its_own_steps(posted):
    posted.some_turns()
    posted.messages()
    posted.state.group.generation = 4
    posted.some_turns()
    assert posted.messages() == []
    posted.record(GAP_S, generation=4)
    posted.some_turns()
    assert posted.messages() == [order(LATE, generation=4)]


@pytest.mark.usefixtures("adviser")
def test_nothing_is_told_where_a_schedule_would_be_a_loss(posted):
    posted.record(COLLECTIVE_S / 20)
    posted.some_turns()
    posted.messages()
    posted.state.ordered_schedule = (0, None)  # as if none was ordered in this group
    posted.some_turns()
    assert posted.messages() == []


@pytest.mark.parametrize(
    ("rank", "phase", "setting", "why"),
    [
        (8, JobStage.RUNNING, StragglerSchedule.ASK, "job train has 8 ranks: no schedule for rank 8"),
        (-1, JobStage.RUNNING, StragglerSchedule.ASK, "no schedule for rank -1"),
        ("x", JobStage.RUNNING, StragglerSchedule.ASK, "no schedule for rank x"),
        (2, JobStage.RECOVERING, StragglerSchedule.ASK, "job train is recovering"),
        (2, JobStage.RUNNING, StragglerSchedule.OFF, "straggler_schedule is off"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_and_tells_the_ranks_nothing(rank, phase, setting, why):
    posted, answers = Posted(setting), []
    posted.state.phase = phase
    late_rank.asked(posted.state, {"rank": rank}, answers.append)
    (answer,) = answers
    assert why in answer["error"]
    assert posted.messages() == []
