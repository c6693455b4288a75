"""What a circuit loses on its way through a mesh, by the planning values of the inventory."""

from collections.abc import Iterable, Mapping

from lumctl.devices.types import PucState
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.fabric.tracing import trace
from lumctl.inventory.model import Device
from lumctl.inventory.wiring import Circuit


def loss_db(device: Device, ports: Iterable[int], pucs: Iterable[int]) -> float:
    """Loss at these ports of a device and in these PUCs, in dB; a PUC that is passed twice is named twice."""
    return condition_of(device).loss_db(ports, pucs)


def circuit_losses(device: Device, states: Mapping[int, PucState], circuits: Iterable[Circuit]) -> dict[str, float]:
    """The loss of each circuit of this device that the states really make, in dB, by circuit id.

    A circuit whose two ports the states do not join is left out, and so is one of another device. A device without a
    geometry has no PUCs: nothing can be said of its circuits.
    """
    if device.geometry is None:
        return {}
    mesh, condition = mesh_of(device), condition_of(device)
    losses: dict[str, float] = {}
    for circuit in circuits:
        if circuit.device != device.id:
            continue
        start, end = circuit.ports
        found = trace(mesh, states, start)
        if found.exit == end:
            losses[circuit.id] = condition.loss_db(circuit.ports, found.pucs)
    return losses
