"""What a switch has to do for circuits: which of its ports are ours, and which join makes a circuit.

The state of an ingress port is written as text, as the state of a PUC is: the egress port that it is joined to, or
:data:`FREE`. Ports that no lane of the inventory meets belong to others: they are no part of any state or plan.
"""

from collections.abc import Mapping

from lumctl.errors import UsageError
from lumctl.inventory.model import Device, DeviceKind, Inventory

FREE = "-"
"""The state of an ingress port that is joined to nothing."""


def own_cells(inventory: Inventory, device: Device) -> tuple[int, ...]:
    """The numbers under which a device's state is kept: every PUC of a mesh, a switch's ingress ports of our lanes."""
    if device.kind is not DeviceKind.SWITCH:
        return tuple(range(device.geometry.puc_count if device.geometry else 0))
    ports = {
        port for lane in inventory.transponders.values() if lane.lane.device == device.id for port in lane.lane.ports
    }
    return tuple(sorted(port for port in ports if port < device.input_count))


def join_of(device: Device, ports: tuple[int, int], *, reciprocal: bool) -> tuple[int, int]:
    """The (ingress, egress) join that takes light from the first port to the second; a duplex circuit either way round.

    Raises:
        UsageError: the switch cannot join these two.
    """
    if device.input_count == device.port_count:
        return min(ports), max(ports)
    for ingress, egress in (ports, ports[::-1]) if reciprocal else (ports,):
        if ingress < device.input_count <= egress:
            return ingress, egress
    raise UsageError(
        f"{device.id} cannot join port {ports[0]} to port {ports[1]}: light enters at ports 0 to "
        f"{device.input_count - 1} and leaves at {device.input_count} to {device.port_count - 1}",
        hint="put transmitting lanes on the inputs (tx) and receiving ones on the outputs (rx)",
    )


def in_the_way(joins: Mapping[int, str], ingress: int, egress: int) -> tuple[int, int] | None:
    """A join that one of two ports is part of, and that is not theirs.

    Where any port may be joined to any, a port may stand at either end of it.
    """
    for at, to in joins.items():
        if to != FREE and {at, int(to)} & {ingress, egress} and (at, int(to)) != (ingress, egress):
            return at, int(to)
    return None


def is_joined(joins: Mapping[int, str], ports: tuple[int, int]) -> bool:
    """Whether two ports are joined; a switch's path carries light both ways, and its ingress has the lower number."""
    return joins.get(min(ports)) == str(max(ports))
