"""Route a change of circuits: around present circuits, inside one device or across devices that fibres join."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING

from lumctl.fabric import LightPath, Objective, Segment, Unroutable
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.fabric.network.model import network_among
from lumctl.fabric.network.routing import route_network
from lumctl.fabric.network.tracing import network_states
from lumctl.fabric.rearrangement import rearrange
from lumctl.fabric.search import NO_ROUTE_HINT
from lumctl.inventory.model import Device, DeviceKind, DevicePort, Inventory
from lumctl.inventory.wiring import FREE, Circuit
from lumctl.swap.circuit_change import (
    CircuitChange,
    device_writes,
    freed_joins,
    join_ports,
    mesh_routes,
    present_states,
)
from lumctl.swap.light_paths import (
    NO_REROUTES,
    LightPaths,
    RerouteBudget,
    States,
    TooWeak,
    planned_circuits,
    require_light,
    with_budget,
)

if TYPE_CHECKING:
    from lumctl.change.plan import PlannedChange


class DeviceUnroutable(Unroutable):
    """No route was found within one device, or none that loses little enough; other fibres may do."""

    def __init__(self, device: str, error: Unroutable | TooWeak) -> None:
        demands, proven = (error.demands, error.proven) if isinstance(error, Unroutable) else ((), False)
        hint = "try another spare, or reprogram the whole mesh" if error.hint == NO_ROUTE_HINT else error.hint
        super().__init__(demands, f"{device}: {error.message}", proven=proven, hint=hint)
        self.device = device


def light_paths_along(
    inventory: Inventory,
    before: Iterable[Circuit],
    after: Iterable[Circuit],
    states: Mapping[str, States],
    fibres: Mapping[str, Sequence[str]],
) -> LightPaths:
    """As :func:`light_paths`, but new circuits run through the fibres that the caller has chosen.

    ``fibres`` are those of each new circuit in order from its first end, by its id. Each device is then routed alone,
    which is much faster.

    Raises:
        DeviceUnroutable: no route was found in a device, or none that loses little enough.
        Unroutable: a bundle has no fibre left.
    """
    change = CircuitChange(inventory, tuple(before), tuple(after), states, frozenset(), NO_REROUTES)
    removed = LightPaths(remove=planned_circuits(inventory, change.gone, states))
    try:
        return _with_light(inventory, _merged(removed, _along(change, fibres)))
    except TooWeak as error:
        longest = max(error.circuit.segments, key=lambda segment: len(segment.pucs))
        raise DeviceUnroutable(longest.device, error) from error


def _with_light(inventory: Inventory, paths: LightPaths) -> LightPaths:
    require_light(inventory, paths.add)
    return paths


def light_paths(
    inventory: Inventory,
    before: Iterable[Circuit],
    after: Iterable[Circuit],
    states: Mapping[str, States],
    *,
    rewrite: frozenset[str] = frozenset(),
    reroutes: RerouteBudget = NO_REROUTES,
) -> LightPaths:
    """Route new circuits; present circuits keep their paths, unless ``reroutes`` requires or allows them to move.

    ``states`` are the states of each device, empty if unknown; a device in ``rewrite`` is routed from scratch and all
    its cells are written.

    Raises:
        Unroutable: no path was found; the message says whether it is proven that there is none.
        TooWeak: a circuit would lose more light than its receiver can accept.
    """
    change = CircuitChange(inventory, tuple(before), tuple(after), states, rewrite, reroutes)
    result = LightPaths(remove=planned_circuits(inventory, change.gone, states))
    for devices in change.parts():
        joint = len(devices) > 1
        result = _merged(result, _across(change, devices) if joint else _inside(change, inventory.devices[devices[0]]))
    return _with_light(inventory, result)


MOST_SETS = 64
"""How many sets of one or two circuits are moved on trial before all movable circuits are."""


def _merged(one: LightPaths, other: LightPaths) -> LightPaths:
    known = {circuit.id for circuit in one.keep}
    return LightPaths(
        add=(*one.add, *other.add),
        remove=(*one.remove, *other.remove),
        keep=(*one.keep, *(circuit for circuit in other.keep if circuit.id not in known)),
        writes={**one.writes, **other.writes},
        moved=one.moved | other.moved,
    )


def _inside(change: CircuitChange, device: Device) -> LightPaths:
    """Route the circuits within one device, around circuits that pass it from other devices."""
    inventory, held = change.inventory, change.held(device.id)
    wanted = [circuit for circuit in change.wanted if device.id in circuit.devices]
    kept, lost = change.on(device.id, change.kept), change.on(device.id, change.gone)
    moved: list[Circuit] = []
    if device.kind is DeviceKind.SWITCH:
        after_states = _joined(change, device, wanted, kept, lost, held)
        passes: tuple[tuple[int, ...], ...] = tuple(() for _ in wanted)
    else:
        passes, after_states, moved = _routed(change, device, wanted, kept, held)
    made = [
        (circuit, LightPath(circuit.a.place, circuit.b.place, (Segment(device.id, circuit.ports, pucs),), ()))
        for circuit, pucs in zip((*wanted, *moved), passes, strict=True)
    ]
    stay = [circuit for circuit in kept if circuit not in moved]
    return LightPaths(
        add=tuple(with_budget(inventory, circuit, path) for circuit, path in made),
        remove=planned_circuits(inventory, moved, change.states),
        keep=planned_circuits(inventory, stay, change.states),
        writes={device.id: device_writes(change, device, after_states)},
        moved=frozenset(circuit.id for circuit in moved),
    )


def _across(change: CircuitChange, devices: Sequence[str]) -> LightPaths:
    """Route all new circuits of devices that fibres join, together; present circuits keep their paths.

    If that fails, as few present circuits as possible make room, if the change may move any.
    """
    here = [c for c in change.kept if not set(devices).isdisjoint(c.devices)]
    try:
        return _routed_across(change, devices, ())
    except Unroutable as first:
        movable = [circuit for circuit in here if circuit.owner in change.reroutes.may_move]
        refusal = first
        for moved in _sets_to_move(movable):
            try:
                found = _routed_across(change, devices, moved)
            except Unroutable:
                continue  # it is about a move that was only tried; the first one is about the circuits as they are
            try:
                change.reroutes.require_few(moved)
            except Unroutable as too_many:  # another set may move fewer circuits of other jobs
                refusal = too_many if refusal is first else refusal
            else:
                return found
        raise refusal from None


def _along(change: CircuitChange, fibres: Mapping[str, Sequence[str]]) -> LightPaths:
    """Route new circuits through chosen fibres: device by device, the circuits of each together."""
    inventory = change.inventory
    taken = {place for circuit in change.kept for place in change.fibre_places(circuit)}
    legs = {c: _legs(inventory, c, fibres.get(c.id, ()), taken) for c in change.wanted}
    devices = dict.fromkeys(device for parts in legs.values() for device, _ in parts)
    lost = dict.fromkeys(device for circuit in change.gone for device in change.devices_of(circuit))
    passes: dict[tuple[str, tuple[int, int]], tuple[int, ...]] = {}
    writes: dict[str, tuple[PlannedChange, ...]] = {}
    for device in (inventory.devices[name] for name in {**devices, **lost}):
        wanted = [(c, ports) for c, parts in legs.items() for name, ports in parts if name == device.id]
        kept, held = change.on(device.id, change.kept), change.held(device.id)
        if device.kind is DeviceKind.SWITCH:
            after = freed_joins(change, device, change.on(device.id, change.gone), held)
            for circuit, ports in wanted:
                join_ports(device, circuit, ports, after)
        else:
            try:
                pairs = [ports for _, ports in wanted]
                # Shorter ways would take as long again to find, and seldom lose less.
                routes, states = mesh_routes(change, device, pairs, kept, held, objective=Objective.FEASIBLE)
            except Unroutable as error:
                raise DeviceUnroutable(device.id, error) from error
            passes |= {(device.id, found.ports): found.pucs for found in routes}
            after = {puc: str(state) for puc, state in states.items()}
        writes[device.id] = device_writes(change, device, after)
    made = {
        c: LightPath(
            *(c.a.place, c.b.place),
            tuple(Segment(device, ports, passes.get((device, ports), ())) for device, ports in parts),
            tuple(fibres.get(c.id, ())),
        )
        for c, parts in legs.items()
    }
    touched = [name for name, cells in writes.items() if cells]
    stay = [circuit for circuit in change.kept if any(change.on(name, [circuit]) for name in touched)]
    return LightPaths(
        add=tuple(with_budget(inventory, circuit, path) for circuit, path in made.items()),
        keep=planned_circuits(inventory, stay, change.states),
        writes={name: writes[name] for name in touched},
    )


def _legs(
    inventory: Inventory, circuit: Circuit, fibres: Sequence[str], taken: set[DevicePort]
) -> list[tuple[str, tuple[int, int]]]:
    """The devices of a circuit with the ports at which it enters and leaves each; its fibres are added to ``taken``."""
    legs: list[tuple[str, tuple[int, int]]] = []
    here = circuit.a.place
    for name in fibres:
        fibre = inventory.fibres[name]
        pairs = fibre.pairs if fibre.devices[0] == here.device else tuple((b, a) for a, b in fibre.pairs)
        blocked = {end: inventory.devices[end].blocked_ports for end in fibre.devices}
        free = (p for p in pairs if not any(end in taken or end.port in blocked[end.device] for end in p))
        leaves, arrives = next(free, (None, None))
        if leaves is None or arrives is None:
            raise Unroutable((circuit.ports,), f"{name} has no fibre left for {circuit.id}", proven=False)
        taken |= {leaves, arrives}
        legs.append((here.device, (here.port, leaves.port)))
        here = arrives
    return [*legs, (here.device, (here.port, circuit.b.port))]


def _sets_to_move(movable: Sequence[Circuit]) -> Iterator[tuple[Circuit, ...]]:
    """The circuits to move, the fewest first: each alone, each pair, and all."""
    yield from islice(chain.from_iterable(combinations(movable, count) for count in (1, 2)), MOST_SETS)
    if len(movable) > 2:  # noqa: PLR2004 - fewer were tried above
        yield tuple(movable)


def _routed_across(change: CircuitChange, devices: Sequence[str], moved: Sequence[Circuit]) -> LightPaths:
    inventory = change.inventory
    here = {device: inventory.devices[device] for device in devices}
    wanted, kept, lost = (
        [circuit for circuit in circuits if not here.keys().isdisjoint(circuit.devices)]
        for circuits in ((*change.wanted, *moved), change.kept, (*change.gone, *moved))
    )
    kept = [circuit for circuit in kept if circuit not in moved]
    held: dict[str, dict[int, str]] = {}
    for name, device in here.items():
        held[name] = dict(change.held(name))
        if device.kind is DeviceKind.SWITCH:
            held[name] = freed_joins(change, device, lost, held[name])
        else:  # a PUC that is known to be stuck keeps its state whatever is written
            held[name] |= {puc: str(state) for puc, state in condition_of(device).stuck.items()}
    closed = _foreign_ports(change, (*kept, *wanted), held)
    avoid, dark = change.reroutes.avoid, change.reroutes.avoid_fibres
    network = network_among(inventory, devices, avoid=avoid, closed=closed, full=dark)
    demands, live = ([(c.a.place, c.b.place) for c in circuits] for circuits in (wanted, kept))
    routes = route_network(network, demands, states=network_states(inventory, held), live=live)
    for circuit, found in zip(wanted, routes, strict=True):
        for segment in found.path.segments:
            if here[segment.device].kind is DeviceKind.SWITCH:
                join_ports(here[segment.device], circuit, segment.ports, held[segment.device])
            held[segment.device] |= {puc: str(state) for puc, state in found.passes(segment)}
    writes = {name: device_writes(change, device, held[name]) for name, device in here.items()}
    touched = [name for name, cells in writes.items() if cells]
    stay = [circuit for circuit in kept if any(change.on(name, [circuit]) for name in touched)]
    return LightPaths(
        add=tuple(with_budget(inventory, c, found.path) for c, found in zip(wanted, routes, strict=True)),
        remove=planned_circuits(inventory, moved, change.states),
        keep=planned_circuits(inventory, stay, change.states),
        writes={name: writes[name] for name in touched},
        moved=frozenset(circuit.id for circuit in moved),
    )


def _foreign_ports(
    change: CircuitChange, circuits: Sequence[Circuit], held: Mapping[str, States]
) -> dict[str, frozenset[int]]:
    """By switch, the connected ports that belong to none of these circuits: no path may use them."""
    found: dict[str, frozenset[int]] = {}
    for name, joins in held.items():
        if change.inventory.devices[name].kind is DeviceKind.SWITCH:
            ours = {port for circuit in circuits for part in change.segments(circuit, name) for port in part.ports}
            ours |= {port for circuit in circuits for port in circuit.ports_at(name)}
            taken = {port for at, to in joins.items() if to != FREE for port in (at, int(to))}
            found[name] = frozenset(taken - ours)
    return found


def _routed(
    change: CircuitChange, device: Device, wanted: list[Circuit], kept: list[Circuit], held: States
) -> tuple[tuple[tuple[int, ...], ...], dict[int, str], list[Circuit]]:
    """Route through a mesh. Lost circuits leave their cells unchanged, free for new paths.

    Returns the PUCs of each new circuit, those of each circuit that made room, the states of the mesh, and the moved
    circuits. A circuit that passes the mesh from another device never makes room.
    """
    condition, reroutes = condition_of(device), change.reroutes
    demands = [circuit.ports for circuit in wanted]
    moved: list[Circuit] = []
    try:
        routes, states = mesh_routes(change, device, demands, kept, held)
    except Unroutable:
        movable = [c for c in kept if c.owner in reroutes.may_move and not c.spans_devices]
        if not movable:
            raise
        states = present_states(device, held)
        room = rearrange(
            mesh_of(device),
            demands,
            states=states,
            live=[part.ports for circuit in kept for part in change.segments(circuit, device.id)],
            movable=[circuit.ports for circuit in movable],
            stuck=condition.stuck,
            damaged=condition.damaged | reroutes.avoid.get(device.id, frozenset()),
            blocked_ports=condition.blocked_ports,
            excess=condition.excess,
        )
        ways = {move.ports: move.route for move in room.moves}
        moved = [circuit for circuit in movable if circuit.ports in ways]
        reroutes.require_few(moved)
        routes, states = (*room.routes, *(ways[c.ports] for c in moved)), states | dict(room.changes)
    after = {puc: str(state) for puc, state in states.items()}
    return tuple(found.pucs for found in routes), after, moved


def _joined(
    change: CircuitChange, device: Device, wanted: list[Circuit], kept: list[Circuit], lost: list[Circuit], held: States
) -> dict[int, str]:
    """The connections of a switch after lost circuits are disconnected and new ones connected."""
    after = freed_joins(change, device, lost, held)
    for circuit in (*kept, *wanted):
        for part in change.segments(circuit, device.id):
            join_ports(device, circuit, part.ports, after)
    return after
