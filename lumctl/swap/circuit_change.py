"""A change of circuits, device by device: what each keeps, loses and gets, its routes and joins, the cells to write."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lumctl.change.plan import PlannedChange
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates, Objective, PortPair, Route, Segment, changes, route
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.inventory.model import Device, DeviceKind, DevicePort, Inventory
from lumctl.inventory.wiring import FREE, Circuit, Direction, in_the_way, join_of, own_cells
from lumctl.swap.light_paths import RerouteBudget, States


class CircuitChange:
    """The circuits before and after a change, and which of them each device keeps, loses or gets."""

    def __init__(
        self,
        inventory: Inventory,
        before: tuple[Circuit, ...],
        after: tuple[Circuit, ...],
        states: Mapping[str, States],
        rewrite: frozenset[str],
        reroutes: RerouteBudget,
    ) -> None:
        self.inventory, self.states, self.rewrite, self.reroutes = inventory, states, rewrite, reroutes
        fabric = FabricStates(inventory, states)
        self._paths = {circuit: fabric.path_of(circuit) for circuit in (*before, *after) if circuit.spans_devices}
        stays = {circuit for circuit in before if circuit.id not in reroutes.rerouted}
        lost = {circuit for circuit in before if circuit not in after or circuit.id in reroutes.rerouted}
        self.gone = sorted(lost, key=lambda circuit: circuit.id)
        self.wanted = [circuit for circuit in after if circuit not in stays or self._is_rewritten(circuit)]
        self.kept = [circuit for circuit in after if circuit not in self.wanted]

    def held(self, device: str) -> States:
        """The states from which new circuits are planned; empty for a device that is routed from scratch."""
        return {} if device in self.rewrite else self.states[device]

    def segments(self, circuit: Circuit, device: str) -> list[Segment]:
        """The segments of a present circuit in a device; if it lies within one device, a segment with ports only."""
        if not circuit.spans_devices:
            return [Segment(device, circuit.ports)] if circuit.a.device == device else []
        path = self._paths[circuit]
        return [segment for segment in path.segments if segment.device == device] if path else []

    def on(self, device: str, circuits: Iterable[Circuit]) -> list[Circuit]:
        """The present circuits, among these, that pass a device or end there."""
        return [circuit for circuit in circuits if self.segments(circuit, device) or device in circuit.devices]

    def devices_of(self, circuit: Circuit) -> tuple[str, ...]:
        """The devices that a present circuit passes; those of its ends if its path is not known."""
        path = self._paths.get(circuit)
        return path.devices if path else circuit.devices

    def fibre_places(self, circuit: Circuit) -> Iterator[DevicePort]:
        """The ends of the fibres that a present circuit runs through."""
        path = self._paths.get(circuit)
        yield from (place for pair in (path.fibre_ports if path else ()) for place in pair)

    def parts(self) -> list[tuple[str, ...]]:
        """Groups of devices to route: all connected ones if a new circuit spans devices, other changed ones alone."""
        joined: list[tuple[str, ...]] = []
        for circuit in self.wanted:
            if circuit.spans_devices and not any(circuit.a.device in part for part in joined):
                reach = (d.id for d in self.inventory.light_devices if d.id in self.states)
                joined.append(tuple(d for d in reach if self.inventory.joined_by_fibres(d, circuit.a.device)))
        alone = [
            (device,)
            for device in self.inventory.devices
            if not any(device in part for part in joined)
            and (device in self.rewrite or self.on(device, [*self.gone, *self.wanted]))
        ]
        return [*joined, *alone]

    def _is_rewritten(self, circuit: Circuit) -> bool:
        """Whether a device on a circuit's path is routed from scratch; an unknown path may pass any device."""
        path = self._paths.get(circuit)
        if circuit.spans_devices and path is None:
            return bool(self.rewrite)
        on_path = [segment.device for segment in path.segments] if path else circuit.devices
        return not self.rewrite.isdisjoint(on_path)


def device_writes(change: CircuitChange, device: Device, after: States) -> tuple[PlannedChange, ...]:
    """The cells to write so that a device holds the states ``after``; all of one that is routed from scratch."""
    cells = own_cells(change.inventory, device) if device.id in change.rewrite else ()
    return _writes(device, change.states.get(device.id, {}), after, cells)


def mesh_routes(
    change: CircuitChange,
    device: Device,
    demands: Sequence[PortPair],
    kept: Iterable[Circuit],
    held: States,
    *,
    objective: Objective = Objective.PUCS,
) -> tuple[tuple[Route, ...], dict[int, PucState]]:
    """Routes for pairs of ports of a mesh around what is kept there, and the states of the mesh afterwards."""
    condition, states = condition_of(device), present_states(device, held)
    if not demands:
        return (), states
    routes = route(
        mesh_of(device),
        demands,
        states=states,
        live=[part.ports for circuit in kept for part in change.segments(circuit, device.id)],
        stuck=condition.stuck,
        damaged=condition.damaged | change.reroutes.avoid.get(device.id, frozenset()),
        blocked_ports=condition.blocked_ports,
        excess=condition.excess,
        objective=objective,
    )
    return routes, states | dict(changes(states, routes))


def present_states(device: Device, held: States) -> dict[int, PucState]:
    """The states of a mesh: a PUC that is known to be stuck keeps its state whatever is written.

    A readable device reports that state.
    """
    return {puc: PucState(state) for puc, state in held.items()} | dict(condition_of(device).stuck)


def freed_joins(change: CircuitChange, device: Device, lost: Iterable[Circuit], held: States) -> dict[int, str]:
    """The connections of a switch without those of lost circuits."""
    after = dict(held)
    for part in (part for circuit in lost for part in change.segments(circuit, device.id)):
        for ingress, egress in (part.ports, part.ports[::-1]):
            if after.get(ingress) == str(egress):
                after[ingress] = FREE
    return after


def join_ports(device: Device, circuit: Circuit, ports: tuple[int, int], joins: dict[int, str]) -> None:
    """Join two ports of a switch for a circuit.

    Raises:
        RefusedError: a foreign join blocks one of them.
    """
    ingress, egress = join_of(device, ports, reciprocal=circuit.direction is Direction.DUPLEX)
    other = in_the_way(joins, ingress, egress)
    if other is not None:
        raise RefusedError(
            f"{circuit.id} needs {device.id} to connect port {ingress} to port {egress}, but port {other[0]} is "
            f"connected to port {other[1]}",
            hint=f"see its user: lumctl device show {device.id}",
        )
    joins[ingress] = str(egress)


def _writes(device: Device, held: States, after: States, whole: Iterable[int]) -> tuple[PlannedChange, ...]:
    """The cells to write: those in ``whole``, or, if it is empty, those whose state differs."""
    rest = FREE if device.kind is DeviceKind.SWITCH else str(PucState.BAR)
    cells = tuple(whole) or tuple(sorted(cell for cell, state in after.items() if held.get(cell) != state))
    return tuple(PlannedChange(device.id, cell, held.get(cell), after.get(cell, rest)) for cell in cells)
