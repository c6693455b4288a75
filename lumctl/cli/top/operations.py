"""What is done from the dashboard: acknowledge, maintain, plan and apply, as the commands do it."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.cli.verbs import aimed
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
    acknowledged = [each for named in by_rack.values() for each in named]
    what = acknowledged[0] if len(acknowledged) == 1 else f"{len(acknowledged)} components"
    told = f"{what} acknowledged until its findings clear ({', '.join(runs)})"
    left_out = [f"{each} has no findings to acknowledge" for each in components if each not in acknowledged]
    return "; ".join([told, *left_out, *troubles])


def _by_rack(context: "Context", components: Sequence[str]) -> "dict[str, dict[str, list[Finding]]]":
    """The components that still have faults, with these faults, by rack."""
    from lumctl.cli.components import circuits, rack_of_named
    from lumctl.cli.health import faults_of

    # Read again: findings that cleared meanwhile are not acknowledged.
    seen, among = context.observe(), circuits(context)
    by_rack: dict[str, dict[str, list[Finding]]] = {}
    for component in components:
        if found := faults_of(seen, component):
            by_rack.setdefault(rack_of_named(context.inventory, component, among), {})[component] = found
    if not by_rack:
        raise RefusedError(f"{components[0]} has no more findings: there is nothing to acknowledge")
    return by_rack


def maintain(cx: Invocation, components: Sequence[str], for_s: float, comment: str) -> str:
    """Open a maintenance window on each component from now on; return a line with the result.

    Each rack records the windows of its own components, as one run with a runbook.

    Raises:
        UsageError: one of them is a circuit, which cannot be in maintenance; no window was opened.
        StoreError: a store cannot be written.
    """
    from lumctl.cli.components import circuits, rack_of_named
    from lumctl.context import Context
    from lumctl.runbook.actions import open_window, record, save_quietly
    from lumctl.time_text import length_text

    with Context(cx.inventory, cx.target) as context:
        among = circuits(context)
        if lit := {circuit.id for circuit in among} & set(components):
            raise UsageError(f"{min(lit)} is a circuit: it cannot be in maintenance; choose its host or device")
        by_rack: dict[str, list[str]] = {}
        for component in components:
            by_rack.setdefault(rack_of_named(context.inventory, component, among), []).append(component)
        runs, troubles = [], []
        for rack, named in by_rack.items():
            steps = [open_window(rack, each, comment, starts_in_s=0.0, for_s=for_s) for each in named]
            first, *more = named
            title = f"maintenance of {first}" + (f" and {len(more)} more" if more else "")
            runs.append(record(context, "maintain", steps, at=context.now(), title=title))
            if trouble := save_quietly(context, runs[-1], rack):
                troubles.append(f"warning: {trouble}")
    what = components[0] if len(components) == 1 else f"{len(components)} components"
    told = f"{what} in maintenance for {length_text(for_s)} ({', '.join(runs)})"
    return "; ".join([told, *troubles])


VARIABLE = "LUMCTL_READ_ONLY"


def why_read_only(inventory: "Inventory", target: str, *, asked: bool) -> str:
    """Why the dashboard is read-only; empty if it may act.

    Every change needs a journal entry, so a user who cannot write a rack's store cannot change the rack. If a store is
    only unreachable, the user's rights are unknown: it may become reachable again.
    """
    if asked:
        return "read-only, as requested: start lumctl top without --read-only to change anything"
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
    return f"read-only: the store of {rack} is not writable: {reason}" if reason else ""


def plan(cx: Invocation, job: str | None, *failed: str, even_if_healthy: bool = False) -> "PlanView":
    """Plan the replacement of accelerators, with pictures of the meshes after it.

    Without ``job``, the accelerators may run ranks of several jobs.
    """
    from lumctl.cli.top.meshes import with_meshes
    from lumctl.cli.top.runs import plan_view
    from lumctl.context import Context
    from lumctl.swap import plan_swap

    # A context of its own: the one that is observed belongs to the thread that reads.
    with Context(cx.inventory, cx.target) as context:
        return with_meshes(context, plan_view(plan_swap(context, job, failed, even_if_healthy=even_if_healthy)))


def place_slice(cx: Invocation, shape: str, name: str) -> "PlanView":
    """Plan a slice, with pictures of the meshes after it."""
    from lumctl.cli.top.meshes import with_meshes
    from lumctl.cli.top.runs import plan_view
    from lumctl.context import Context
    from lumctl.slices.planning import plan_slice
    from lumctl.slices.request import SliceRequest, read_shapes

    with Context(cx.inventory, cx.target) as context:
        return with_meshes(context, plan_view(plan_slice(context, SliceRequest(read_shapes(shape), (name,), ()))))


def release_slice(cx: Invocation, name: str) -> "PlanView":
    """Plan the release of a slice, with pictures of the meshes after it."""
    from lumctl.cli.top.meshes import with_meshes
    from lumctl.cli.top.runs import plan_view
    from lumctl.context import Context
    from lumctl.slices.release import plan_release

    with Context(cx.inventory, cx.target) as context:
        return with_meshes(context, plan_view(plan_release(context, name)))


def apply_plan(cx: Invocation, view: "PlanView", progress: Callable[[str], None]) -> "ApplyView":
    """Apply a plan and write its runbook."""
    from lumctl.change import apply
    from lumctl.change.origin import origin
    from lumctl.cli.changes import resumption_lines
    from lumctl.cli.job_state import require_not_run
    from lumctl.context import Context
    from lumctl.runbook.files import save
    from lumctl.tui.actions import ApplyView
    from lumctl.tui.views.light import proof_words

    with Context(cx.inventory, cx.target) as context:
        context.assignment()  # reads which slices there are
        require_not_run(cx, context.inventory, view.plan)
        # The confirmed plan names the jobs that must be stopped.
        result = apply(context, view.plan, progress=progress, stopped_by=origin())
        try:
            kept = f"runbook: {save(context, result.run, result.plan.rack)}"
        except UsageError as error:  # The run is done and in the journal in any case.
            kept = f"warning: {error.message}"
        to_resume = tuple(resumption_lines(cx, context, result))
    proved = f"{counted(len(result.verified), 'receivers')} proved"
    outcome = f"{result.run}: {result.outcome} in {result.seconds:.2f} s, {proved}"
    read_it = aimed(cx, f"read it: lumctl runbook show {result.run}")
    shown = {proof.receiver: proof_words(proof.evidence, proof.seconds) for proof in result.verified}
    lines = (*to_resume, kept, read_it)
    return ApplyView(outcome, done=True, lines=lines, run=f"{result.plan.rack}/{result.run}", proved=shown)
