"""``lumctl fabric trace``: the circuits that the states of a plan really form."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.change.plan import SCHEMA, from_document
from lumctl.cli.changes import find_plan
from lumctl.cli.fabric_mesh import MeshOption, mesh_named
from lumctl.cli.fabric_trace_plan import trace_plan
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.errors import ExitCode, UsageError
from lumctl.fabric import trace
from lumctl.fabric.documents import PlannedRoutes, read_planned

if TYPE_CHECKING:
    from lumctl.fabric import Mesh

_COLUMNS = (
    OutputColumn("PLAN", "plan"),
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("LEAVES AT", "exit", right=True),
    OutputColumn("PUCS", "pucs", right=True),
    OutputColumn("STATE", "state"),
)
_OPTICS = (
    OutputColumn("SIGNAL dB", "signal_db", right=True),
    OutputColumn("OVER LEAKS dB", "signal_to_crosstalk_db", right=True),
    OutputColumn("WORST FROM", "worst_from", right=True),
)
_MOST_BYTES = 64 * 1024 * 1024


def register(app: typer.Typer) -> None:
    """Add ``trace`` to the commands of ``fabric``."""
    verb(app, "trace")(command)


def command(
    cx: Invocation,
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN", help="Id or file of a swap or slice plan, or output of route or matchings; - reads stdin."
        ),
    ],
    mesh: MeshOption = None,
    crosstalk: Annotated[
        bool, typer.Option("--crosstalk", help="Also show how light leaks between circuits. Needs lumctl[optics].")
    ] = False,
    extinction: Annotated[
        float, typer.Option("--extinction", metavar="DB", min=0.0, max=120.0, help="Of each PUC, for --crosstalk.")
    ] = 30.0,
) -> None:
    """Follow light through the states that a plan sets, and show which of its circuits they really form.

    Of a plan that changes a rack, such as that of ``lumctl swap plan`` or ``lumctl slice plan``, each circuit that it
    adds, keeps or removes is followed from both ends through all devices and fibres. Devices that the plan does not
    write have the recorded states.

    Routes and matchings (-o json) need no inventory. Their mesh is the one that they name, unless --mesh names another.

    Exit code 4: a circuit is missing, takes another path than the plan states, or remains although it is removed.
    """
    document = None if _is_id(plan) else read_plan(plan)
    if document is None or changes_rack(document):
        if mesh is not None or crosstalk:
            raise UsageError("--mesh and --crosstalk are for routes and matchings of one mesh")
        with Context(cx.inventory, cx.target) as context:
            trace_plan(cx, context, find_plan(context, plan) if document is None else from_document(document))
        return
    found = mesh_of_plan(document, mesh)
    circuits: list[dict[str, Any]] = []
    for routes in read_planned(document, found):
        traced = _traced(found, routes)
        if crosstalk:
            _add_crosstalk(found, routes, traced, extinction)
        circuits += traced
    made = sum(circuit["made"] for circuit in circuits)
    if cx.out.structured:
        cx.out.document("trace", {"mesh": found.name, "circuits": circuits, "made": made, "planned": len(circuits)})
    else:
        columns = (*_COLUMNS[:-1], *_OPTICS, _COLUMNS[-1]) if crosstalk else _COLUMNS
        cx.out.table(columns, [_row(circuit) for circuit in circuits])
        cx.out.narrate(f"{made} of {len(circuits)} circuits are connected")
    if made < len(circuits):
        raise typer.Exit(ExitCode.UNHEALTHY)


def changes_rack(document: Any) -> bool:
    """Whether it is the document of a plan that changes a rack."""
    return isinstance(document, dict) and document.get("schema") == SCHEMA


def _is_id(plan: str) -> bool:
    return plan.startswith("plan-") and not Path(plan).exists()


def read_plan(file: str) -> Any:
    """A plan's document, parsed from JSON.

    Raises:
        UsageError: the file cannot be read, or is not JSON.
    """
    try:
        if file == "-":
            # One more than is allowed: otherwise a longer input would look complete.
            text = sys.stdin.read(_MOST_BYTES + 1)
        else:
            with Path(file).open(encoding="utf-8") as opened:
                text = opened.read(_MOST_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(
            f"{file} cannot be read: {reason}",
            hint="give a file with what lumctl fabric route -o json printed; lumctl fabric trace takes plans as well; "
            "for one device of the rack: lumctl fabric show --device ID; for a circuit: lumctl health explain CIRCUIT",
        ) from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{file} is larger than {_MOST_BYTES // 2**20} MiB")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not JSON: {error}", hint="print the plan with -o json") from None


def mesh_of_plan(document: Any, named: str | None) -> "Mesh":
    """The given mesh, or else the mesh of the plan.

    Raises:
        UsageError: no mesh is given and the plan names none.
    """
    written = document.get("mesh") if isinstance(document, dict) else None
    if named is None and not isinstance(written, str):
        raise UsageError("the plan does not name its mesh", hint="name it with --mesh")
    return mesh_named(named or str(written))


def _traced(mesh: "Mesh", plan: PlannedRoutes) -> list[dict[str, Any]]:
    """Every circuit of a plan, traced from both ends."""
    told = []
    for a, b in plan.circuits:
        there, back = trace(mesh, plan.states, a), trace(mesh, plan.states, b)
        made = there.exit == b and back.exit == a
        told.append({"plan": plan.name, "ports": [a, b], "exit": there.exit, "pucs": list(there.pucs), "made": made})
    return told


def _add_crosstalk(mesh: "Mesh", plan: PlannedRoutes, traced: list[dict[str, Any]], extinction_db: float) -> None:
    """Add to each circuit the crosstalk at its worse end.

    The added values are the signal, its distance to the sum of all crosstalk, and the worst crosstalk.
    """
    from lumctl.fabric import MeshCondition
    from lumctl.fabric.research.crosstalk import crosstalk, worst_by_circuit
    from lumctl.fabric.research.optics import WaveOptics
    from lumctl.fabric.research.transmission import incoherent_gains

    optics = WaveOptics(bar_extinction_db=extinction_db, cross_extinction_db=extinction_db)
    gains = incoherent_gains(mesh, plan.states, optics, condition=MeshCondition())
    worst = worst_by_circuit(crosstalk(gains, plan.circuits))
    for circuit in traced:
        heard = worst[circuit["ports"][0], circuit["ports"][1]]
        circuit["signal_db"] = round(heard.signal_dbm, 2)
        circuit["signal_to_crosstalk_db"] = round(heard.signal_to_crosstalk_db, 2)
        circuit["worst_from"] = list(heard.worst_circuit) if heard.worst_circuit else None


def _row(circuit: dict[str, Any]) -> dict[str, Any]:
    return {
        "plan": circuit["plan"],
        "id": "{}:{}".format(*circuit["ports"]),
        "exit": str(circuit["exit"]),
        "pucs": str(len(circuit["pucs"])),
        "signal_db": circuit.get("signal_db"),
        "signal_to_crosstalk_db": circuit.get("signal_to_crosstalk_db"),
        "worst_from": "{}:{}".format(*circuit["worst_from"]) if circuit.get("worst_from") else None,
        "state": "ok" if circuit["made"] else "failed",
    }
