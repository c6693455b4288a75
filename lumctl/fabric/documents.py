"""Routes and matchings as documents: writes the documents that commands print, and reads them back for tracing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import STATE_OF_WORD, MeshCondition
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.routing import Route


@dataclass(frozen=True, slots=True)
class PlannedRoutes:
    """One configuration that a document states: its circuits, and the states of PUCs for them."""

    name: str
    circuits: tuple[PortPair, ...]
    states: Mapping[int, PucState]


def circuit_document(found: Route, condition: MeshCondition) -> dict[str, Any]:
    """One circuit: its ports, the PUCs that it passes in order, the state of each, and the loss (dB)."""
    return {
        "ports": list(found.ports),
        "pucs": list(found.pucs),
        "states": [state.word for _, state in found.passes],
        "loss_db": round(condition.loss_db(found.ports, found.pucs), 3),
    }


def states_document(states: Mapping[int, PucState]) -> dict[str, str]:
    """The states by PUC number."""
    return {str(puc): states[puc].word for puc in sorted(states)}


def read_planned(document: object, mesh: Mesh) -> tuple[PlannedRoutes, ...]:
    """Read the configurations of a document of ``fabric route`` or ``fabric matchings`` for this mesh.

    Raises:
        UsageError: it is not such a document, names ports or PUCs that the mesh lacks, or contradicts itself; the error
            gives the place.
    """
    if not isinstance(document, Mapping):
        raise UsageError("this document contains no routes", hint=_HINT)
    standing = _states(document.get("states", {}), "states", mesh)
    matchings = document.get("matchings")
    if matchings is None:
        return (_planned(document, "", "the routes", standing, mesh),)
    if not isinstance(matchings, Sequence) or isinstance(matchings, str):
        raise UsageError("matchings: expected a list", hint=_HINT)
    return tuple(
        _planned(each, f"matchings[{at}].", f"matching {at}", standing, mesh) for at, each in enumerate(matchings)
    )


_HINT = "expected the output of lumctl fabric route or matchings -o json"


def _planned(document: object, place: str, name: str, standing: Mapping[int, PucState], mesh: Mesh) -> PlannedRoutes:
    listed = document.get("circuits") if isinstance(document, Mapping) else None
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise UsageError(f"{place}circuits: expected a list of circuits", hint=_HINT)
    states = dict(standing)
    wanted: dict[int, PucState] = {}
    circuits: list[PortPair] = []
    for at, circuit in enumerate(listed):
        where = f"{place}circuits[{at}]"
        if not isinstance(circuit, Mapping):
            raise UsageError(f"{where}: expected a circuit", hint=_HINT)
        circuits.append(_ports(circuit.get("ports"), where, mesh))
        for puc, state in _passes(circuit, where, mesh):
            if wanted.setdefault(puc, state) is not state:
                raise UsageError(
                    f"{where}: PUC {puc} is required in both states", hint="the circuits cannot all exist at once"
                )
    return PlannedRoutes(name, tuple(circuits), states | wanted)


def _ports(found: object, where: str, mesh: Mesh) -> PortPair:
    match found:
        case [int(a), int(b)] if a != b and min(a, b) >= 0 and max(a, b) < mesh.port_count:
            return a, b
    raise UsageError(
        f"{where}.ports: found {found!r}", hint=f"expected two ports of {mesh.name}, 0 to {mesh.port_count - 1}"
    )


def _passes(circuit: Mapping[str, object], where: str, mesh: Mesh) -> list[tuple[int, PucState]]:
    pucs, words = circuit.get("pucs"), circuit.get("states")
    if not isinstance(pucs, Sequence) or not isinstance(words, Sequence) or len(pucs) != len(words):
        raise UsageError(f"{where}: expected as many states as pucs", hint=_HINT)
    return [(_puc(puc, where, mesh), _state(word, where)) for puc, word in zip(pucs, words, strict=True)]


def _states(found: object, where: str, mesh: Mesh) -> dict[int, PucState]:
    if not isinstance(found, Mapping):
        raise UsageError(f"{where}: expected states by PUC", hint=_HINT)
    # JSON has only texts as keys.
    return {
        _puc(int(puc) if str(puc).isdigit() else puc, where, mesh): _state(word, where) for puc, word in found.items()
    }


def _puc(found: object, where: str, mesh: Mesh) -> int:
    if isinstance(found, int) and 0 <= found < mesh.puc_count:
        return found
    raise UsageError(f"{where}: found PUC {found!r}", hint=f"expected 0 to {mesh.puc_count - 1}, as {mesh.name} has")


def _state(found: object, where: str) -> PucState:
    state = STATE_OF_WORD.get(str(found))
    if state is None:
        raise UsageError(f"{where}: found state {found!r}", hint="expected bar or cross")
    return state
