"""Where the light of a circuit is lost: at a host, in a mesh, at a transmitter that is silent, or somewhere between."""

from collections import Counter
from collections.abc import Mapping, Sequence

from lumctl.health.look import Look, Place
from lumctl.health.rulebook import verdict
from lumctl.health.rules.link import has_no_carrier
from lumctl.health.states import HealthReport, is_fault
from lumctl.inventory.wiring import Circuit


class Causes:
    """Names the cause of circuits that are not well. ``owner`` tells which components have a cause already."""

    def __init__(self, look: Look, report: HealthReport, owner: Mapping[Place, Place]) -> None:
        self._look = look
        self._report = report
        self._owner = owner

    def of(self, circuits: Sequence[Circuit]) -> list[Place]:
        """The cause of each of these circuits, which are all that are not well."""
        known = [self._named(circuit) for circuit in circuits]
        lost_inside = Counter(
            circuit.device
            for circuit, cause in zip(circuits, known, strict=True)
            if cause is None and self._is_fault(circuit)
        )
        least = verdict("incident.mesh", "many-circuits").limits["least"]
        return [
            cause
            if cause is not None
            else ("device", circuit.device)
            if lost_inside[circuit.device] >= least
            else ("circuit", circuit.id)
            for circuit, cause in zip(circuits, known, strict=True)
        ]

    def _named(self, circuit: Circuit) -> Place | None:
        """A component that is known to be at fault, the greatest first."""
        ends = [self._look.inventory.transponders[end.transponder] for end in (circuit.a, circuit.b)]
        for lane in ends:
            host = self._owner.get(("host", lane.host))
            if host is not None and (not self._look.readable(lane.host) or self._unread_with(host, lane.id, circuit)):
                return host
        # One that was merely not asked is suspected of nothing.
        if is_fault(self._report.devices[circuit.device].state) and self._is_fault(circuit):
            return ("device", circuit.device)
        silent = [lane.id for lane in ends if self._sends_nothing(lane.id)]
        return ("link", silent[0]) if silent else None

    def _unread_with(self, host: Place, link: str, circuit: Circuit) -> bool:
        """Whether nothing at all is known of a circuit, and its link is silent for the same cause."""
        return self._owner.get(("link", link)) == host and not self._report.circuits[circuit.id].findings

    def _is_fault(self, circuit: Circuit) -> bool:
        return is_fault(self._report.circuits[circuit.id].state)

    def _sends_nothing(self, transponder: str) -> bool:
        """Whether a transmitter is read and dark, or its interface is down though light arrives."""
        lane = self._look.inventory.transponders[transponder]
        here = self._look.readable(lane.host)
        if here is None:
            return False
        optics = here.seen.optics.get(lane.interface)
        dark_dbm = verdict("circuit.dark", "no-light").limit
        if optics is not None and not self._look.stale(optics.taken_at):
            if optics.transmitting is False or (optics.tx_power_dbm is not None and optics.tx_power_dbm < dark_dbm):
                return True
            lit = optics.rx_power_dbm is not None and optics.rx_power_dbm >= dark_dbm
            return lit and has_no_carrier(here.seen.interfaces.get(lane.interface))
        return False
