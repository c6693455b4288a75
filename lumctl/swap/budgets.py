"""What circuits lose on their way, what is expected to arrive, and how much more that is than their receivers need."""

from collections.abc import Iterable, Mapping

from lumctl.change.plan import PlannedCircuit
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import loss_db, trace
from lumctl.fabric.condition import mesh_of
from lumctl.inventory.model import Device, Inventory
from lumctl.inventory.wiring import Circuit, CircuitEnd, is_joined

States = Mapping[int, str]
"""What a device holds, by PUC or ingress port: see :mod:`lumctl.inventory.wiring`."""


def described(
    inventory: Inventory, circuits: Iterable[Circuit], states: Mapping[str, States]
) -> tuple[PlannedCircuit, ...]:
    """Circuits that stand already, with the way they take where the device's states are known."""
    described = []
    for circuit in circuits:
        device, held = inventory.devices[circuit.device], states.get(circuit.device)
        pucs: tuple[int, ...] | None = None
        if held and device.geometry:
            found = trace(mesh_of(device), {puc: PucState(mark) for puc, mark in held.items()}, circuit.ports[0])
            pucs = tuple(puc for puc, _ in found.passes) if found.exit == circuit.ports[1] else None
        elif held:
            pucs = () if is_joined(held, circuit.ports) else None
        described.append(with_budget(inventory, device, circuit, pucs))
    return tuple(described)


def with_budget(inventory: Inventory, device: Device, circuit: Circuit, pucs: tuple[int, ...] | None) -> PlannedCircuit:
    """A circuit with what it loses on its way; ``None`` where there is none."""
    loss = None if pucs is None else loss_db(device, circuit.ports, pucs)
    lanes = inventory.transponders
    sent = min(lanes[transmitter].tx_power_dbm for _, transmitter in circuit.receivers)
    needed = max(lanes[end.transponder].rx_sensitivity_dbm for end in (circuit.a, circuit.b))
    return PlannedCircuit(
        id=circuit.id,
        owner=circuit.owner,
        device=circuit.device,
        direction=circuit.direction.value,
        ends=(_end(circuit.a), _end(circuit.b)),
        pucs=pucs or (),
        loss_db=None if loss is None else round(loss, 3),
        expected_rx_dbm=None if loss is None else round(sent - loss, 3),
        margin_db=None if loss is None else round(sent - loss - needed, 3),
    )


def _end(end: CircuitEnd) -> dict[str, str | int]:
    return {"lane": end.transponder, "port": end.port}


def require_light(inventory: Inventory, circuits: Iterable[PlannedCircuit]) -> None:
    """Require that every circuit brings its receiver as much light as it needs.

    Raises:
        RefusedError: one does not.
    """
    for circuit in circuits:
        needed = max(inventory.transponders[str(end["lane"])].rx_sensitivity_dbm for end in circuit.ends)
        if circuit.expected_rx_dbm is not None and circuit.expected_rx_dbm < needed:
            raise RefusedError(
                f"circuit {circuit.id} would arrive with {circuit.expected_rx_dbm:.1f} dBm over {len(circuit.pucs)} "
                f"PUCs; its receiver needs {needed:.1f} dBm"
            )
