"""What is approved is one plan, by its whole digest; and what needs no approval is shown to be what it says."""

from dataclasses import replace

import pytest

from lumctl.change.approval import ask, asking_policy, require_approved
from lumctl.change.plan import Do, Step, from_document
from lumctl.errors import RefusedError
from lumctl.inventory.policies import ApprovalTerms as Asks
from lumctl.inventory.policies import How, Policy, Selector
from lumctl.inventory.wiring import order_of
from lumctl.store import APPROVED, SPENT
from lumctl.swap import plan_fabric, plan_rollback

ANN = "ann@console"


@pytest.fixture
def rack(rack):
    """A policy asks for an approval of every swap that a person plans."""
    rack.policy = Policy("two-pairs-of-eyes", How.PLAN, Selector(("*",)), approval=Asks(by_hand=True))
    rack.inventory = rack.context.inventory = replace(rack.inventory, policies=(rack.policy,))
    return rack


def approved(rack, plan) -> None:
    ask(rack.context, plan, rack.policy, made_by=ANN)
    rack.store.approvals.answer(plan.digest, APPROVED, by="bob@console", comment="", at=rack.time + 1)


def swapped(rack):
    """A swap that was approved and done."""
    plan = rack.plan()
    approved(rack, plan)
    return rack.store.runs.get(rack.apply(plan).run)


def test_the_yes_to_one_plan_is_none_to_another_whose_digest_begins_alike(rack):
    plan = rack.plan()
    approved(rack, plan)
    require_approved(rack.context, plan, ANN)
    other = replace(plan, digest=plan.digest[:8] + "0" * 56)
    assert other.id == plan.id
    with pytest.raises(RefusedError, match=f"policy two-pairs-of-eyes requires an approval of {plan.id}"):
        require_approved(rack.context, other, ANN)


def test_an_approval_allows_one_run(rack):
    plan = rack.plan()
    approved(rack, plan)
    rack.apply(plan)
    assert rack.store.approvals.get(plan.digest).state == SPENT
    with pytest.raises(RefusedError, match=f"{plan.id} was already applied") as refused:
        rack.store.approvals.answer(plan.digest, APPROVED, by="bob@console", comment="", at=rack.time + 2)
    assert refused.value.hint == "see the runs: lumctl swap list"


def test_a_plan_whose_run_was_rolled_back_is_not_applied_again_without_an_approval(rack):
    run = swapped(rack)
    rack.apply(plan_rollback(rack.context, run))
    with pytest.raises(RefusedError, match="was already applied"):
        rack.apply(from_document(run.plan))


def test_a_refusal_before_the_run_leaves_the_approval_valid(rack):
    plan = rack.plan()
    approved(rack, plan)
    other = rack.store.leases.acquire("prototype", "somebody else", term_s=30.0, now=rack.context.now())
    with pytest.raises(RefusedError):
        rack.apply(plan)
    rack.store.leases.release(other)
    assert rack.store.approvals.get(plan.digest).state == APPROVED


def test_a_rollback_needs_nobodys_leave(rack):
    run = swapped(rack)
    rack.apply(plan_rollback(rack.context, run))
    assert rack.placed() == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
    rack.apply(plan_rollback(rack.context, rack.store.runs.all()[0]))
    assert rack.placed() == ("s0-gpu0", "s3-gpu0", "s2-gpu0")


def test_what_moves_no_job_needs_none(rack):
    assert asking_policy(rack.context, plan_fabric(rack.context, "prototype", forget=True)) is None


@pytest.mark.parametrize("back", [False, True], ids=["to-another-lane", "back"])
def test_nor_does_what_leads_a_link_to_another_lane_of_its_accelerator(rack, back, monkeypatch):
    order = {order_of("s0-gpu0"): ("s0-gpu0-b", "s0-gpu0-a")}
    placed = {**rack.context.assignment(), **(order if back else {})}
    monkeypatch.setattr(rack.context, "assignment", lambda **_: placed)
    after = dict.fromkeys(order, ()) if back else order
    step = Step("1", Do.ASSIGN, "lanes", {"assignment": after, "before": dict.fromkeys(order, ())})
    plan = replace(plan_fabric(rack.context, "prototype", forget=True), kind="swap", steps=(step,)).sealed()
    assert asking_policy(rack.context, plan) is None


@pytest.mark.parametrize("named", [True, False], ids=["a-swap", "a-swap-that-does-not-say-so"])
@pytest.mark.parametrize("run", ["fabric-0001", "swap-4711"])
def test_a_swap_that_calls_itself_a_rollback_is_still_a_swap(rack, named, run):
    """A plan is a file: ``undoes`` and an honest digest are written quickly."""
    forged = replace(rack.plan(), undoes=run)
    forged = (forged if named else replace(forged, replacements=())).sealed()
    with pytest.raises(RefusedError, match="requires an approval"):
        rack.apply(forged)
    assert rack.acts() == []


def test_nor_does_it_help_to_name_a_run_that_can_be_taken_back(rack):
    run = swapped(rack)
    back = plan_rollback(rack.context, run)
    elsewhere = ["s0-gpu0", "s3-gpu0", "s1-gpu0"]
    steps = [
        replace(step, data={**step.data, "assignment": {"finetune": elsewhere}}) if step.do is Do.ASSIGN else step
        for step in back.steps
    ]
    assert asking_policy(rack.context, back) is None
    assert asking_policy(rack.context, replace(back, steps=tuple(steps)).sealed()) is rack.policy
    more = [
        replace(step, data={**step.data, "changes": [*step.data["changes"], [0, "x", "="]]})
        if step.do is Do.PROGRAM
        else step
        for step in back.steps
    ]
    assert asking_policy(rack.context, replace(back, steps=tuple(more)).sealed()) is rack.policy
