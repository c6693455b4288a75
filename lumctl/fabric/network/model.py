"""The model of a network: meshes and switches connected by fibres.

A mesh is a :class:`~lumctl.fabric.geometry.Mesh` with its condition. A switch is a non-blocking crossbar: it connects
any port with any other. A fibre connects a port of one device to a port of another or the same device. A bundle is
several fibres with one name; it may carry fewer circuits at once than it has fibres. Every device is reciprocal, so a
circuit between two ports carries light both ways.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition, condition_of, mesh_of
from lumctl.fabric.geometry import FREE, Mesh
from lumctl.inventory.model import Device, DeviceKind, DevicePort, Fibre, Inventory
from lumctl.inventory.problems import nearest

Ends = tuple[DevicePort, DevicePort]
"""The two ends of an existing or wanted circuit."""

_AS_BUILT = MeshCondition()


@dataclass(frozen=True, slots=True)
class MeshDevice:
    """A mesh with its condition: damage and losses."""

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
    """A crossbar that connects any port with any other; ``loss_db`` is the loss from port to port."""

    port_count: int
    loss_db: float = 0.0
    blocked_ports: frozenset[int] = frozenset()
    input_count: int | None = None
    """If set, the switch connects only its first ``input_count`` ports with the other ports."""


@dataclass(frozen=True, eq=False)
class Network:
    """Devices by name, and the fibres between them.

    Raises:
        UsageError: a fibre ends at a port that does not exist or already has a fibre, or two fibres have the same name.
    """

    devices: Mapping[str, MeshDevice | SwitchDevice]
    fibres: tuple[Fibre, ...] = ()

    def __post_init__(self) -> None:
        names = [fibre.name for fibre in self.fibres]
        if len(set(names)) < len(names):
            raise UsageError("two fibres have the same name", hint="each name belongs to one fibre or one bundle")
        used: set[DevicePort] = set()
        for fibre in self.fibres:
            for place in (place for pair in fibre.pairs for place in pair):
                self.check(place)
                if place in used:
                    raise UsageError(f"{place} has two fibres", hint="a port connects to one fibre")
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
        """Check that a port exists.

        Raises:
            UsageError: it does not.
        """
        device = self.devices.get(place.device)
        if device is None:
            near = nearest(place.device, self.devices)
            hint = f"did you mean {near}?" if near else f"one of: {', '.join(self.devices)}"
            raise UsageError(f"device {place.device!r} is not in the fabric", hint=hint)
        if not 0 <= place.port < device.port_count:
            hint = f"its ports are 0 to {device.port_count - 1}"
            raise UsageError(f"port {place.port} is not on {place.device}", hint=hint)


def port_of(text: str) -> DevicePort:
    """Parse a port such as ``m0:3``.

    Raises:
        UsageError: the text has another form.
    """
    device, colon, port = text.strip().rpartition(":")
    if not (device and colon and port.isascii() and port.isdigit()):
        raise UsageError(f"found {text!r}, expected DEVICE:PORT, such as m0:3")
    return DevicePort(device, int(port))


def ends_of(text: str) -> Ends:
    """Parse two ends such as ``m0:3,m1:9``.

    Raises:
        UsageError: the text has another form.
    """
    first, comma, second = text.partition(",")
    if not comma:
        raise UsageError(f"found {text!r}, expected DEVICE:PORT,DEVICE:PORT, such as m0:3,m1:9")
    return port_of(first), port_of(second)


def written(circuits: Iterable[Ends]) -> str:
    """Circuits in the form of the command line."""
    return " ".join(f"{a},{b}" for a, b in circuits)


_NOTHING: Mapping[str, frozenset[int]] = {}


def network_of(inventory: Inventory, rack: str) -> Network:
    """The network of a rack, from the inventory."""
    return network_among(inventory, [device.id for device in inventory.light_devices if device.rack == rack])


def network_among(
    inventory: Inventory,
    names: Iterable[str],
    *,
    avoid: Mapping[str, frozenset[int]] = _NOTHING,
    closed: Mapping[str, frozenset[int]] = _NOTHING,
    full: Collection[str] = (),
) -> Network:
    """The network of some devices and the fibres between them.

    New paths use none of the PUCs in ``avoid`` (by mesh), the ports in ``closed`` (by switch), or the ``full`` fibres.
    """
    devices = {
        name: _device(inventory.devices[name], avoid.get(name, frozenset()), closed.get(name, frozenset()))
        for name in names
    }
    between = [fibre for fibre in inventory.fibres.values() if all(end in devices for end in fibre.devices)]
    return Network(devices, tuple(replace(f, capacity=0) if f.name in full else f for f in between))


def _device(device: Device, avoid: frozenset[int], closed: frozenset[int]) -> MeshDevice | SwitchDevice:
    if device.kind is DeviceKind.MESH:
        condition = condition_of(device)
        return MeshDevice(mesh_of(device), replace(condition, damaged=condition.damaged | avoid))
    inputs = device.input_count if device.input_count < device.port_count else None
    # A crossbar's loss is that of its two ports.
    return SwitchDevice(device.port_count, 2 * device.loss_per_port_db, device.blocked_ports | closed, inputs)


# Prices are in units of the least loss of a PUC. A mesh may have no recorded loss, and the unit must not be 0.
_LEAST_UNIT_DB = 0.01
_PASS = 1 / 1024
"""The price of a pass in addition to its loss, so that light takes the shorter path if losses are unknown."""


@dataclass(frozen=True, eq=False)
class JointNetwork:
    """A network with one common numbering of all PUCs and terminals.

    ``peers[t]`` is the terminal at which light that leaves at ``t`` comes in next (:data:`FREE`: it leaves the
    network), ``bundle_at[t]`` the number of the bundle between them (-1: none). ``turn_price[2 * puc + turn]`` and
    ``wire_price[t]`` (for leaving at ``t``) are the prices of loss only. ``switch_at`` is the switch of a terminal,
    ``crossing`` the price of each switch, ``linked`` the terminals of each switch that have a fibre.
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
    first_output: Mapping[str, int]
    """The first output of each switch with inputs and outputs; such a switch connects an input only to an output."""
    terminal_of: Mapping[DevicePort, int]
    place_of: Mapping[int, DevicePort]


def joint_of(network: Network) -> JointNetwork:
    """Number the PUCs and terminals of all devices of a network consecutively."""
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
            turn_price += [_PASS + device.condition.pass_loss_db(puc) / unit] * 2
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
        first_output={
            name: first_of[name] + switch.input_count
            for name, switch in network.switches
            if switch.input_count is not None
        },
        terminal_of=terminal_of,
        place_of={terminal: place for place, terminal in terminal_of.items()},
    )


def _port_loss_db(network: Network, place: DevicePort) -> float:
    device = network.devices[place.device]
    # The loss of a switch's ports is in the price of crossing it.
    return device.condition.loss_db((place.port,), ()) if isinstance(device, MeshDevice) else 0.0
