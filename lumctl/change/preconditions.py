"""What must hold before a plan may touch anything: the right target, the same inventory, the same start."""

from lumctl.change.disturbance import require_undisturbed
from lumctl.change.plan import Do, Plan, Step
from lumctl.change.settings import same, settable
from lumctl.change.untouched import require_others_untouched
from lumctl.devices import transaction
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError
from lumctl.inventory.model import Device
from lumctl.inventory.switching import own_cells
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
            _require_own(plan, site.inventory.devices[step.data["device"]])
            _require_states(site, plan, step)
            _require_kept(site, plan, step)
        if step.do is Do.SET:
            _require_setting(site, plan, step)
    require_others_untouched(site, plan)
    require_undisturbed(site, plan)


def _require_own(plan: Plan, device: Device) -> None:
    """The lease is of the plan's rack, and so is the record that is kept."""
    if device.rack != plan.rack:
        raise RefusedError(
            f"{plan.id} is of rack {plan.rack} and writes {device.id}, which is in rack {device.rack}",
            hint="make a plan of its own for each rack",
        )


def _require_kept(site: Site, plan: Plan, step: Step) -> None:
    """A device with a revert timer goes back behind the run's back if no later step confirms the change."""
    device, later = step.data["device"], plan.steps[plan.steps.index(step) :]
    if Capability.CONFIRM_TIMER not in site.devices.changing(device).capabilities:
        return
    if not any(each.do is Do.CONFIRM and device in each.data["devices"] for each in later):
        raise RefusedError(
            f"{plan.id} writes {device}, which goes back by itself, and does not confirm it afterwards",
            hint="add a confirm step that names it, after the last verify step",
        )


def _require_states(site: Site, plan: Plan, step: Step) -> None:
    """A device that the step writes whole needs no record; any other must hold what the plan was made from."""
    device = step.data["device"]
    own = own_cells(site.inventory, site.inventory.devices[device])
    held, pinned = site.known_cells(device), plan.start.cells(device, own)
    driver = site.devices.changing(device)
    driver.identify()
    if pinned is None:
        if {puc for puc, _, _ in step.data["changes"]} != set(own):
            raise RefusedError(f"{plan.id} writes some cells of {device} and does not say what the others hold")
        return
    if not held:
        if not _left_so_by(site, plan, device):
            raise uncertain(site, plan.rack, device)
        return  # its cells are written again, whichever way they are
    if pinned != held:
        raise _moved_on(plan, f"{device} does not hold what it did")
    if transaction.readable(driver):
        # What is written again as recorded is what somebody has seen to differ.
        again = {cell for cell, before, after in step.data["changes"] if before == after}
        kept = {cell: state for cell, state in held.items() if cell not in again}
        require_agreement(driver.kind, device, kept, transaction.read_cells(driver, own))


def _left_so_by(site: Site, plan: Plan, device: str) -> bool:
    """Whether a device is uncertain because of the run that is taken back, or of an earlier attempt to do that."""
    store = site.store(plan.rack)
    cut = store.uncertain_since(device)
    return cut is not None and plan.undoes is not None and plan.undoes in {cut, store.run(cut).plan.get("undoes")}


def _require_setting(site: Site, plan: Plan, step: Step) -> None:
    """A component must still show what it showed, where it tells."""
    setting = settable(site.inventory, site.devices, step.data["component"], step.data["setting"])
    setting.require(step.data["after"])
    before = step.data["before"]
    shows = setting.read()
    if before is not None and not same(shows, before):
        what = f"{setting.component.id} shows {setting.text(shows)}, not {setting.text(before)}"
        raise _moved_on(plan, f"{what} as it did")


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
    written = (*run.plan["puc_changes"], *run.plan.get("join_changes", ()))
    reversible = run.state in REVERSIBLE and all(change["from"] is not None for change in written)
    return RefusedError(
        f"what {device} holds is not certain since {cut} was cut",
        # A rollback that did not come to its end is not taken back, but done again.
        hint=f"lumctl swap rollback {run.plan.get('undoes') or cut} --target {site.target}"
        if reversible
        else f"program it anew: {apply}",
    )


def require_agreement(kind: str, device: str, held: dict[int, str], read: dict[int, str]) -> None:
    """Refuse to go on from a record that the device itself contradicts.

    Raises:
        RefusedError: a cell differs.
    """
    wrong = [cell for cell, state in held.items() if read.get(cell) != state]
    if wrong:
        raise RefusedError(
            f"{device} does not hold what was last written to it: {len(wrong)} cells differ, the first is "
            f"{device}/{'port' if kind == 'switch' else 'puc'}/{wrong[0]}",
            hint="somebody or a fault changed it; program it anew with: lumctl fabric apply --rewrite",
        )
