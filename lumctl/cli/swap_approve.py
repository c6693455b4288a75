"""``lumctl swap approve``: an operator's yes or no to a plan that a policy does not apply without it."""

from typing import TYPE_CHECKING, Annotated

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import verb
from lumctl.cli.words import kept_text

if TYPE_CHECKING:
    from lumctl.change import Plan
    from lumctl.context import Context
    from lumctl.store import Approval


def register(app: typer.Typer) -> None:
    """Add ``approve`` to the commands of ``swap``."""
    verb(app, "approve")(approve)


def approve(
    cx: Invocation,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's id, or the file it was written to.")],
    reject: Annotated[bool, typer.Option("--reject", help="Say no.")] = False,
    comment: Annotated[
        str, typer.Option("--comment", metavar="TEXT", callback=kept_text, help="Why; shown to everybody.")
    ] = "",
) -> None:
    """Approve a plan, or reject it, under your own name.

    The autopilot applies its plans of a policy with `how: approve` after the approval, if a new reading still shows the
    fault. Plans made by hand need an approval if a policy has `approval: {by_hand: true}`; then apply them with lumctl
    swap apply. If a policy has `by_another: true`, the person who made or applies a plan cannot approve it. An approval
    expires after its time, and does not make a stale plan applicable.
    """
    from lumctl.cli.plans import find_plan
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
        "expires_at": answered.expires_at,
    }
    if cx.out.structured:
        cx.out.document("approval", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([found.id])
    else:
        cx.out.text(f"{found.id} ({found.title}): {answered.state} by {answered.by}")
        if not reject and answered.made_by.startswith("autopilot:"):
            cx.out.narrate(
                f"the autopilot applies it if the fault stands: lumctl autopilot status --target {found.target}"
            )
        elif not reject:
            cx.out.narrate(f"apply it: lumctl swap apply {plan} --target {found.target}")


def answer(context: "Context", plan: "Plan", *, approve: bool, comment: str) -> "Approval":
    """Approve a plan, or reject it, in the name of the present user.

    Raises:
        RefusedError: no approval is pending, it was answered before, it has expired, or this user may not answer it.
    """
    from lumctl.change.origin import origin
    from lumctl.store import APPROVED, REJECTED

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
    """A plan from a file has no request for approval here: its author is unknown."""
    from lumctl.change import to_document
    from lumctl.change.approval import ask, asking_policy
    from lumctl.errors import RefusedError

    store = context.store(plan.rack)
    if store.approvals.get(plan.digest) is not None:
        return
    policy = asking_policy(context, plan)
    if policy is None:
        raise RefusedError(
            f"no policy asks for an approval of {plan.id}", hint=f"apply it: lumctl swap apply {plan.id}"
        )
    store.runs.save_plan(to_document(plan))
    ask(context, plan, policy, made_by="")
