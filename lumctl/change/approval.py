"""Approval of plans by an operator, if a policy requires it."""

from itertools import zip_longest

from lumctl.change.foreign_circuits import is_rollback, placed_by
from lumctl.change.plan import Do, Plan, only_adopts
from lumctl.change.refusal_advice import plan_again
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.inventory.policies import Policy
from lumctl.inventory.wiring import jobs_in
from lumctl.store import APPROVED, ASKED, REJECTED, Approval
from lumctl.store.approvals import person

AUTOPILOT = "autopilot: "
"""Prefix of the name under which the autopilot acts: for a policy, not as an operator."""


def require_approved(context: Context, plan: Plan, who: str) -> bool:
    """Refuse a plan that needs an approval and has no valid one for ``who``; return whether it has one.

    Raises:
        RefusedError: it was not approved, was rejected, the approval expired, or its approver may not apply it.
    """
    asked = context.store(plan.rack).approvals.get(plan.digest)
    policy = asking_policy(context, plan) if asked is None and not who.startswith(AUTOPILOT) else None
    if asked is None and policy is None:
        return False
    hint = f"lumctl swap approve {plan.id} --target {plan.target}"
    if asked is not None and asked.state == ASKED and context.now() >= asked.expires_at:
        raise RefusedError(f"the deadline to approve {plan.id} has passed", hint=plan_again(context, plan))
    if asked is None or asked.state == ASKED:
        name = asked.policy if asked is not None else policy.name if policy is not None else ""
        raise RefusedError(f"policy {name} requires an approval of {plan.id}", hint=hint)
    if asked.state == REJECTED:
        said = f": {asked.comment}" if asked.comment else ""
        raise RefusedError(f"{plan.id} was rejected by {asked.by}{said}", hint=plan_again(context, plan))
    if asked.state != APPROVED:
        raise RefusedError(f"{plan.id} was already applied, or is stale", hint=plan_again(context, plan))
    if context.now() >= asked.expires_at:
        raise RefusedError(f"the approval of {plan.id} by {asked.by} has expired", hint=plan_again(context, plan))
    if asked.by_another and person(asked.by) == person(who):
        raise RefusedError(
            f"{asked.by} approved {plan.id} and cannot also apply it: policy {asked.policy} requires two people",
            hint=f"ask another user to apply it: lumctl swap apply {plan.id} --target {plan.target}",
        )
    return True


def asking_policy(context: Context, plan: Plan) -> Policy | None:
    """The first policy that requires an approval for the accelerators that a plan replaces; ``None`` if there is none.

    Call it only for plans that an operator made or applies, not for those of the autopilot.
    """
    replaced = _replaced(context, plan)
    # Undoing a run, and recording where the jobs already run, need no approval.
    if not replaced or is_rollback(context, plan) or only_adopts(plan):
        return None
    jobs = [job for job, _ in replaced]
    accelerators = context.inventory.accelerators
    names = [name for _, a in replaced for name in (a, accelerators[a].host if a in accelerators else a)]
    for policy in context.inventory.policies:
        if policy.approval.by_hand and policy.matching.covers(plan.rack, jobs, names):
            return policy
    return None


def ask(context: Context, plan: Plan, policy: Policy, *, made_by: str) -> Approval:
    """Request the approval of a stored plan.

    Raises:
        StoreError: the store cannot be written.
    """
    now, said = context.now(), policy.approval
    asked = Approval(plan.rack, plan.digest, policy.name, made_by, now, now + said.expires_s, said.by_another)
    context.store(plan.rack).approvals.ask(asked)
    return asked


def _replaced(context: Context, plan: Plan) -> list[tuple[str, str]]:
    """Pairs of a job and an accelerator that it loses, from the plan's replacements and from its assign steps."""
    found = [(replacement.job, replacement.failed) for replacement in plan.replacements]
    placed = context.assignment(sound=False)
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            for job, after in jobs_in(placed_by(step.data["assignment"])).items():
                left = zip_longest(placed.get(job, ()), after)
                found += [(job, accelerator) for accelerator, other in left if accelerator not in {None, other}]
    return found
