"""Plan to undo a run by the inverse of its plan, even if the run was interrupted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from lumctl.change.plan import Do, Plan, PlannedChange, Start, Step, from_document, programmed, receivers
from lumctl.change.refusal_advice import instead_of_rollback
from lumctl.change.run_history import require_fit, require_in_force
from lumctl.change.settings import same
from lumctl.context import Context
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError
from lumctl.inventory.model import Evidence
from lumctl.inventory.wiring import own_cells
from lumctl.jobs import without_hook
from lumctl.jobs.hooks import PAUSE, RESUME
from lumctl.store import Act, JournalEntry, StoredRun
from lumctl.swap.settings import inverse_setting
from lumctl.swap.steps import StepList


def plan_rollback(context: Context, run: StoredRun) -> Plan:
    """Plan to undo the changes of a run. For an interrupted run, only the steps that may have acted are undone.

    Raises:
        RefusedError: no change of the run is active any more, or it cannot be undone.
    """
    if run.target != context.target:
        raise RefusedError(f"{run.id} ran on target {run.target}", hint=f"add --target {run.target}")
    require_in_force(context, run)
    plan = from_document(run.plan)
    if any(step.do is Do.RECORD for step in plan.steps):
        raise RefusedError(
            f"{run.id} only recorded what an operator stated: record the opposite instead",
            hint=_opposite(plan),
        )
    if plan.undoes is not None and run.state == "half-done":
        raise RefusedError(
            f"{run.id} is a rollback that has not ended: resume it instead",
            hint=f"lumctl swap resume {run.id} --target {context.target}",
        )
    if any(change.before is None for change in plan.changes):
        raise RefusedError(
            f"{run.id} wrote cells whose earlier states were unknown: they cannot be restored",
            hint=instead_of_rollback(context, run),
        )
    require_fit(context, run.id, plan)
    trail = _Trail.of(plan, context.store(run.rack).journal.of_run(run.id))
    steps, left = _inverse(context, plan, trail)
    if left and not steps.steps:
        raise RefusedError(f"{run.id} cannot be rolled back: {'; '.join(left)}", hint=instead_of_rollback(context, run))
    return Plan(
        kind="rollback",
        title=f"undo {run.id} ({plan.title})",
        rack=plan.rack,
        target=context.target,
        created_at=context.now(),
        inventory_digest=context.inventory.digest,
        start=_start(context, plan, trail.took),
        add=plan.remove,
        remove=plan.add,
        keep=plan.keep,
        changes=programmed(steps.steps),
        steps=tuple(steps.steps),
        warnings=tuple(
            f"circuit {circuit.id} did not work before {run.id}: it is restored but not verified"
            for circuit in plan.remove
            if circuit.id not in trail.sound_before(plan)
        )
        + tuple(left)
        + without_hook(context.inventory, dict.fromkeys(circuit.owner for circuit in (*plan.remove, *plan.add))),
        undoes=run.id,
    ).sealed()


@dataclass(frozen=True)
class _Trail:
    """The progress of a run: the steps that took effect, and those that may have; without steps that it undid."""

    took: tuple[Step, ...]
    tried: tuple[Step, ...]
    was_on: Mapping[str, bool]
    """By step that switches a transmitter, whether it was on before, by the step's outcome or an earlier check step."""
    was: Mapping[str, Any]
    """By finished step that changed a setting, the value before it."""
    sound: Mapping[str, str]
    """Receivers that were shown to hear their intended transmitter before the run moved anything."""

    @classmethod
    def of(cls, plan: Plan, entries: Sequence[JournalEntry]) -> Self:
        said = {kind: {e.step: e.data for e in entries if e.kind == kind} for kind in ("intent", "outcome")}
        undone = set[str]()
        for entry in entries:
            if entry.kind == "intent":
                undone.discard(entry.step)  # it was done again, when the run was resumed
            elif entry.kind == "undo-outcome" and entry.data.get("undone"):
                undone.add(entry.step)
        tried = tuple(step for step in plan.steps if step.id in said["intent"] and step.id not in undone)
        looks: dict[str, bool] = {}
        for data in said["outcome"].values():
            looks |= data.get("transmitting", {})
        lanes = {step.id: looks.get(step.data["transponder"]) for step in plan.steps if step.do is Do.TRANSMIT}
        return cls(
            took=tuple(step for step in tried if said["outcome"].get(step.id, {}).get("done")),
            tried=tried,
            was_on={step: was for step, was in lanes.items() if was is not None}
            | {step: bool(data["was"]) for step, data in said["outcome"].items() if "was" in data},
            was={step: data["was"] for step, data in said["outcome"].items() if "was" in data},
            sound={r: t for data in said["outcome"].values() for r, t in data.get("sound", {}).items()},
        )

    def sound_before(self, plan: Plan) -> list[str]:
        """The circuits that the run removed and that were sound until then: only these can be proved again."""
        return [c.id for c in plan.remove if all(self.sound.get(r) == t for r, t in receivers(c))]


def _inverse(context: Context, plan: Plan, trail: _Trail) -> tuple[StepList, list[str]]:
    """The steps that undo a run; and the parts that cannot be undone, in words."""
    steps, left = StepList(context.inventory), list[str]()
    kept = [circuit.id for circuit in plan.keep]
    if not _only_sets(plan):
        steps.check([], kept=kept, replaced=[circuit.id for circuit in plan.add])
    jobs = dict.fromkeys(circuit.owner for circuit in (*plan.remove, *plan.add))
    moved = any(step.do in {Do.PROGRAM, Do.TRANSMIT} for step in trail.tried)
    # What a filler job got back is taken from it again, before a rank returns there.
    steps.jobs([*_fillers(context, trail.tried, RESUME), *(jobs if moved else ())], PAUSE)
    for step in reversed(trail.tried):
        if step.do is Do.SET:
            left += _set_back(context, step, trail, steps)
        _switch_back(context, plan, step, trail, steps)
    writes: dict[str, list[PlannedChange]] = {}
    for change in programmed(trail.tried):
        # No earlier state is unknown here: plan_rollback refuses such a run.
        back = PlannedChange(change.device, change.puc, change.after, str(change.before))
        writes.setdefault(change.device, []).append(back)
    if writes:
        steps.program(writes)
        steps.verify(trail.sound_before(plan), kept)
        steps.confirm([d for d in writes if Capability.CONFIRM_TIMER in context.devices.changing(d).capabilities])
    for step in trail.took:
        if step.do is Do.ASSIGN:
            steps.assign(step.data["assignment"], step.data["before"])
    going_on = [job for job in jobs if job not in _placed_first(trail.took)]
    acted = moved or any(step.do is Do.JOB for step in trail.tried)
    steps.jobs([*(going_on if acted else ()), *_fillers(context, trail.tried, PAUSE)], RESUME)
    return steps, left


def _fillers(context: Context, steps: Iterable[Step], act: str) -> list[str]:
    """The filler jobs that these steps may have paused, or resumed."""
    acted = [step.data for step in steps if step.do is Do.JOB and step.data["job"] in context.inventory.fillers]
    return [str(data["job"]) for data in acted if data["act"] == act]


def _placed_first(steps: Iterable[Step]) -> set[str]:
    """The slices that these steps placed: before, they ran nowhere, so they cannot go on there."""
    placed = [step for step in steps if step.do is Do.ASSIGN]
    return {job for step in placed for job, ranks in step.data["before"].items() if not ranks}


def _switch_back(context: Context, plan: Plan, step: Step, trail: _Trail, steps: StepList) -> None:
    """Add the steps that restore the transmitters which a step switched or may have left dark."""
    # Unknown counts as on: an unneeded light does less harm than a dark transmitter.
    if step.do is Do.TRANSMIT and trail.was_on.get(step.id, True) is not step.data["enabled"]:
        steps.transmit(step.data["transponder"], enabled=not step.data["enabled"], required=step.required)
    if step.do is Do.VERIFY and step not in trail.took:
        for lane in _blinked(context, plan):
            steps.transmit(lane, enabled=True, required=False)


def _set_back(context: Context, step: Step, trail: _Trail, steps: StepList) -> list[str]:
    """Add the step that restores the earlier value; return the reason if there is no such step."""
    was = trail.was.get(step.id, step.data["before"])
    found = inverse_setting(context, step, was, took=step in trail.took)
    if isinstance(found, str):
        return [found]
    setting, shows, before = found
    if not same(shows, before):
        steps.set(setting, shows, before, step.data.get("disturbs", ()))
    return []


def _opposite(plan: Plan) -> str:
    """The command that reverses an action which only recorded an operator's statement."""
    said = next(step.data for step in plan.steps if step.do is Do.RECORD)
    component, rule = said.get("component"), said.get("rule")
    match said.get("act"):
        case Act.ACKNOWLEDGE:
            return f"lumctl health ack {component}{f' --rule {rule}' if rule else ''} --clear"
        case Act.OPEN_WINDOW:
            return f"lumctl health maintain {component} --end"
        case Act.UNACKNOWLEDGE:
            return f"lumctl health ack {component}{f' --rule {rule}' if rule else ''} --comment WHY"
        case Act.END_WINDOW:
            return f"lumctl health maintain {component} --for 2h --comment WHY"
    return "edit the inventory, or: lumctl autopilot start"


def _only_sets(plan: Plan) -> bool:
    """Whether a plan only sets single settings: it changes no circuit and no placement."""
    return all(step.do is Do.SET for step in plan.steps)


def _blinked(context: Context, plan: Plan) -> list[str]:
    """Transmitters that a verify step interrupted during a blink may have left dark."""
    lanes = context.inventory.transponders
    ends = {str(end["lane"]) for circuit in plan.add for end in circuit.ends}
    return sorted(lane for lane in ends if Evidence.BLINK in lanes[lane].verify)


def _start(context: Context, plan: Plan, took: Iterable[Step]) -> Start:
    """The present states: the plan's start, updated by the steps that took effect."""
    took = tuple(took)
    assignment = dict(plan.start.assignment)
    if _only_sets(plan):  # later swaps do not matter: what a setting disturbs depends on where jobs run now
        assignment = {job: ranks for job, ranks in context.assignment(sound=False).items() if job in assignment}
    for step in took:
        if step.do is Do.ASSIGN:
            assignment |= {job: tuple(ranks) for job, ranks in step.data["assignment"].items()}
    cells: dict[str, dict[int, str]] = {}
    for device in {*plan.start.crosses, *plan.start.joins, *(change.device for change in programmed(took))}:
        own = own_cells(context.inventory, context.inventory.devices[device])
        cells[device] = plan.start.cells(device, own) or {}
    for change in programmed(took):
        if change.puc in own_cells(context.inventory, context.inventory.devices[change.device]):
            cells[change.device][change.puc] = change.after
    return Start.of(assignment, cells)
