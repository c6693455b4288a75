"""Taking a run back: the inverse of its plan, also where the run was cut half way."""

from collections.abc import Iterable, Mapping

from lumctl.change.plan import Do, Plan, PlannedChange, Start, Step, from_document
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError
from lumctl.inventory.model import Inventory
from lumctl.site import Site
from lumctl.store import Run
from lumctl.swap.steps import StepList

REVERSIBLE = {"done", "running", "half-done"}


def plan_rollback(site: Site, run: Run) -> Plan:
    """Plan to put back what a run changed. Of a cut run only the steps that may have acted are taken back.

    Raises:
        RefusedError: the run changed nothing that still stands, or cannot be taken back.
    """
    if run.target != site.target:
        raise RefusedError(f"{run.id} ran on target {run.target}", hint=f"add --target {run.target}")
    if run.state not in REVERSIBLE:
        what = f"it was taken back by {run.undone_by}" if run.undone_by else f"it ended {run.state}"
        raise RefusedError(f"there is nothing of {run.id} to roll back: {what}")
    plan = from_document(run.plan)
    if any(change.before is None for change in plan.changes):
        raise RefusedError(
            f"{run.id} wrote cells whose states before were not known: there is nothing to go back to",
            hint="program what the jobs need now: lumctl fabric apply",
        )
    entries = site.store(run.rack).entries(run.id)
    attempted = {entry.step for entry in entries if entry.kind == "intent"}
    tried = [step for step in plan.steps if step.id in attempted]
    was = {e.step: bool(e.data["was"]) for e in entries if e.kind == "outcome" and "was" in e.data}
    steps = _inverse(site, plan, tried, was)
    return Plan(
        kind="rollback",
        title=f"take back {run.id} ({plan.title})",
        rack=plan.rack,
        target=site.target,
        created_at=site.now(),
        inventory_digest=site.inventory.digest,
        start=_start(site.inventory, plan, tried),
        add=plan.remove,
        remove=plan.add,
        keep=plan.keep,
        changes=tuple(_inverted(plan.changes)) if any(step.do is Do.PROGRAM for step in tried) else (),
        steps=tuple(steps.steps),
        undoes=run.id,
    ).sealed()


def _inverse(site: Site, plan: Plan, tried: list[Step], was: Mapping[str, bool]) -> StepList:
    """The steps back. ``was`` says of each step that switched a transmitter whether it had been on."""
    steps = StepList(site.inventory)
    kept = [circuit.id for circuit in plan.keep]
    programmed = [step.data["device"] for step in tried if step.do is Do.PROGRAM]
    back = [circuit.id for circuit in plan.remove]
    steps.check([], kept=kept)
    for step in reversed(tried):
        if step.do is Do.TRANSMIT and was.get(step.id, True) is not step.data["enabled"]:
            steps.transmit(step.data["transponder"], enabled=not step.data["enabled"], required=step.required)
    if programmed:
        writes: dict[str, list[PlannedChange]] = {}
        for change in _inverted(plan.changes):
            if change.device in programmed:
                writes.setdefault(change.device, []).append(change)
        steps.program(writes)
        steps.verify(back, kept)
        steps.confirm([d for d in programmed if Capability.CONFIRM_TIMER in site.devices.mesh(d).capabilities])
    placed = next((step for step in tried if step.do is Do.ASSIGN), None)
    if placed is not None:
        steps.assign(placed.data["assignment"], placed.data["before"])
    return steps


def _inverted(changes: Iterable[PlannedChange]) -> Iterable[PlannedChange]:
    return [PlannedChange(c.device, c.puc, c.after, str(c.before)) for c in changes]


def _start(inventory: Inventory, plan: Plan, tried: list[Step]) -> Start:
    """What stands now if the run's tried steps took effect."""
    assignment = dict(plan.start.assignment)
    crosses = {device: set(pucs) for device, pucs in plan.start.crosses.items()}
    for step in tried:
        if step.do is Do.ASSIGN:
            assignment |= {job: tuple(ranks) for job, ranks in step.data["assignment"].items()}
        if step.do is Do.PROGRAM:
            cells = crosses.setdefault(inventory.devices[step.data["device"]].id, set())
            for puc, _, after in step.data["changes"]:
                (cells.add if PucState(after) is PucState.CROSS else cells.discard)(puc)
    return Start(assignment, {device: tuple(sorted(pucs)) for device, pucs in crosses.items()})
