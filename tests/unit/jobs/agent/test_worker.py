"""What an agent concludes from what a worker says, and from its silence."""

import json

import pytest

from lumctl.jobs.agent.worker import Worker, worker_of
from lumctl.jobs.wire import BrokenLineError

LATE_S, IN_TIME_S = 1.0, 0.001


@pytest.fixture
def worker():
    worker = Worker("a#1", "a", heartbeat_s=2.0)
    worker.said({"say": "ready"}, 10.0)
    return worker


def test_silence_is_told_once_and_so_is_its_end(worker):
    assert not worker.falls_silent(11.9, late_s=IN_TIME_S)
    assert worker.falls_silent(12.0, late_s=IN_TIME_S)
    assert not worker.falls_silent(20.0, late_s=IN_TIME_S)
    assert worker.said({"say": "beat"}, 21.0)
    assert not worker.said({"say": "beat"}, 21.5)
    assert worker.silent_from == 23.5


def test_who_has_not_been_ready_may_be_silent():
    worker = Worker("a#1", "a")
    worker.said({"say": "hello"}, 0.0)
    assert not worker.falls_silent(1000.0, late_s=IN_TIME_S)
    worker.said({"say": "joined", "rank": 0}, 1000.0)
    assert worker.falls_silent(1002.0, late_s=IN_TIME_S)


def test_who_has_ended_may_be_silent(worker):
    worker.alive = False
    assert not worker.falls_silent(1000.0, late_s=IN_TIME_S)


def test_after_a_standstill_of_the_agent_time_counts_anew(worker):
    assert not worker.falls_silent(13.0, late_s=LATE_S)
    assert worker.silent_from == 15.0
    assert worker.falls_silent(15.0, late_s=IN_TIME_S)


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
    again = worker_of(json.loads(json.dumps(worker.kept())))
    assert (again.worker, again.accelerator, again.heartbeat_s, again.pid, again.started) == ("a#1", "a", 2.0, 7, 8)
    assert again.last == {"ready": {"say": "ready"}}


@pytest.mark.parametrize("spoilt", [{"pid": "7"}, {"worker": None}, {"last": []}, {"more": 1}])
def test_what_no_agent_wrote_is_no_worker(worker, spoilt):
    with pytest.raises(TypeError):
        worker_of({**worker.kept(), **spoilt})
