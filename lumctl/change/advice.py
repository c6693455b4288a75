"""Commands to suggest after a refusal: each works in the present state of the rack, or says itself what does.

They name the target. The command line adds the inventory if that was given by an option.
"""

import shlex
from collections.abc import Iterator

from lumctl.change.plan import Do, Plan, from_document
from lumctl.change.settings import settable
from lumctl.context import Context, place_of
from lumctl.errors import LumctlError, UsageError
from lumctl.inventory.wiring import jobs_in
from lumctl.store import StoredRun, ways_to_finish
from lumctl.store.records import OPEN

REVERSIBLE = frozenset({"done", "running", "half-done"})
"""States of runs whose changes may still be in force."""


def plan_again(context: Context, plan: Plan) -> str:
    """The command that plans the same from the present state; if its ranks have moved, the one that shows where."""
    aimed = f"--target {context.target}"
    match plan.kind:
        case "fabric":
            return f"plan it again: lumctl fabric apply --rack {plan.rack} {aimed}"
        case "rollback":
            return f"plan it again: lumctl swap rollback {plan.undoes} {aimed}"
        case "set" if words := _settings(context, plan):
            return f"plan it again: lumctl device set {shlex.join(words)} {aimed}"
    if command := _swap_again(context, plan):
        return f"plan it again: {command} {aimed}"
    owners = [circuit.owner for circuit in (*plan.remove, *plan.add) if circuit.owner in context.inventory.jobs]
    return f"see what runs where now: {f'lumctl job show {owners[0]}' if owners else 'lumctl status'} {aimed}"


def past_later_runs(context: Context, run: StoredRun) -> str:
    """How to undo a run whose work later runs have changed.

    A later run that is still open must be finished first. The ranks of a swap return by a new plan, which keeps what
    later runs did for other jobs. Otherwise the newest run is rolled back first, unless it wrote a device whole.
    """
    newest = next(_later(context, run), None)
    if newest is not None and newest.state in OPEN:
        return f"bring the later run to its end first: {ways_to_finish(newest.id, context.target)}"
    if newest is None or _is_whole(newest) or from_document(run.plan).replacements:
        return instead_of_rollback(context, run)
    aimed = f"--target {context.target}"
    return f"lumctl swap rollback {newest.id} {aimed}; then: lumctl swap rollback {run.id} {aimed}"


def instead_of_rollback(context: Context, run: StoredRun) -> str:
    """The nearest thing to rolling back a run whose earlier states cannot be restored.

    A job whose ranks the run did not move keeps them; circuits that a job lacks are programmed.
    """
    plan, aimed = from_document(run.plan), f"--target {context.target}"
    written, placed = context.inventory.jobs, jobs_in(context.assignment(sound=False))
    moved = [job for job in jobs_in(plan.start.assignment) if job in written and placed[job] != written[job].ranks]
    if moved and plan.kind not in {"set", "fabric"}:
        return f"return the ranks of {moved[0]} by a new plan: lumctl swap plan {moved[0]} --back {aimed}"
    if returned := [r for r in plan.replacements if place_of(placed, r.spare) == (r.job, r.rank)]:
        failed, spares = ",".join(r.spare for r in returned), ",".join(r.failed for r in returned)
        again = f"lumctl swap plan --failed {failed} --spare {spares} --even-if-healthy {aimed}"
        return f"replace them again by a new plan: {again}"
    if plan.kind == "set" and (words := _settings(context, plan)):
        return f"set what you need by a new run: lumctl device show {words[0]} {aimed}"
    return f"program the circuits that the jobs lack: lumctl fabric apply --rack {plan.rack} {aimed}"


def _swap_again(context: Context, plan: Plan) -> str:
    """The command for a swap or a return; empty if no rank still runs where it was to be replaced."""
    placed, written = context.assignment(sound=False), context.inventory.jobs
    left = [r for r in plan.replacements if place_of(placed, r.failed) == (r.job, r.rank)]
    if not left:
        return ""
    if all(r.spare == dict(enumerate(written[r.job].ranks)).get(r.rank) for r in left):
        return f"lumctl swap plan {left[0].job} --back"
    return f"lumctl swap plan --failed {','.join(r.failed for r in left)}"


def _settings(context: Context, plan: Plan) -> list[str]:
    """The component and settings of a plan that sets something, as typed; empty if the component no longer exists."""
    steps = [step for step in plan.steps if step.do is Do.SET]
    if not steps:  # a PUC or a join: the title holds what was typed
        return plan.title.split()[1:]
    try:
        meant = [settable(context.inventory, context.devices, s.data["component"], s.data["setting"]) for s in steps]
    except LumctlError:
        return []
    texts = [each.text(step.data["after"]) for each, step in zip(meant, steps, strict=True)]
    return [meant[0].component.id, *texts]


def _later(context: Context, run: StoredRun) -> Iterator[StoredRun]:
    """Later runs that changed the same things and are still in force, newest first."""
    mine = _changed(run)
    for other in sorted(context.store(run.rack).runs.all(), key=lambda each: -each.fence):
        if other.fence > run.fence and other.state in REVERSIBLE and mine & _changed(other):
            yield other


def _changed(run: StoredRun) -> set[str]:
    """The devices that a run wrote, the components it set, and the jobs it placed."""
    try:
        steps = from_document(run.plan).steps
    except UsageError:  # the run of an action has no steps
        return set()
    keys = {Do.PROGRAM: "device", Do.SET: "component", Do.TRANSMIT: "transponder"}
    found = {str(step.data[keys[step.do]]) for step in steps if step.do in keys}
    return found | {job for step in steps if step.do is Do.ASSIGN for job in step.data["assignment"]}


def _is_whole(run: StoredRun) -> bool:
    """Whether a run wrote every cell of a device because its earlier states were not known."""
    plan = from_document(run.plan)
    written = [step for step in plan.steps if step.do is Do.PROGRAM]
    known = {*plan.start.crosses, *plan.start.joins}
    return any(step.has_no_undo or step.data["device"] not in known for step in written)
