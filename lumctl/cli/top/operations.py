"""How the dashboard acknowledges what is found, as ``lumctl health ack`` does it."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.printable import counted

if TYPE_CHECKING:
    from lumctl.context import Context
    from lumctl.health.states import Finding
    from lumctl.inventory.model import Inventory
    from lumctl.tui.actions import ApplyView, PlanView


def acknowledge(cx: Invocation, components: Sequence[str], comment: str) -> str:
    """Acknowledge all findings of some components until they clear; return a line with the result.

    Each rack records the acknowledgements of its own components, as one run with a runbook.

    Raises:
        RefusedError: they have no findings any more.
        StoreError: a store cannot be written.
    """
    from lumctl.context import Context
    from lumctl.runbook.actions import acknowledge as said
    from lumctl.runbook.actions import record, save_quietly

    with Context(cx.inventory, cx.target) as context:
        by_rack = _by_rack(context, components)
        runs, troubles = [], []
        for rack, named in by_rack.items():
            steps: list[Any] = [said(rack, each, None, comment, None, found) for each, found in named.items()]
            first, *more = named
            title = f"acknowledge all findings of {first}" + (f" and {len(more)} more" if more else "")
            runs.append(record(context, "ack", steps, at=context.now(), title=title))
            if trouble := save_quietly(context, runs[-1], rack):
                troubles.append(f"warning: {trouble}")
    count = sum(map(len, by_rack.values()))
    told = f"{components[0] if count == 1 else f'{count} components'} acknowledged until it clears ({', '.join(runs)})"
    return "; ".join([told, *troubles])


def _by_rack(context: "Context", components: Sequence[str]) -> "dict[str, dict[str, list[Finding]]]":
    """The faults of the components that still have any, by rack and component."""
    from lumctl.cli.components import circuits, rack_of_named
    from lumctl.cli.health_faults import faults_of

    # Read again: findings that cleared meanwhile are not acknowledged.
    seen, among = context.observe(), circuits(context)
    by_rack: dict[str, dict[str, list[Finding]]] = {}
    for component in components:
        if found := faults_of(seen, component):
            by_rack.setdefault(rack_of_named(context.inventory, component, among), {})[component] = found
    if not by_rack:
        raise RefusedError(f"nothing is found of {components[0]} any more: there is nothing to acknowledge")
    return by_rack


VARIABLE = "LUMCTL_READ_ONLY"


def why_read_only(inventory: "Inventory", target: str, *, asked: bool) -> str:
    """Why the dashboard is read-only; empty if it may act.

    Every change needs a line in the journal, so a user who cannot write a rack's store cannot change the rack. A
    store that is only unreachable shows nothing about rights: it may come back.
    """
    if asked:
        return "read-only, as asked for: start lumctl top without --read-only to change anything"
    if os.environ.get(VARIABLE, "") not in {"", "0"}:
        return f"read-only, as ${VARIABLE} says: unset it to change anything"
    for rack in inventory.racks:
        if reason := _why_unwritable(inventory, rack, target):
            return reason
    return ""


def _why_unwritable(inventory: "Inventory", rack: str, target: str) -> str:
    from lumctl.store import StoreUnreachableError, open_store

    try:
        store = open_store(inventory, rack, target)
    except StoreUnreachableError:
        return ""
    except LumctlError as error:
        return f"read-only: {error.message}"
    try:
        reason = store.unwritable
    finally:
        store.close()
    return f"read-only: the store of {rack} cannot be written: {reason}" if reason else ""


def plan(cx: Invocation, job: str, failed: str) -> "PlanView":
    """Plan the replacement of one accelerator, with pictures of the meshes as they will be."""
    from lumctl.cli.top.meshes import with_meshes
    from lumctl.cli.top.runs import plan_view
    from lumctl.context import Context
    from lumctl.swap import plan_swap

    # A context of its own: the one that is observed belongs to the thread that reads.
    with Context(cx.inventory, cx.target) as context:
        return with_meshes(context, plan_view(plan_swap(context, job, [failed])))


def apply_plan(cx: Invocation, view: "PlanView", progress: Callable[[str], None]) -> "ApplyView":
    """Apply a plan and write its runbook."""
    from lumctl.change import apply
    from lumctl.change.origin import origin
    from lumctl.context import Context
    from lumctl.runbook.files import save
    from lumctl.tui.actions import ApplyView

    with Context(cx.inventory, cx.target) as context:
        # The confirmed plan names the jobs that must be stopped.
        result = apply(context, view.plan, progress=progress, stopped_by=origin())
        try:
            kept = f"runbook: {save(context, result.run, result.plan.rack)}"
        except UsageError as error:  # The run is done and in the journal in any case.
            kept = f"warning: {error.message}"
    proved = f"{counted(len(result.verified), 'receivers')} proved"
    outcome = f"{result.run}: {result.outcome} in {result.seconds:.2f} s, {proved}"
    read_it = f"read it: lumctl runbook show {result.run}"
    return ApplyView(outcome, done=True, lines=(kept, read_it), run=f"{result.plan.rack}/{result.run}")
