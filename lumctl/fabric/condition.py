"""What is known of a device beyond its shape: what is stuck, damaged or blocked, and what light loses where."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.geometry import Mesh, trace
from lumctl.fabric.shapes import mesh_with
from lumctl.inventory.model import Device
from lumctl.inventory.wiring import Circuit, is_joined

DAMAGED_LOSS_DB = 40.0
"""What light loses in a damaged PUC, in dB, beside what it loses in any: as good as all, and still a number.

It stands in for a coupler that leads only stray light to where it should go. Light that is left over is too little for
any receiver, so a circuit through such a PUC shows as dark without being an infinite loss in tables and documents.
"""
_USUAL_LOSS_DB = 0.25
_WORDS = {state.word: state for state in PucState}


@dataclass(frozen=True, slots=True)
class MeshCondition:
    """The condition of one mesh. Losses are in dB.

    ``stuck`` PUCs stand as they are, whatever is written; nothing may be routed through ``damaged`` ones or to
    ``blocked_ports``. ``puc_loss_db`` and ``port_loss_db`` are what single PUCs and ports lose beyond what all do.
    """

    stuck: Mapping[int, PucState] = field(default_factory=dict)
    damaged: frozenset[int] = frozenset()
    blocked_ports: frozenset[int] = frozenset()
    loss_per_puc_db: float = _USUAL_LOSS_DB
    loss_per_port_db: float = 1.0
    puc_loss_db: Mapping[int, float] = field(default_factory=dict)
    port_loss_db: Mapping[int, float] = field(default_factory=dict)

    @property
    def excess(self) -> dict[int, float]:
        """What single PUCs lose beyond what all do, in times of that; a mesh without loss counts as one of 0.25 dB."""
        usual = self.loss_per_puc_db or _USUAL_LOSS_DB
        return {puc: loss / usual for puc, loss in self.puc_loss_db.items()}

    def pass_loss_db(self, puc: int) -> float:
        """What light loses in passing one PUC once."""
        damage = DAMAGED_LOSS_DB if puc in self.damaged else 0.0
        return self.loss_per_puc_db + self.puc_loss_db.get(puc, 0.0) + damage

    def loss_db(self, ports: Iterable[int], pucs: Iterable[int]) -> float:
        """What light loses at these ports and in these PUCs; one that is passed twice is named twice."""
        coupling = sum(self.loss_per_port_db + self.port_loss_db.get(port, 0.0) for port in ports)
        return coupling + sum(self.pass_loss_db(puc) for puc in pucs)


def condition_of(device: Device) -> MeshCondition:
    """The condition of a device as the inventory states it."""
    return MeshCondition(
        stuck={puc: _WORDS[word] for puc, word in device.stuck.items()},
        damaged=device.damaged,
        blocked_ports=device.blocked_ports,
        loss_per_puc_db=device.loss_per_puc_db,
        loss_per_port_db=device.loss_per_port_db,
        puc_loss_db=device.puc_loss_db,
        port_loss_db=device.port_loss_db,
    )


def mesh_of(device: Device) -> Mesh:
    """The mesh of a device.

    Raises:
        UsageError: the device is no mesh.
    """
    if device.geometry is None:
        raise UsageError(f"{device.id} is a {device.kind}: it has no PUCs")
    return mesh_with(device.geometry)


def loss_db(device: Device, ports: Iterable[int], pucs: Iterable[int]) -> float:
    """Loss at these ports of a device and in these PUCs, in dB; a PUC that is passed twice is named twice."""
    return condition_of(device).loss_db(ports, pucs)


def circuit_losses(device: Device, states: Mapping[int, str], circuits: Iterable[Circuit]) -> dict[str, float]:
    """The loss of each circuit of this device that the states really make, in dB, by circuit id.

    ``states`` are by PUC of a mesh, or by ingress port of a switch. A circuit whose two ports they do not join is left
    out, and so is one of another device.
    """
    condition = condition_of(device)
    here = [circuit for circuit in circuits if circuit.device == device.id]
    if device.geometry is None:
        return {c.id: condition.loss_db(c.ports, ()) for c in here if is_joined(states, c.ports)}
    mesh, cells = mesh_of(device), {puc: PucState(state) for puc, state in states.items()}
    losses: dict[str, float] = {}
    for circuit in here:
        start, end = circuit.ports
        found = trace(mesh, cells, start)
        if found.exit == end:
            losses[circuit.id] = condition.loss_db(circuit.ports, found.pucs)
    return losses


_OTHER = {PucState.BAR: PucState.CROSS, PucState.CROSS: PucState.BAR}


@dataclass(frozen=True, slots=True)
class Disobedience:
    """The ``pucs`` each of which explains alone what the receivers hear.

    It is ``shown`` where a receiver hears another transmitter than it should. Darkness alone may have other causes.
    """

    pucs: tuple[int, ...] = ()
    shown: bool = False


def disobeying_pucs(
    device: Device, written: Mapping[int, PucState], sending: Collection[int], heard: Mapping[int, int | None]
) -> Disobedience:
    """The PUCs of a mesh each of which, standing in its other state, explains alone what the receivers hear.

    ``written`` is what the mesh should hold. ``sending`` are the ports at which light comes in. ``heard`` tells by port
    of a receiver at which port the light that it hears came in, ``None`` for a dark receiver; a receiver of which
    nothing is known is left out.
    """
    mesh = mesh_of(device)
    meant, passed = _arrivals(mesh, written, sending)
    wrong = [port for port, source in heard.items() if meant.get(port) != source]
    # Only a PUC on the way of light that does not arrive as meant can be the one.
    ways = [passed[source] for port in wrong for source in (meant.get(port), heard[port]) if source in passed]
    found = []
    for puc in sorted(set().union(*ways)):
        states = {**written, puc: _OTHER[written.get(puc, PucState.BAR)]}
        arriving, _ = _arrivals(mesh, states, sending)
        if all(arriving.get(port) == source for port, source in heard.items()):
            found.append(puc)
    return Disobedience(tuple(found), any(heard[port] is not None for port in wrong))


def _arrivals(
    mesh: Mesh, states: Mapping[int, PucState], sending: Collection[int]
) -> tuple[dict[int, int], dict[int, frozenset[int]]]:
    """By port at which light leaves, the port at which it came in; by the latter, the PUCs that it passes."""
    traces = {port: trace(mesh, states, port) for port in sending}
    return {t.exit: port for port, t in traces.items()}, {port: frozenset(t.pucs) for port, t in traces.items()}
