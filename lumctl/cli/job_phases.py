"""``lumctl job phases``: the phases of a job's training step, their light, and what changes between them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.job_profile import show_profile
from lumctl.cli.job_state import ASK_WITHIN_S, JobArgument, asked, find_job
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import aimed, verb
from lumctl.errors import ExitCode, RefusedError
from lumctl.inventory.model import DeviceKind, Inventory, Job
from lumctl.printable import counted
from lumctl.quantity_text import seconds_text

if TYPE_CHECKING:
    from lumctl.change.plan import PlannedCircuit
    from lumctl.training.phases import JobPhases, PhaseChange, PhaseLight

_PHASES = (
    OutputColumn("PHASE", "phase"),
    OutputColumn("CIRCUITS", "circuit_count", right=True),
    OutputColumn("LEAST MARGIN", "margin", right=True),
    OutputColumn("POSSIBLE", "possible_text"),
    OutputColumn("WHY NOT", "why", gives_way=1),
)
_CHANGES = (
    OutputColumn("BETWEEN", "between_text"),
    OutputColumn("WHAT CHANGES", "cells_text"),
    OutputColumn("SETTLING", "settling_text", right=True),
)
_CIRCUITS = (
    OutputColumn("PHASE", "phase"),
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("FROM", "from"),
    OutputColumn("TO", "to"),
    OutputColumn("PUCS", "puc_count", right=True),
    OutputColumn("LOSS DB", "loss_db", right=True),
    OutputColumn("MARGIN DB", "margin_db", right=True),
)


def register(app: typer.Typer) -> None:
    """Add ``phases`` to the commands of ``job``."""
    verb(app, "phases", pages=True)(phases)


def phases(
    cx: Invocation,
    job: JobArgument,
    light: Annotated[
        str | None, typer.Option("--light", metavar="PHASE", help="Plan to give this phase light instead; see below.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check that the ranks pass through the phases in this order; see below.")
    ] = False,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="PLAN", help="Show the windows between phases; see below.")
    ] = None,
) -> None:
    """Show the phases of a job's training step: their circuits, what changes between any two, and which are possible.

    The phases and their order are those of the inventory. Each is routed beside the circuits of other jobs, around the
    damage that the inventory and the devices state. A phase is possible if all its circuits have paths and its lanes
    were read and carry light; it is unknown if a lane or a device is in doubt. The devices of a change settle at the
    same time, so it takes as long as the slowest of them.

    --light makes a plan, as ``lumctl swap plan`` does: its run takes the light from the present phase, programs the
    circuits of PHASE, and proves each. So each phase can be tried before the job begins. From then on the circuits of
    PHASE are those that the job should have, until a plan for another phase, or a rollback.

    --check compares the order with the changes that the ranks of the running job, or of its last run, made in their
    training steps. Exit code 4 means that they differ.

    --profile shows what the ranks measured while PLAN permitted the changes, and what a step costs in both modes by the
    model. ``lumctl job status`` names the plan; a run that applied it may be named instead.

    ``-o wide`` also lists the circuits of each phase; ``-o name`` prints the phases.
    """
    from lumctl.context import Context
    from lumctl.training.phases import job_phases

    written = find_job(cx.inventory, job)
    if not written.phases:
        raise RefusedError(
            f"job {job} has no phases: its links have light all the time",
            hint=f"see them: lumctl job show {job}; phases are written in the inventory: lumctl-inventory(5)",
        )
    if check:
        _check(cx, written)
        return
    if profile is not None:
        show_profile(cx, written, profile)
        return
    if cx.out.format is OutputFormat.NAME and light is None:
        cx.out.names([each.name for each in written.phases])
        return
    if light is not None:
        _plan(cx, job, light)
        return
    with Context(cx.inventory, cx.target) as context:
        seen = context.observe()
        inventory, found = seen.inventory, find_job(seen.inventory, job)
        known = {each.id: context.known_cells(each.id) for each in inventory.light_devices if each.rack == found.rack}
    made = job_phases(seen, found, known)
    if cx.out.structured:
        cx.out.document("phases", {"target": str(cx.target), **_document(made)})
    else:
        _print(cx, inventory, made)


def _plan(cx: Invocation, job: str, phase: str) -> None:
    from lumctl.change.plan import to_document
    from lumctl.cli.changes import show_plan
    from lumctl.context import Context
    from lumctl.training.phases import plan_phase

    with Context(cx.inventory, cx.target) as context:
        made = plan_phase(context, job, phase)
        context.store(made.rack).runs.save_plan(to_document(made))
    show_plan(cx, made)
    cx.out.narrate(f"apply it: lumctl swap apply {made.id} --target {made.target}")


def _check(cx: Invocation, job: Job) -> None:
    from lumctl.training.phase_record import order_faults

    told = asked(cx, job.name, ASK_WITHIN_S)
    made = [(each["left"], each["entered"]) for each in told["light"]["boundaries"]] if told and "light" in told else []
    if not made:
        raise RefusedError(
            f"the ranks of {job.name} have reported no change of phase",
            hint=aimed(cx, f"they report each training step while the job runs: lumctl job run {job.name}"),
        )
    faults = order_faults(job.order, made)
    if cx.out.structured:
        rows = [{"left": left, "entered": entered} for left, entered in made]
        cx.out.document(
            "phase-order", {"job": job.name, "order": list(job.order), "made": rows, "faults": list(faults)}
        )
    else:
        for line in faults or (f"the ranks pass through the phases in this order: {', '.join(job.order)}",):
            cx.out.text(line)
    if faults:
        raise typer.Exit(ExitCode.UNHEALTHY)


def _print(cx: Invocation, inventory: Inventory, made: "JobPhases") -> None:
    cx.out.text(f"{made.job.name}  order: {', '.join(made.job.order)}  light: {made.lit}  target: {cx.target}")
    cx.out.text(cx.out.wrapped(_step_words(made)))
    cx.out.text()
    cx.out.table(_PHASES, [_phase_row(each) for each in made.phases], title="phases")
    if made.changes:
        cx.out.text()
        cx.out.table(_CHANGES, [_change_row(inventory, each) for each in made.changes], title="changes")
    if cx.out.format is OutputFormat.WIDE:
        cx.out.text()
        rows = [{"phase": phase.name, **_circuit(each)} for phase in made.phases for each in phase.circuits]
        cx.out.table(_CIRCUITS, rows, title="circuits")
    if any(each.doubts for each in made.phases):
        cx.out.narrate(aimed(cx, "for what is in doubt, see: lumctl status"))


def _step_words(made: "JobPhases") -> str:
    """What the changes of a training step take in all."""
    changes = made.in_order
    if None in changes:
        return "a training step cannot be judged: not all of its phases have light"
    settling = sum(each.settling_s for each in changes if each is not None)
    if not changes:
        return "a training step needs no change of light"
    return (
        f"a training step needs {counted(len(changes), 'changes')} of light, which settle in {seconds_text(settling)}"
    )


def _phase_row(phase: "PhaseLight") -> dict[str, Any]:
    margins = [each.margin_db for each in phase.circuits if each.margin_db is not None]
    return {
        "phase": phase.name,
        "circuit_count": len(phase.circuits) or None,
        "margin": f"{min(margins):.1f} dB" if margins else None,
        "possible_text": {True: "yes", False: "no", None: "unknown"}[phase.is_possible],
        "why": phase.obstacle or "; ".join(phase.doubts) or None,
    }


def _change_row(inventory: Inventory, change: "PhaseChange") -> dict[str, Any]:
    return {
        "between_text": " and ".join(change.between),
        "cells_text": ", ".join(_cells_words(inventory, change)) or "nothing",
        "settling_text": seconds_text(change.settling_s),
    }


def _cells_words(inventory: Inventory, change: "PhaseChange") -> Iterator[str]:
    for device, count in change.cells.items():
        noun = "connections" if inventory.devices[device].kind is DeviceKind.SWITCH else "PUCs"
        yield f"{device}: {counted(count, noun)}"


def _circuit(circuit: "PlannedCircuit") -> dict[str, Any]:
    a, b = circuit.ends
    return {
        "id": circuit.id,
        "from": a["lane"],
        "to": b["lane"],
        "puc_count": len(circuit.pucs),
        "loss_db": circuit.loss_db,
        "margin_db": circuit.margin_db,
    }


def _document(made: "JobPhases") -> dict[str, Any]:
    return {
        "job": made.job.name,
        "order": list(made.job.order),
        "lit": made.lit,
        "phases": [
            {
                "phase": each.name,
                "possible": each.is_possible,
                "obstacle": each.obstacle,
                "doubts": list(each.doubts),
                "circuits": [_circuit(circuit) for circuit in each.circuits],
            }
            for each in made.phases
        ],
        "changes": [
            {"between": list(each.between), "cells": dict(each.cells), "settling_s": each.settling_s}
            for each in made.changes
        ],
    }
