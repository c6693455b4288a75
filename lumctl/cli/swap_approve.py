"""``lumctl swap approve``: an operator approves or rejects a plan that needs approval under a policy."""

from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import kept_text, verb
from lumctl.time_text import iso_or_none

if TYPE_CHECKING:
    from lumctl.change import Plan
    from lumctl.context import Context
    from lumctl.store import Approval


def register(app: typer.Typer) -> None:
    """Add ``approve`` to the commands of ``swap``."""
    verb(app, "approve")(approve)


def approve(
    cx: Invocation,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="The id of a plan, or its file.")],
    reject: Annotated[bool, typer.Option("--reject", help="Say no.")] = False,
    comment: Annotated[
        str, typer.Option("--comment", metavar="TEXT", callback=kept_text, help="Reason; everyone can see it.")
    ] = "",
) -> None:
    """Approve a plan, or reject it, under your own name.

    The autopilot applies its plans of a policy with `how: approve` after the approval, if a new reading still shows the
    fault. Plans made by hand need an approval if a policy has `approval: {by_hand: true}`; then apply them with lumctl
    swap apply. If a policy has `by_another: true`, the user who made or applies a plan cannot approve it. An approval
    allows one run, expires after its time, and does not make a stale plan applicable.
    """
    from lumctl.cli.changes import find_plan
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:
        found = find_plan(context, plan)
        answered = answer(context, found, approve=not reject, comment=comment)
    document = {
        "plan": found.id,
        "title": found.title,
        "target": found.target,
        "rack": found.rack,
        "policy": answered.policy,
        "state": answered.state,
        "by": answered.by,
        "comment": answered.comment,
        "made_by": answered.made_by,
        "expires_at": iso_or_none(answered.expires_at),
    }
    if cx.out.structured:
        cx.out.document("approval", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([found.id])
    else:
        cx.out.text(f"{found.id} ({found.title}): {answered.state} by {answered.by}")
        if not reject and answered.made_by.startswith("autopilot:"):
            cx.out.narrate(
                f"the autopilot applies it if the fault persists: lumctl autopilot status --target {found.target}"
            )
        elif not reject:
            cx.out.narrate(f"apply it: lumctl swap apply {plan} --target {found.target}")


def answer(context: "Context", plan: "Plan", *, approve: bool, comment: str) -> "Approval":
    """Approve or reject a plan as the current user.

    Raises:
        RefusedError: no approval is pending, or it was answered, has expired, or may not be answered by this user.
    """
    from lumctl.change.origin import origin
    from lumctl.change.preconditions import require_not_applied
    from lumctl.store import APPROVED, REJECTED

    require_not_applied(context, plan)
    _require_asked(context, plan)
    state = APPROVED if approve else REJECTED
    store = context.store(plan.rack)
    return store.approvals.answer(plan.digest, state, by=origin(), comment=comment.strip(), at=context.now())


def wants_approval(context: "Context", plan: "Plan") -> str | None:
    """Request an approval for a plan made by hand if a policy requires it; return the policy's name, or ``None``."""
    from lumctl.change.approval import ask, asking_policy
    from lumctl.change.origin import origin

    policy = asking_policy(context, plan)
    if policy is None:
        return None
    ask(context, plan, policy, made_by=origin())
    return policy.name


def _require_asked(context: "Context", plan: "Plan") -> None:
    """Request the approval of a plan that has no request yet, such as a plan from a file; its author is unknown.

    Raises:
        RefusedError: no policy requires an approval of this plan.
    """
    from lumctl.change import to_document
    from lumctl.change.approval import ask, asking_policy
    from lumctl.errors import RefusedError

    store = context.store(plan.rack)
    if store.approvals.get(plan.digest) is not None:
        return
    policy = asking_policy(context, plan)
    if policy is None:
        raise RefusedError(
            f"no policy requires an approval of {plan.id}", hint=f"apply it: lumctl swap apply {plan.id}"
        )
    # A plan from a file: others can read what is to be approved only if the store has it.
    store.runs.save_plan(to_document(plan))
    ask(context, plan, policy, made_by="")
