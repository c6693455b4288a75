"""The condition of a device: stuck and damaged PUCs, blocked ports, and the losses of PUCs and ports."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.geometry import Mesh, trace
from lumctl.fabric.shapes import mesh_with
from lumctl.inventory.model import Device

DAMAGED_LOSS_DB = 40.0
"""The extra loss of a damaged PUC, in dB.

A damaged coupler sends only stray light to the intended side. With this loss the light is too weak for any receiver, so
a circuit through such a PUC appears as dark, while tables and documents still contain a finite number.
"""
_USUAL_LOSS_DB = 0.25
STATE_OF_WORD = {state.word: state for state in PucState}
"""The states as the inventory and documents name them: bar and cross."""


@dataclass(frozen=True, slots=True)
class MeshCondition:
    """The condition of one mesh. Losses are in dB.

    ``stuck`` PUCs keep their state, whatever is written. No circuit may be routed through ``damaged`` PUCs or to
    ``blocked_ports``. ``puc_loss_db`` and ``port_loss_db`` are the extra losses of single PUCs and ports, on top of the
    loss that all have.
    """

    stuck: Mapping[int, PucState] = field(default_factory=dict)
    damaged: frozenset[int] = frozenset()
    blocked_ports: frozenset[int] = frozenset()
    loss_per_puc_db: float = _USUAL_LOSS_DB
    loss_per_port_db: float = 1.0
    puc_loss_db: Mapping[int, float] = field(default_factory=dict)
    port_loss_db: Mapping[int, float] = field(default_factory=dict)

    @property
    def excess(self) -> dict[int, float]:
        """The extra loss of single PUCs, as a multiple of the loss per PUC; that is 0.25 dB if the mesh states none."""
        usual = self.loss_per_puc_db or _USUAL_LOSS_DB
        return {puc: loss / usual for puc, loss in self.puc_loss_db.items()}

    def pass_loss_db(self, puc: int) -> float:
        """The loss of passing one PUC once, in dB."""
        damage = DAMAGED_LOSS_DB if puc in self.damaged else 0.0
        return self.loss_per_puc_db + self.puc_loss_db.get(puc, 0.0) + damage

    def loss_db(self, ports: Iterable[int], pucs: Iterable[int]) -> float:
        """The loss at these ports and in these PUCs, in dB; a PUC that is passed twice is listed twice."""
        coupling = sum(self.loss_per_port_db + self.port_loss_db.get(port, 0.0) for port in ports)
        return coupling + sum(self.pass_loss_db(puc) for puc in pucs)


def condition_of(device: Device) -> MeshCondition:
    """The condition of a device as the inventory states it."""
    return MeshCondition(
        stuck={puc: STATE_OF_WORD[word] for puc, word in device.stuck.items()},
        damaged=device.damaged,
        blocked_ports=device.blocked_ports,
        loss_per_puc_db=device.loss_per_puc_db,
        loss_per_port_db=device.loss_per_port_db,
        puc_loss_db=device.puc_loss_db,
        port_loss_db=device.port_loss_db,
    )


def mesh_of(device: Device) -> Mesh:
    """The mesh of a device.

    Raises:
        UsageError: the device is not a mesh.
    """
    if device.geometry is None:
        raise UsageError(f"{device.id} is a {device.kind}: it has no PUCs")
    return mesh_with(device.geometry)


def loss_db(device: Device, ports: Iterable[int], pucs: Iterable[int]) -> float:
    """The loss at these ports of a device and in these PUCs, in dB; a PUC that is passed twice is listed twice."""
    return condition_of(device).loss_db(ports, pucs)


_OTHER = {PucState.BAR: PucState.CROSS, PucState.CROSS: PucState.BAR}


@dataclass(frozen=True, slots=True)
class Disobedience:
    """PUCs that may be in the wrong state: each of ``pucs`` alone would explain what the receivers hear.

    ``shown`` is true if a receiver hears a wrong transmitter. If receivers are only dark, there may be other causes.
    """

    pucs: tuple[int, ...] = ()
    shown: bool = False


def disobeying_pucs(
    device: Device, written: Mapping[int, PucState], sending: Collection[int], heard: Mapping[int, int | None]
) -> Disobedience:
    """Find the PUCs of a mesh that may be in the wrong state: one such PUC alone explains what the receivers hear.

    ``written`` are the states that the mesh should have. ``sending`` are the ports at which light comes in. ``heard``
    maps the port of each receiver to the port at which its light came in, or to ``None`` if the receiver is dark;
    receivers without a reading are omitted.
    """
    mesh = mesh_of(device)
    meant, passed = _arrivals(mesh, written, sending)
    wrong = [port for port, source in heard.items() if meant.get(port) != source]
    # Only a PUC on the way of light that arrives wrongly, or not at all, can be the cause.
    ways = [passed[source] for port in wrong for source in (meant.get(port), heard[port]) if source in passed]
    found = []
    for puc in sorted(set().union(*ways)):
        states = {**written, puc: _OTHER[written.get(puc, PucState.BAR)]}
        arriving, _ = _arrivals(mesh, states, sending)
        if all(arriving.get(port) == source for port, source in heard.items()):
            found.append(puc)
    return Disobedience(tuple(found), any(heard[port] is not None for port in wrong))


def _arrivals(
    mesh: Mesh, states: Mapping[int, PucState], sending: Collection[int]
) -> tuple[dict[int, int], dict[int, frozenset[int]]]:
    """Two mappings: exit port -> the port at which the light came in; that port -> the PUCs that the light passes."""
    traces = {port: trace(mesh, states, port) for port in sending}
    return {t.exit: port for port, t in traces.items()}, {port: frozenset(t.pucs) for port, t in traces.items()}
