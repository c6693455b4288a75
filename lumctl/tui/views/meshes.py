"""What meshes and switches hold, as the dashboard shows it; pure, for any device that light runs through."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.fabric import Route, mesh_of, trace
from lumctl.fabric.drawing import NamedRoutes
from lumctl.health.observation import Observation
from lumctl.health.states import CircuitHealth, State
from lumctl.inventory.model import Device
from lumctl.inventory.wiring import FREE, Circuit


@dataclass(frozen=True, slots=True)
class MeshView:
    """The states of a mesh or a switch: by PUC its state, or by ingress port the egress port.

    ``read_at`` is when the device itself reported them (seconds since the epoch); if it is ``None``, the cells are
    those of the record, and ``trouble`` is the reason. ``recorded`` is the record, empty if uncertain; ``powers`` are
    the device's measurements at its ports, in dBm, if it has any.
    """

    device: str
    cells: Mapping[int, str] = field(default_factory=dict)
    read_at: float | None = None
    recorded: Mapping[int, str] = field(default_factory=dict)
    powers: Mapping[int, float] = field(default_factory=dict)
    trouble: str = ""

    @property
    def states(self) -> dict[int, PucState]:
        """The states of a mesh's PUCs."""
        return {puc: PucState(state) for puc, state in self.cells.items()}

    @property
    def astray(self) -> tuple[int, ...]:
        """The cells whose states differ from what was written."""
        if self.read_at is None or not self.recorded:
            return ()
        return tuple(cell for cell, state in sorted(self.recorded.items()) if self.cells.get(cell, FREE) != state)


@dataclass(frozen=True, slots=True)
class MeshChange:
    """What a plan makes of one mesh: its cells before and after, and the circuits with their ways."""

    device: Device
    before: Mapping[int, PucState]
    after: Mapping[int, PucState]
    added: NamedRoutes
    removed: NamedRoutes
    kept: NamedRoutes


@dataclass(frozen=True, slots=True)
class Led:
    """A circuit on its device: where its light really leaves (``None``: not known), and the way that it takes there."""

    circuit: Circuit
    health: CircuitHealth | None
    leads_to: int | None = None
    route: Route | None = None

    @property
    def state(self) -> State:
        """How the circuit is."""
        return self.health.state if self.health else State.UNKNOWN

    @property
    def made(self) -> bool:
        """Whether the device joins the two ports that the circuit is to join."""
        return self.leads_to == self.circuit.ports[1]


def circuits_on(observation: Observation, device: Device, view: MeshView | None) -> tuple[Led, ...]:
    """The circuits that jobs need of a device, each with the way that light takes there, in the inventory's order."""
    found = []
    for circuit in observation.circuits:
        if circuit.device != device.id:
            continue
        health = observation.report.circuits.get(circuit.id)
        if view is None or not view.cells:
            found.append(Led(circuit, health))
        elif device.geometry is None:
            found.append(Led(circuit, health, _joined_with(view.cells, circuit.a.port)))
        else:
            way = trace(mesh_of(device), {**view.states, **_stuck(device)}, circuit.a.port)
            found.append(Led(circuit, health, way.exit, Route((way.port, way.exit), way.passes)))
    return tuple(found)


def _stuck(device: Device) -> dict[int, PucState]:
    words = {state.word: state for state in PucState}
    return {puc: words[word] for puc, word in device.stuck.items()}


def _joined_with(joins: Mapping[int, str], port: int) -> int | None:
    """The port that a switch joins with one, from whichever side of the join it is; ``None`` if none."""
    if (egress := joins.get(port, FREE)) != FREE:
        return int(egress)
    return next((ingress for ingress, to in joins.items() if to == str(port)), None)
