"""Where the light of a circuit is lost on a path through several devices, by the power monitors on the path."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from lumctl.fabric.paths import FabricStates, LightPath, Segment, segment_loss_db
from lumctl.health.look import Look, Place
from lumctl.inventory.model import DevicePort
from lumctl.inventory.wiring import Circuit, Direction

_DIFFERS_DB = 0.5
"""The accuracy of the monitors of switches: expected powers that differ by less cannot be distinguished."""
_STRAY_DBM = -40.0


class IntendedPaths:
    """The paths of circuits by the states that were last written to the devices."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._states = FabricStates(look.inventory, look.light.cells)

    @cached_property
    def _paths(self) -> dict[str, LightPath | None]:
        return {circuit.id: self._states.path_of(circuit) for circuit in self._look.circuits if circuit.spans_devices}

    def devices(self, circuit: Circuit) -> tuple[str, ...]:
        """The devices that a circuit passes; only the devices at its ends if its path is unknown."""
        path = self._paths.get(circuit.id)
        return path.devices if path else circuit.devices

    def fibres(self, circuit: Circuit) -> tuple[str, ...]:
        """The fibres that a circuit passes; none within one device, or if its path is unknown."""
        path = self._paths.get(circuit.id)
        return path.fibres if path else ()

    def passages(self, device: str) -> Iterator[tuple[Circuit, str, str, int, int]]:
        """Each passage of light through a device, for circuits over several devices.

        Yields circuit, receiver, sender, and the ports of entry and exit.
        """
        for circuit in self._look.circuits:
            for receiver, sender in circuit.receivers:
                for part in self._towards(circuit, receiver):
                    if part.device == device:
                        yield circuit, receiver, sender, *part.ports

    def _towards(self, circuit: Circuit, receiver: str) -> tuple[Segment, ...]:
        """The segments of a circuit, ordered in the direction of the light to a receiver."""
        path = self._paths.get(circuit.id)
        if path is None:
            return ()
        if receiver == circuit.b.transponder:
            return path.segments
        return _reversed(path.segments)

    def lost_at(self, circuit: Circuit, receiver: str, below_dbm: float) -> tuple[Place, ...]:
        """The devices and fibres of a path, one of which loses the light of a dark receiver; empty if not located.

        A power under ``below_dbm`` is dark. The suspects lie between the last port where a monitor measures light and
        the first port where a monitor measures none.
        """
        parts = self._towards(circuit, receiver)
        senders = dict(circuit.receivers)
        forward = self._expected(parts, senders[receiver])
        back = self._expected(_reversed(parts), receiver) if circuit.direction is Direction.DUPLEX else {}
        suspected: list[Place] = []
        located = False
        for number, part in enumerate(parts):
            way_in, way_out = (DevicePort(part.device, port) for port in part.ports)
            if number:
                suspected.append(("fibre", self._look.inventory.fibre_at[way_in][0].name))
            for place, leaves in ((way_in, False), (way_out, True)):
                lit = self._is_lit(place, forward, back, below_dbm, leaves=leaves)
                if lit is False:
                    # Without light before the first dark monitor, it may be missing from the start: nothing is located.
                    return tuple(suspected) if located else ()
                if lit:
                    # Light arrives here, so nothing before this port loses it.
                    suspected, located = [], True
                # After its entry and before its exit, because it loses light between the two.
                if not leaves and not self._obeys(part.device):
                    suspected.append(("device", part.device))
        return ()

    def _expected(self, parts: tuple[Segment, ...], sender: str) -> dict[DevicePort, float]:
        """The power (dBm) that a sender's light should have where it enters and leaves each device.

        Where a mesh measures the power that leaves it, the measured value replaces the planned one from there on.
        """
        inventory, found = self._look.inventory, dict[DevicePort, float]()
        power = inventory.transponders[sender].tx_power_dbm
        for number, part in enumerate(parts):
            way_in, way_out = (DevicePort(part.device, port) for port in part.ports)
            power -= inventory.fibre_at[way_in][0].loss_db if number else 0.0
            found[way_in] = power
            power -= segment_loss_db(inventory.devices[part.device], part)
            if self._is_mesh(part.device):
                measured = self._look.light.port_power(part.device, way_out.port)
                power = measured if measured is not None and measured > _STRAY_DBM else power
            found[way_out] = power
        return found

    def _is_lit(
        self,
        place: DevicePort,
        forward: Mapping[DevicePort, float],
        back: Mapping[DevicePort, float],
        below_dbm: float,
        *,
        leaves: bool,
    ) -> bool | None:
        """Whether light of the forward direction is at a port; ``None`` if its monitor does not show that.

        A mesh measures the light that leaves it; a switch measures the stronger of the two directions.
        """
        is_mesh = self._is_mesh(place.device)
        seen = None if is_mesh and not leaves else self._look.light.port_power(place.device, place.port)
        if seen is None or seen < below_dbm:
            return None if seen is None else False
        return True if is_mesh or place not in back else _is_stronger(seen, forward[place], back[place])

    def _obeys(self, device: str) -> bool:
        """Whether a mesh reads back the states that were written to it, so that its PUCs do not lose light."""
        held, written = self._look.light.read_cells(device), self._look.light.cells.get(device)
        return bool(held) and held == written

    def _is_mesh(self, device: str) -> bool:
        return self._look.inventory.devices[device].geometry is not None


def _reversed(parts: tuple[Segment, ...]) -> tuple[Segment, ...]:
    return tuple(Segment(part.device, (part.ports[1], part.ports[0]), part.pucs[::-1]) for part in reversed(parts))


def _is_stronger(seen: float, forward: float, back: float) -> bool | None:
    """Whether a measured power (dBm) shows that light of the forward direction is present.

    ``forward`` and ``back`` are the expected powers (dBm) of the two directions. The monitor shows the stronger one; it
    shows the weaker one only if the stronger is missing. ``None``: the power does not show it.
    """
    # Forward is the stronger: more than the other direction alone can bring shows it.
    if forward > back + _DIFFERS_DB:
        return seen > back + _DIFFERS_DB / 2
    # Less than the weaker one would bring: forward light does not arrive as planned, whatever the other does.
    if seen < min(forward, back) - _DIFFERS_DB / 2:
        return False
    # Too little for the stronger direction, which is the other one: what is left is forward light.
    return True if back > forward + _DIFFERS_DB and seen < back - _DIFFERS_DB / 2 else None
