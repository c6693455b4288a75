"""Finding a plan: by its id in a store, or in the file that it was written to."""

import json
from contextlib import suppress
from pathlib import Path

from lumctl.change import Plan, from_document
from lumctl.cli.invocation import Target
from lumctl.context import Context
from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.runbook.yaml_text import text_of


def find_plan(context: Context, name: str) -> Plan:
    """A plan by its id in any rack's store, or from a file.

    Raises:
        UsageError: there is none of that name, or the file is no plan.
        RefusedError: it was made for the other target.
    """
    for rack in context.inventory.racks:
        kept = context.store(rack).runs.plan(name)
        if kept is not None:
            return from_document(kept)
    path = Path(name)
    if not path.exists():
        _refuse_other_target(context, name)
        raise UsageError(
            f"no plan {name!r} on target {context.target}, and no file of that name",
            hint="make one: lumctl swap plan; those that wait for an approval: lumctl autopilot status",
        )
    try:
        return from_document(json.loads(text_of(path)))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a plan: {error}") from error


def _refuse_other_target(context: Context, name: str) -> None:
    """Refuse a known plan that was made for the other target."""
    other = Target.RACK if context.target == Target.SIM else Target.SIM
    found = False
    with suppress(LumctlError), Context(context.inventory, other) as elsewhere:
        found = any(elsewhere.store(rack).runs.plan(name) for rack in context.inventory.racks)
    if found:
        raise RefusedError(
            f"{name} was made for target {other}, this command is aimed at {context.target}",
            hint=f"add --target {other}, or make a new plan for {context.target}",
        )
