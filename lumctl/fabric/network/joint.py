"""All devices of a network as one: their terminals numbered through, joined where fibres join their ports.

The terminals of the meshes come first, four for each PUC as in a single mesh, so that the PUC of terminal ``t`` is
still ``t >> 2``, bar leads to ``t ^ 2`` and cross to ``t ^ 3``. Each port of a switch is one more terminal: light that
comes in there leaves at any other port of that switch.

NetworkPrices are in passes: what one PUC loses is about 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lumctl.fabric.geometry import FREE
from lumctl.fabric.network.model import MeshDevice, Network
from lumctl.inventory.fibres import DevicePort

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
