"""Approvals: asked once, answered once, by the right person, in time; all of it in the journal."""

import pytest

from lumctl.errors import RefusedError, UsageError
from lumctl.store import APPROVED, ASKED, REJECTED, SPENT, Approval

PLAN, OTHER = f"{1:08x}{2:056x}", f"{1:08x}{3:056x}"
"""Two plans whose digests begin alike."""


@pytest.fixture
def store(opened):
    return opened("r1")


def ask(store, *, by_another: bool = False, made_by: str = "ann@console") -> None:
    store.approvals.ask(Approval("r1", PLAN, "p", made_by, 100.0, 200.0, by_another))


def test_nobody_asked(store):
    assert store.approvals.get(PLAN) is None
    with pytest.raises(UsageError, match="has no request for approval"):
        store.approvals.answer(PLAN, APPROVED, by="bob@console", comment="", at=110.0)


def test_a_yes_is_kept_with_who_gave_it_and_journalled(store):
    ask(store)
    assert store.approvals.get(PLAN).state == ASKED
    store.approvals.answer(PLAN, APPROVED, by="bob@console from 10.0.0.7", comment="fine", at=110.0)
    kept = store.approvals.get(PLAN)
    assert (kept.state, kept.by, kept.comment, kept.answered_at) == (APPROVED, "bob@console from 10.0.0.7", "fine", 110)
    store.approvals.spend(PLAN, why="done", by="autopilot", at=120.0)
    told = [(r.data["state"], r.data["who"]) for r in store.journal.remarks("approval")]
    assert told == [(ASKED, "ann@console"), (APPROVED, "bob@console from 10.0.0.7"), (SPENT, "autopilot")]
    assert store.first_break() is None


@pytest.mark.parametrize("state", [APPROVED, REJECTED])
def test_it_is_answered_once(store, state):
    ask(store)
    store.approvals.answer(PLAN, state, by="bob@console", comment="", at=110.0)
    with pytest.raises(RefusedError, match=f"{state} already by bob"):
        store.approvals.answer(PLAN, APPROVED, by="eve@console", comment="", at=111.0)


def test_it_is_answered_in_time(store):
    ask(store)
    with pytest.raises(RefusedError, match="has passed"):
        store.approvals.answer(PLAN, APPROVED, by="bob@console", comment="", at=200.0)


def test_another_machine_makes_nobody_another_person(store):
    ask(store, by_another=True)
    with pytest.raises(RefusedError, match="another user"):
        store.approvals.answer(PLAN, APPROVED, by="ann@laptop from 10.0.0.9", comment="", at=110.0)
    assert store.approvals.answer(PLAN, REJECTED, by="ann@laptop", comment="", at=111.0).state == REJECTED


def test_each_rack_has_its_own(opened, store):
    ask(store)
    assert opened("r2").approvals.all() == ()
    assert [asked.plan for asked in store.approvals.all()] == ["plan-00000001"]


def test_another_plan_with_the_same_short_id_is_not_approved(store):
    ask(store)
    store.approvals.answer(PLAN, APPROVED, by="bob@console", comment="", at=110.0)
    assert OTHER[:8] == PLAN[:8]
    assert store.approvals.get(OTHER) is None
    with pytest.raises(UsageError, match="has no request for approval"):
        store.approvals.answer(OTHER, APPROVED, by="bob@console", comment="", at=111.0)
    store.approvals.spend(OTHER, why="done", by="autopilot", at=112.0)
    assert store.approvals.get(PLAN).state == APPROVED
    assert [r.data["digest"] for r in store.journal.remarks("approval")] == [PLAN, PLAN]


def test_nor_kept_in_its_place(store):
    plan = {"id": "plan-00000001", "created_at": 1.0, "target": "sim", "rack": "r1"}
    store.runs.save_plan({**plan, "digest": PLAN})
    store.runs.save_plan({**plan, "digest": PLAN})
    with pytest.raises(RefusedError, match="another plan is stored under the id plan-00000001"):
        store.runs.save_plan({**plan, "digest": OTHER})
    assert store.runs.plan("plan-00000001")["digest"] == PLAN
