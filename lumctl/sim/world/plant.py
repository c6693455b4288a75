"""The optical plant: meshes, switches, transmitters and links, and where light goes with the present faults."""

import math
from collections.abc import Callable

from lumctl.devices.types import PucState
from lumctl.inventory.model import DeviceKind, Inventory, Transponder
from lumctl.sim.world.faults import STUCK, ComponentKind, FaultKind, Faults, SimulatedFault, numbered
from lumctl.sim.world.light import Crossing, DevicePort, Fibres, Light, SimulatedChip, illuminate
from lumctl.sim.world.links import SimulatedLink


class Plant:
    """Everything that carries light. ``leaving`` is the light at every lit port of a device since :meth:`relight`."""

    def __init__(self, inventory: Inventory, faults: Faults) -> None:
        self._faults = faults
        self.chips = {d.id: SimulatedChip(d) for d in inventory.devices.values() if d.geometry}
        self.switches = {d.id: Crossing(d) for d in inventory.devices.values() if d.kind is DeviceKind.SWITCH}
        self.links = {t.id: SimulatedLink(t) for t in inventory.transponders.values()}
        self._fibres = Fibres(inventory, self._fault_loss)
        self.leaving: dict[DevicePort, Light] = {}
        self._entering: dict[DevicePort, float] = {}
        self.marks: dict[str, str] = {}
        """What the lldpd of each host announces in addition to its name, if anything."""
        self.off: set[str] = set()
        """Hosts without power; their modules have no power either."""
        self._relit: Callable[[], None] | None = None

    def renew(self) -> None:
        """Reset everything: cells in bar, no ports connected, all transmitters on."""
        self.off.clear()
        self.marks.clear()
        for chip in self.chips.values():
            chip.write(dict.fromkeys(chip.states(), PucState.BAR))
        for crossing in self.switches.values():
            with crossing.state.held() as state:
                state.joins.clear()
                state.disabled.clear()
                state.labels.clear()
        for link in self.links.values():
            link.renew()

    def relight(self, now: float) -> None:
        """Trace the light again after anything that may have moved it."""
        # First for all links: one that is held down does not send either.
        for link in self.links.values():
            link.faulty_down = self._held_down(link.transponder.id, now)
        emitted = [
            (link.transponder, power)
            for link in self.links.values()
            if (power := self.emits(link) - self._lane_loss(link)) > -math.inf
        ]
        loss = self._port_loss()
        self.leaving, self._entering = illuminate({**self.chips, **self.switches}, self._fibres, emitted, loss)
        for link in self.links.values():
            lane = link.transponder.lane
            light = self._arriving(link, self.leaving.get((lane.device, lane.rx)))
            link.settle(light, now, self._said_with(light))
        if self._relit is not None:
            self._relit()

    def follow(self, relit: Callable[[], None] | None) -> None:
        """Call this function from now on whenever light has settled; ``None`` for none."""
        self._relit = relit

    def heard(self) -> list[tuple[Transponder, Transponder]]:
        """Each pair of a transmitter and a receiver whose link its light brings up."""
        return [
            (self.links[link.light.source].transponder, link.transponder)
            for link in self.links.values()
            if link.carrier and link.light
        ]

    def seen(self, port: DevicePort) -> float:
        """The power at the monitor of a switch's port, in dBm: the stronger of the entering and the leaving light."""
        if not self.switches[port[0]].state.passes(port[1]):
            return -math.inf
        light = self.leaving.get(port)
        return max(self._entering.get(port, -math.inf), light.power_dbm if light else -math.inf)

    def frame(self, link: SimulatedLink, at: float) -> None:
        """Deliver to a link's receiver a frame of its present transmitter."""
        link.frame(at, self._said_with(link.light))

    def _said_with(self, light: Light | None) -> str:
        return self.marks.get(self.links[light.source].transponder.host, "") if light else ""

    def emits(self, link: SimulatedLink) -> float:
        """The power that a transmitter sends, in dBm; ``-inf`` for none."""
        name = link.transponder.id
        if not (link.admin_up and link.laser_on) or link.faulty_down or self._faults.has(name, FaultKind.DARK):
            return -math.inf
        return link.target_power_dbm - (self._faults.value(name, FaultKind.DIM) or 0.0)

    def _arriving(self, link: SimulatedLink, light: Light | None) -> Light | None:
        """The part of the light at the device's port that reaches the receiver; ``None`` if nothing does."""
        loss = math.inf if self._faults.has(f"{link.transponder.id}/rx", FaultKind.DARK) else self._lane_loss(link)
        return Light(light.power_dbm - loss, light.source) if light is not None and loss < math.inf else None

    def _lane_loss(self, link: SimulatedLink) -> float:
        """The extra loss of the fibre and the media converter by faults, in either direction (dB).

        The transmitted power that the module in the NIC shows does not include this loss.
        """
        parts = (ComponentKind.CONVERTER, ComponentKind.FIBRE)
        return sum(self._fault_loss(f"{link.transponder.id}/{part}") for part in parts)

    def _fault_loss(self, component: str) -> float:
        """The extra loss of a fibre or a media converter by its faults, in dB; ``inf`` if nothing passes."""
        if self._faults.has(component, FaultKind.DARK):
            return math.inf
        return self._faults.value(component, FaultKind.DIM) or 0.0

    def has_lost_nic(self, host: str) -> bool:
        """Whether the NIC of a host, with every interface to the fabric, has disappeared from its bus."""
        return self._faults.has(f"{host}/{ComponentKind.NIC}", FaultKind.NIC_LOST)

    def next_turn(self, after: float) -> float:
        """The time when a flapping link next goes down or comes up; ``inf`` if none flaps."""
        return min((_next_turn(fault, after) for fault in self._faults.of_kind(FaultKind.LINK_FLAP)), default=math.inf)

    def take_fault(self, fault: SimulatedFault) -> None:
        """Apply a new fault: make a cell stuck, or mark a dark port of a switch as failed, which the switch reports."""
        self._switch_port(fault, failed=True)
        if fault.kind in STUCK:
            device, puc = numbered(fault.component)
            self.chips[device].hold(puc, PucState.BAR if fault.kind is FaultKind.STUCK_BAR else PucState.CROSS)

    def lose_fault(self, fault: SimulatedFault) -> None:
        """Undo a cleared fault: let a cell or a port of a switch work again."""
        self._switch_port(fault, failed=False)
        if fault.kind in STUCK:
            device, puc = numbered(fault.component)
            self.chips[device].release(puc)

    def _switch_port(self, fault: SimulatedFault, *, failed: bool) -> None:
        device, separator, _ = fault.component.partition("/")
        if fault.kind is FaultKind.DARK and separator and device in self.switches:
            ports, port = self.switches[device].state.failed, numbered(fault.component)[1]
            if failed:
                ports[port] = fault.since
            else:
                ports.pop(port, None)

    def _held_down(self, transponder: str, now: float) -> bool:
        host = self.links[transponder].transponder.host
        if self._faults.has(transponder, FaultKind.LINK_DOWN) or host in self.off or self.has_lost_nic(host):
            return True
        flap = self._faults.get(transponder, FaultKind.LINK_FLAP)
        # Add half a microsecond: the computed time of a turn may lie slightly before the turn because of rounding.
        # A flapping link is down first.
        return flap is not None and int((now - flap.since + 5e-7) / _half_period(flap)) % 2 == 0

    def _port_loss(self) -> dict[DevicePort, float]:
        loss: dict[DevicePort, float] = {}
        for kind in (FaultKind.DARK, FaultKind.DIM):
            for fault in self._faults.of_kind(kind):
                if "/port/" in fault.component:
                    extra = math.inf if kind is FaultKind.DARK else fault.value or 0.0
                    port = numbered(fault.component)
                    loss[port] = loss.get(port, 0.0) + extra
        return loss


def _half_period(flap: SimulatedFault) -> float:
    """The seconds for which a flapping link is down, and then up."""
    return flap.value or math.inf


def _next_turn(flap: SimulatedFault, after: float) -> float:
    half = _half_period(flap)
    at = flap.since + (math.floor((after - flap.since) / half) + 1) * half
    # Because of rounding this may be the turn that was just handled; then return the one after it.
    return at if at > after else at + half
