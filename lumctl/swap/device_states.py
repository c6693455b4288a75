"""What the meshes and switches of a rack hold, as far as it is known, and what a plan has to write."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lumctl.change.plan import PlannedChange
from lumctl.devices import transaction
from lumctl.devices.types import PucState
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.inventory.wiring import FREE, Circuit, Direction, in_the_way, join_of, own_cells
from lumctl.site import Site
from lumctl.swap.budgets import States


@dataclass(frozen=True)
class DeviceCells:
    """By device: what it holds (``states``), by its own word where it can be read, else by the record."""

    states: Mapping[str, States]
    """Empty where nothing is known of a device."""
    whole: frozenset[str] = frozenset()
    """The devices whose every cell is written: what the record says of them is not certain, or is to be forgotten."""
    afresh: frozenset[str] = frozenset()
    """Those of them whose circuits are all routed again, and not only those that are not there."""
    others: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """By switch the joins of ingress ports that no lane of the inventory meets: they are no part of any record."""
    own: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By device the numbers of its cells."""
    readable: frozenset[str] = frozenset()
    """The devices that say themselves what they hold."""

    def cleared_for(self, inventory: Inventory, wanted: Iterable[Circuit]) -> dict[str, dict[int, str]]:
        """What each device holds once the joins that stand in the way of these circuits are taken apart."""
        cleared = {device: dict(held) for device, held in self.states.items()}
        for circuit in wanted:
            device = inventory.devices[circuit.device]
            if device.kind is not DeviceKind.SWITCH or device.id not in self.whole:
                continue
            ports = join_of(device, circuit.ports, reciprocal=circuit.direction is Direction.DUPLEX)
            while (other := in_the_way(cleared[device.id], *ports)) is not None:
                cleared[device.id][other[0]] = FREE
        return cleared

    def whole_write(self, device: str, after: States) -> tuple[PlannedChange, ...]:
        """Every own cell of a device, with what it holds and what it is to hold; and the joins of others in the way."""
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
    site: Site, rack: str, *, rewrite: bool, forget: bool, only: Collection[str] | None = None
) -> DeviceCells:
    """What the devices of a rack hold, or only those named.

    Raises:
        DeviceError: one that can be read does not answer.
    """
    inventory = site.inventory
    named = inventory.devices if only is None else only
    here = [d for d in inventory.devices.values() if d.rack == rack and d.id in named and own_cells(inventory, d)]
    own = {device.id: own_cells(inventory, device) for device in here}
    states: dict[str, States] = {device: {} if forget else site.known_cells(device) for device in own}
    others: dict[str, Mapping[int, str]] = {}
    whole, afresh, readable = set[str](), set[str](), set[str]()
    for device in here:
        recorded, driver = states[device.id], site.devices.changing(device.id)
        if transaction.readable(driver):
            readable.add(device.id)
            states[device.id] = read = transaction.read_cells(driver, own[device.id])
            if transaction.is_switch(driver):
                every = transaction.read_cells(driver, range(device.port_count))
                others[device.id] = {
                    port: to for port, to in every.items() if to != FREE and port not in own[device.id]
                }
            known = read.keys() == set(own[device.id])
        else:
            known = bool(recorded)
        if not recorded or states[device.id] != recorded or rewrite:
            whole.add(device.id)
        if rewrite or forget or not known:
            afresh.add(device.id)
    return DeviceCells(states, frozenset(whole), frozenset(afresh), others, own, frozenset(readable))
