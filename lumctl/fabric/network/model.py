"""One fabric of several devices joined by fibres: meshes and switches, and how light gets from one to the next.

A mesh is a :class:`~lumctl.fabric.geometry.Mesh` in some condition. A switch is a crossbar that never blocks: it
connects any port with any other. A fibre joins a port of one device with a port of another (or of the same one); a
bundle is several fibres under one name, which may carry fewer circuits at once than it has fibres. Every device is
reciprocal, so a circuit between two ports carries light both ways.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from lumctl.errors import UsageError
from lumctl.fabric.condition import Condition, condition_of, mesh_of
from lumctl.fabric.geometry import Mesh
from lumctl.inventory.fibres import DevicePort, Fibre
from lumctl.inventory.hints import nearest
from lumctl.inventory.model import Device, DeviceKind, Inventory

Ends = tuple[DevicePort, DevicePort]
"""The two ends of a circuit, or of one that is wanted."""

_AS_BUILT = Condition()


@dataclass(frozen=True, slots=True)
class MeshDevice:
    """A mesh, and what is known of its damage and its losses."""

    mesh: Mesh
    condition: Condition = _AS_BUILT

    @property
    def port_count(self) -> int:
        """How many ports it has."""
        return self.mesh.port_count

    @property
    def blocked_ports(self) -> frozenset[int]:
        """Ports that must not be used."""
        return self.condition.blocked_ports


@dataclass(frozen=True, slots=True)
class SwitchDevice:
    """A crossbar that connects any port with any other; ``loss_db`` is what light loses from port to port."""

    port_count: int
    loss_db: float = 0.0
    blocked_ports: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Network:
    """Devices by name, and the fibres between them.

    Raises:
        UsageError: a fibre ends at a port that is not there or that has a fibre already, or two have one name.
    """

    devices: Mapping[str, MeshDevice | SwitchDevice]
    fibres: tuple[Fibre, ...] = ()

    def __post_init__(self) -> None:
        names = [fibre.name for fibre in self.fibres]
        if len(set(names)) < len(names):
            raise UsageError("two fibres have one name", hint="each name stands for one fibre or one bundle")
        used: set[DevicePort] = set()
        for fibre in self.fibres:
            for place in (place for pair in fibre.pairs for place in pair):
                self.check(place)
                if place in used:
                    raise UsageError(f"{place} has two fibres", hint="a port takes one fibre")
                used.add(place)

    @cached_property
    def across(self) -> Mapping[DevicePort, tuple[Fibre, DevicePort]]:
        """For every port with a fibre: the fibre, and the port at its other end."""
        return {
            here: (fibre, there) for fibre in self.fibres for pair in fibre.pairs for here, there in (pair, pair[::-1])
        }

    @property
    def meshes(self) -> Iterable[tuple[str, MeshDevice]]:
        """The meshes with their names."""
        return ((name, device) for name, device in self.devices.items() if isinstance(device, MeshDevice))

    @property
    def switches(self) -> Iterable[tuple[str, SwitchDevice]]:
        """The switches with their names."""
        return ((name, device) for name, device in self.devices.items() if isinstance(device, SwitchDevice))

    def check(self, place: DevicePort) -> None:
        """See that a port is there.

        Raises:
            UsageError: it is not.
        """
        device = self.devices.get(place.device)
        if device is None:
            near = nearest(place.device, self.devices)
            hint = f"did you mean {near}?" if near else f"one of: {', '.join(self.devices)}"
            raise UsageError(f"no device {place.device!r} in the fabric", hint=hint)
        if not 0 <= place.port < device.port_count:
            hint = f"its ports are 0 to {device.port_count - 1}"
            raise UsageError(f"port {place.port} is not on {place.device}", hint=hint)


def port_of(text: str) -> DevicePort:
    """The port that is written ``m0:3``.

    Raises:
        UsageError: it is not written so.
    """
    device, colon, port = text.strip().rpartition(":")
    if not (device and colon and port.isascii() and port.isdigit()):
        raise UsageError(f"found {text!r}, expected DEVICE:PORT, such as m0:3")
    return DevicePort(device, int(port))


def ends_of(text: str) -> Ends:
    """The two ends that are written ``m0:3,m1:9``.

    Raises:
        UsageError: they are not written so.
    """
    first, comma, second = text.partition(",")
    if not comma:
        raise UsageError(f"found {text!r}, expected DEVICE:PORT,DEVICE:PORT, such as m0:3,m1:9")
    return port_of(first), port_of(second)


def written(circuits: Iterable[Ends]) -> str:
    """Circuits as they are written on the command line."""
    return " ".join(f"{a},{b}" for a, b in circuits)


def network_of(inventory: Inventory, rack: str) -> Network:
    """The fabric of a rack as its inventory says."""
    devices = {device.id: _device(device) for device in inventory.devices.values() if device.rack == rack}
    return Network(devices, tuple(fibre for fibre in inventory.fibres.values() if fibre.devices[0] in devices))


def _device(device: Device) -> MeshDevice | SwitchDevice:
    if device.kind is DeviceKind.MESH:
        return MeshDevice(mesh_of(device), condition_of(device))
    return SwitchDevice(device.port_count, 2 * device.loss_per_port_db, device.blocked_ports)
