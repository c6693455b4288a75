"""What an agent concludes from what a worker says, and from its silence."""

import json

import pytest

from lumctl.training.agent.worker import Worker, worker_of
from lumctl.training.protocol import BrokenLineError

LATE_S, IN_TIME_S = 1.0, 0.001


@pytest.fixture
def worker():
    worker = Worker("a#1", "a", heartbeat_s=2.0)
    worker.said({"say": "ready"}, 10.0)
    return worker


def falls_silent(worker, until, *, runs, late_s=IN_TIME_S):
    """Look at it whenever it is due, to this moment; when it falls silent, ``None`` if it does not."""
    while (now := worker.look_at) <= until:
        if worker.falls_silent(now, runs=runs, late_s=late_s):
            return now
    return None


def test_one_that_is_stopped_is_silent_after_a_heartbeat_and_that_is_told_once(worker):
    assert falls_silent(worker, 100.0, runs=False) == 12.0
    assert falls_silent(worker, 100.0, runs=False) is None
    assert worker.said({"say": "beat"}, 21.0)
    assert not worker.said({"say": "beat"}, 21.5)
    assert falls_silent(worker, 100.0, runs=False) == 23.5


def test_one_that_runs_and_says_nothing_lives_for_the_long_limit(worker):
    assert falls_silent(worker, 609.0, runs=True) is None
    assert worker.looked_at == pytest.approx(609.0, abs=0.5)
    assert falls_silent(worker, 700.0, runs=True) == 610.0


def test_what_stops_after_it_has_run_mutely_is_given_its_whole_heartbeat(worker):
    assert falls_silent(worker, 15.0, runs=True) is None
    assert falls_silent(worker, 100.0, runs=False) == 17.0


def test_who_has_not_been_ready_may_be_silent():
    worker = Worker("a#1", "a")
    worker.said({"say": "hello"}, 0.0)
    assert falls_silent(worker, 1000.0, runs=False) is None
    worker.said({"say": "joined", "rank": 0}, 1000.0)
    assert falls_silent(worker, 2000.0, runs=False) == 1002.0


@pytest.mark.parametrize("over", ["ended", "exiting"])
def test_who_has_ended_or_is_about_to_may_be_silent(worker, over):
    if over == "ended":
        worker.alive = False
    else:
        worker.said({"say": "exiting"}, 10.0)
    assert falls_silent(worker, 1000.0, runs=False) is None


def test_after_a_standstill_of_the_agent_time_counts_again(worker):
    assert not worker.falls_silent(13.0, runs=False, late_s=LATE_S)
    assert falls_silent(worker, 100.0, runs=False) == 15.0


def test_the_newest_of_each_kind_is_kept_and_the_newest_kind_stands_last(worker):
    for kind, done in (("held", 1), ("joined", 1), ("stepped", 2), ("held", 3), ("unheard-of", 4)):
        worker.said({"say": kind, "done": done}, 11.0)
    assert list(worker.last) == ["ready", "joined", "stepped", "held"]
    assert worker.last["held"]["done"] == 3


@pytest.mark.parametrize("message", [{}, {"say": 1}, {"say": None}])
def test_a_message_must_say_something(worker, message):
    with pytest.raises(BrokenLineError):
        worker.said(message, 0.0)


def test_a_worker_comes_back_from_the_book_without_what_is_fleeting(worker):
    worker.said({"say": "beat"}, 11.0)
    worker.pid, worker.started = 7, 8
    again = worker_of(json.loads(json.dumps(worker.record())))
    assert (again.worker, again.accelerator, again.heartbeat_s, again.pid, again.started) == ("a#1", "a", 2.0, 7, 8)
    assert again.last == {"ready": {"say": "ready"}}


@pytest.mark.parametrize("spoilt", [{"pid": "7"}, {"worker": None}, {"last": []}, {"more": 1}])
def test_what_no_agent_wrote_is_no_worker(worker, spoilt):
    with pytest.raises(TypeError):
        worker_of({**worker.record(), **spoilt})
