"""Approvals: asked once, answered once, by the right person, in time; all of it in the journal."""

import pytest
from sqlalchemy import update

from lumctl.errors import RefusedError, UsageError
from lumctl.store import APPROVED, ASKED, REJECTED, SPENT, Approval
from lumctl.store.database import writing
from lumctl.store.schema import approvals

PLAN, OTHER = f"{1:08x}{2:056x}", f"{1:08x}{3:056x}"
"""Two plans whose digests begin alike."""


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
    with pytest.raises(RefusedError, match="another user"):
        store.answer_approval(PLAN, APPROVED, by="ann@laptop from 10.0.0.9", comment="", at=110.0)
    assert store.answer_approval(PLAN, REJECTED, by="ann@laptop", comment="", at=111.0).state == REJECTED


def test_each_rack_has_its_own(opened, store):
    ask(store)
    assert opened("r2").approvals() == ()
    assert [asked.plan for asked in store.approvals()] == ["plan-00000001"]


def test_another_plan_with_the_same_short_id_is_not_approved(store):
    ask(store)
    store.answer_approval(PLAN, APPROVED, by="bob@console", comment="", at=110.0)
    assert OTHER[:8] == PLAN[:8]
    assert store.approval(OTHER) is None
    with pytest.raises(UsageError, match="nobody asked"):
        store.answer_approval(OTHER, APPROVED, by="bob@console", comment="", at=111.0)
    store.spend_approval(OTHER, why="done", by="autopilot", at=112.0)
    assert store.approval(PLAN).state == APPROVED
    assert [r.data["digest"] for r in store.remarks("approval")] == [PLAN, PLAN]


def test_nor_kept_in_its_place(store):
    plan = {"id": "plan-00000001", "created_at": 1.0, "target": "sim", "rack": "r1"}
    store.save_plan({**plan, "digest": PLAN})
    store.save_plan({**plan, "digest": PLAN})
    with pytest.raises(RefusedError, match="another plan is kept under the name plan-00000001"):
        store.save_plan({**plan, "digest": OTHER})
    assert store.plan("plan-00000001")["digest"] == PLAN


def test_an_answer_from_before_there_were_digests_holds_for_the_plan_that_is_kept(store):
    ask(store)
    with writing(store._engine) as connection:
        connection.execute(update(approvals).values(plan="plan-00000001"))
    assert (store.approval(PLAN), store.approval(OTHER)) == (None, None)
    assert [asked.plan for asked in store.approvals()] == ["plan-00000001"]
    store.save_plan({"id": "plan-00000001", "created_at": 1.0, "target": "sim", "rack": "r1", "digest": PLAN})
    store.answer_approval(PLAN, APPROVED, by="bob@console", comment="", at=110.0)
    assert (store.approval(PLAN).state, store.approval(PLAN).digest) == (APPROVED, PLAN)
    assert store.approval(OTHER) is None
    ask(store)
    assert [(asked.digest, asked.state) for asked in store.approvals()] == [(PLAN, ASKED)]
