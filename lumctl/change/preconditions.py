"""What must hold before a plan may touch anything: the right target, the same inventory, the same start."""

from lumctl.change.plan import Do, Plan, Step
from lumctl.change.untouched import require_others_untouched
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError
from lumctl.site import Site

REVERSIBLE = frozenset({"done", "running", "half-done"})
"""States of runs that changed something which still stands."""
AGAIN = "the rack has moved on: make a new plan"


def require(site: Site, plan: Plan) -> None:
    """Refuse a plan that was not made for this target, this inventory and this state of the rack.

    Raises:
        RefusedError: it was not; nothing was touched.
    """
    if plan.target != site.target:
        raise RefusedError(
            f"{plan.id} was made for target {plan.target}, this command is aimed at {site.target}",
            hint=f"add --target {plan.target}, or make a new plan for {site.target}",
        )
    if plan.inventory_digest != site.inventory.digest:
        raise RefusedError(f"{plan.id} was made from another text of {site.inventory.path}", hint="make a new plan")
    placed = site.assignment(sound=False)
    for job, accelerators in plan.start.assignment.items():
        if placed.get(job) != accelerators:
            raise _moved_on(plan, f"{job} does not run where it did")
    for step in plan.steps:
        if step.do is Do.PROGRAM:
            _require_states(site, plan, step)
    require_others_untouched(site, plan)


def _require_states(site: Site, plan: Plan, step: Step) -> None:
    """A device that the step writes whole needs no record; any other must hold what the plan was made from."""
    device = step.data["device"]
    held, pinned = site.known_states(device), plan.start.crosses.get(device)
    driver = site.devices.mesh(device)
    driver.identify()
    if pinned is None:
        geometry = site.inventory.devices[device].geometry
        if {puc for puc, _, _ in step.data["changes"]} != set(range(geometry.puc_count if geometry else 0)):
            raise RefusedError(f"{plan.id} writes some cells of {device} and does not say what the others hold")
        return
    if not held:
        cut = site.store(plan.rack).uncertain_since(device)
        if cut is None or cut != plan.undoes:
            raise uncertain(site, plan.rack, device)
        return  # the run that is being taken back left it so: its cells are written again, whichever way they are
    if pinned != tuple(puc for puc, state in sorted(held.items()) if state is PucState.CROSS):
        raise _moved_on(plan, f"{device} does not hold what it did")
    if Capability.READ_STATES in driver.capabilities:
        require_agreement(device, held, driver.read_states())


def _moved_on(plan: Plan, what: str) -> RefusedError:
    if plan.undoes is not None:
        return RefusedError(
            f"{plan.undoes} cannot be taken back: {what} right after it, a later run has changed that",
            hint="take the later run back first: lumctl swap list",
        )
    return RefusedError(f"{plan.id} is stale: {what} when it was made", hint=AGAIN)


def uncertain(site: Site, rack: str, device: str) -> RefusedError:
    """Why nothing can be planned or written on top of what a device holds, and what helps."""
    apply = f"lumctl fabric apply --target {site.target}"
    cut = site.store(rack).uncertain_since(device)
    if cut is None:
        return RefusedError(
            f"what {device} holds is not known: it was never programmed from this store",
            hint=f"program the jobs' circuits first: {apply}",
        )
    run = site.store(rack).run(cut)
    reversible = run.state in REVERSIBLE and all(c["from"] is not None for c in run.plan["puc_changes"])
    return RefusedError(
        f"what {device} holds is not certain since {cut} was cut",
        hint=f"lumctl swap rollback {cut} --target {site.target}" if reversible else f"program it anew: {apply}",
    )


def require_agreement(device: str, held: dict[int, PucState], read: dict[int, PucState]) -> None:
    """Refuse to go on from a record that the device itself contradicts.

    Raises:
        RefusedError: a cell differs.
    """
    wrong = [puc for puc, state in held.items() if read.get(puc) is not state]
    if wrong:
        raise RefusedError(
            f"{device} does not hold what was last written to it: {len(wrong)} cells differ, the first is "
            f"{device}/puc/{wrong[0]}",
            hint="somebody or a fault changed it; program it anew with: lumctl fabric apply --rewrite",
        )
