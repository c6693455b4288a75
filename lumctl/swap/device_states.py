"""The states of a rack's meshes and switches before its circuits are programmed, and the joins that block circuits."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lumctl.change.plan import PlannedChange
from lumctl.change.refusal_advice import asking
from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.types import PucState
from lumctl.fabric import FabricStates
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.inventory.wiring import FREE, Circuit, Direction, in_the_way, join_of, own_cells
from lumctl.swap.light_paths import States


@dataclass(frozen=True)
class DeviceStates:
    """The states of some devices: as a device reports them if it can be read, otherwise as recorded."""

    states: Mapping[str, States]
    """By device, the states of its cells; empty if nothing is known of it."""
    whole: frozenset[str] = frozenset()
    """Devices of which every cell is written: the record is uncertain, differs from the device, or must be ignored."""
    afresh: frozenset[str] = frozenset()
    """The devices of ``whole`` on which all circuits are routed from scratch, and not only the missing ones."""
    others: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """By switch, the joins of ingress ports without a lane of the inventory; no record contains them."""
    own: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By device, the numbers of its own cells."""
    readable: frozenset[str] = frozenset()
    """The devices that report their own states."""

    def cleared_for(
        self, inventory: Inventory, wanted: Iterable[Circuit], carried: Collection[Circuit]
    ) -> dict[str, dict[int, str]]:
        """The states of each device after the joins that block these circuits are removed.

        If a circuit spans devices and is not ``carried``, all joins at fibres or at its ends are removed, unless a
        carried circuit passes them: they are the rest of its former path.
        """
        cleared = {device: dict(held) for device, held in self.states.items()}
        for circuit in wanted:
            device = inventory.devices[circuit.a.device]
            if circuit.spans_devices or device.kind is not DeviceKind.SWITCH or device.id not in self.whole:
                continue
            ports = join_of(device, circuit.ports, reciprocal=circuit.direction is Direction.DUPLEX)
            # Two joins may be in the way, one at each port.
            while (other := in_the_way(cleared[device.id], *ports)) is not None:
                cleared[device.id][other[0]] = FREE
        broken = [circuit for circuit in wanted if circuit.spans_devices and circuit not in carried]
        held = FabricStates(inventory, self.states)
        passed = {
            (part.device, port)
            for path in map(held.path_of, carried)
            for part in (path.segments if path else ())
            for port in part.ports
        }
        for name in self.states if broken else ():
            if inventory.devices[name].kind is DeviceKind.SWITCH:
                ours = {place.port for place in inventory.fibre_at if place.device == name}
                ours |= {port for circuit in broken for port in circuit.ports_at(name)}
                for at, to in self.states[name].items():
                    joined = {at, int(to)} if to != FREE else set[int]()
                    if joined & ours and not any((name, port) in passed for port in joined):
                        cleared[name][at] = FREE
        return cleared

    def with_cleared(self, device: str, cleared: States, changes: Iterable[PlannedChange]) -> tuple[PlannedChange, ...]:
        """Changes of a device's ``cleared`` states, restated as changes of its actual states."""
        after = {change.puc: change.after for change in changes}
        held = self.states[device]
        after = {**{port: state for port, state in cleared.items() if held[port] != state}, **after}
        return tuple(
            PlannedChange(device, port, held.get(port), state)
            for port, state in sorted(after.items())
            if held.get(port) != state
        )

    def whole_write(self, device: str, after: States) -> tuple[PlannedChange, ...]:
        """Every own cell of a device with its present and its new state, and the foreign joins that block new ones."""
        rest = FREE if device in self.others else str(PucState.BAR)
        held = self.states[device]
        own = [PlannedChange(device, cell, held.get(cell), after.get(cell, rest)) for cell in self.own[device]]
        taken = {port for at, to in after.items() if to != FREE for port in (str(at), to)}
        foreign = [
            PlannedChange(device, port, to, FREE)
            for port, to in self.others.get(device, {}).items()
            if to in taken or str(port) in taken
        ]
        return (*own, *foreign)


def cells_to_plan_on(
    context: Context, rack: str, *, rewrite: bool, forget: bool, only: Collection[str] | None = None
) -> DeviceStates:
    """The states of all devices of a rack, or of those in ``only``.

    Raises:
        DeviceError: a readable device does not answer.
    """
    inventory = context.inventory
    named = inventory.devices if only is None else only
    here = [d for d in inventory.devices.values() if d.rack == rack and d.id in named and own_cells(inventory, d)]
    own = {device.id: own_cells(inventory, device) for device in here}
    states: dict[str, States] = {device: {} if forget else context.known_cells(device) for device in own}
    others: dict[str, Mapping[int, str]] = {}
    whole, afresh, readable = set[str](), set[str](), set[str]()
    for device in here:
        recorded, driver = states[device.id], context.devices.changing(device.id)
        if transaction.readable(driver):
            readable.add(device.id)
            with asking(context, device.id):
                states[device.id] = read = transaction.read_cells(driver, own[device.id])
            if transaction.is_switch(driver):
                every = transaction.read_cells(driver, range(device.port_count))
                others[device.id] = {
                    port: to for port, to in every.items() if to != FREE and port not in own[device.id]
                }
            # A reading lacks the PUCs that are between bar and cross.
            known = read.keys() == set(own[device.id])
        else:
            known = bool(recorded)
        if not recorded or states[device.id] != recorded or rewrite:
            whole.add(device.id)
        if rewrite or forget or not known:
            afresh.add(device.id)
    return DeviceStates(states, frozenset(whole), frozenset(afresh), others, own, frozenset(readable))
