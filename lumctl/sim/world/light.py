"""Where light goes in the simulated fabric: cells that change or are stuck, and the light that leaves every port."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.types import PucState
from lumctl.fabric import Trace, trace
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.inventory.model import Device, Inventory, Transponder
from lumctl.sim.world.switch import SwitchState

DevicePort = tuple[str, int]
"""A device's id and the number of one of its ports."""


@dataclass(frozen=True, slots=True)
class Light:
    """Light at a port or a receiver: its power, and the transponder that sent it."""

    power_dbm: float
    source: str


class Carrier(Protocol):
    """A device that light goes through."""

    def leads(self, port: int) -> tuple[int, float] | None:
        """The port where light that enters at a port leaves, and the loss in dB; ``None`` if it leaves nowhere."""
        ...


class Crossing:
    """One simulated switch between its fibres; a join carries light both ways."""

    def __init__(self, device: Device) -> None:
        self.state = SwitchState(device.port_count, device.input_count)
        self._condition = condition_of(device)

    def leads(self, port: int) -> tuple[int, float] | None:
        """The other end of a join and the loss in dB.

        ``None`` if there is no join, if it is still being made, or if one of its ports is blocked.
        """
        way_out = self.state.partner(port)
        if way_out is None or not self.state.changing.isdisjoint((port, way_out)):
            return None
        ports = (port, way_out)
        if not all(map(self.state.passes, ports)) or not self._condition.blocked_ports.isdisjoint(ports):
            return None
        return way_out, self._condition.loss_db(ports, ())


class SimulatedChip:
    """One simulated mesh: the states of its cells, initially all bar, and the cells that are stuck."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._mesh = mesh_of(device)
        self._condition = condition_of(device)
        self.puc_count = self._mesh.puc_count
        self._states = dict.fromkeys(range(self.puc_count), PucState.BAR)
        self._worn = self._condition.stuck
        self._states |= self._worn
        self._stuck = set(self._worn)
        self._traces: dict[int, Trace] = {}
        self._changing: set[int] = set()

    def states(self) -> dict[int, PucState]:
        """The state of every cell."""
        return dict(self._states)

    def require(self, pucs: Iterable[int]) -> None:
        """Check that all these cells exist.

        Raises:
            DeviceRefusedError: a cell does not exist.
        """
        missing = [puc for puc in pucs if not 0 <= puc < self.puc_count]
        if missing:
            raise DeviceRefusedError(f"{self.device.id} has no PUC {missing[0]} (valid: 0 to {self.puc_count - 1})")

    def write(self, changes: Mapping[int, PucState]) -> None:
        """Set cells; stuck cells stay unchanged."""
        self.require(changes)
        self._states |= {puc: state for puc, state in changes.items() if puc not in self._stuck}
        self._traces.clear()

    def begin(self, changes: Mapping[int, PucState]) -> None:
        """Set cells; until :meth:`settle`, no light passes those that held another state before."""
        before = dict(self._states)
        self.write(changes)
        self._changing = {puc for puc in changes if self._states[puc] is not before[puc]}

    def settle(self) -> None:
        """Let light pass the cells that were changing."""
        self._changing.clear()

    def hold(self, puc: int, state: PucState) -> None:
        """Make a cell stuck in a state, which writes then do not change."""
        self._stuck.add(puc)
        self._states[puc] = state
        self._traces.clear()

    def release(self, puc: int) -> None:
        """Let a cell work again; if the inventory lists it as stuck, it returns to that state instead."""
        if puc in self._worn:
            self.hold(puc, self._worn[puc])
        else:
            self._stuck.discard(puc)

    def trace(self, port: int) -> Trace:
        """The path of light that enters at a port."""
        if port not in self._traces:
            self._traces[port] = trace(self._mesh, self._states, port)
        return self._traces[port]

    def leads(self, port: int) -> tuple[int, float] | None:
        """The port at the end of the path, and the loss in dB, which may be ``inf``.

        ``None`` if a cell on the path is changing.
        """
        way = self.trace(port)
        if not self._changing.isdisjoint(way.pucs):
            return None
        return way.exit, self.loss_db(way)

    def loss_db(self, way: Trace) -> float:
        """The loss of a path in dB; ``inf`` if it begins or ends at a port that lets nothing through."""
        ports = (way.port, way.exit)
        blocked = not self._condition.blocked_ports.isdisjoint(ports)
        return math.inf if blocked else self._condition.loss_db(ports, way.pucs)


class Fibres:
    """The fibres between devices, with the extra loss by faults (dB, ``inf``: nothing passes) of each fibre name."""

    def __init__(self, inventory: Inventory, extra_loss_db: Callable[[str], float]) -> None:
        self._ends = {
            (here.device, here.port): (fibre.name, fibre.loss_db, (there.device, there.port))
            for here, (fibre, there) in inventory.fibre_at.items()
        }
        self._extra_loss_db = extra_loss_db

    def leads(self, port: DevicePort) -> tuple[DevicePort, float] | None:
        """The far end of the fibre at a port, and the loss until there in dB; ``None`` without a fibre."""
        if port not in self._ends:
            return None
        name, loss_db, there = self._ends[port]
        return there, loss_db + self._extra_loss_db(name)


def illuminate(
    carriers: Mapping[str, Carrier],
    fibres: Fibres,
    emitted: Iterable[tuple[Transponder, float]],
    port_loss: Mapping[DevicePort, float],
) -> tuple[dict[DevicePort, Light], dict[DevicePort, float]]:
    """Trace the light that each transponder emits (dBm).

    Returns the light that leaves each lit port, and the power (dBm) that enters at each lit port. ``port_loss`` is the
    loss of ports (dB, ``inf``: nothing passes) in addition to what the inventory states.
    """
    leaving: dict[DevicePort, Light] = {}
    entering: dict[DevicePort, float] = {}
    for transponder, emitted_dbm in emitted:
        place: DevicePort | None = (transponder.lane.device, transponder.lane.tx)
        power_dbm = emitted_dbm
        # This loop ends: every step is reversible, so light that came from outside cannot enter a cycle.
        while place is not None and power_dbm > -math.inf:
            entering[place] = power_dbm - port_loss.get(place, 0.0)
            device, way_in = place
            led = carriers[device].leads(way_in) if device in carriers else None
            if led is None:
                break
            out = (device, led[0])
            power_dbm = entering[place] - led[1] - port_loss.get(out, 0.0)
            if power_dbm > -math.inf:
                leaving[out] = Light(power_dbm, transponder.id)
            place, loss_db = fibres.leads(out) or (None, 0.0)
            power_dbm -= loss_db
    return leaving, entering
