"""What a change disturbs: jobs whose light moves, and what a single setting takes from jobs.

A job must be quiet before its light moves: paused by its hook, or stopped, as an operator confirms. A ``Do.SET`` step
lists under ``disturbs`` what an operator allowed it to disturb; anything else is refused.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumctl.change.foreign_circuits import is_rollback, placed_by, way_of
from lumctl.change.plan import Do, Plan, Step, only_adopts, programmed
from lumctl.change.settings import Value, settable
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.inventory.components import Component, Part
from lumctl.inventory.wiring import Circuit, circuits_of, jobs_in
from lumctl.jobs import by_hand
from lumctl.store.records import OPEN

FABRIC = "fabric"
"""The kind of plans that may find no running job: a fabric is programmed when it is commissioned or repaired."""


def jobs_to_stop(context: Context, plan: Plan, left: Sequence[Step] | None = None) -> tuple[str, ...]:
    """The jobs whose light a plan moves and that only a person can stop; ``left`` are the steps still to be done.

    None on a simulator, where no job runs. None when an interrupted or half-done run is undone: repair comes first.
    None if the only steps left let jobs continue, or if the plan only records where jobs run. None for a plan of
    another target, which is refused anyway. Programming a fabric concerns the jobs whose light it carries.

    Raises:
        StoreError: the store cannot be read.
    """
    if plan.target != context.target or _mends(context, plan) or only_adopts(plan):
        return ()
    if left is not None and all(step.resumes_job for step in left):
        return ()
    if plan.kind == FABRIC and not plan.replacements:
        return by_hand(context.inventory, context.target, dict.fromkeys(_disturbed(context, plan)))
    moved = [circuit.owner for circuit in (*plan.remove, *plan.add)]
    placed = [job for step in plan.steps if step.do is Do.ASSIGN for job in step.data["assignment"]]
    return by_hand(context.inventory, context.target, dict.fromkeys((*moved, *placed)))


def require_stopped(
    context: Context, plan: Plan, said_by: str | None, left: Sequence[Step] | None = None
) -> dict[str, str]:
    """Require an operator's statement that such jobs are stopped; returns what the journal keeps of it.

    Raises:
        RefusedError: there is no such statement.
    """
    jobs = jobs_to_stop(context, plan, left)
    if not jobs:
        return {}
    if said_by is None:
        raise RefusedError(must_be_stopped(jobs), hint=HINT)
    return {"stopped": ", ".join(jobs), "by": said_by}


HINT = "stop it and say so: --job-is-stopped; or name its `hook:` in the inventory, or `needs_no_pause: true`"


def must_be_stopped(jobs: Sequence[str]) -> str:
    """The message that names the jobs to stop."""
    if len(jobs) == 1:
        return f"job {jobs[0]} has no hook; it must be stopped before its light moves"
    return f"jobs {', '.join(jobs)} have no hook; they must be stopped before their light moves"


def _disturbed(context: Context, plan: Plan) -> Iterator[str]:
    """The jobs that lose light or whose light takes another path, by the plan and by the store's record.

    A recorded circuit that is planned again is dark meanwhile. The plan's own claims about its cells prove nothing.
    """
    yield from (circuit.owner for circuit in plan.remove)
    planned_again = {circuit.id for circuit in plan.add}
    written: dict[str, dict[int, str]] = {}
    for change in programmed(plan.steps):
        written.setdefault(change.device, {})[change.puc] = change.after
    for circuit in circuits_of(context.inventory, context.assignment(sound=False)) if written else ():
        if circuit.device not in written:
            continue
        held = context.known_cells(circuit.device)
        way = way_of(context, circuit, held) if held else ()
        if way and (
            circuit.id in planned_again or way != way_of(context, circuit, {**held, **written[circuit.device]})
        ):
            yield circuit.owner
    stored = context.store(plan.rack).fabric.assignment()
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            placed = placed_by(step.data["assignment"])
            yield from (job for job, ranks in placed.items() if stored.get(job, ranks) != ranks)


def _mends(context: Context, plan: Plan) -> bool:
    """Whether it undoes an open run; checked against that run, because a plan is a file that anybody can write."""
    return is_rollback(context, plan) and context.store(plan.rack).runs.get(str(plan.undoes)).state in OPEN


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A circuit or a job that a setting disturbs: its name, and in words how the component serves it."""

    name: str
    how: str


def disturbed(context: Context, component: Component, name: str, value: Value) -> tuple[Disturbed, ...]:
    """What a job loses, where it runs now, if a component is set to this value."""
    placed = context.assignment(sound=False)
    circuits = circuits_of(context.inventory, placed)
    if component.part is Part.POWER:
        return () if value == "on" else _of_machine(context, component, placed, circuits)
    if name == "label" or value is True:
        return ()
    carried = [c for c in circuits if _runs_through(c, component)]
    return tuple(Disturbed(c.id, f"{component.id} carries circuit {c.id} of {c.owner}") for c in carried)


def require_undisturbed(context: Context, plan: Plan) -> None:
    """Refuse a plan whose settings would disturb a job that they do not name.

    Raises:
        RefusedError: it would; what is disturbed is named.
    """
    for step in plan.steps:
        if step.do is not Do.SET:
            continue
        name, after = step.data["setting"], step.data["after"]
        meant = settable(context.inventory, context.devices, step.data["component"], name)
        for found in disturbed(context, meant.component, name, after):
            if found.name not in step.data.get("disturbs", ()):
                raise RefusedError(
                    f"{plan.id} would disturb {found.name}: {found.how}",
                    hint=f"if that is meant: lumctl device set {meant.component.id} {shlex.quote(meant.text(after))} "
                    f"--even-if-used --target {context.target}",
                )


def _runs_through(circuit: Circuit, component: Component) -> bool:
    if component.part is Part.PORT:
        return circuit.device == component.device and component.number in circuit.ports
    return component.id in {transmitter for _, transmitter in circuit.receivers}


def _of_machine(
    context: Context, component: Component, placed: dict[str, tuple[str, ...]], circuits: tuple[Circuit, ...]
) -> tuple[Disturbed, ...]:
    lanes, accelerators = context.inventory.transponders, context.inventory.accelerators
    ranks = [
        Disturbed(job, f"rank {rank} of {job} runs on {accelerator}")
        for job, ranks in jobs_in(placed).items()
        for rank, accelerator in enumerate(ranks)
        if accelerators[accelerator].host == component.host
    ]
    lost = [
        Disturbed(c.id, f"circuit {c.id} of {c.owner} ends at {component.host}")
        for c in circuits
        if component.host in {lanes[end.transponder].host for end in (c.a, c.b)}
    ]
    return (*ranks, *lost)
