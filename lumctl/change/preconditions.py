"""What must hold before a plan may touch anything: the right target, the same inventory, the same start."""

from lumctl.change.plan import Do, Plan
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError
from lumctl.site import Site

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
            raise RefusedError(f"{plan.id} is stale: {job} does not run where it did when it was made", hint=AGAIN)
    for device in sorted({step.data["device"] for step in plan.steps if step.do is Do.PROGRAM}):
        _require_states(site, plan, device)


def _require_states(site: Site, plan: Plan, device: str) -> None:
    """A device that the plan writes whole needs no record; any other must hold what the plan was made from."""
    held, pinned = site.known_states(device), plan.start.crosses.get(device)
    driver = site.devices.mesh(device)
    driver.identify()
    if pinned is None:
        return
    if not held:
        if plan.undoes is None:
            raise RefusedError(f"{plan.id} is stale: what {device} holds is no longer certain", hint=AGAIN)
        return
    if pinned != tuple(puc for puc, state in sorted(held.items()) if state is PucState.CROSS):
        raise RefusedError(f"{plan.id} is stale: {device} does not hold what it did when it was made", hint=AGAIN)
    if Capability.READ_STATES in driver.capabilities:
        require_agreement(device, held, driver.read_states())


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
