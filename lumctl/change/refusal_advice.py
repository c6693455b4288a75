"""Commands to suggest after a refusal. Each works in the present state of the rack, or its refusal names one that does.

The commands name the target. The command line adds the inventory if an option named it.
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from lumctl.change.plan import Do, Plan, from_document
from lumctl.change.plan_parts import Replacement
from lumctl.change.settings import settable
from lumctl.context import Context, place_of
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.errors import LumctlError, UsageError
from lumctl.fabric import FabricStates
from lumctl.inventory.wiring import Circuit, circuits_of, jobs_in
from lumctl.store import StoredRun, ways_to_finish
from lumctl.store.records import OPEN

REVERSIBLE = frozenset({"done", "running", "half-done"})
"""States of runs whose changes may still be in force."""
MOST_NAMED = 4
"""How many commands a hint names at most."""


@contextmanager
def asking(context: Context, device: str) -> Iterator[None]:
    """Within the block a device is asked: if it does not answer, the error says what to do."""
    try:
        yield
    except DeviceUnreachableError as error:
        error.hint = error.hint or why_silent([device], context.target)
        raise


def why_silent(devices: Iterable[str], target: str) -> str:
    """The commands that show why devices do not answer, since when, and what to do."""
    return f"see what to do: {'; '.join(f'lumctl health explain {each} --target {target}' for each in devices)}"


def plan_again(context: Context, plan: Plan) -> str:
    """The command that plans the same change again; if it was made already, the command that shows the placement."""
    aimed = f"--target {context.target}"
    match plan.kind:
        case "fabric":
            return f"make a new plan: lumctl fabric apply --rack {plan.rack} {aimed}"
        case "rollback":
            return f"make a new plan: lumctl swap rollback {plan.undoes} {aimed}"
        case "slice" if advice := _slice_again(context, plan):
            return f"{advice} {aimed}"
        case "set" if words := _settings(context, plan):
            return f"make a new plan: lumctl device set {shlex.join(words)} {aimed}"
    if command := _swap_again(context, plan):
        return f"make a new plan: {command} {aimed}"
    owners = [circuit.owner for circuit in (*plan.remove, *plan.add) if circuit.owner in context.inventory.jobs]
    return f"see the current placement: {f'lumctl job show {owners[0]}' if owners else 'lumctl status'} {aimed}"


def past_later_runs(context: Context, run: StoredRun) -> str:
    """How to undo a run whose changes later runs have overwritten.

    A later run that is still open must be finished first. The ranks of a swap are moved back by a new plan, which keeps
    the changes that later runs made for other jobs. In all other cases the later runs are rolled back first, the newest
    first, unless one of them wrote a device whose earlier states were unknown.
    """
    later = later_runs(context, run)
    for other in later:
        if other.state in OPEN:
            return f"finish the later run first: {ways_to_finish(other.id, context.target)}"
    if not later or any(_is_whole(other) for other in later) or from_document(run.plan).replacements:
        return instead_of_rollback(context, run)
    commands = [f"lumctl swap rollback {each.id} --target {context.target}" for each in (*later, run)]
    if len(commands) > MOST_NAMED:
        return f"roll back the {len(later)} later runs first, the newest first, beginning with: {commands[0]}"
    return "; then: ".join(commands)


def instead_of_rollback(context: Context, run: StoredRun) -> str:
    """The command that comes closest to rolling back a run whose earlier states cannot be restored.

    If ranks of the run's jobs run elsewhere than the inventory says, a new plan moves them back. If the run itself had
    moved them back, they are replaced again. A single setting is set by a new run. In all other cases the missing
    circuits of the jobs are programmed, if any is missing by the record.
    """
    plan, aimed = from_document(run.plan), f"--target {context.target}"
    written, placed = context.inventory.jobs, jobs_in(context.assignment(sound=False))
    moved = [job for job in jobs_in(plan.start.assignment) if job in written and placed[job] != written[job].ranks]
    if moved and plan.kind not in {"set", "fabric"}:
        return f"move the ranks of {moved[0]} back with a new plan: lumctl swap plan {moved[0]} --back {aimed}"
    if returned := [r for r in plan.replacements if place_of(placed, r.spare) == (r.job, r.rank)]:
        failed, spares = ",".join(r.spare for r in returned), ",".join(r.failed for r in returned)
        again = f"lumctl swap plan --failed {failed} --spare {spares} --even-if-healthy {aimed}"
        return f"replace them again with a new plan: {again}"
    if plan.kind == "set" and (words := _settings(context, plan)):
        return f"set what you need in a new run: lumctl device show {words[0]} {aimed}"
    if missing := _missing_circuits(context, plan.rack):
        return missing
    left = [r for r in plan.replacements if place_of(placed, r.failed) != (r.job, r.rank)]
    if plan.replacements and not left:
        job = plan.replacements[0].job
        by = next((other.id for other in later_runs(context, run) if _returns(other, plan.replacements)), "a later run")
        return f"{by} has moved the ranks back already; see the placement: lumctl job show {job} {aimed}"
    return f"no job is missing a circuit by the record, so nothing needs to be done; see: lumctl fabric show {aimed}"


def after_end(context: Context, run: StoredRun) -> str:
    """What can be done after a run that has ended: undo it, or program circuits that are missing by the record.

    What later runs have changed cannot be undone by a rollback of this one alone.
    """
    aimed = f"--target {context.target}"
    if run.state == "done" and not _is_whole(run):
        if later_runs(context, run):
            return past_later_runs(context, run)
        return f"to undo it: lumctl swap rollback {run.id} {aimed}"
    return _missing_circuits(context, run.rack) or f"see it: lumctl swap show {run.id} {aimed}"


def _missing_circuits(context: Context, rack: str) -> str:
    """The command that programs the circuits that jobs of a rack are missing by the record; empty if none is missing.

    No device is asked.
    """
    inventory = context.inventory
    held = FabricStates(inventory, context.known_fabric(rack))
    here = [c for c in circuits_of(inventory, context.assignment(sound=False)) if _starts_in(context, c, rack)]
    if all(held.path_of(circuit) is not None for circuit in here):
        return ""
    return (
        f"program the circuits that the jobs are missing: lumctl fabric apply --rack {rack} --target {context.target}"
    )


def _starts_in(context: Context, circuit: Circuit, rack: str) -> bool:
    return context.inventory.devices[circuit.a.device].rack == rack


def _swap_again(context: Context, plan: Plan) -> str:
    """The command that plans a swap or its reversal again; empty if no rank still runs on an accelerator to replace."""
    placed, written = context.assignment(sound=False), context.inventory.jobs
    left = [r for r in plan.replacements if place_of(placed, r.failed) == (r.job, r.rank)]
    if not left:
        return ""
    if all(r.spare == dict(enumerate(written[r.job].ranks)).get(r.rank) for r in left):
        return f"lumctl swap plan {left[0].job} --back"
    healthy = " --even-if-healthy" if plan.even_if_healthy else ""
    return f"lumctl swap plan --failed {','.join(r.failed for r in left)}{healthy}"


def _slice_again(context: Context, plan: Plan) -> str:
    """What to do about a plan that places, moves or releases slices; empty if the plan does not name them."""
    placed = [step.data["assignment"] for step in plan.steps if step.do is Do.ASSIGN]
    named = [(str(each["job"]), str(each["shape"])) for each in plan.slices.slices] if plan.slices else []
    if not placed or not named:
        return ""
    job, shape = named[0]
    there = [name for name, _ in named if context.assignment(sound=False).get(name)]
    if not placed[0].get(job):
        return f"make a new plan: lumctl slice release {job}" if there else "see the slices: lumctl slice list"
    if plan.remove:
        return "make a new plan: lumctl slice defrag"
    if there:
        return f"there is a slice {there[0]} already: lumctl slice show {there[0]}"
    several = f" --count {len(named)}" if len(named) > 1 else ""
    return f"make a new plan: lumctl slice plan {shape} --job {job.removesuffix('-1') if several else job}{several}"


def _settings(context: Context, plan: Plan) -> list[str]:
    """The component and settings of a plan of ``Do.SET`` steps, as typed; empty if the component no longer exists."""
    steps = [step for step in plan.steps if step.do is Do.SET]
    if not steps:  # a PUC or a join: the title holds what was typed
        return plan.title.split()[1:]
    try:
        meant = [settable(context.inventory, context.devices, s.data["component"], s.data["setting"]) for s in steps]
    except LumctlError:
        return []
    texts = [each.text(step.data["after"]) for each, step in zip(meant, steps, strict=True)]
    return [meant[0].component.id, *texts]


def later_runs(context: Context, run: StoredRun) -> list[StoredRun]:
    """Later runs in force that must be rolled back before a run, newest first.

    They changed the same devices, settings or jobs as the run, or as another of them. A rollback of a later run is left
    out: the two together change nothing.
    """
    store = context.store(run.rack)
    after = {other.id: other for other in store.runs.all() if other.fence > run.fence}
    found, touched = list[StoredRun](), _changed(run)
    for other in sorted(after.values(), key=lambda each: each.fence):
        changed = _changed(other)
        cancels = other.state == "done" and other.plan.get("undoes") in after
        if other.state in REVERSIBLE and not cancels and touched & changed:
            found.append(other)
            touched |= changed
    return found[::-1]


def _changed(run: StoredRun) -> set[str]:
    """The devices that a run wrote, the components it set, and the jobs it placed."""
    try:
        steps = from_document(run.plan).steps
    except UsageError:  # the run of an action has no steps
        return set()
    keys = {Do.PROGRAM: "device", Do.SET: "component", Do.TRANSMIT: "transponder"}
    found = {str(step.data[keys[step.do]]) for step in steps if step.do in keys}
    return found | {job for step in steps if step.do is Do.ASSIGN for job in step.data["assignment"]}


def _returns(run: StoredRun, replacements: Sequence[Replacement]) -> bool:
    """Whether a run moved one of the replaced ranks back from its spare."""
    steps = [step for step in from_document(run.plan).steps if step.do is Do.ASSIGN]
    return any(
        (step.data["before"][each.job][each.rank], step.data["assignment"][each.job][each.rank])
        == (each.spare, each.failed)
        for step in steps
        for each in replacements
        if each.job in step.data["assignment"]
    )


def _is_whole(run: StoredRun) -> bool:
    """Whether a run wrote every cell of a device because its earlier states were unknown."""
    try:
        plan = from_document(run.plan)
    except UsageError:  # the run of an action has no steps
        return False
    written = [step for step in plan.steps if step.do is Do.PROGRAM]
    known = {*plan.start.crosses, *plan.start.joins}
    return any(step.has_no_undo or step.data["device"] not in known for step in written)
