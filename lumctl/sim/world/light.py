"""Where light goes in the simulated fabric: cells that obey or not, and what leaves every port."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.types import PucState
from lumctl.fabric import Trace, trace
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.inventory.model import Device, Transponder
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
        """Where light that enters at a port leaves, and what it loses until then in dB; ``None`` for nowhere."""
        ...


class Crossing:
    """One simulated switch between its fibres; a join carries light both ways."""

    def __init__(self, device: Device) -> None:
        self.state = SwitchState(device.port_count, device.input_count)
        self._condition = condition_of(device)

    def leads(self, port: int) -> tuple[int, float] | None:
        """The other end of a join, where both ports let light through."""
        way_out = self.state.partner(port)
        if way_out is None:
            return None
        ports = (port, way_out)
        if not all(map(self.state.passes, ports)) or not self._condition.blocked_ports.isdisjoint(ports):
            return None
        return way_out, self._condition.loss_db(ports, ())


class SimulatedChip:
    """One simulated mesh: the states of its cells, all bar at first, and the cells that do not obey."""

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

    def states(self) -> dict[int, PucState]:
        """The state of every cell."""
        return dict(self._states)

    def require(self, pucs: Iterable[int]) -> None:
        """Check that all these cells exist.

        Raises:
            DeviceRefusedError: one does not.
        """
        missing = [puc for puc in pucs if not 0 <= puc < self.puc_count]
        if missing:
            raise DeviceRefusedError(f"{self.device.id} has no PUC {missing[0]} (they are 0 to {self.puc_count - 1})")

    def write(self, changes: Mapping[int, PucState]) -> None:
        """Set cells; those that are stuck stay as they are."""
        self.require(changes)
        self._states |= {puc: state for puc, state in changes.items() if puc not in self._stuck}
        self._traces.clear()

    def hold(self, puc: int, state: PucState) -> None:
        """Put a cell into a state that no write changes."""
        self._stuck.add(puc)
        self._states[puc] = state
        self._traces.clear()

    def release(self, puc: int) -> None:
        """Let a cell work again, unless the inventory has it as stuck: then it returns to that state."""
        if puc in self._worn:
            self.hold(puc, self._worn[puc])
        else:
            self._stuck.discard(puc)

    def trace(self, port: int) -> Trace:
        """The way of light that enters at a port."""
        if port not in self._traces:
            self._traces[port] = trace(self._mesh, self._states, port)
        return self._traces[port]

    def leads(self, port: int) -> tuple[int, float] | None:
        """The end of the way, whatever is left of the light there."""
        way = self.trace(port)
        return way.exit, self.loss_db(way)

    def loss_db(self, way: Trace) -> float:
        """What light loses on a way; ``inf`` where it begins or ends at a port that lets nothing through."""
        ports = (way.port, way.exit)
        blocked = not self._condition.blocked_ports.isdisjoint(ports)
        return math.inf if blocked else self._condition.loss_db(ports, way.pucs)


def illuminate(
    carriers: Mapping[str, Carrier], emitted: Iterable[tuple[Transponder, float]], port_loss: Mapping[DevicePort, float]
) -> dict[DevicePort, Light]:
    """What leaves every lit port, from what each transponder emits (dBm).

    ``port_loss`` is extra loss (dB, ``inf``: nothing passes) of ports beyond what the inventory states.
    """
    leaving: dict[DevicePort, Light] = {}
    for transponder, power_dbm in emitted:
        device, way_in = transponder.lane.device, transponder.lane.tx
        led = carriers[device].leads(way_in) if device in carriers else None
        if led is None:
            continue
        way_out, loss = led
        loss += sum(port_loss.get((device, port), 0.0) for port in (way_in, way_out))
        if loss < math.inf:
            leaving[device, way_out] = Light(power_dbm - loss, transponder.id)
    return leaving
