"""The contents of a drawing: the circuits with their letters and waveguides, and the state of every PUC."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

from lumctl.devices.types import PucState
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import FREE, TURN, Mesh, PortPair
from lumctl.fabric.routing import Route
from lumctl.fabric.search import InconsistentFabricError

Leg = tuple[int, int]
"""One pass through a PUC: the terminal where light comes in and the one where it goes out."""


# Without the letters that look like a waveguide, a cross or a zero.
_CAPITALS = "".join(letter for letter in ascii_uppercase if letter not in "IOX")
_LETTERS = _CAPITALS + "".join(letter for letter in ascii_lowercase if letter not in "lox")


@dataclass(frozen=True, slots=True)
class DrawnCircuit:
    """One circuit of a drawing. ``number`` counts from 0 and decides letter and colour; ``loss_db`` is planned."""

    number: int
    name: str
    ports: PortPair
    legs: tuple[Leg, ...]
    loss_db: float

    @property
    def letter(self) -> str:
        """The letters that name the circuit without colour: A to Z, a to z, then AA, AB and so on."""
        if self.number < len(_LETTERS):
            return _LETTERS[self.number]
        major, minor = divmod(self.number - len(_LETTERS), len(_CAPITALS))
        return _CAPITALS[major % len(_CAPITALS)] + _CAPITALS[minor]


@dataclass(frozen=True, slots=True)
class Carried:
    """A mesh with everything that its drawing shows. ``lit`` maps a terminal to the circuit there."""

    mesh: Mesh
    circuits: tuple[DrawnCircuit, ...]
    states: Mapping[int, PucState]
    condition: MeshCondition
    lit: Mapping[int, DrawnCircuit]

    def state(self, puc: int) -> PucState:
        """The state of a PUC; bar if no state was given."""
        return self.states.get(puc, PucState.BAR)

    def circuits_through(self, puc: int) -> tuple[DrawnCircuit, ...]:
        """The circuits that pass a PUC: none, one, or two. A circuit that passes it twice is listed once."""
        found = {self.lit[t].number: self.lit[t] for t in range(4 * puc, 4 * puc + 4) if t in self.lit}
        return tuple(found.values())


def carried(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Sequence[Route],
    condition: MeshCondition,
    names: Sequence[str],
) -> Carried:
    """Lay the routes on the mesh.

    A PUC on a route is drawn in the state that the route needs, regardless of ``states``, so that a plan can be drawn
    before it is written. A stuck PUC is drawn in the state in which it is stuck. Without ``names`` a circuit is named
    by its ports.

    Raises:
        InconsistentFabricError: a route is not a path through this mesh.
        ValueError: there are names, but not one for each route.
    """
    called = names or [f"{a}:{b}" for a, b in (found.ports for found in routes)]
    circuits = tuple(
        DrawnCircuit(number, name, found.ports, tuple(_legs(mesh, found)), condition.loss_db(found.ports, found.pucs))
        for number, (found, name) in enumerate(zip(routes, called, strict=True))
    )
    wanted = {puc: state for found in routes for puc, state in found.passes}
    lit = {terminal: circuit for circuit in circuits for leg in circuit.legs for terminal in leg}
    return Carried(mesh, circuits, {**states, **wanted, **condition.stuck}, condition, lit)


def _legs(mesh: Mesh, route: Route) -> Iterator[Leg]:
    """Walk a route from its first port."""
    start, end = route.ports
    if not (0 <= start < mesh.port_count and 0 <= end < mesh.port_count):
        raise _astray(mesh, route)
    terminal = mesh.ports[start]
    out = FREE
    for puc, state in route.passes:
        if terminal >> 2 != puc:  # also after the route has left the mesh: FREE >> 2 is no PUC
            raise _astray(mesh, route)
        out = terminal ^ TURN[state]
        yield terminal, out
        terminal = mesh.peers[out]
    if out != mesh.ports[end]:
        raise _astray(mesh, route)


def _astray(mesh: Mesh, route: Route) -> InconsistentFabricError:
    a, b = route.ports
    return InconsistentFabricError(
        f"the route {a}:{b} is not a path through the mesh {mesh.name}", hint="was it made for another mesh?"
    )
