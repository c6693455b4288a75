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
from lumctl.fabric.condition import MeshCondition, condition_of, mesh_of
from lumctl.fabric.geometry import FREE, Mesh
from lumctl.inventory.model import Device, DeviceKind, DevicePort, Fibre, Inventory
from lumctl.inventory.problems import nearest

Ends = tuple[DevicePort, DevicePort]
"""The two ends of a circuit, or of one that is wanted."""

_AS_BUILT = MeshCondition()


@dataclass(frozen=True, slots=True)
class MeshDevice:
    """A mesh, and what is known of its damage and its losses."""

    mesh: Mesh
    condition: MeshCondition = _AS_BUILT

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


_LEAST_UNIT_DB = 0.01
_PASS = 1 / 1024
"""The price of a pass beside its loss, so that light takes the shorter way where loss is not known."""


@dataclass(frozen=True, eq=False)
class JointNetwork:
    """A network as one numbered whole.

    ``peers[t]`` is the terminal at which light that leaves at ``t`` comes in next (:data:`FREE`: it leaves the
    network), ``bundle_at[t]`` the number of the bundle on that way (-1: none). ``turn_price[2 * puc + turn]`` and
    ``wire_price[t]`` (for leaving at ``t``) are what loss costs, and nothing else. ``switch_at`` is the switch that has
    a terminal, ``crossing`` what each switch costs, ``linked`` its terminals that have a fibre.
    """

    peers: list[int]
    bundle_at: list[int]
    turn_price: list[float]
    wire_price: list[float]
    first_of: Mapping[str, int]
    first_switch: int
    switch_at: Mapping[int, str]
    crossing: Mapping[str, float]
    linked: Mapping[str, tuple[int, ...]]
    terminal_of: Mapping[DevicePort, int]
    place_of: Mapping[int, DevicePort]


def joint_of(network: Network) -> JointNetwork:
    """Number all devices of a network through."""
    conditions = [device.condition for _, device in network.meshes]
    unit = max(_LEAST_UNIT_DB, min((c.loss_per_puc_db for c in conditions), default=_LEAST_UNIT_DB))
    peers: list[int] = []
    turn_price: list[float] = []
    first_of: dict[str, int] = {}
    terminal_of: dict[DevicePort, int] = {}
    for name, device in network.meshes:
        first = first_of[name] = len(peers)
        terminal_of |= {DevicePort(name, port): first + terminal for port, terminal in enumerate(device.mesh.ports)}
        peers += [peer if peer == FREE else first + peer for peer in device.mesh.peers]
        for puc in range(device.mesh.puc_count):
            turn_price += [_PASS + device.condition.loss_db((), (puc,)) / unit] * 2
    first_switch = len(peers)
    switch_at: dict[int, str] = {}
    for name, switch in network.switches:
        first = first_of[name] = len(peers)
        terminal_of |= {DevicePort(name, port): first + port for port in range(switch.port_count)}
        switch_at |= dict.fromkeys(range(first, first + switch.port_count), name)
        peers += [FREE] * switch.port_count
    bundle_at, wire_price = [-1] * len(peers), [0.0] * len(peers)
    for number, fibre in enumerate(network.fibres):
        for pair in fibre.pairs:
            loss = fibre.loss_db + sum(_port_loss_db(network, place) for place in pair)
            a, b = (terminal_of[place] for place in pair)
            peers[a], peers[b] = b, a
            bundle_at[a] = bundle_at[b] = number
            wire_price[a] = wire_price[b] = _PASS + loss / unit
    linked: dict[str, list[int]] = {name: [] for name, _ in network.switches}
    for terminal, name in switch_at.items():
        if peers[terminal] != FREE:
            linked[name].append(terminal)
    return JointNetwork(
        peers=peers,
        bundle_at=bundle_at,
        turn_price=turn_price,
        wire_price=wire_price,
        first_of=first_of,
        first_switch=first_switch,
        switch_at=switch_at,
        crossing={name: _PASS + switch.loss_db / unit for name, switch in network.switches},
        linked={name: tuple(terminals) for name, terminals in linked.items()},
        terminal_of=terminal_of,
        place_of={terminal: place for place, terminal in terminal_of.items()},
    )


def _port_loss_db(network: Network, place: DevicePort) -> float:
    device = network.devices[place.device]
    return device.condition.loss_db((place.port,), ()) if isinstance(device, MeshDevice) else 0.0
