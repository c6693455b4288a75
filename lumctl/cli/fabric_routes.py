"""Routes on one mesh as the documents of ``lumctl fabric route``.

They are found beside the live circuits, or after moving these. With ``--optimal`` they are the best routes, or routes
with a gap to the best, or it is proved that there are none.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lumctl.cli.fabric_mesh import NamedMesh
from lumctl.errors import UsageError
from lumctl.fabric import Objective, Route, changes, route, trace
from lumctl.fabric.documents import circuit_document, states_document
from lumctl.fabric.search import Unroutable, named, pucs_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lumctl.fabric import PortPair
    from lumctl.fabric.research.exact import Exact

EXACT = {Objective.PUCS: "total", Objective.LOSS: "loss", Objective.FEASIBLE: "feasible"}
"""The objectives of the exact search, with its names for them."""
_FOR_START = 0.5
"""The share of the time limit for finding first routes without the solver."""


def routes_beside_live(
    about: NamedMesh, pairs: "Sequence[PortPair]", wanted: Objective, left: "Callable[[], float]"
) -> tuple[Route, ...]:
    """Routes next to the circuits that the mesh carries, found in the time ``left`` (seconds)."""
    known = about.condition
    return route(
        about.mesh,
        pairs,
        states=about.states,
        live=tuple(about.live),
        stuck=known.stuck,
        damaged=known.damaged,
        blocked_ports=known.blocked_ports,
        excess=known.excess,
        objective=wanted,
        left=left,
    )


def _circuit(about: NamedMesh, found: Route) -> dict[str, Any]:
    document = circuit_document(found, about.condition)
    margin = about.margin_db(found.ports, document["loss_db"])
    return document | ({} if margin is None else {"margin_db": round(margin, 3)})


def route_document(about: NamedMesh, routes: "Sequence[Route]") -> dict[str, Any]:
    """The routes with their losses, the states of all PUCs with these routes, and a lower bound of the PUCs in use."""
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


def rearranged_document(about: NamedMesh, pairs: "Sequence[PortPair]", left: "Callable[[], float]") -> dict[str, Any]:
    """The routes, the live circuits that move to make room, and steps in an order that keeps other circuits lit."""
    from lumctl.fabric.rearrangement import Effort, rearrange

    known, live = about.condition, tuple(about.live)
    found = rearrange(
        about.mesh,
        pairs,
        states=about.states,
        live=live,
        movable=live,
        stuck=known.stuck,
        damaged=known.damaged,
        blocked_ports=known.blocked_ports,
        excess=known.excess,
        effort=Effort(left=left),
    )
    standing = {**about.states, **known.stuck}
    return {
        **route_document(about, found.routes),
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


def solver_is_installed() -> bool:
    """Whether ``--optimal`` can be used."""
    return find_spec("highspy") is not None


def optimal_document(
    about: NamedMesh,
    pairs: "Sequence[PortPair]",
    wanted: Objective,
    limit_s: float,
    left: "Callable[[], float]",
    tell: "Callable[[str], None]",
) -> tuple[dict[str, Any], bool]:
    """The best routes as a document, and whether the search for better ones was interrupted.

    Raises:
        UsageError: the objective has no exact search, or the solver is not installed.
        Unroutable: there are no routes, or none were found in time.
        KeyboardInterrupt: Ctrl-C was pressed before any routes were found.
    """
    from lumctl.fabric.research.exact import Status

    if wanted not in EXACT:
        raise UsageError(f"--optimal does not support the objective {wanted}", hint=f"one of: {', '.join(EXACT)}")
    start = _start(about, pairs, wanted, lambda: left() - (1 - _FOR_START) * limit_s)
    tell("looking for better routes" if start else "looking for routes")
    interrupted = False
    try:
        found = _solved(about, pairs, wanted, start, max(left(), 0.0))
    except KeyboardInterrupt:
        if start is None:
            raise
        interrupted = True
        # Without time for a search: the document needs the value and the bound of the first routes.
        found = _solved(about, pairs, wanted, start, 0.0)
    if found.status is Status.INFEASIBLE:
        raise Unroutable(tuple(pairs), f"no routes for {named(pairs)} exist together: proven", proven=True)
    if found.status is Status.GAVE_UP:
        raise Unroutable(
            tuple(pairs),
            f"no routes found for {named(pairs)} within {limit_s:g} s, but this does not prove that none exist",
            proven=False,
        )
    document = route_document(about, found.routes)
    if wanted is not Objective.LOSS:
        document["total_bound"] = max(document["total_bound"], int(found.bound) if wanted is Objective.PUCS else 0)
    optimal = {
        "objective": str(wanted),
        "unit": "dB" if wanted is Objective.LOSS else "PUCs",
        "status": found.status.value,
        "value": found.value,
        "bound": found.bound,
        "gap": found.gap or 0.0,
    }
    return document | {"optimal": optimal}, interrupted


def _start(
    about: NamedMesh, pairs: "Sequence[PortPair]", wanted: Objective, left: "Callable[[], float]"
) -> tuple[Route, ...] | None:
    """Routes found without the solver; ``None`` if none were found.

    Raises:
        Unroutable: it is proven that there are no routes.
    """
    try:
        return routes_beside_live(about, pairs, wanted, left)
    except Unroutable as refused:
        if refused.proven:
            raise
        return None


def _solved(
    about: NamedMesh,
    pairs: "Sequence[PortPair]",
    wanted: Objective,
    start: tuple[Route, ...] | None,
    limit_s: float,
) -> "Exact":
    from lumctl.fabric.research.exact import solve

    known = about.condition
    standing = {**about.states, **known.stuck}
    return solve(
        about.mesh,
        pairs,
        stuck=known.stuck,
        damaged=known.damaged,
        live=[Route(pair, trace(about.mesh, standing, pair[0]).passes) for pair in about.live],
        blocked_ports=known.blocked_ports,
        objective=EXACT[wanted],
        time_limit_s=limit_s,
        start=start,
        losses=known,
    )
