"""What a change disturbs: jobs whose light paths change, and what a single setting takes from jobs.

A job must be stopped or paused before its light paths change: either its hook has paused it, or an operator confirms
that it is stopped. A ``Do.SET`` step lists under ``disturbs`` the jobs and circuits that an operator allowed it to
disturb; it is refused if it would disturb others.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumctl.change.foreign_circuits import is_changed, is_rollback, placed_by
from lumctl.change.plan import Do, Plan, Step, only_adopts
from lumctl.change.settings import Value, settable
from lumctl.context import Context
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates
from lumctl.inventory.components import Component, Part
from lumctl.inventory.wiring import Circuit, circuits_of, jobs_in
from lumctl.jobs import by_hand
from lumctl.store.records import OPEN

FABRIC = "fabric"
"""The kind of plans that rarely meet a running job: a fabric is programmed when it is commissioned or repaired."""


def jobs_to_stop(context: Context, plan: Plan, left: Sequence[Step] | None = None) -> tuple[str, ...]:
    """Jobs whose light paths a plan changes and that only an operator can stop; ``left`` are the remaining steps.

    The result is empty on a simulator, where no job runs; if an interrupted or half-done run is undone, because repair
    comes first; if the remaining steps only resume jobs; if the plan only records where jobs run; and for a plan of
    another target, which is refused anyway. Programming a fabric affects only the jobs whose light paths it disturbs.

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
    """Require an operator's statement that the jobs to stop are stopped; return the statement for the journal.

    Raises:
        RefusedError: there is no such statement.
    """
    jobs = jobs_to_stop(context, plan, left)
    if not jobs:
        return {}
    if said_by is None:
        raise RefusedError(must_be_stopped(jobs), hint=HINT)
    return {"stopped": ", ".join(jobs), "by": said_by}


HINT = "stop the job and pass --job-is-stopped; or give it a `hook:` in the inventory, or `needs_no_pause: true`"


def must_be_stopped(jobs: Sequence[str]) -> str:
    """The message that names the jobs to stop."""
    if len(jobs) == 1:
        return f"job {jobs[0]} has no hook; stop it before its light paths change"
    return f"jobs {', '.join(jobs)} have no hook; stop them before their light paths change"


def _disturbed(context: Context, plan: Plan) -> Iterator[str]:
    """The jobs that lose light or whose light takes another path, according to the plan and to the store's record.

    A recorded circuit that is planned again is dark meanwhile. The plan's own claims about its cells are not trusted.
    """
    yield from (circuit.owner for circuit in plan.remove)
    planned_again = {circuit.id for circuit in plan.add}
    written = plan.writes
    held = FabricStates(context.inventory, context.known_fabric(plan.rack) if written else {})
    after = held.with_changed(written)
    for circuit in circuits_of(context.inventory, context.assignment(sound=False)) if written else ():
        path = held.path_of(circuit)
        if path is None or written.keys().isdisjoint(segment.device for segment in path.segments):
            continue
        if circuit.id in planned_again or is_changed(circuit, held, after):
            yield circuit.owner
    stored = context.store(plan.rack).fabric.assignment()
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            placed = placed_by(step.data["assignment"])
            yield from (job for job, ranks in placed.items() if stored.get(job, ranks) != ranks)


def _mends(context: Context, plan: Plan) -> bool:
    """Whether a plan undoes an open run; checked against that run, because anyone can write a plan's file."""
    return is_rollback(context, plan) and context.store(plan.rack).runs.get(str(plan.undoes)).state in OPEN


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A circuit or a job that a setting disturbs: its name, and how it uses the component, in words."""

    name: str
    how: str


def disturbed(context: Context, component: Component, name: str, value: Value) -> tuple[Disturbed, ...]:
    """The circuits and jobs that a setting with this value would disturb, from the present placement of the jobs."""
    placed = context.assignment(sound=False)
    circuits = circuits_of(context.inventory, placed)
    if component.part is Part.POWER:
        return () if value == "on" else _of_machine(context, component, placed, circuits)
    # Switching a port or a transmitter on takes no light away.
    if name == "label" or value is True:
        return ()
    states = FabricStates(context.inventory, context.known_fabric(component.rack))
    carried = [c for c in circuits if _runs_through(c, component, states)]
    return tuple(Disturbed(c.id, f"{component.id} carries circuit {c.id} of {c.owner}") for c in carried)


def require_undisturbed(context: Context, plan: Plan) -> None:
    """Refuse a plan whose settings would disturb a job that they do not list.

    Raises:
        RefusedError: a setting would; the message names the job or circuit.
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
                    hint=(
                        f"to do it anyway: lumctl device set {meant.component.id} {shlex.quote(meant.text(after))} "
                        f"--even-if-used --target {context.target}"
                    ),
                )


def _runs_through(circuit: Circuit, component: Component, states: FabricStates) -> bool:
    if component.part is Part.PORT:
        device, path = str(component.device), states.path_of(circuit)
        passed = {segment.ports for segment in path.segments if segment.device == device} if path else set()
        return component.number in circuit.ports_at(device) or any(component.number in ports for ports in passed)
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
