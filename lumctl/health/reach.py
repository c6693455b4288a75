"""What a piece of work reaches: what lies on a host or in a rack, and the other ends of the light that passes there."""

from collections.abc import Iterable, Iterator

from lumctl.health.look import Place
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit


def reached(inventory: Inventory, circuits: Iterable[Circuit], component: str) -> frozenset[Place]:
    """Everything that is touched by work on an inventory id, a rack or a circuit; of all things of that name."""
    places = set(_on(inventory, component))
    lit: set[Place] = set()
    for circuit in circuits:
        ends = (("link", circuit.a.transponder), ("link", circuit.b.transponder))
        touched = circuit.id == component or ("device", circuit.device) in places
        if touched or any(end in places for end in ends):
            # The far end sees the light go: that is no fault of its own.
            lit |= {("circuit", circuit.id), *ends}
    return frozenset(places | lit)


def _on(inventory: Inventory, component: str) -> Iterator[Place]:
    """What is the component, or is part of it."""
    for host in inventory.hosts.values():
        if component in {host.name, host.rack}:
            yield "host", host.name
    for accelerator in inventory.accelerators.values():
        if component in {accelerator.id, accelerator.host, accelerator.rack}:
            yield "accelerator", accelerator.id
    for transponder in inventory.transponders.values():
        rack = inventory.hosts[transponder.host].rack
        if component in {transponder.id, transponder.accelerator, transponder.host, rack}:
            yield "link", transponder.id
    for device in inventory.light_devices:
        if component in {device.id, device.rack}:
            yield "device", device.id
