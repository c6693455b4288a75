"""What the dashboard reads about a run, and how it plans to undo one."""

import time
from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumctl.change import Plan
    from lumctl.store import Store
    from lumctl.tui.actions import PlanView
    from lumctl.tui.views.runs import RunView


def run_view(cx: Invocation, key: str) -> "RunView":
    """A run, ``RACK/ID``, as stored now, even while an engine works on it.

    Raises:
        UsageError: there is no such run.
        StoreError: the store cannot be read.
    """
    from lumctl.store import open_store

    return run_in(lambda rack: open_store(cx.inventory, rack, str(cx.target)), key)


def run_in(opened: "Callable[[str], Store]", key: str) -> "RunView":
    """As :func:`run_view`, with a function that opens the store of a rack."""
    from lumctl.tui.views.runs import run_view as viewed

    rack, _, name = key.partition("/")
    store = opened(rack)
    try:
        run = store.runs.get(name)
        return viewed(run, store.journal.of_run(name), cut=name in store.runs.unfinished(now=time.time()))
    finally:
        store.close()


def undoing(cx: Invocation, key: str) -> "PlanView":
    """Plan to undo a run, ``RACK/ID``; the plan warns of accelerators that would be used and are not ok.

    Raises:
        RefusedError: it cannot be undone; the message says why.
    """
    from lumctl.cli.changes import where_ranks_return
    from lumctl.cli.top.meshes import with_meshes
    from lumctl.context import Context
    from lumctl.runbook.files import find_run
    from lumctl.swap import plan_rollback

    with Context(cx.inventory, cx.target) as context:
        plan = plan_rollback(context, find_run(context, key))
        return with_meshes(context, plan_view(plan, *where_ranks_return(context, plan)))


def plan_view(plan: "Plan", *warnings: str) -> "PlanView":
    """A plan as it is displayed before the operator confirms it, with the items to follow while it is applied."""
    from lumctl.change import to_document
    from lumctl.cli.plan_lines import change_lines, made_line, summary_lines
    from lumctl.tui.actions import PlanView
    from lumctl.tui.views.light import planned_receivers
    from lumctl.tui.views.steps import planned_steps

    document = to_document(plan)
    return PlanView(
        plan.title,
        plan.target,
        (*change_lines(plan), "", made_line(plan)),
        plan,
        planned_steps(document),
        planned_receivers(document),
        warnings=(*plan.warnings, *warnings),
        summary=tuple(summary_lines(plan)),
    )
