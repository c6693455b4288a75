"""From the circuits before and after to light paths: what is added, removed and kept, by which cells, at what loss."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lumctl.change.plan import PlannedChange, PlannedCircuit
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import Route, Unroutable, changes, route
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.fabric.rearrangement import rearrange
from lumctl.inventory.model import Device, DeviceKind, Inventory
from lumctl.inventory.wiring import FREE, Circuit, Direction, in_the_way, join_of, own_cells
from lumctl.swap.budgets import States, described, require_light, with_budget
from lumctl.swap.reroute_budget import NO_REROUTES, RerouteBudget


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
    """Route what is new and leave all else where it is, as far as there is no ``reroutes``.

    ``states`` is what each device holds, empty where that is not known; one in ``rewrite`` is routed afresh and every
    one of its cells is written.

    Raises:
        Unroutable: no way was found (the message says whether that is proven).
        RefusedError: a circuit would lose more light than its receiver can do without.
    """
    standing, new = tuple(before), tuple(after)
    old = {circuit for circuit in standing if circuit.id not in reroutes.rerouted}
    gone = sorted({c for c in standing if c not in new or c.id in reroutes.rerouted}, key=lambda c: c.id)
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
            remove=(*result.remove, *described(inventory, moved, states)),
            keep=(*result.keep, *described(inventory, stay, states)),
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
    """Through a mesh: what is lost leaves its cells as they are, for the new ways to use.

    Gives the PUCs that each new circuit passes, then those of each that made room; what the mesh holds; and the latter.
    """
    condition, mesh = condition_of(device), mesh_of(device)
    # A PUC that is known to be stuck stands as it does, whatever was written: a device that reads it back says so.
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
