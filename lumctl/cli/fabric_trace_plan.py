"""The circuits of a plan that changes a rack, followed through the states that the plan leaves behind."""

from typing import Any

import typer

from lumctl.change.foreign_circuits import states_after
from lumctl.change.plan import Plan, PlannedCircuit
from lumctl.change.preconditions import require_target
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.context import Context
from lumctl.errors import ExitCode, UsageError
from lumctl.fabric import FabricStates
from lumctl.inventory.model import DevicePort
from lumctl.printable import counted

_COLUMNS = (
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("OF JOB", "owner", gives_way=1),
    OutputColumn("PLAN", "change"),
    OutputColumn("DEVICES", "devices"),
    OutputColumn("FIBRES", "fibres", gives_way=2),
    OutputColumn("LOSS dB", "loss_db", right=True),
    OutputColumn("STATE", "state"),
)


def trace_plan(cx: Invocation, context: Context, plan: Plan) -> None:
    """Print each circuit of a plan with the path that light takes after it.

    Raises:
        RefusedError: the plan was made for another target.
        UsageError: the plan names a device that the inventory lacks.
        typer.Exit: a circuit is not as the plan states.
    """
    require_target(context, plan)
    circuits = traced(context, plan)
    wrong = [circuit for circuit in circuits if not circuit["as_planned"]]
    right = len(circuits) - len(wrong)
    if cx.out.structured:
        cx.out.document("trace", {"plan": plan.id, "circuits": circuits, "as_planned": right, "planned": len(circuits)})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([circuit["id"] for circuit in circuits])
    else:
        cx.out.table(_COLUMNS, [_row(circuit) for circuit in circuits])
        cx.out.narrate(f"light agrees with {plan.id} in {right} of {counted(len(circuits), 'circuits')}")
    if wrong:
        raise typer.Exit(ExitCode.UNHEALTHY)


def traced(context: Context, plan: Plan) -> list[dict[str, Any]]:
    """Each circuit that a plan adds, keeps or removes: the path of its light, and whether the plan states the same.

    Raises:
        UsageError: the plan names a device that the inventory lacks.
    """
    again = {circuit.id for circuit in (*plan.add, *plan.keep)}
    for circuit in (*plan.add, *plan.keep, *plan.remove):
        if unknown := [name for name in circuit.devices if name not in context.inventory.devices]:
            raise UsageError(
                f"{plan.id} was made with another inventory: this one has no device {unknown[0]!r}",
                hint="name that inventory with -i",
            )
    states = states_after(context, plan)
    return [
        *(_traced(states, circuit, "adds") for circuit in plan.add),
        *(_traced(states, circuit, "keeps") for circuit in plan.keep),
        *(_traced(states, circuit, "removes") for circuit in plan.remove if circuit.id not in again),
    ]


def _traced(states: FabricStates, circuit: PlannedCircuit, change: str) -> dict[str, Any]:
    a, b = (DevicePort(str(end["device"]), int(end["port"])) for end in circuit.ends)
    there, back = states.follow(a), states.follow(b)
    made = there.exit == b and back.exit == a
    as_planned = made and circuit.segments in ((), there.segments)
    return {
        "id": circuit.id,
        "owner": circuit.owner,
        "change": change,
        "ends": [str(a), str(b)],
        "exit": str(there.exit) if there.exit else None,
        "ends_in": there.ends_in,
        "segments": [
            {"device": part.device, "ports": list(part.ports), "pucs": list(part.pucs)} for part in there.segments
        ],
        "fibres": list(there.fibres),
        "loss_db": round(states.loss_db(there), 3) if made else None,
        "made": made,
        "as_planned": not made if change == "removes" else as_planned,
    }


def _row(circuit: dict[str, Any]) -> dict[str, Any]:
    loss = circuit["loss_db"]
    return {
        **circuit,
        "devices": ", ".join(dict.fromkeys(part["device"] for part in circuit["segments"])),
        "fibres": ", ".join(circuit["fibres"]),
        "loss_db": None if loss is None else f"{loss:.2f}",
        "state": "ok" if circuit["as_planned"] else "failed",
    }
