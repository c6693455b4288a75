"""``lumctl fabric route``: ways for circuits between ports, beside those that are live."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.fabric_mesh import DeviceOption, MeshOption, NamedMesh, subject
from lumctl.cli.fabric_network import names_devices, route_across
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn
from lumctl.cli.verbs import verb
from lumctl.errors import UsageError
from lumctl.fabric import Objective, changes, route
from lumctl.fabric.documents import circuit_document, states_document
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumctl.fabric import PortPair, Route

_COLUMNS = (
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("PUCS", "count", right=True),
    OutputColumn("LOSS dB", "loss_db", right=True),
    OutputColumn("MARGIN dB", "margin_db", right=True),
    OutputColumn("THROUGH", "through"),
)
_OPTIMAL = {Objective.PUCS: "total", Objective.LOSS: "longest", Objective.FEASIBLE: "feasible"}


def register(app: typer.Typer) -> None:
    """Add ``route`` to the commands of ``fabric``."""
    verb(app, "route")(command)


def command(
    cx: Invocation,
    demands: Annotated[
        list[str],
        typer.Argument(metavar="A:B...", help="Pairs of ports to connect: 3:17, or m0:3,m1:9 across devices."),
    ],
    mesh: MeshOption = None,
    device: DeviceOption = None,
    objective: Annotated[
        str,
        typer.Option(
            metavar="WHAT", help="What counts: pucs (few), loss (of the worst), crosstalk, or feasible (any)."
        ),
    ] = Objective.PUCS,
    optimal: Annotated[
        bool,
        typer.Option("--optimal", help="Find the best routes, or prove that there are none. Needs lumctl[optimal]."),
    ] = False,
    may_move: Annotated[
        bool,
        typer.Option(
            "--may-move", help="Where there is no room beside what a device carries, move as little as can be."
        ),
    ] = False,
    limit: Annotated[float, typer.Option("--limit", metavar="SECONDS", min=0.1, help="Time for --optimal.")] = 60.0,
) -> None:
    """Find routes for circuits, all at once; nothing is written to any device.

    A circuit between two ports carries light in both directions; directed lanes need two circuits. MARGIN is the power
    that is left above the receiver's limit, between transponders of the inventory. On a device of the inventory the
    present circuits stay as they are. Ports written with their devices, such as m0:3,m1:9, are joined through all
    devices and fibres of their rack. Exit code 5: there are no routes, or none were found; the message says which.
    """
    wanted = _objective(objective)
    if names_devices(demands):
        if mesh or device or optimal or wanted is not Objective.PUCS:
            raise UsageError(
                "across devices routes are chosen by their loss",
                hint="leave --mesh, --device, --objective, --optimal out",
            )
        route_across(cx, demands)
        return
    about = subject(cx, mesh, device)
    pairs = [pair_of(text) for text in demands]
    if optimal and may_move:
        raise UsageError("--optimal moves nothing", hint="leave out --may-move")
    began = time.perf_counter()
    if optimal:
        document = _optimal(about, pairs, wanted, limit)
    elif may_move:
        document = _rearranged(about, pairs)
    else:
        document = _document(about, _routes(about, pairs, wanted))
    document["seconds"] = round(time.perf_counter() - began, 4)
    if cx.out.structured:
        cx.out.document("route", document)
        return
    _tell(cx, about, document)


def _tell(cx: Invocation, about: NamedMesh, document: dict[str, Any]) -> None:
    rows = [
        {
            "id": "{}:{}".format(*circuit["ports"]),
            "count": len(circuit["pucs"]),
            "loss_db": f"{circuit['loss_db']:.2f}",
            "margin_db": f"{circuit['margin_db']:.2f}" if "margin_db" in circuit else None,
            "through": " ".join(
                f"{puc}{'x' if state == 'cross' else '='}"
                for puc, state in zip(circuit["pucs"], circuit["states"], strict=True)
            ),
        }
        for circuit in document["circuits"]
    ]
    cx.out.table(_COLUMNS, rows)
    told = f"{document['total_pucs']} PUCs together, {document['total_bound']} at least"
    cx.out.narrate(f"{told}; {document['seconds']:.3g} s")
    names = {pair: name for name, pair in about.live.items()}
    for at, step in enumerate(document.get("steps", ()), start=1):
        a, b = step["circuit"]
        name = names.get((a, b), "new")
        cx.out.narrate(f"step {at}: {a}:{b} ({name}), {len(step['puc_changes'])} PUCs{', parked' * step['parked']}")


def pair_of(text: str) -> "PortPair":
    """Two ports as they are written on the command line."""
    a, colon, b = text.partition(":")
    if not (colon and a.isdecimal() and b.isdecimal()):
        raise UsageError(f"{text!r} is no pair of ports", hint="write it as 3:17")
    return int(a), int(b)


def _objective(word: str) -> Objective:
    if word in {each.value for each in Objective}:
        return Objective(word)
    near = nearest(word, [each.value for each in Objective])
    raise UsageError(
        f"objective {word!r} is not known",
        hint=f"did you mean {near}?" if near else f"one of: {', '.join(Objective)}",
    )


def _routes(about: NamedMesh, pairs: "Sequence[PortPair]", wanted: Objective) -> "tuple[Route, ...]":
    known = about.condition
    return route(
        about.mesh,
        pairs,
        states=about.states,
        live=tuple(about.live.values()),
        stuck=known.stuck,
        damaged=known.damaged,
        blocked_ports=known.blocked_ports,
        excess=known.excess,
        objective=wanted,
    )


def _circuit(about: NamedMesh, found: "Route") -> dict[str, Any]:
    document = circuit_document(found, about.condition)
    margin = about.margin_db(found.ports, document["loss_db"])
    return document | ({} if margin is None else {"margin_db": round(margin, 3)})


def _document(about: NamedMesh, routes: "Sequence[Route]") -> dict[str, Any]:
    from lumctl.fabric.search import pucs_ahead

    ports = about.mesh.ports
    bound = sum(pucs_ahead(about.mesh, ports[found.ports[1]])[ports[found.ports[0]]] for found in routes)
    states = {**about.states, **about.condition.stuck}
    return {
        "mesh": about.spelled,
        "circuits": [_circuit(about, found) for found in routes],
        "states": states_document(states | changes(states, routes)),
        "total_pucs": sum(len(found.passes) for found in routes),
        "total_bound": int(bound),
    }


def _rearranged(about: NamedMesh, pairs: "Sequence[PortPair]") -> dict[str, Any]:
    """The routes with the moves that make room for them, in the order in which no other live circuit goes dark."""
    from lumctl.fabric.rearrangement import rearrange

    known, live = about.condition, tuple(about.live.values())
    found = rearrange(
        about.mesh,
        pairs,
        states=about.states,
        live=live,
        movable=live,
        stuck=known.stuck,
        damaged=known.damaged,
        blocked_ports=known.blocked_ports,
    )
    standing = {**about.states, **known.stuck}
    return {
        **_document(about, found.routes),
        "states": states_document(standing | found.changes),
        "moves": [{"ports": list(move.ports), **circuit_document(move.route, known)} for move in found.moves],
        "steps": [
            {
                "circuit": list(step.circuit),
                "parked": step.parked,
                "puc_changes": [{"puc": puc, "to": state.word} for puc, state in step.changes],
            }
            for step in found.steps
        ],
        "fewest": found.fewest,
    }


def _optimal(about: NamedMesh, pairs: "Sequence[PortPair]", wanted: Objective, limit_s: float) -> dict[str, Any]:
    from lumctl.fabric.geometry import trace
    from lumctl.fabric.research.exact import Status, solve
    from lumctl.fabric.routing import Route
    from lumctl.fabric.search import Unroutable, named

    if wanted not in _OPTIMAL:
        raise UsageError(f"--optimal knows no objective {wanted}", hint=f"one of: {', '.join(_OPTIMAL)}")
    known = about.condition
    standing = {**about.states, **known.stuck}
    found = solve(
        about.mesh,
        pairs,
        stuck=known.stuck,
        damaged=known.damaged,
        live=[Route(pair, trace(about.mesh, standing, pair[0]).passes) for pair in about.live.values()],
        blocked_ports=known.blocked_ports,
        objective=_OPTIMAL[wanted],
        time_limit_s=limit_s,
    )
    if found.status is Status.INFEASIBLE:
        raise Unroutable(tuple(pairs), f"there are no routes for {named(pairs)} together: proven", proven=True)
    if found.status is Status.GAVE_UP:
        raise Unroutable(
            tuple(pairs),
            f"no routes found for {named(pairs)} within {limit_s:g} s, which does not prove that there are none",
            proven=False,
            hint="allow more with --limit",
        )
    gap = found.gap or 0.0
    return {
        **_document(about, found.routes),
        "optimal": {"status": found.status.value, "bound": found.bound, "gap": gap},
    }
