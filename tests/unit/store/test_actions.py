"""Actions that touch no device: done and recorded in one transaction, and undone by what they found."""

import pytest

from lumctl.change.plan import Do, from_document, plan_digest
from lumctl.errors import RefusedError, UsageError
from lumctl.health.acknowledgements import Acknowledgement
from lumctl.store import store_at

ABOUT = {"rack": "r1", "component": "a"}
ACK = {**ABOUT, "act": "acknowledge", "rule": None, "comment": "known", "for_s": 60.0}
UNACK = {**ABOUT, "act": "unacknowledge", "rule": None}
WORK = {**ABOUT, "act": "open-window", "comment": "a fan", "starts_in_s": 10.0, "for_s": 100.0}
END = {**ABOUT, "act": "end-window"}


@pytest.fixture
def store(tmp_path):
    store = store_at(str(tmp_path), rack="r1")
    yield store
    store.close()


@pytest.fixture
def record(store):
    def record(*data, at=100.0, kind="ack"):
        steps = [{"title": each["act"], "data": each} for each in data]
        more = {"who": "me", "inventory_digest": "d", "target": "sim", "at": at, "end": at + 0.5}
        return store.actions.record(kind, "said", steps, **more)

    return record


def test_what_is_said_is_done_and_is_a_run_that_every_reader_of_runs_can_read(store, record):
    run = store.runs.get(record(ACK))
    assert store.health.acknowledgements(now=101.0) == (Acknowledgement("a", None, "me", "known", 100.0, 160.0),)
    assert (run.id, run.state, run.fence, run.ended_at) == ("ack-0001", "done", 0, 100.5)
    assert [step.do for step in from_document(run.plan).steps] == [Do.RECORD]
    assert [entry.kind for entry in store.journal.of_run(run.id)] == ["begin", "intent", "outcome", "end"]
    assert store.verify(plan_digest) == ()
    assert store.runs.unfinished(now=200.0) == ()


def test_a_lease_that_somebody_holds_is_no_hindrance_and_is_left_alone(store, record):
    held = store.leases.acquire("r1", "a swap", term_s=30.0, now=99.0)
    record(ACK)
    store.leases.renew(held, term_s=30.0, now=100.0)
    assert store.leases.newest("r1") == held.fence


def test_where_one_act_is_refused_nothing_is_done_and_nothing_recorded(store, record):
    for acts in ((ACK, END), (ACK, {**ABOUT, "act": "acknowlege"}), (ACK, {**UNACK, "component": "b"})):
        with pytest.raises((RefusedError, UsageError)):
            record(*acts)
    assert (store.runs.all(), store.health.acknowledgements(now=101.0)) == ((), ())
    with pytest.raises(UsageError, match="needs comment, for_s"):
        record({**ABOUT, "act": "acknowledge", "rule": None})


def test_a_window_begins_and_ends_by_lengths_of_time(store, record):
    record(WORK, kind="maintain")
    (window,) = store.health.windows(now=101.0)
    assert (window.by, window.starts, window.ends) == ("me", 110.0, 210.0)
    record(END, at=120.0, kind="maintain")
    assert store.health.windows(now=121.0) == ()


@pytest.mark.parametrize("before", [(), (ACK,), (ACK, WORK)])
@pytest.mark.parametrize("act", [{**ACK, "comment": "again"}, UNACK, WORK, END])
def test_an_act_is_taken_back_to_what_was_before_it(store, before, act):
    for each in before:
        store.actions.perform(each, who="me", now=50.0)
    stood = store.health.acknowledgements(now=60.0), store.health.windows(now=60.0)
    try:
        evidence = store.actions.perform(act, who="you", now=60.0)
    except RefusedError:
        assert not before or (act is END and WORK not in before)
        return
    assert (store.health.acknowledgements(now=60.0), store.health.windows(now=60.0)) != stood
    store.actions.undo(act, evidence)
    assert (store.health.acknowledgements(now=60.0), store.health.windows(now=60.0)) == stood


def test_a_change_of_the_policies_is_a_run_and_changes_nothing_else(store, record):
    run = record({"rack": "r1", "act": "policy", "before": "1", "after": "2"}, kind="policy")
    assert store.runs.get(run).kind == "policy"
    assert store.journal.of_run(run)[2].data["after"] == "2"
