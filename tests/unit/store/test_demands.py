"""The queue of demands: each is asked once, ends once, and with the run that serves it; all of it is in the journal."""

import pytest

from lumctl.errors import RefusedError, UsageError
from lumctl.store import CANCELLED, NEEDLESS, SERVED, WAITING, Record

FOR, AWAY = ("h1-gpu0", "h1-gpu1"), ("h9-gpu0", "h9-gpu1")
ABOUT = {
    "kind": "swap",
    "title": "t",
    "target": "sim",
    "plan_digest": "d",
    "inventory_digest": "i",
    "who": "ops@console",
}


@pytest.fixture
def store(opened):
    return opened("r1")


def ask(store, accelerators=FOR, *, job="train", at=100.0):
    (asked,) = store.demands.ask("r1", {job: tuple(accelerators)}, why="no spare is free", who="ann@console", at=at)
    return asked


def remarks(store):
    return [(entry.data["demand"], entry.data["state"], entry.data["run"]) for entry in store.journal.remarks("demand")]


def test_a_demand_waits_until_it_is_cancelled(store):
    asked = ask(store)
    assert (asked.id, asked.state, asked.accelerators) == ("demand-0001", WAITING, FOR)
    assert store.demands.waiting() == (asked,)
    ended = store.demands.end(asked.id, CANCELLED, why="", who="bob@console", at=110.0)
    assert (ended.state, ended.ended_at, ended.why) == (CANCELLED, 110.0, "no spare is free")
    assert store.demands.waiting() == ()
    assert store.demands.all() == (ended,)
    assert remarks(store) == [("demand-0001", WAITING, ""), ("demand-0001", CANCELLED, "")]
    assert store.first_break() is None


def test_asking_again_is_the_same_demand_and_keeps_its_place(store):
    first, other = ask(store), ask(store, ["h2-gpu0"], at=101.0)
    assert ask(store, reversed(FOR), at=102.0) == first
    assert store.demands.waiting() == (first, other)


def test_one_that_waits_for_more_serves_as_well_and_one_for_less_becomes_part(store):
    first = ask(store, FOR[:1])
    whole = ask(store, at=101.0)
    assert (whole.id, whole.asked_at, whole.accelerators) == ("demand-0002", 100.0, FOR)
    assert [(each.state, each.why) for each in store.demands.all()] == [
        (NEEDLESS, "it is part of demand-0002"),
        (WAITING, "no spare is free"),
    ]
    assert ask(store, FOR[1:], at=102.0) == whole
    assert first.asked_at == whole.asked_at


def test_all_of_several_jobs_are_queued_or_none(store):
    ask(store, ["a1", "a2"], job="a")
    wanted = {"b": ("b1",), "a": ("a2", "a3")}
    with pytest.raises(RefusedError, match="demand-0001 already waits for a spare for a2"):
        store.demands.ask("r1", wanted, why="", who="ann@console", at=101.0)
    assert [each.job for each in store.demands.all()] == ["a"]


def test_no_accelerator_waits_twice(store):
    ask(store)
    with pytest.raises(RefusedError, match="demand-0001 already waits for a spare for h1-gpu1"):
        ask(store, ["h1-gpu1", "h2-gpu0"])


def test_what_does_not_wait_cannot_end(store):
    with pytest.raises(UsageError, match="there is no demand 'demand-0001'"):
        store.demands.end("demand-0001", CANCELLED, why="", who="", at=1.0)
    ask(store)
    store.demands.end("demand-0001", NEEDLESS, why="it is ok again", who="daemon", at=110.0)
    with pytest.raises(RefusedError, match="does not wait any more: it is needless"):
        store.demands.end("demand-0001", CANCELLED, why="", who="", at=120.0)


def test_each_rack_has_its_own(opened, store):
    ask(store)
    assert opened("r2").demands.waiting() == ()
    assert opened("").demands.waiting() == store.demands.waiting()


class Begun:
    """A run that has the lease, and records where it placed the job."""

    def __init__(self, store):
        self.store = store
        self.lease = store.leases.acquire("r1", "ops@console", term_s=60.0, now=140.0)
        self.id = store.runs.begin(self.lease, ABOUT, {"digest": "d"}, now=140.0)

    def advance(self, ranks):
        outcome = Record(150.0, "outcome", "8", {"done": True})
        self.store.runs.advance(self.lease, self.id, [outcome], placed={"train": tuple(ranks)})

    def end(self):
        self.store.runs.end(self.lease, self.id, Record(160.0, "end", "", {"state": "done"}), "done")
        self.store.leases.release(self.lease)


def test_it_ends_with_the_run_that_places_its_job_elsewhere_and_waits_again_if_that_is_taken_back(store):
    ask(store)
    run = Begun(store)
    run.advance(("h1-gpu0", "h9-gpu1"))
    assert [each.state for each in store.demands.all()] == [WAITING]  # the other accelerator still runs a rank
    run.advance(AWAY)
    (served,) = store.demands.all()
    assert (served.state, served.run) == (SERVED, run.id)
    run.advance(FOR)
    (again,) = store.demands.waiting()
    assert (again.asked_at, again.run, again.ended_at) == (100.0, "", None)
    assert [state for _, state, _ in remarks(store)] == [WAITING, SERVED, WAITING]
    assert store.first_break() is None


def test_another_run_that_returns_the_job_reopens_nothing(store):
    ask(store)
    run = Begun(store)
    run.advance(AWAY)
    run.end()
    Begun(store).advance(FOR)
    assert store.demands.waiting() == ()


def test_a_cancelled_demand_stays_cancelled(store):
    ask(store)
    store.demands.end("demand-0001", CANCELLED, why="", who="", at=110.0)
    Begun(store).advance(AWAY)
    assert [each.state for each in store.demands.all()] == [CANCELLED]
