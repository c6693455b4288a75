"""The light path of a circuit through the devices of a rack, from the devices' states: its segments and fibres."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from lumctl.devices.types import PucState
from lumctl.fabric.condition import condition_of, mesh_of
from lumctl.fabric.geometry import trace
from lumctl.inventory.model import Device, DevicePort, Inventory
from lumctl.inventory.wiring import FREE, Circuit

States = Mapping[int, str]
"""The states of a device, by PUC or ingress port: see :mod:`lumctl.inventory.wiring`."""
Cell = tuple[str, int, str]
"""A device, the number of one of its cells, and its state."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a path inside one device, from port to port; ``pucs`` are in the order of light, none in a switch."""

    device: str
    ports: tuple[int, int]
    pucs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LightPath:
    """The path of light from ``start`` to ``exit``.

    ``fibres[i]`` names the fibre between ``segments[i]`` and the next one. ``exit`` is ``None`` if the light ends at
    an unconnected port of a switch, or reaches a device with unknown states; ``ends_in`` names that device.
    """

    start: DevicePort
    exit: DevicePort | None
    segments: tuple[Segment, ...]
    fibres: tuple[str, ...]
    ends_in: str | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of all segments, in order, each once."""
        return tuple(dict.fromkeys(segment.device for segment in self.segments))

    @property
    def pucs(self) -> tuple[int, ...]:
        """The PUCs of all segments, in order."""
        return tuple(puc for segment in self.segments for puc in segment.pucs)

    @property
    def fibre_ports(self) -> Iterator[tuple[DevicePort, DevicePort]]:
        """For each fibre, the port at which light leaves one device, and the port at which it enters the next."""
        for before, after in pairwise(self.segments):
            yield DevicePort(before.device, before.ports[1]), DevicePort(after.device, after.ports[0])


class FabricStates:
    """The states of a rack's devices, through which light can be followed.

    ``cells`` are the states by device. A device without an entry, or with an empty one, is unknown: light that
    reaches it is not followed further.
    """

    def __init__(self, inventory: Inventory, cells: Mapping[str, States]) -> None:
        self._inventory = inventory
        self.cells = cells

    def with_changed(self, changed: Mapping[str, States]) -> "FabricStates":
        """A copy with other states for some cells of some devices."""
        return FabricStates(
            self._inventory, {**self.cells, **{d: {**self.cells.get(d, {}), **new} for d, new in changed.items()}}
        )

    def follow(self, start: DevicePort) -> LightPath:
        """Follow light from a port without a fibre, through every device on its way."""
        segments: list[Segment] = []
        fibres: list[str] = []
        place = start
        # This ends: every step is reversible, so light that came in from outside cannot be caught in a loop.
        while True:
            segment = self._through(place)
            if segment is None:
                return LightPath(start, None, tuple(segments), tuple(fibres), ends_in=place.device)
            segments.append(segment)
            out = DevicePort(place.device, segment.ports[1])
            if out not in self._inventory.fibre_at:
                return LightPath(start, out, tuple(segments), tuple(fibres))
            fibre, place = self._inventory.fibre_at[out]
            fibres.append(fibre.name)

    def path_of(self, circuit: Circuit) -> LightPath | None:
        """The path of a circuit; ``None`` if the states do not form it."""
        found = self.follow(circuit.a.place)
        return found if found.exit == circuit.b.place else None

    def cells_of(self, path: LightPath) -> tuple[Cell, ...]:
        """The cells on which a path depends, with their states: its PUCs, and its connections in switches."""
        return tuple(cell for segment in path.segments for cell in self._cells(segment))

    def loss_db(self, path: LightPath) -> float:
        """The loss of a path: in every device, at every mesh port, and in every fibre, in dB."""
        return path_loss_db(self._inventory, path)

    def _through(self, place: DevicePort) -> Segment | None:
        device, held = self._inventory.devices[place.device], self.cells.get(place.device)
        if not held:
            return None
        if device.geometry is not None:
            # A state in text compares equal to its PucState.
            found = trace(mesh_of(device), held, place.port)  # type: ignore[arg-type]
            return Segment(device.id, (place.port, found.exit), found.pucs)
        partner = partner_of(held, place.port)
        return None if partner is None else Segment(device.id, (place.port, partner))

    def _cells(self, segment: Segment) -> Iterator[Cell]:
        held = self.cells[segment.device]
        if self._inventory.devices[segment.device].geometry is None:
            ingress = next(port for port in segment.ports if held.get(port, FREE) != FREE)
            yield segment.device, ingress, held[ingress]
        for puc in segment.pucs:
            yield segment.device, puc, held.get(puc, str(PucState.BAR))


def partner_of(joins: States, port: int) -> int | None:
    """The port of a switch that is connected to this one; a connection carries light both ways."""
    to = joins.get(port, FREE)
    if to != FREE:
        return int(to)
    # A join is stored under its ingress only.
    return next((ingress for ingress, egress in joins.items() if egress == str(port)), None)


def path_loss_db(inventory: Inventory, path: LightPath) -> float:
    """The loss of a path: in every device, at every mesh port, and in every fibre, in dB."""
    inside = sum(segment_loss_db(inventory.devices[each.device], each) for each in path.segments)
    return inside + sum(inventory.fibres[name].loss_db for name in path.fibres)


def segment_loss_db(device: Device, segment: Segment) -> float:
    """The loss inside one device, with its two ports, in dB."""
    return condition_of(device).loss_db(segment.ports, segment.pucs)


def circuit_losses(inventory: Inventory, cells: Mapping[str, States], circuits: Iterable[Circuit]) -> dict[str, float]:
    """The loss of each circuit that the states of the devices really make, in dB, by circuit id.

    A circuit whose two ports the states do not connect is omitted.
    """
    states = FabricStates(inventory, cells)
    paths = {circuit.id: states.path_of(circuit) for circuit in circuits}
    return {name: path_loss_db(inventory, path) for name, path in paths.items() if path is not None}
