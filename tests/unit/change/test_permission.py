"""What a step sends needs the run's lease at that very instant."""

import pytest

from lumctl.change.guard_scope import GuardScope
from lumctl.change.run import RunInProgress
from lumctl.devices.errors import OutcomeUnknownError, StaleFenceError
from lumctl.devices.permission import require_permission
from lumctl.errors import HalfDoneError
from lumctl.store import StoreError
from lumctl.store.lease import LeaseHeldError


@pytest.fixture
def run(rack):
    lease = rack.store.leases.acquire("prototype", "me", term_s=30.0, now=rack.time)
    found = RunInProgress.begun(rack.context, rack.plan(), rack.store, lease, "me", GuardScope())
    found.lease = lease
    rack.events.clear()
    return found


def taken_over(rack):
    rack.store.leases.acquire("prototype", "you", term_s=30.0, now=rack.time + 60)


def test_a_lease_that_lasts_is_not_asked_for_again(rack, run):
    with run.journal.sending():
        require_permission()
    assert rack.seen("renew") == []


def test_one_that_ended_while_this_process_was_frozen_is_renewed_before_anything_is_sent(rack, run):
    run.lease.deadline.end()
    with run.journal.sending():
        assert not run.lease.deadline.has_passed
        require_permission()
    rack.time += 29
    with pytest.raises(LeaseHeldError, match="being changed by me"):
        rack.store.leases.acquire("prototype", "you", term_s=30.0, now=rack.time)


def test_where_somebody_else_has_it_now_nothing_is_sent(rack, run):
    taken_over(rack)
    run.lease.deadline.end()
    with (
        pytest.raises(StaleFenceError, match="was lost to a newer holder, you; nothing was sent"),
        run.journal.sending(),
    ):
        raise AssertionError("the step must not begin")


def test_where_it_was_lost_between_two_sends_of_a_step_its_outcome_is_unknown(rack, run):
    with run.journal.sending():
        require_permission()
        taken_over(rack)
        run.lease.deadline.end()
        with pytest.raises(OutcomeUnknownError, match="was lost to a newer holder, you; no more was sent"):
            require_permission()


def test_where_the_store_cannot_be_asked_nothing_is_sent(rack, run, monkeypatch):
    def gone(*_, **__):
        raise StoreError("the store is gone")

    monkeypatch.setattr(rack.store.leases, "renew", gone)
    run.lease.deadline.end()
    with pytest.raises(StaleFenceError, match="the store is gone; nothing was sent"), run.journal.sending():
        raise AssertionError("the step must not begin")


def test_a_guard_that_has_hung_up_may_be_taking_the_run_back(rack, run):
    rack.guard.has_hung_up = True
    run.journal._scope = GuardScope(rack.guard, 60.0, frozenset({"mesh"}))
    with run.journal.sending():
        require_permission()  # it has not taken the lease yet
    taken_over(rack)
    with pytest.raises(StaleFenceError), run.journal.sending():
        raise AssertionError("the step must not begin")


def test_a_frozen_engine_undoes_nothing_either(rack):
    plan = rack.plan()

    def frozen():
        taken_over(rack)
        rack.guard.lease.deadline.end()

    rack.at("commit", do=frozen)
    with pytest.raises(HalfDoneError, match="was lost to a newer holder"):
        rack.apply(plan)
    assert rack.acts()[-1] == ("commit", "mesh", None)
