"""From the circuits before and after to light paths: what is added, removed and kept, by which cells, at what loss."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lumctl.change.plan import PlannedChange, PlannedCircuit
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import Route, changes, loss_db, route, trace
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.inventory.model import Device, DeviceKind, Inventory
from lumctl.inventory.wiring import Circuit, CircuitEnd

States = Mapping[int, PucState]


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
    result = LightPaths(remove=_described(inventory, gone, states))
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
        routes = _routes(device, wanted, kept, held) if wanted else ()
        after_states = dict(held) | changes(held, routes)
        result = LightPaths(
            add=(*result.add, *(_planned(inventory, device, c, r) for c, r in zip(wanted, routes, strict=True))),
            remove=result.remove,
            keep=(*result.keep, *_described(inventory, kept, states)),
            writes={**result.writes, device_id: _writes(device, states.get(device_id, {}), after_states, whole=afresh)},
        )
    _require_light(inventory, result.add)
    return result


def with_rewritten(paths: LightPaths, states: Mapping[str, States]) -> LightPaths:
    """The same light paths, with every cell of some devices written: those that do not change as they are held."""
    writes = dict(paths.writes)
    for device, held in states.items():
        changed = {cell.puc: cell for cell in writes.get(device, ())}
        writes[device] = tuple(
            changed.get(puc, PlannedChange(device, puc, state.value, state.value))
            for puc, state in sorted(held.items())
        )
    return replace(paths, writes=writes)


def _routes(device: Device, wanted: list[Circuit], kept: list[Circuit], held: States) -> tuple[Route, ...]:
    if device.kind is not DeviceKind.MESH or device.geometry is None:
        raise RefusedError(f"{device.id} is a {device.kind}: circuits through a {device.kind} cannot be planned yet")
    condition = condition_of(device)
    return route(
        mesh_of(device),
        [circuit.ports for circuit in wanted],
        states=held,
        live=[circuit.ports for circuit in kept],
        stuck=condition.stuck,
        damaged=condition.damaged,
        blocked_ports=condition.blocked_ports,
        excess=condition.excess,
    )


def _writes(device: Device, held: States, after: States, *, whole: bool) -> tuple[PlannedChange, ...]:
    count = device.geometry.puc_count if device.geometry else 0
    cells = range(count) if whole else sorted(puc for puc, state in after.items() if held.get(puc) is not state)
    return tuple(
        PlannedChange(
            device.id,
            puc,
            _mark(held.get(puc)),
            after.get(puc, PucState.BAR).value,
        )
        for puc in cells
    )


def _mark(state: PucState | None) -> str | None:
    return state.value if state is not None else None


def _described(
    inventory: Inventory, circuits: Iterable[Circuit], states: Mapping[str, States]
) -> tuple[PlannedCircuit, ...]:
    """Circuits that stand already, with the way they take where the device's states are known."""
    described = []
    for circuit in circuits:
        device, held = inventory.devices[circuit.device], states.get(circuit.device)
        pucs: tuple[int, ...] = ()
        if held and device.geometry:
            found = trace(mesh_of(device), held, circuit.ports[0])
            pucs = tuple(puc for puc, _ in found.passes) if found.exit == circuit.ports[1] else ()
        described.append(_with_budget(inventory, device, circuit, pucs))
    return tuple(described)


def _planned(inventory: Inventory, device: Device, circuit: Circuit, way: Route) -> PlannedCircuit:
    return _with_budget(inventory, device, circuit, tuple(puc for puc, _ in way.passes))


def _with_budget(inventory: Inventory, device: Device, circuit: Circuit, pucs: tuple[int, ...]) -> PlannedCircuit:
    loss = loss_db(device, circuit.ports, pucs) if pucs else None
    sent = min(inventory.transponders[transmitter].tx_power_dbm for _, transmitter in circuit.receivers)
    return PlannedCircuit(
        id=circuit.id,
        owner=circuit.owner,
        device=circuit.device,
        direction=circuit.direction.value,
        ends=(_end(circuit.a), _end(circuit.b)),
        pucs=pucs,
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
