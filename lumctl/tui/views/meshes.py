"""The states of meshes and switches, and the circuits through them, as the dashboard shows them; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.fabric import Route, mesh_of, trace
from lumctl.fabric.drawing import NamedRoutes
from lumctl.fabric.paths import partner_of
from lumctl.health.observation import Observation
from lumctl.health.states import CircuitHealth, State
from lumctl.inventory.model import Device
from lumctl.inventory.wiring import FREE, Circuit


@dataclass(frozen=True, slots=True)
class MeshView:
    """The states of a mesh or a switch. ``cells`` has the state of each PUC, or the egress port of each ingress port.

    ``read_at`` is when the device reported them (seconds since the epoch). If it is ``None``, ``cells`` is the record,
    and ``trouble`` is the reason. ``recorded`` is the record, empty if uncertain. ``powers`` are the device's own
    measurements at its ports, in dBm, if it has any.
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
        """The cells whose reported states differ from the record."""
        if self.read_at is None or not self.recorded:
            return ()
        # What the device does not report is free.
        return tuple(cell for cell, state in sorted(self.recorded.items()) if self.cells.get(cell, FREE) != state)


@dataclass(frozen=True, slots=True)
class MeshChange:
    """What a plan changes in one mesh: its cells before and after, and the circuits with their routes."""

    device: Device
    before: Mapping[int, PucState]
    after: Mapping[int, PucState]
    added: NamedRoutes
    removed: NamedRoutes
    kept: NamedRoutes


@dataclass(frozen=True, slots=True)
class Led:
    """A circuit on a device: the port where its light really leaves (``None``: unknown), and its actual route.

    ``ports`` are the two ports that the device should connect for it; only the first one if the second is unknown.
    """

    circuit: Circuit
    ports: tuple[int, ...]
    health: CircuitHealth | None
    leads_to: int | None = None
    route: Route | None = None

    @property
    def state(self) -> State:
        """The health of the circuit."""
        return self.health.state if self.health else State.UNKNOWN

    @property
    def made(self) -> bool:
        """Whether the device connects the two ports of the circuit."""
        return len(self.ports) > 1 and self.leads_to == self.ports[1]

    @property
    def between(self) -> str:
        """The two ports, as a table shows them."""
        return f"{self.ports[0]}:{self.ports[1] if len(self.ports) > 1 else '?'}"


def circuits_on(observation: Observation, device: Device, view: MeshView | None) -> tuple[Led, ...]:
    """The circuits that jobs need through a device, each with its actual route there, in the inventory's order."""
    found = []
    for circuit in observation.circuits:
        passing = observation.passing(circuit, device.id)
        if passing is None:
            continue
        ports = tuple(port for port in passing if port is not None)
        health = observation.report.circuits.get(circuit.id)
        if view is None or not view.cells:
            found.append(Led(circuit, ports, health))
        elif device.geometry is None:
            found.append(Led(circuit, ports, health, partner_of(view.cells, ports[0])))
        else:
            # A PUC that is known to be stuck passes light by its stuck state, whatever the device reports.
            way = trace(mesh_of(device), {**view.states, **_stuck(device)}, ports[0])
            found.append(Led(circuit, ports, health, way.exit, Route((way.port, way.exit), way.passes)))
    return tuple(found)


def _stuck(device: Device) -> dict[int, PucState]:
    words = {state.word: state for state in PucState}
    return {puc: words[word] for puc, word in device.stuck.items()}
