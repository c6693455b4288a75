"""What a circuit loses on its way through a mesh, by the planning values of the inventory."""

from collections.abc import Iterable, Mapping

from lumctl.devices.types import PucState
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.fabric.tracing import trace
from lumctl.inventory.model import Device
from lumctl.inventory.switching import is_joined
from lumctl.inventory.wiring import Circuit


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
