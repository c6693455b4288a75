"""What is left of a run that was cut, and whether the rack still allows it to go on."""

from collections.abc import Mapping

from lumctl.change.check import require_healthy
from lumctl.change.disturbance import require_undisturbed
from lumctl.change.job_step import resumes
from lumctl.change.overtaken import Overtaken
from lumctl.change.plan import Do, Step
from lumctl.change.trail import Trail
from lumctl.change.untouched import require_others_untouched
from lumctl.devices import transaction
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError
from lumctl.inventory.switching import own_cells
from lumctl.jobs import RUNNING, Hooks, passed_over
from lumctl.jobs.hooks import PAUSE, hooked
from lumctl.site import Site
from lumctl.store import Run as StoredRun

WRITES = frozenset({Do.PROGRAM, Do.TRANSMIT, Do.SET})


def left(site: Site, trail: Trail) -> tuple[Step, ...]:
    """The steps that are to be done yet, in the order of the plan: what was done is not done again.

    Written again is what a device may have taken back by itself: what was not confirmed to it, or is not in it now.
    Light is proved anew, whenever that was done before; a job that runs again is paused again.

    Raises:
        DeviceError: a device that can be read does not answer.
    """
    plan = trail.plan
    if trail.complete:
        return tuple(step for step in plan.steps if resumes(step) and step.id not in trail.ended)
    unconfirmed = {d for s in plan.steps if s.do is Do.CONFIRM and s.id not in trail.ended for d in s.data["devices"]}
    found: list[Step] = []
    for step in plan.steps:
        again = step.id not in trail.ended
        if step.do is Do.CHECK and step.id in trail.evidence and trail.touched:
            again = False  # what was sound before anything moved cannot be found any more
        if step.do is Do.PROGRAM and not again:
            device = step.data["device"]
            again = (device in unconfirmed and _reverts(site, device)) or _is_gone(site, step)
        if step.do is Do.VERIFY:
            again = True  # what was proved then may have gone dark since
        if again:
            found.append(step)
    if any(step.do in WRITES for step in found):
        found += [step for step in plan.steps if step.id in trail.ended and _runs_again(site, step)]
    return tuple(sorted(found, key=plan.steps.index))


def require_mine(run: StoredRun, over: Overtaken) -> None:
    """Require that whatever a run may have changed is still as it left it, as far as our record tells.

    Raises:
        RefusedError: a later run has changed it: neither can this one go on, nor be taken back.
    """
    if over.why:
        raise RefusedError(
            f"a later run has changed what {run.id} left: {over.why[0]}",
            hint=f"close this run and leave alone what later runs changed: lumctl swap abort {run.id} --leave-later",
        )


def require_way_on(site: Site, trail: Trail, steps: tuple[Step, ...]) -> None:
    """Require what is left of a run to have what it needs: its spares, its devices, everybody else's circuits.

    Raises:
        RefusedError: something is missing; it says what.
        DeviceError: a device does not answer.
    """
    plan = trail.plan
    if all(resumes(step) for step in steps):
        return
    looked = [step for step in plan.steps if step.do is Do.CHECK and step.id in trail.evidence]
    if not looked and trail.touched and any(step.do is Do.CHECK for step in plan.steps):
        raise RefusedError("which circuits were sound before anything moved was not written down")
    for step in looked if trail.touched else ():
        require_healthy(site, step.data["healthy"])
    for device in dict.fromkeys(change.device for change in plan.changes):
        _require_cells(site, trail, device)
    require_others_untouched(site, plan)
    require_undisturbed(site, plan)


def _require_cells(site: Site, trail: Trail, device: str) -> None:
    """Each cell of a device is as it was, but for those that this run may have written, by half or whole."""
    own = own_cells(site.inventory, site.inventory.devices[device])
    start = trail.plan.start.cells(device, own)
    driver = site.devices.changing(device)
    driver.identify()
    if start is None:
        return  # it is written whole
    tried = {cell for s in trail.tried if s.do is Do.PROGRAM and s.data["device"] == device for cell in _cells(s)}
    held = transaction.read_cells(driver, own) if transaction.readable(driver) else site.known_cells(device)
    for cell, state in held.items():
        if state != start.get(cell) and cell not in tried:
            raise RefusedError(
                f"{device} does not hold what it did: cell {cell} was changed, and not by this run",
                hint=f"write it again: lumctl fabric apply --rewrite --rack {trail.plan.rack}",
            )


def _is_gone(site: Site, step: Step) -> bool:
    """Whether a device says that it does not hold (any more) what was written."""
    driver = site.devices.changing(step.data["device"])
    if not transaction.readable(driver):
        return False
    cells = _cells(step)
    read = transaction.read_cells(driver, cells)
    return any(read.get(cell) != state for cell, state in cells.items())


def _cells(step: Step) -> Mapping[int, str]:
    return {int(cell): str(after) for cell, _, after in step.data["changes"]}


def _reverts(site: Site, device: str) -> bool:
    return Capability.CONFIRM_TIMER in site.devices.changing(device).capabilities


def _runs_again(site: Site, step: Step) -> bool:
    if step.do is not Do.JOB or step.data["act"] != PAUSE:
        return False
    job = step.data["job"]
    if not hooked(site.inventory, job) or passed_over(site, job):
        return False
    return Hooks(site, job).status() == RUNNING
