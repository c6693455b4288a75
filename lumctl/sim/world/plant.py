"""The optical plant: meshes, switches, transmitters, links, and how light settles among them under the day's faults."""

import math
from collections.abc import Callable

from lumctl.devices.types import PucState
from lumctl.inventory.model import DeviceKind, Inventory, Transponder
from lumctl.sim.world.faults import STUCK, ComponentKind, FaultKind, Faults, SimulatedFault, numbered
from lumctl.sim.world.light import Crossing, DevicePort, Light, SimulatedChip, illuminate
from lumctl.sim.world.links import SimulatedLink


class Plant:
    """All that carries light. ``leaving`` is what leaves every lit port of a mesh or switch since :meth:`relight`."""

    def __init__(self, inventory: Inventory, faults: Faults) -> None:
        self._faults = faults
        self.chips = {d.id: SimulatedChip(d) for d in inventory.devices.values() if d.geometry}
        self.switches = {d.id: Crossing(d) for d in inventory.devices.values() if d.kind is DeviceKind.SWITCH}
        self.links = {t.id: SimulatedLink(t) for t in inventory.transponders.values()}
        self.leaving: dict[DevicePort, Light] = {}
        self._entering: dict[DevicePort, float] = {}
        self.marks: dict[str, str] = {}
        """The announcements of each host's lldpd besides its name, if any."""
        self.off: set[str] = set()
        """Hosts without power: their modules have none either."""
        self._relit: Callable[[], None] | None = None

    def renew(self) -> None:
        """Reset everything: cells in bar, nothing joined, all transmitters on."""
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
        """Let light settle after anything that may have moved it."""
        for link in self.links.values():
            link.faulty_down = self._held_down(link.transponder.id, now)
        emitted = [
            (link.transponder, power)
            for link in self.links.values()
            if (power := self.emits(link) - self._lane_loss(link)) > -math.inf
        ]
        loss = self._port_loss()
        self.leaving = illuminate({**self.chips, **self.switches}, emitted, loss)
        self._entering = {
            port: power - loss.get(port, 0.0)
            for transponder, power in emitted
            if (port := (transponder.lane.device, transponder.lane.tx))[0] in self.switches
        }
        for link in self.links.values():
            lane = link.transponder.lane
            light = self._arriving(link, self.leaving.get((lane.device, lane.rx)))
            link.settle(light, now, self._said_with(light))
        if self._relit is not None:
            self._relit()

    def follow(self, relit: Callable[[], None] | None) -> None:
        """From now on call this whenever light has settled."""
        self._relit = relit

    def heard(self) -> list[tuple[Transponder, Transponder]]:
        """Each transmitter with the receiver that is up by its light."""
        return [
            (self.links[link.light.source].transponder, link.transponder)
            for link in self.links.values()
            if link.carrier and link.light
        ]

    def seen(self, port: DevicePort) -> float:
        """What the monitor of a switch's port sees, in dBm: the stronger of what comes in there and what goes out."""
        if not self.switches[port[0]].state.passes(port[1]):
            return -math.inf
        light = self.leaving.get(port)
        return max(self._entering.get(port, -math.inf), light.power_dbm if light else -math.inf)

    def frame(self, link: SimulatedLink, at: float) -> None:
        """A link's receiver gets a frame of its present transmitter."""
        link.frame(at, self._said_with(link.light))

    def _said_with(self, light: Light | None) -> str:
        return self.marks.get(self.links[light.source].transponder.host, "") if light else ""

    def emits(self, link: SimulatedLink) -> float:
        """Power that a transmitter sends into the fabric, in dBm; ``-inf`` for none."""
        name = link.transponder.id
        if not (link.admin_up and link.laser_on) or link.faulty_down or self._faults.has(name, FaultKind.DARK):
            return -math.inf
        return link.target_power_dbm - (self._faults.value(name, FaultKind.DIM) or 0.0)

    def _arriving(self, link: SimulatedLink, light: Light | None) -> Light | None:
        """What of the light at the device's port reaches the receiver."""
        loss = math.inf if self._faults.has(f"{link.transponder.id}/rx", FaultKind.DARK) else self._lane_loss(link)
        return Light(light.power_dbm - loss, light.source) if light is not None and loss < math.inf else None

    def _lane_loss(self, link: SimulatedLink) -> float:
        """What the fibre and the media converter lose, either way (dB): the module in the NIC sees nothing of it."""
        parts = [f"{link.transponder.id}/{part}" for part in (ComponentKind.CONVERTER, ComponentKind.FIBRE)]
        if any(self._faults.has(part, FaultKind.DARK) for part in parts):
            return math.inf
        return sum(self._faults.value(part, FaultKind.DIM) or 0.0 for part in parts)

    def has_lost_nic(self, host: str) -> bool:
        """Whether the NIC of a host, with every interface that meets the fabric, is gone from its bus."""
        return self._faults.has(f"{host}/{ComponentKind.NIC}", FaultKind.NIC_LOST)

    def next_turn(self, after: float) -> float:
        """When a flapping link goes down or comes up next; ``inf`` if none flaps."""
        return min((_next_turn(fault, after) for fault in self._faults.of_kind(FaultKind.LINK_FLAP)), default=math.inf)

    def take_fault(self, fault: SimulatedFault) -> None:
        """Seize a cell whose fault has come; a dark port of a switch has failed, and the switch knows."""
        self._switch_port(fault, failed=True)
        if fault.kind in STUCK:
            device, puc = numbered(fault.component)
            self.chips[device].hold(puc, PucState.BAR if fault.kind is FaultKind.STUCK_BAR else PucState.CROSS)

    def lose_fault(self, fault: SimulatedFault) -> None:
        """Free a cell whose fault has gone, and let a switch's port work again."""
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
        # Half a microsecond forward: a turn's own time, computed by addition, may lie a rounding error before it.
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
    """Seconds for which a flapping link is down, and then up."""
    return flap.value or math.inf


def _next_turn(flap: SimulatedFault, after: float) -> float:
    half = _half_period(flap)
    at = flap.since + (math.floor((after - flap.since) / half) + 1) * half
    # Rounding may put a turn back onto the moment just handled: the one after it is meant.
    return at if at > after else at + half
