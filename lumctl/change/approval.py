"""Approval of plans by a person, where a policy asks for it."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import zip_longest

from lumctl.change.advice import plan_again
from lumctl.change.foreign_circuits import is_rollback, placed_by
from lumctl.change.plan import Do, Plan, only_adopts
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.inventory.policies import Policy
from lumctl.inventory.wiring import jobs_in
from lumctl.store import APPROVED, ASKED, REJECTED, Approval
from lumctl.store.approvals import person

AUTOPILOT = "autopilot: "
"""Prefix of the name under which the autopilot acts: by a policy, not as a person."""


def require_approved(context: Context, plan: Plan, who: str) -> None:
    """Refuse a plan that needs an approval and has no valid one for ``who``.

    Raises:
        RefusedError: it was not approved, was rejected, the approval expired, or its approver may not apply it.
    """
    asked = context.store(plan.rack).approvals.get(plan.digest)
    policy = asking_policy(context, plan) if asked is None and not who.startswith(AUTOPILOT) else None
    if asked is None and policy is None:
        return
    hint = f"lumctl swap approve {plan.id} --target {plan.target}"
    if asked is not None and asked.state == ASKED and context.now() >= asked.expires_at:
        raise RefusedError(f"the time to approve {plan.id} is over", hint=plan_again(context, plan))
    if asked is None or asked.state == ASKED:
        name = asked.policy if asked is not None else policy.name if policy is not None else ""
        raise RefusedError(f"{plan.id} needs an approval, by policy {name}", hint=hint)
    if asked.state == REJECTED:
        said = f": {asked.comment}" if asked.comment else ""
        raise RefusedError(f"{plan.id} was rejected by {asked.by}{said}", hint=plan_again(context, plan))
    if asked.state != APPROVED:
        raise RefusedError(f"{plan.id} was applied already, or is stale", hint=plan_again(context, plan))
    if context.now() >= asked.expires_at:
        raise RefusedError(f"the approval of {plan.id} by {asked.by} has expired", hint=plan_again(context, plan))
    if asked.by_another and person(asked.by) == person(who):
        raise RefusedError(
            f"{asked.by} approved {plan.id} and cannot apply it as well: policy {asked.policy} asks for two people",
            hint=f"another user applies it: lumctl swap apply {plan.id} --target {plan.target}",
        )


def asking_policy(context: Context, plan: Plan) -> Policy | None:
    """The first policy that asks for an approval of what this plan, made by a person, replaces."""
    replaced = _replaced(context, plan)
    # Undoing a run, and recording where the jobs already run, need no approval.
    if not replaced or is_rollback(context, plan) or only_adopts(plan):
        return None
    jobs = [job for job, _ in replaced]
    accelerators = context.inventory.accelerators
    names = [name for _, a in replaced for name in (a, accelerators[a].host if a in accelerators else a)]
    for policy in context.inventory.policies:
        meant = policy.matching
        if (
            policy.approval.by_hand
            and _among(meant.racks, [plan.rack])
            and _among(meant.jobs, jobs)
            and _among(meant.components, names)
        ):
            return policy
    return None


def ask(context: Context, plan: Plan, policy: Policy, *, made_by: str) -> Approval:
    """Ask for an approval of a plan that the store keeps.

    Raises:
        StoreError: the store cannot be written.
    """
    now, said = context.now(), policy.approval
    asked = Approval(plan.rack, plan.digest, policy.name, made_by, now, now + said.expires_s, said.by_another)
    context.store(plan.rack).approvals.ask(asked)
    return asked


def _replaced(context: Context, plan: Plan) -> list[tuple[str, str]]:
    """Pairs of a job and an accelerator that it loses: as the plan claims, and as its steps really do."""
    found = [(replacement.job, replacement.failed) for replacement in plan.replacements]
    placed = context.assignment(sound=False)
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            for job, after in jobs_in(placed_by(step.data["assignment"])).items():
                left = zip_longest(placed.get(job, ()), after)
                found += [(job, accelerator) for accelerator, other in left if accelerator not in {None, other}]
    return found


def _among(patterns: Sequence[str], names: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
