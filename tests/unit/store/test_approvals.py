"""Approvals: asked once, answered once, by the right person, in time; all of it in the journal."""

import pytest

from lumctl.errors import RefusedError, UsageError
from lumctl.store import APPROVED, ASKED, REJECTED, SPENT, Approval

PLAN = "plan-00000001"


@pytest.fixture
def store(opened):
    return opened("r1")


def ask(store, *, by_another: bool = False, made_by: str = "ann@console") -> None:
    store.ask_approval(Approval("r1", PLAN, "p", made_by, 100.0, 200.0, by_another))


def test_nobody_asked(store):
    assert store.approval(PLAN) is None
    with pytest.raises(UsageError, match="nobody asked"):
        store.answer_approval(PLAN, APPROVED, by="bob@console", comment="", at=110.0)


def test_a_yes_is_kept_with_who_gave_it_and_journalled(store):
    ask(store)
    assert store.approval(PLAN).state == ASKED
    store.answer_approval(PLAN, APPROVED, by="bob@console from 10.0.0.7", comment="fine", at=110.0)
    kept = store.approval(PLAN)
    assert (kept.state, kept.by, kept.comment, kept.answered_at) == (APPROVED, "bob@console from 10.0.0.7", "fine", 110)
    store.spend_approval(PLAN, why="done", by="autopilot", at=120.0)
    told = [(r.data["state"], r.data["who"]) for r in store.remarks("approval")]
    assert told == [(ASKED, "ann@console"), (APPROVED, "bob@console from 10.0.0.7"), (SPENT, "autopilot")]
    assert store.first_break() is None


@pytest.mark.parametrize("state", [APPROVED, REJECTED])
def test_it_is_answered_once(store, state):
    ask(store)
    store.answer_approval(PLAN, state, by="bob@console", comment="", at=110.0)
    with pytest.raises(RefusedError, match=f"{state} already by bob"):
        store.answer_approval(PLAN, APPROVED, by="eve@console", comment="", at=111.0)


def test_it_is_answered_in_time(store):
    ask(store)
    with pytest.raises(RefusedError, match="is over"):
        store.answer_approval(PLAN, APPROVED, by="bob@console", comment="", at=200.0)


def test_another_machine_makes_nobody_another_person(store):
    ask(store, by_another=True)
    with pytest.raises(RefusedError, match="another person"):
        store.answer_approval(PLAN, APPROVED, by="ann@laptop from 10.0.0.9", comment="", at=110.0)
    assert store.answer_approval(PLAN, REJECTED, by="ann@laptop", comment="", at=111.0).state == REJECTED


def test_each_rack_has_its_own(opened, store):
    ask(store)
    assert opened("r2").approvals() == ()
    assert [asked.plan for asked in store.approvals()] == [PLAN]
