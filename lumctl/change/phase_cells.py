"""The cells that running jobs may change between their phases, and plans that must not use them."""

from collections.abc import Mapping

from lumctl.change.plan import PHASES, Do, Plan, from_document
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.inventory.phase_records import phase_of, phase_permit


def changing_cells(context: Context, rack: str) -> dict[str, Mapping[str, Mapping[int, str]]]:
    """By job and device, the cells that running jobs may change between their phases: any phase may have light now."""
    placed = context.assignment(sound=False)
    jobs = {permit: job for job in context.inventory.jobs if (permit := phase_permit(job, placed)) is not None}
    runs = [run for run in context.store(rack).runs.all() if run.plan.get("kind") == PHASES] if jobs else []
    plans = [plan for plan in (from_document(run.plan) for run in runs) if plan.phases and plan.permit in jobs]
    return {jobs[plan.permit]: plan.phases[0].cells for plan in plans}


def require_clear_of_phases(context: Context, plan: Plan) -> None:
    """Refuse a plan that uses cells which a running job may change between its phases, and leaves it the permit.

    Raises:
        RefusedError: there is such a job: a phase of it that has no light now would take that of the plan.
    """
    placed = context.assignment(sound=False)
    after: dict[str, list[str]] = {}
    for step in plan.steps:
        after |= step.data["assignment"] if step.do is Do.ASSIGN else {}
    used = {(device, cell) for device, cells in plan.writes.items() for cell in cells}
    used |= {puc for circuit in plan.add for puc in circuit.pucs}
    for job, cells in changing_cells(context, plan.rack).items():
        keeps = tuple(after.get(phase_of(job), placed[phase_of(job)])) == placed[phase_of(job)]
        shared = [(device, cell) for device, of_device in cells.items() for cell in of_device if (device, cell) in used]
        if keeps and shared:
            device, cell = shared[0]
            kind = "puc" if context.inventory.devices[device].geometry else "port"
            raise RefusedError(
                f"{plan.id} would use {device}/{kind}/{cell}, which job {job} may change between its phases",
                hint=f"stop the job first, and plan again: lumctl job stop {job} --target {context.target}",
            )
