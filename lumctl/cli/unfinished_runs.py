"""Lines printed beside a change or a list of changes: unfinished runs, and where ranks return to."""

from typing import Any

from lumctl.change import Plan
from lumctl.change.plan import Do
from lumctl.cli.invocation import Invocation
from lumctl.cli.status_tables import unfinished_line
from lumctl.context import Context


def tell_unfinished(cx: Invocation, context: Context, racks: tuple[str, ...]) -> tuple[str, ...]:
    """Name the runs of these racks that were cut or left half done, with what brings them to an end."""
    found = tuple(run for rack in racks for run in context.store(rack).runs.unfinished(now=context.now()))
    for run in found:
        cx.out.narrate(unfinished_line(run, str(cx.target)))
    return found


def shown_as_cut(
    rows: list[dict[str, Any]], unfinished: tuple[str, ...], left: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Rows of runs; those without a working engine are called cut instead of running.

    ``left`` were left half done by their engine, which could not record that.
    """
    shown = dict.fromkeys(unfinished, "cut") | dict.fromkeys(left, "half-done")
    return [row | {"outcome": shown.get(row["run"], "running")} if row["outcome"] == "running" else row for row in rows]


def tell_where_ranks_return(cx: Invocation, context: Context, plan: Plan) -> None:
    """Warn of each accelerator with present findings to which a rollback returns a rank."""
    for warning in where_ranks_return(context, plan):
        cx.out.narrate(f"warning: {warning}")


def where_ranks_return(context: Context, plan: Plan) -> list[str]:
    """A sentence about each accelerator that is not ok now and to which a rollback returns a rank."""
    given = set[str]()
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            for job, ranks in step.data["assignment"].items():
                given |= set(ranks) - set(step.data["before"].get(job, ()))
    if not given:
        return []
    seen = context.observe().report.accelerators
    found = {name: seen[name].findings[0].evidence for name in sorted(given & set(seen)) if seen[name].findings}
    return [f"{name} is not well ({told}): what ran on it would be there again" for name, told in found.items()]
