"""Preconditions of a plan, checked before anything is changed: its target, the inventory, and its start."""

from collections.abc import Iterator
from contextlib import contextmanager

from lumctl.change.disturbance import require_undisturbed
from lumctl.change.foreign_circuits import placed_by, require_foreign_circuits_kept
from lumctl.change.interrupts import LEASE_TERM_S
from lumctl.change.live_paths import contradiction, require_agreed, require_light_agrees, strange_light
from lumctl.change.phase_cells import changing_cells, require_clear_of_phases
from lumctl.change.plan import ADOPT, SLICE, Do, Plan, Step, stages
from lumctl.change.refusal_advice import REVERSIBLE, asking, past_later_runs, plan_again
from lumctl.change.run_history import require_in_force
from lumctl.change.settings import same, settable
from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError
from lumctl.inventory.model import Device
from lumctl.inventory.wiring import Assignment, jobs_in, moved_words, own_cells
from lumctl.jobs import require_hooks
from lumctl.store import ways_to_finish

GONE = frozenset({"refused", "rolled-back", "superseded"})
"""States of runs whose changes are no longer in force, or were overwritten by later runs."""
REPLAY = "replay"
"""The kind of plans made from a runbook, which an operator may have edited."""


def require(context: Context, plan: Plan) -> None:
    """Refuse a plan that was made for another target, another inventory or another state of the rack.

    Raises:
        RefusedError: the plan does not match; nothing was changed.
    """
    require_target(context, plan)
    if plan.inventory_digest != context.inventory.digest:
        require_not_applied(context, plan)
        raise RefusedError(
            f"{plan.id} was made from a different version of {context.inventory.path}",
            hint=plan_again(context, plan)
            if plan.rack in context.inventory.racks
            else f"it changes rack {plan.rack}: name the inventory of that rack with -i",
        )
    # Asked before the lease was taken, and again now: a run may have been interrupted in between.
    require_none_cut(context, plan)
    _require_undone_in_force(context, plan)
    placed = context.assignment(sound=False)
    for job, accelerators in plan.start.assignment.items():
        if placed.get(job, ()) != accelerators:
            raise _moved_on(context, plan, moved_words(job))
    _require_one_job_each(context, plan, placed)
    require_agreed(plan.cuts, f"lumctl fabric apply --rack {plan.rack} --target {context.target}")
    require_light_agrees(context, plan)
    _require_passed(context, plan)
    require_clear_of_phases(context, plan)
    for step in plan.steps:
        if step.do is Do.PROGRAM:
            with _for_operators(context, plan):
                _require_own(plan, context.inventory.devices[step.data["device"]])
                _require_whole(context, plan, step)
            with asking(context, step.data["device"]):
                _require_states(context, plan, step)
            with _for_operators(context, plan):
                _require_kept(context, plan, step)
        if step.do is Do.SET:
            _require_setting(context, plan, step)
    with _for_operators(context, plan):
        _require_independent(plan)
        require_foreign_circuits_kept(context, plan)
    require_undisturbed(context, plan)
    require_hooks(context, dict.fromkeys(step.data["job"] for step in plan.steps if step.do is Do.JOB))


def require_target(context: Context, plan: Plan) -> None:
    """Refuse a plan that was made for another target.

    Raises:
        RefusedError: the plan does not match.
    """
    if plan.target != context.target:
        raise RefusedError(
            f"{plan.id} was made for target {plan.target}, but this command uses target {context.target}",
            hint=f"add --target {plan.target}, or make a new plan for {context.target}",
        )


@contextmanager
def _for_operators(context: Context, plan: Plan) -> Iterator[None]:
    """Reword refusals that only the author of a runbook can act on, for plans that were not made from a runbook.

    Raises:
        RefusedError: the block refused the plan.
    """
    try:
        yield
    except RefusedError as error:
        if plan.kind == REPLAY:
            raise
        why = error.message.removeprefix(plan.id).lstrip()
        if plan.undoes is None:
            raise RefusedError(f"{plan.id} cannot be applied: it {why}", hint=plan_again(context, plan)) from error
        raise RefusedError(
            f"{plan.undoes} cannot be rolled back: the rollback {why}",
            hint=past_later_runs(context, context.store(plan.rack).runs.get(plan.undoes)),
        ) from error


def _require_undone_in_force(context: Context, plan: Plan) -> None:
    """Refuse to roll back a run that was rolled back after the plan was made."""
    for run in context.store(plan.rack).runs.all() if plan.undoes else ():
        if run.id == plan.undoes:
            require_in_force(context, run)


def require_none_cut(context: Context, plan: Plan) -> None:
    """Refuse a plan on top of an interrupted run, unless it undoes that run or programs its devices again.

    Otherwise the changes of the interrupted run could no longer be undone.

    Raises:
        RefusedError: the newest run of the rack that changed something was interrupted and is still open.
    """
    store = context.store(plan.rack)
    left = store.runs.unfinished(now=context.now())
    if not left or _is_anew(context, plan):
        return
    stand = [run for run in store.runs.all() if run.rack == plan.rack and run.state not in GONE]
    # By lease number, not by time: the clocks of the machines that share a store may differ.
    newest = max(stand, key=lambda run: run.fence, default=None)
    if newest is None or newest.state != "running" or newest.id not in left:
        return
    # The newest run may itself be an interrupted attempt to undo that run.
    if plan.undoes is not None and plan.undoes in {newest.id, newest.plan.get("undoes")}:
        return
    for device in _written(plan):
        if store.fabric.uncertain_since(device) is not None:
            raise uncertain(context, plan.rack, device)
    raise RefusedError(
        f"{newest.id} was interrupted and is still open: finish it before another change",
        hint=ways_to_finish(newest.id, context.target),
    )


def _is_anew(context: Context, plan: Plan) -> bool:
    """Whether a plan needs no record of its devices' states."""
    devices = [context.inventory.devices[name] for name in _written(plan) if name in context.inventory.devices]
    return bool(devices) and all(
        plan.start.cells(device.id, own_cells(context.inventory, device)) is None for device in devices
    )


def _written(plan: Plan) -> list[str]:
    return list(dict.fromkeys(str(step.data["device"]) for step in plan.steps if step.do is Do.PROGRAM))


def _require_independent(plan: Plan) -> None:
    """Refuse stages whose steps could affect each other: steps of a stage have one kind and change different things."""
    for stage in stages(plan.steps):
        if len(stage) == 1:
            continue
        first, *others = stage
        touched = [step.touches for step in stage]
        if first.touches is None or any(step.do is not first.do for step in others):
            what = f"steps {', '.join(step.id for step in stage)}, one of which may depend on the result of another"
        elif len(set(touched)) < len(touched):
            what = f"{' and '.join(step.id for step in stage)}, two steps that change the same thing"
        else:
            continue
        raise RefusedError(
            f"{plan.id} would run in parallel {what}",
            hint="remove `stage` from these steps, so that they run one after the other",
        )


def _require_one_job_each(context: Context, plan: Plan, placed: Assignment) -> None:
    """Refuse a plan that would place two jobs on one accelerator: another job may have taken it since."""
    for step in plan.steps:
        if step.do is not Do.ASSIGN:
            continue
        after = jobs_in({**placed, **placed_by(step.data["assignment"])})
        named = [job for job in jobs_in(placed_by(step.data["assignment"])) if after[job]]
        used = {name: job for job, ranks in after.items() if job not in named for name in ranks}
        for job in named:
            for name in after[job]:
                if used.setdefault(name, job) != job:
                    raise RefusedError(
                        f"{plan.id} is stale: {name} runs a rank of {used[name]} now", hint=plan_again(context, plan)
                    )


def _require_own(plan: Plan, device: Device) -> None:
    """Refuse to write a device of another rack: lease and record belong to the plan's rack."""
    if device.rack != plan.rack:
        raise RefusedError(
            f"{plan.id} is for rack {plan.rack}, but would write {device.id}, which is in rack {device.rack}",
            hint="write one runbook for each rack",
        )


def _require_kept(context: Context, plan: Plan, step: Step) -> None:
    """Refuse to write a device with a revert timer without a later confirm step: it would revert after the run."""
    device, later = step.data["device"], plan.steps[plan.steps.index(step) :]
    if Capability.CONFIRM_TIMER not in context.devices.changing(device).capabilities:
        return
    if not any(each.do is Do.CONFIRM and device in each.data["devices"] for each in later):
        raise RefusedError(
            f"{plan.id} would write {device}, which reverts by itself unless confirmed, and has no later confirm step "
            "for it",
            hint="add a confirm step that lists it, after the last verify step",
        )


def _require_whole(context: Context, plan: Plan, step: Step) -> None:
    """Refuse to write some cells of a device if the plan does not contain the states of the others."""
    device = step.data["device"]
    own = own_cells(context.inventory, context.inventory.devices[device])
    if plan.start.cells(device, own) is None and not {cell for cell, _, _ in step.data["changes"]} >= set(own):
        raise RefusedError(
            f"{plan.id} would write some cells of {device}, but does not give the states of the others",
            hint="list the states of all its cells under `start`, or write all of them",
        )


def _require_states(context: Context, plan: Plan, step: Step) -> None:
    """Require that a device still has the plan's start states; if all its cells are written, it needs no record."""
    device = step.data["device"]
    own = own_cells(context.inventory, context.inventory.devices[device])
    pinned = plan.start.cells(device, own)
    driver = context.devices.changing(device)
    # A device that does not answer, or has another size, is found before anything is written.
    driver.identify()
    if pinned is None or not own:
        before = {int(cell): was for cell, was, _ in step.data["changes"] if was is not None}
        if transaction.readable(driver) and transaction.read_cells(driver, before) != before:
            raise _moved_on(context, plan, f"{device} is not in the state that it had")
        return
    if not context.known_cells(device) and _left_so_by(context, plan, device):
        return  # its cells are written again, whatever they hold
    held = held_now(context, context.inventory.devices[device])
    if pinned != held:
        raise _moved_on(context, plan, f"{device} is not in the state that it had")
    if transaction.readable(driver):
        # The plan writes a cell again with its recorded state if the cell was seen to differ from the record.
        again = {cell for cell, before, after in step.data["changes"] if before == after}
        again |= {cell for cells in changing_cells(context, plan.rack).values() for cell in cells.get(device, ())}
        kept = {cell: state for cell, state in held.items() if cell not in again}
        require_agreement(plan.rack, driver.kind, device, kept, transaction.read_cells(driver, own))


def _require_passed(context: Context, plan: Plan) -> None:
    """Require unchanged states of devices that the plan's circuits pass but that the plan does not write."""
    passed = {device for circuit in plan.add for device in circuit.devices} - set(_written(plan))
    for name in sorted(passed & context.inventory.devices.keys()):
        device = context.inventory.devices[name]
        pinned = plan.start.cells(name, own_cells(context.inventory, device))
        with asking(context, name):
            held = held_now(context, device) if pinned is not None else pinned
        if pinned != held:
            raise _moved_on(context, plan, f"{name} is not in the state that it had")


def held_now(context: Context, device: Device) -> dict[int, str]:
    """The states of a device: from the record or, if lumctl has never written it, read from the device.

    For a switch without any lane of the inventory these are all its ingress ports, because it has no record.

    Raises:
        RefusedError: there is no record, and the device cannot be read in full or a run that wrote it was interrupted.
        DeviceError: the device does not answer.
    """
    if held := context.known_cells(device.id):
        return held
    driver, cells = (
        context.devices.changing(device.id),
        own_cells(context.inventory, device) or range(device.input_count),
    )
    if transaction.readable(driver) and context.store(device.rack).fabric.uncertain_since(device.id) is None:
        read = transaction.read_cells(driver, cells)
        if read.keys() == set(cells):
            return read
    raise uncertain(context, device.rack, device.id)


def _left_so_by(context: Context, plan: Plan, device: str) -> bool:
    """Whether the run that is being undone, or an earlier attempt to undo it, makes the state of a device uncertain."""
    store = context.store(plan.rack)
    cut = store.fabric.uncertain_since(device)
    return cut is not None and plan.undoes is not None and plan.undoes in {cut, store.runs.get(cut).plan.get("undoes")}


def _require_setting(context: Context, plan: Plan, step: Step) -> None:
    """Require that a setting still has its value at planning time, if it can be read."""
    setting = settable(context.inventory, context.devices, step.data["component"], step.data["setting"])
    setting.require(step.data["after"])
    before = step.data["before"]
    shows = setting.read()
    if before is not None and not same(shows, before):
        what = f"{setting.component.id} reports {setting.text(shows)}, not {setting.text(before)}"
        raise _moved_on(context, plan, f"{what} as it did")


def _moved_on(context: Context, plan: Plan, what: str) -> RefusedError:
    if plan.undoes is not None:
        return RefusedError(
            f"{plan.undoes} cannot be rolled back: {what} right after it; a later run has changed that",
            hint=past_later_runs(context, context.store(plan.rack).runs.get(plan.undoes)),
        )
    require_not_applied(context, plan)
    return RefusedError(f"{plan.id} is stale: {what} when it was made", hint=plan_again(context, plan))


def require_not_applied(context: Context, plan: Plan) -> None:
    """Refuse a plan that a run in force has applied already.

    Raises:
        RefusedError: it was applied.
    """
    for run in context.store(plan.rack).runs.all():
        if run.plan_digest == plan.digest and run.state in REVERSIBLE:
            see = f"see: lumctl swap show {run.id} --target {context.target}"
            raise RefusedError(
                f"{plan.id} was already applied by {run.id}",
                hint=plan_again(context, plan) if plan.kind == SLICE else see,
            )


def uncertain(context: Context, rack: str, device: str) -> RefusedError:
    """The refusal to plan on a device whose states are uncertain, with the command that helps."""
    apply = f"lumctl fabric apply --rack {rack} --target {context.target}"
    cut = context.store(rack).fabric.uncertain_since(device)
    if cut is None:
        strange = strange_light(context, rack)
        if strange:
            return contradiction(context, rack, strange)
        return RefusedError(
            f"the state of {device} is unknown: it was never programmed from this store",
            hint=f"program the rack first: {apply}",
        )
    run = context.store(rack).runs.get(cut)
    if run.kind == ADOPT:
        return RefusedError(
            f"the state of {device} is unknown: {cut} adopted the placement of the jobs, and {device} cannot be read "
            "back",
            hint=f"program the circuits of the jobs where they run now: {apply}",
        )
    written = (*run.plan["puc_changes"], *run.plan.get("join_changes", ()))
    reversible = run.state in REVERSIBLE and all(change["from"] is not None for change in written)
    back = f"lumctl swap rollback {cut} --target {context.target}"
    if run.state in {"running", "half-done"}:
        back = ways_to_finish(cut, context.target)
    if run.state == "running" and cut not in context.store(rack).runs.unfinished(now=context.now()):
        return RefusedError(
            f"the state of {device} is uncertain: {cut} is changing it, or was interrupted within the last "
            f"{LEASE_TERM_S:.0f} s",
            hint=f"wait until it ends, then see: lumctl swap list --target {context.target}",
        )
    return RefusedError(
        f"the state of {device} is uncertain since {cut} was interrupted",
        hint=back if reversible else f"program it again: {apply}",
    )


def require_agreement(rack: str, kind: str, device: str, held: dict[int, str], read: dict[int, str]) -> None:
    """Refuse to continue from a record that the device contradicts.

    Raises:
        RefusedError: a cell differs.
    """
    wrong = [cell for cell, state in held.items() if read.get(cell) != state]
    if wrong:
        raise RefusedError(
            f"{device} differs from what was last written to it in {len(wrong)} cells; the first is "
            f"{device}/{'port' if kind == 'switch' else 'puc'}/{wrong[0]}",
            hint=f"someone changed it or it is faulty; write it again: lumctl fabric apply --rewrite --rack {rack}",
        )
