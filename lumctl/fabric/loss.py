"""What a circuit loses on its way through a mesh, by the planning values of the inventory."""

from collections.abc import Iterable, Mapping

from lumctl.devices.types import PucState
from lumctl.fabric.geometry import mesh
from lumctl.fabric.tracing import trace
from lumctl.inventory.model import Device
from lumctl.inventory.wiring import Circuit


def loss_db(device: Device, pucs: int) -> float:
    """Loss from one port through so many PUCs to another, in dB."""
    return pucs * device.loss_per_puc_db + 2 * device.loss_per_port_db


def circuit_losses(device: Device, states: Mapping[int, PucState], circuits: Iterable[Circuit]) -> dict[str, float]:
    """The loss of each circuit of this device that the states really make, in dB, by circuit id.

    A circuit whose two ports the states do not join is left out, and so is one of another device. A device without a
    geometry has no PUCs: nothing can be said of its circuits.
    """
    if device.geometry is None:
        return {}
    shape = mesh(device.geometry.columns, device.geometry.rows)
    losses: dict[str, float] = {}
    for circuit in circuits:
        if circuit.device != device.id:
            continue
        start, end = circuit.ports
        found = trace(shape, states, start)
        if found.exit == end:
            losses[circuit.id] = loss_db(device, len(found.passes))
    return losses
