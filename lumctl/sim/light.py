"""Where light goes in the simulated fabric: cells that obey or not, and what leaves every port."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.types import PucState
from lumctl.fabric import Trace, mesh, trace
from lumctl.inventory.model import Device, Geometry, Transponder

DevicePort = tuple[str, int]
"""A device's id and the number of one of its ports."""

_STATE_WORDS = {word: state for state in PucState for word in (state.value, state.word)}


@dataclass(frozen=True, slots=True)
class Light:
    """Light at a port or a receiver: its power, and the transponder that sent it."""

    power_dbm: float
    source: str


class Chip:
    """One simulated mesh: the states of its cells, all bar at first, and the cells that do not obey."""

    def __init__(self, device: Device, geometry: Geometry) -> None:
        self.device = device
        self.puc_count = geometry.puc_count
        self._mesh = mesh(geometry.columns, geometry.rows)
        self._states = dict.fromkeys(range(self.puc_count), PucState.BAR)
        self._worn = {puc: _STATE_WORDS[str(word)] for puc, word in device.stuck.items()}
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
        """Let a cell obey again, unless the inventory knows it as stuck: then it goes back to that state."""
        if puc in self._worn:
            self.hold(puc, self._worn[puc])
        else:
            self._stuck.discard(puc)

    def trace(self, port: int) -> Trace:
        """The way of light that enters at a port."""
        if port not in self._traces:
            self._traces[port] = trace(self._mesh, self._states, port)
        return self._traces[port]


def illuminate(
    chips: Mapping[str, Chip], emitted: Iterable[tuple[Transponder, float]], port_loss: Mapping[DevicePort, float]
) -> dict[DevicePort, Light]:
    """What leaves every lit port, from what each transponder emits (dBm).

    ``port_loss`` is extra loss (dB, ``inf``: nothing passes) of ports beyond what the inventory states.
    """
    leaving: dict[DevicePort, Light] = {}
    for transponder, power_dbm in emitted:
        chip = chips.get(transponder.lane.device)
        if chip is None:
            continue
        device, entry = chip.device, transponder.lane.tx
        way = chip.trace(entry)
        loss = 2 * device.loss_per_port_db + len(way.passes) * device.loss_per_puc_db
        for port in (entry, way.exit):
            loss += math.inf if port in device.blocked_ports else port_loss.get((device.id, port), 0.0)
        if loss < math.inf:
            leaving[device.id, way.exit] = Light(power_dbm - loss, transponder.id)
    return leaving
