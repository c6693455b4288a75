"""From the circuits before and after to light paths: what is added, removed and kept, by which cells, at what loss."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lumctl.change.plan import PlannedChange, PlannedCircuit
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import Route, changes, loss_db, route, trace
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.inventory.model import Device, DeviceKind, Inventory
from lumctl.inventory.switching import FREE, in_the_way, is_joined, join_of, own_cells
from lumctl.inventory.wiring import Circuit, CircuitEnd, Direction

States = Mapping[int, str]
"""What a device holds, by PUC or ingress port: see :mod:`lumctl.inventory.switching`."""


@dataclass(frozen=True)
class LightPaths:
    """The change of circuits that turns one set into another. ``writes`` are the cells to program, by device."""

    add: tuple[PlannedCircuit, ...] = ()
    remove: tuple[PlannedCircuit, ...] = ()
    keep: tuple[PlannedCircuit, ...] = ()
    writes: Mapping[str, tuple[PlannedChange, ...]] = field(default_factory=dict)

    @property
    def total_pucs(self) -> int:
        """Cells that the new circuits run through."""
        return sum(len(circuit.pucs) for circuit in self.add)

    @property
    def changed_pucs(self) -> int:
        """Cells that are written."""
        return sum(len(cells) for cells in self.writes.values())

    @property
    def worst_loss_db(self) -> float:
        """The highest loss among the new circuits."""
        return max((circuit.loss_db or 0.0 for circuit in self.add), default=0.0)


def light_paths(
    inventory: Inventory,
    before: Iterable[Circuit],
    after: Iterable[Circuit],
    states: Mapping[str, States],
    *,
    rewrite: frozenset[str] = frozenset(),
) -> LightPaths:
    """Route what is new and leave all else where it is.

    ``states`` is what each device holds, empty where that is not known; one in ``rewrite`` is routed afresh and every
    one of its cells is written.

    Raises:
        Unroutable: no way was found (the message says whether that is proven).
        RefusedError: a circuit would lose more light than its receiver can do without.
    """
    old, new = set(before), tuple(after)
    gone = sorted(old.difference(new), key=lambda c: c.id)
    result = LightPaths(remove=described(inventory, gone, states))
    touched = {*rewrite, *(circuit.device for circuit in (*gone, *new))}
    for device_id, device in inventory.devices.items():
        if device_id not in touched:
            continue
        here = [circuit for circuit in new if circuit.device == device_id]
        afresh = device_id in rewrite
        wanted = [circuit for circuit in here if afresh or circuit not in old]
        kept = [circuit for circuit in here if circuit not in wanted]
        untouched = not wanted and not afresh and device_id not in {c.device for c in gone}
        if untouched:
            continue
        held = {} if afresh else states[device_id]
        lost = [circuit for circuit in gone if circuit.device == device_id]
        if device.kind is DeviceKind.SWITCH:
            passes, after_states = _joined(device, wanted, kept, lost, held)
        else:
            passes, after_states = _routed(device, wanted, kept, held)
        planned = (_with_budget(inventory, device, c, p) for c, p in zip(wanted, passes, strict=True))
        cells = own_cells(inventory, device) if afresh else ()
        result = LightPaths(
            add=(*result.add, *planned),
            remove=result.remove,
            keep=(*result.keep, *described(inventory, kept, states)),
            writes={**result.writes, device_id: _writes(device, states.get(device_id, {}), after_states, cells)},
        )
    _require_light(inventory, result.add)
    return result


def with_rewritten(paths: LightPaths, states: Mapping[str, States]) -> LightPaths:
    """The same light paths, with every cell of some devices written: those that do not change as they are held."""
    writes = dict(paths.writes)
    for device, held in states.items():
        changed = {cell.puc: cell for cell in writes.get(device, ())}
        writes[device] = tuple(
            changed.get(cell, PlannedChange(device, cell, state, state)) for cell, state in sorted(held.items())
        )
    return replace(paths, writes=writes)


Way = tuple[tuple[tuple[int, ...] | None, ...], dict[int, str]]
"""For each new circuit the PUCs that it passes; and what the device holds afterwards."""


def _routed(device: Device, wanted: list[Circuit], kept: list[Circuit], held: States) -> Way:
    """Through a mesh: what is lost leaves its cells as they are, for the new ways to use."""
    condition = condition_of(device)
    states = {puc: PucState(state) for puc, state in held.items()}
    routes: tuple[Route, ...] = ()
    if wanted:
        routes = route(
            mesh_of(device),
            [circuit.ports for circuit in wanted],
            states=states,
            live=[circuit.ports for circuit in kept],
            stuck=condition.stuck,
            damaged=condition.damaged,
            blocked_ports=condition.blocked_ports,
            excess=condition.excess,
        )
    after = {puc: str(state) for puc, state in (states | changes(states, routes)).items()}
    return tuple(tuple(puc for puc, _ in found.passes) for found in routes), after


def _joined(device: Device, wanted: list[Circuit], kept: list[Circuit], lost: list[Circuit], held: States) -> Way:
    """Through a switch: what is lost is taken apart, and what is new is joined, if nobody else is in the way."""
    after = dict(held)
    for circuit in lost:
        ingress, egress = _join(device, circuit)
        if after.get(ingress) == str(egress):
            after[ingress] = FREE
    for circuit in (*kept, *wanted):
        ingress, egress = _join(device, circuit)
        other = in_the_way(after, ingress, egress)
        if other is not None:
            raise RefusedError(
                f"{circuit.id} needs {device.id} to join port {ingress} to port {egress}, "
                f"and port {other[0]} is joined to port {other[1]}",
                hint=f"see who uses it: lumctl device show {device.id}",
            )
        after[ingress] = str(egress)
    return tuple(() for _ in wanted), after


def _join(device: Device, circuit: Circuit) -> tuple[int, int]:
    return join_of(device, circuit.ports, reciprocal=circuit.direction is Direction.DUPLEX)


def _writes(device: Device, held: States, after: States, whole: Iterable[int]) -> tuple[PlannedChange, ...]:
    """The cells to write: those that differ, or (``whole``) all of these numbers."""
    rest = FREE if device.kind is DeviceKind.SWITCH else str(PucState.BAR)
    cells = tuple(whole) or tuple(sorted(cell for cell, state in after.items() if held.get(cell) != state))
    return tuple(PlannedChange(device.id, cell, held.get(cell), after.get(cell, rest)) for cell in cells)


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
        described.append(_with_budget(inventory, device, circuit, pucs))
    return tuple(described)


def _with_budget(
    inventory: Inventory, device: Device, circuit: Circuit, pucs: tuple[int, ...] | None
) -> PlannedCircuit:
    """A circuit with what it loses on its way; ``None`` where there is none."""
    loss = None if pucs is None else loss_db(device, circuit.ports, pucs)
    sent = min(inventory.transponders[transmitter].tx_power_dbm for _, transmitter in circuit.receivers)
    return PlannedCircuit(
        id=circuit.id,
        owner=circuit.owner,
        device=circuit.device,
        direction=circuit.direction.value,
        ends=(_end(circuit.a), _end(circuit.b)),
        pucs=pucs or (),
        loss_db=None if loss is None else round(loss, 3),
        expected_rx_dbm=None if loss is None else round(sent - loss, 3),
    )


def _end(end: CircuitEnd) -> dict[str, str | int]:
    return {"lane": end.transponder, "port": end.port}


def _require_light(inventory: Inventory, circuits: Iterable[PlannedCircuit]) -> None:
    for circuit in circuits:
        needed = max(inventory.transponders[str(end["lane"])].rx_sensitivity_dbm for end in circuit.ends)
        if circuit.expected_rx_dbm is not None and circuit.expected_rx_dbm < needed:
            raise RefusedError(
                f"circuit {circuit.id} would arrive with {circuit.expected_rx_dbm:.1f} dBm over {len(circuit.pucs)} "
                f"PUCs; its receiver needs {needed:.1f} dBm"
            )
