"""From the circuits before and after to light paths: what is added, removed and kept, by which cells, at what loss."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from lumctl.change.plan import PlannedChange, PlannedCircuit
from lumctl.context import Observation
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import Route, Unroutable, changes, loss_db, route, trace
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.fabric.rearrangement import rearrange
from lumctl.inventory.model import Device, DeviceKind, Inventory
from lumctl.inventory.wiring import FREE, Circuit, CircuitEnd, Direction, in_the_way, is_joined, join_of, own_cells

States = Mapping[int, str]
"""What a device holds, by PUC or ingress port: see :mod:`lumctl.inventory.wiring`."""


def planned_circuits(
    inventory: Inventory, circuits: Iterable[Circuit], states: Mapping[str, States]
) -> tuple[PlannedCircuit, ...]:
    """Present circuits, with their paths if the device's states are known."""
    planned_circuits = []
    for circuit in circuits:
        device, held = inventory.devices[circuit.device], states.get(circuit.device)
        pucs: tuple[int, ...] | None = None
        if held and device.geometry:
            found = trace(mesh_of(device), {puc: PucState(mark) for puc, mark in held.items()}, circuit.ports[0])
            pucs = tuple(puc for puc, _ in found.passes) if found.exit == circuit.ports[1] else None
        elif held:
            pucs = () if is_joined(held, circuit.ports) else None
        planned_circuits.append(with_budget(inventory, device, circuit, pucs))
    return tuple(planned_circuits)


def with_budget(inventory: Inventory, device: Device, circuit: Circuit, pucs: tuple[int, ...] | None) -> PlannedCircuit:
    """A circuit with the loss of its path; ``None`` if it has no path."""
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


@dataclass(frozen=True)
class RerouteBudget:
    """How far present circuits may be rerouted, and which PUCs new paths must not use.

    No path uses the PUCs to ``avoid`` (by device). Circuits that are ``rerouted`` leave their paths; those of
    ``movable`` jobs do so if new circuits find no path beside them.
    """

    avoid: Mapping[str, frozenset[int]] = field(default_factory=dict)
    rerouted: frozenset[str] = frozenset()
    movable: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    """Further jobs of which ``most_others`` circuits, all in all, may make room as well."""
    most_others: int = 0

    @property
    def may_move(self) -> frozenset[str]:
        """The jobs whose circuits may make room."""
        return self.movable | (self.others if self.most_others else frozenset())

    def require_few(self, moved: Iterable[Circuit]) -> None:
        """Require that no more circuits of other jobs are moved than allowed.

        Raises:
            Unroutable: there are more.
        """
        foreign = [circuit for circuit in moved if circuit.owner not in self.movable]
        if len(foreign) > self.most_others:
            names = ", ".join(circuit.id for circuit in foreign)
            raise Unroutable(
                tuple(circuit.ports for circuit in foreign),
                f"room was found by moving {len(foreign)} circuits of other jobs ({names}), and at most "
                f"{self.most_others} may be moved",
                proven=False,
                hint=f"lumctl swap plan --may-move {len(foreign)}, if their jobs can do without light meanwhile",
            )


NO_REROUTES = RerouteBudget()


def reroute_budgets(first: RerouteBudget, own: Collection[str], seen: Observation) -> list[RerouteBudget]:
    """What is tried one after the other: nothing makes room, circuits of one's own jobs do, a few of others do too."""
    wider = replace(first, movable=frozenset(own))
    if not first.most_others:
        return [first, wider]
    racks = {seen.inventory.jobs[job].rack for job in own}
    others = frozenset(job.name for job in seen.inventory.jobs.values() if job.rack in racks) - wider.movable
    return [replace(first, most_others=0), replace(wider, most_others=0), replace(wider, others=others)]


@dataclass(frozen=True)
class LightPaths:
    """The change of circuits that turns one set into another. ``writes`` are the cells to program, by device.

    Circuits that are ``moved`` make room: they are both in ``remove`` and in ``add``, and keep their ends.
    """

    add: tuple[PlannedCircuit, ...] = ()
    remove: tuple[PlannedCircuit, ...] = ()
    keep: tuple[PlannedCircuit, ...] = ()
    writes: Mapping[str, tuple[PlannedChange, ...]] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()

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
    reroutes: RerouteBudget = NO_REROUTES,
) -> LightPaths:
    """Route new circuits and leave all others in place, as far as ``reroutes`` requires.

    ``states`` are the states of each device, empty if unknown; a device in ``rewrite`` is routed from scratch and all
    its cells are written.

    Raises:
        Unroutable: no path was found (the message tells whether that is proven).
        RefusedError: a circuit would lose more light than its receiver can accept.
    """
    standing, new = tuple(before), tuple(after)
    old = {circuit for circuit in standing if circuit.id not in reroutes.rerouted}
    gone = sorted({c for c in standing if c not in new or c.id in reroutes.rerouted}, key=lambda c: c.id)
    result = LightPaths(remove=planned_circuits(inventory, gone, states))
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
        moved: list[Circuit] = []
        if device.kind is DeviceKind.SWITCH:
            passes, after_states = _joined(device, wanted, kept, lost, held)
        else:
            passes, after_states, moved = _routed(device, wanted, kept, held, reroutes)
        made = zip((*wanted, *moved), passes, strict=True)
        cells = own_cells(inventory, device) if afresh else ()
        stay = [circuit for circuit in kept if circuit not in moved]
        result = LightPaths(
            add=(*result.add, *(with_budget(inventory, device, c, p) for c, p in made)),
            remove=(*result.remove, *planned_circuits(inventory, moved, states)),
            keep=(*result.keep, *planned_circuits(inventory, stay, states)),
            writes={**result.writes, device_id: _writes(device, states.get(device_id, {}), after_states, cells)},
            moved=result.moved | {circuit.id for circuit in moved},
        )
    require_light(inventory, result.add)
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


def _routed(
    device: Device, wanted: list[Circuit], kept: list[Circuit], held: States, reroutes: RerouteBudget
) -> tuple[tuple[tuple[int, ...], ...], dict[int, str], list[Circuit]]:
    """Route through a mesh. Lost circuits leave their cells unchanged, free for new paths.

    Returns the PUCs of each new circuit, those of each circuit that made room, the states of the mesh, and the moved
    circuits.
    """
    condition, mesh = condition_of(device), mesh_of(device)
    # A PUC that is known to be stuck keeps its state whatever is written; a readable device reports that state.
    states = {puc: PucState(state) for puc, state in held.items()} | dict(condition.stuck)
    demands, live = [c.ports for c in wanted], [c.ports for c in kept]
    damaged = condition.damaged | reroutes.avoid.get(device.id, frozenset())
    routes: tuple[Route, ...] = ()
    written: Mapping[int, PucState] = {}
    moved: list[Circuit] = []
    if wanted:
        try:
            routes = route(
                mesh,
                demands,
                states=states,
                live=live,
                stuck=condition.stuck,
                damaged=damaged,
                blocked_ports=condition.blocked_ports,
                excess=condition.excess,
            )
            written = changes(states, routes)
        except Unroutable:
            movable = [circuit for circuit in kept if circuit.owner in reroutes.may_move]
            if not movable:
                raise
            room = rearrange(
                mesh,
                demands,
                states=states,
                live=live,
                movable=[circuit.ports for circuit in movable],
                stuck=condition.stuck,
                damaged=damaged,
                blocked_ports=condition.blocked_ports,
            )
            ways = {move.ports: move.route for move in room.moves}
            moved = [circuit for circuit in movable if circuit.ports in ways]
            reroutes.require_few(moved)
            routes, written = (*room.routes, *(ways[c.ports] for c in moved)), room.changes
    after = {puc: str(state) for puc, state in (states | dict(written)).items()}
    return tuple(tuple(puc for puc, _ in found.passes) for found in routes), after, moved


def _joined(
    device: Device, wanted: list[Circuit], kept: list[Circuit], lost: list[Circuit], held: States
) -> tuple[tuple[tuple[int, ...], ...], dict[int, str]]:
    """Route through a switch: lost circuits are disconnected and new ones joined, if no foreign join blocks them."""
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
