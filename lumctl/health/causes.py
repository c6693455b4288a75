"""Where the light of a circuit is lost: at a host, a transmitter, a receiver, a PUC, in a mesh, or between its ends."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from lumctl.devices.types import OpticsReading, PucState
from lumctl.fabric.condition import Disobedience, disobeying_pucs
from lumctl.health.look import HostLook, Look, Place
from lumctl.health.lost_light import IntendedPaths
from lumctl.health.rulebook import verdict
from lumctl.health.rules.link import has_no_carrier, has_no_light, sends_no_light
from lumctl.health.states import ComponentHealth, HealthReport, State, is_fault
from lumctl.inventory.model import Transponder
from lumctl.inventory.wiring import Circuit, Direction

Suspects = tuple[str, ...]
"""Transponders, each with the fibre, media converter and port behind it, or PUCs; one of them is at fault."""

_WRONG_LIGHT = frozenset({"circuit.wrong-transmitter", "circuit.dark"})
_WEAK_SENDER = frozenset(
    {("link.module", "alarm"), ("link.module", "warning"), ("link.module", "fault"), ("link.module", "tx-fault")}
)

_GPU_IS_GONE = frozenset({("gpu.lost", "named"), ("gpu.lost", "not-listed"), ("gpu.xid", "restart-machine")})
"""Findings on a GPU that its host no longer reaches. Faults of its lanes are then a consequence, not a cause."""
_MOST_STUCK = 3


class Causes:
    """Names the cause of circuits that are not ok. ``owner`` maps components to the cause that they already have.

    ``suspects`` maps a cause to the components that may be at fault, if no reading shows which of them it is.
    """

    def __init__(self, look: Look, report: HealthReport, owner: Mapping[Place, Place]) -> None:
        self._look = look
        self._report = report
        self._owner = owner
        self.suspects: dict[Place, Suspects] = {}
        self._paths = IntendedPaths(look)

    def of(self, circuits: Sequence[Circuit]) -> list[Place]:
        """The cause of each of these circuits, which must be all circuits that are not ok."""
        known = [self._named(circuit) for circuit in circuits]
        dark_by: dict[str, Suspects] = {}
        devices = self._paths.devices
        # Not for circuits that have a cause by now: a dead transmitter would make good PUCs look stuck.
        for device in dict.fromkeys(d for circuit in self._lost_inside(circuits, known) for d in devices(circuit)):
            found = self._disobeying(device)
            pucs = tuple(f"{device}/puc/{puc}" for puc in found.pucs)
            if pucs and found.shown:
                place = ("puc", pucs[0])
                self.suspects[place] = pucs if len(pucs) > 1 else ()
                known = [
                    place if cause is None and device in devices(circuit) and self._is_lost(circuit) else cause
                    for circuit, cause in zip(circuits, known, strict=True)
                ]
            elif pucs:
                # Darkness alone does not prove a stuck PUC, so these stay suspects until other causes are ruled out.
                dark_by[device] = pucs
        known = [
            self._on_path(circuit) if cause is None else cause for circuit, cause in zip(circuits, known, strict=True)
        ]
        inside = [c for c, cause in zip(circuits, known, strict=True) if cause is None and self._is_fault(c)]
        # Light goes astray inside a device, so an accelerator that these circuits share cannot be the cause.
        astray = {device for circuit in inside if self._is_astray(circuit) for device in devices(circuit)}
        # The two directions of a link count as one loss.
        lost = Counter(device for device, _ in {(d, _lanes_of(c)) for c in inside for d in devices(c)})
        least = verdict("incident.mesh", "many-circuits").limits["least"]
        shared = {
            device: None if device in astray else self._shared_end([c for c in inside if device in devices(c)])
            for device in lost
        }
        for device, pucs in dark_by.items():
            if lost[device] >= least:
                place = shared[device] = shared[device] or ("puc", pucs[0])
                self.suspects[place] = pucs
        return [
            cause
            if cause is not None
            # The condition below is evaluated first, and sets `most`.
            else shared[most] or ("device", most)
            if lost[most := max(devices(circuit), key=lambda device: lost[device])] >= least
            else self._between([c for c in inside if _lanes_of(c) == _lanes_of(circuit)] or [circuit], dark_by)
            for circuit, cause in zip(circuits, known, strict=True)
        ]

    def _named(self, circuit: Circuit) -> Place | None:
        """A component that is known to be at fault: a host or GPU before a lane, a transmitter before a device."""
        ends = [self._look.inventory.transponders[end.transponder] for end in (circuit.a, circuit.b)]
        senders = [self._look.inventory.transponders[sender] for _, sender in circuit.receivers]
        lost = {lane.id: cause for lane in ends if (cause := self._lost_with(lane, circuit)) is not None}
        if lost:
            # A fault at the other end is a separate cause: it remains when the lost host or GPU is repaired.
            ends = [lane for lane in ends if lane.id not in lost]
            senders = [lane for lane in senders if lane.id not in lost]
            if not any(self._has_own_fault(lane, circuit) for lane in ends):
                return next(iter(lost.values()))
        # A mesh continues carrying light when its controller is down, so the transmitters come before the mesh.
        dead = [lane.id for lane in senders if self._sends_nothing(lane)] or [
            lane.id for lane in ends if self._is_down(lane)
        ]
        if dead:
            return ("link", dead[0])
        # Only a device that does not answer is suspected: not one that was not asked, and not one with an alarm.
        silent = [device for device in self._paths.devices(circuit) if self._is_unreachable(device)]
        if silent and self._is_fault(circuit):
            return ("device", silent[0])
        weak = [lane.id for lane in senders if self._sends_weakly(lane.id)]
        if weak and self._is_fault(circuit):
            return ("link", weak[0])
        return self._deaf_receiver(circuit)

    def _lost_with(self, lane: Transponder, circuit: Circuit) -> Place | None:
        """The lost host or GPU at one end of a circuit, or the cause to which that host or GPU belongs."""
        host = self._owner.get(("host", lane.host))
        if host is not None and (not self._look.readable(lane.host) or self._unread_with(host, lane.id, circuit)):
            return host
        gpu = self._report.accelerators.get(lane.accelerator)
        # If a receiver hears another transmitter, the light was misrouted on its way; an end cannot cause that.
        if gpu is None or not is_gone(gpu) or self._is_astray(circuit):
            return None
        place = ("accelerator", gpu.id)
        return self._owner.get(place, place)

    def _has_own_fault(self, lane: Transponder, circuit: Circuit) -> bool:
        """Whether an end shows a fault that the loss of the other end does not explain."""
        weak = self._sends_weakly(lane.id) and not self._is_lost(circuit)
        return weak or self._sends_nothing(lane) or self._is_down(lane)

    def _unread_with(self, host: Place, link: str, circuit: Circuit) -> bool:
        """Whether a circuit has no findings and the cause of its unread host also explains its link."""
        return self._owner.get(("link", link)) == host and not self._report.circuits[circuit.id].findings

    def _is_astray(self, circuit: Circuit) -> bool:
        """Whether a receiver hears another transmitter: the light takes a wrong path inside a device."""
        return any(f.rule == "circuit.wrong-transmitter" for f in self._report.circuits[circuit.id].findings)

    def _is_unreachable(self, device: str) -> bool:
        return any(finding.rule == "device.unreachable" for finding in self._report.devices[device].findings)

    def _is_fault(self, circuit: Circuit) -> bool:
        return is_fault(self._report.circuits[circuit.id].state)

    # --- hosts, their interfaces and modules ---

    def _optics(self, lane: Transponder) -> OpticsReading | None:
        here = self._look.readable(lane.host)
        optics = here.seen.optics.get(lane.interface) if here is not None else None
        if optics is None or self._look.stale(optics.taken_at):
            return None
        return None if self._look.outdated(optics.taken_at, ("link", lane.id)) else optics

    def _sends_nothing(self, lane: Transponder) -> bool:
        return sends_no_light(self._optics(lane)) or self._is_missing(lane.id)

    def _is_missing(self, link: str) -> bool:
        return any(finding.rule == "link.missing" for finding in self._report.links[link].findings)

    def _is_down(self, lane: Transponder) -> bool:
        """Whether the interface is missing, or down although light arrives."""
        here, optics = self._look.readable(lane.host), self._optics(lane)
        if here is None:
            return False
        lit = optics is not None and optics.rx_power_dbm is not None and not _dark(optics)
        return self._is_missing(lane.id) or (lit and has_no_carrier(here.seen.interfaces.get(lane.interface)))

    def _sends_weakly(self, link: str) -> bool:
        """Whether a module reports a fault of its own laser."""
        return any((f.rule, f.case) in _WEAK_SENDER for f in self._report.links[link].findings)

    def _deaf_receiver(self, circuit: Circuit) -> Place | None:
        """The one dark receiver of a duplex circuit, if the circuit's other parts are proven to work.

        Light in the other direction proves the fibre, and the sender's module reports that it sends. If the two
        directions use two fibres, light in one direction proves nothing about the other.
        """
        if circuit.direction is not Direction.DUPLEX:
            return None
        lanes = self._look.inventory.transponders
        dark = [(receiver, sender) for receiver, sender in circuit.receivers if _dark(self._optics(lanes[receiver]))]
        hears = {end.transponder: end.hears for end in self._report.circuits[circuit.id].ends}
        if len(dark) != 1:
            return None
        receiver, sender = dark[0]
        optics = self._optics(lanes[sender])
        sends = optics is not None and optics.tx_power_dbm is not None
        # `hears` is of the other direction: the dark receiver's own transmitter is heard at the far end.
        return ("link", receiver) if sends and hears[sender] == receiver else None

    # --- the mesh ---

    def _lost_inside(self, circuits: Sequence[Circuit], known: Sequence[Place | None]) -> Iterator[Circuit]:
        """The circuits without a known cause whose light does not arrive, or arrives elsewhere."""
        for circuit, cause in zip(circuits, known, strict=True):
            if cause is None and self._is_lost(circuit):
                yield circuit

    def _is_lost(self, circuit: Circuit) -> bool:
        return bool({f.rule for f in self._report.circuits[circuit.id].findings} & _WRONG_LIGHT)

    def _disobeying(self, device: str) -> Disobedience:
        """The PUCs whose state differs from the record.

        Found by reading back the mesh, or, without read-back, by the transmitters that the receivers hear.
        """
        written, cells = self._look.inventory.devices[device], self._look.light.cells.get(device)
        if written.geometry is None or not cells:
            return Disobedience()
        if held := self._look.light.read_cells(device):
            differ = tuple(puc for puc, state in cells.items() if held.get(puc, state) != state)
            # If many PUCs differ at once, they are not stuck: another user wrote the mesh, or it restarted.
            return Disobedience(differ if len(differ) <= _MOST_STUCK else (), shown=True)
        sending: set[int] = set()
        heard: dict[int, int | None] = {}
        lanes = {name: lane for name, lane in self._look.inventory.transponders.items() if lane.lane.device == device}
        for lane in lanes.values():
            here, optics = self._look.readable(lane.host), self._optics(lane)
            if here is None or optics is None or self._is_missing(lane.id):
                continue
            if not sends_no_light(optics):
                sending.add(lane.lane.tx)
            if _dark(optics):
                heard[lane.lane.rx] = None
            elif (source := self._heard(here, lane)) in lanes:
                heard[lane.lane.rx] = lanes[str(source)].lane.tx
        self._add_passages(device, sending, heard)
        # A port whose light is heard does send, whether or not its module reports it.
        sending |= {port for port in heard.values() if port is not None}
        return disobeying_pucs(written, {puc: PucState(state) for puc, state in cells.items()}, sending, heard)

    def _add_passages(self, device: str, sending: set[int], heard: dict[int, int | None]) -> None:
        """Add the light of circuits that come from another device or continue to one.

        A dark receiver behind another device proves nothing about this one: the light may be lost in the other.
        """
        lanes = self._look.inventory.transponders
        entry = {lane.id: lane.lane.tx for lane in lanes.values() if lane.lane.device == device}
        passages = list(self._paths.passages(device))
        entry |= {sender: way_in for _, _, sender, way_in, _ in passages if sender not in entry}
        for _, receiver, _, _, way_out in passages:
            lane = lanes[receiver]
            here = self._look.readable(lane.host)
            source = self._heard(here, lane) if here is not None and not _dark(self._optics(lane)) else None
            if source in entry:
                heard[way_out] = entry[source]
                sending.add(entry[source])

    def _heard(self, here: HostLook, lane: Transponder) -> str | None:
        """The transmitter that a lit receiver hears by LLDP, whether or not a circuit uses the lane."""
        if has_no_carrier(here.seen.interfaces.get(lane.interface)):
            return None
        neighbours = here.seen.neighbours.get(lane.interface, ())
        freshest = min(neighbours, key=lambda neighbour: neighbour.age_s, default=None)
        return self._look.announced_lanes.transponder(freshest) if freshest is not None else None

    # --- between the ends ---

    def _shared_end(self, circuits: Sequence[Circuit]) -> Place | None:
        """The one accelerator at which several lost circuits end: their light is lost there, not in the mesh."""
        lanes = self._look.inventory.transponders
        ends = [{lanes[end.transponder].accelerator for end in (c.a, c.b)} for c in circuits]
        # Circuits between the same two accelerators share both, which does not show at which the light is lost.
        shared = set.intersection(*ends) if len({frozenset(end) for end in ends}) > 1 else set()
        return ("accelerator", shared.pop()) if len(shared) == 1 else None

    def _between(self, directions: Sequence[Circuit], dark_by: Mapping[str, Suspects]) -> Place:
        """The cause of lost light between two lanes, given the lost circuits between them.

        It is the device if light is misrouted inside the only device. It is a lane if the device's power monitors show
        at which one light is lost. Otherwise it is the first circuit, with suspects.
        """
        circuit = directions[0]
        place, devices = ("circuit", circuit.id), self._paths.devices(circuit)
        if any(map(self._is_astray, directions)):
            if len(devices) == 1:
                return ("device", devices[0])
            self.suspects[place] = devices
            return place
        either = set(_lanes_of(circuit))
        for each in directions:
            for receiver, sender in each.receivers:
                if _dark(self._optics(self._look.inventory.transponders[receiver])):
                    # An empty answer means that the monitors do not show it, so it rules out neither end.
                    either &= self._by_monitors(receiver, sender) or either
        if len(either) == 1:
            return ("link", either.pop())
        fibres = self._paths.fibres(circuit)
        pucs = (puc for device in devices for puc in dark_by.get(device, ()))
        self.suspects[place] = (circuit.a.transponder, circuit.b.transponder, *fibres, *pucs)
        return place

    def _on_path(self, circuit: Circuit) -> Place | None:
        """Where the light of a dark receiver is lost on a path through several devices: a device or a fibre.

        If several devices or fibres may be at fault, the cause is the circuit, and they are its suspects.
        """
        if not circuit.spans_devices or not self._is_lost(circuit) or self._is_astray(circuit):
            return None
        lanes = self._look.inventory.transponders
        dark = [receiver for receiver, _ in circuit.receivers if _dark(self._optics(lanes[receiver]))]
        located = [found for each in dark if (found := self._paths.lost_at(circuit, each, _dark_dbm()))]
        if not located:
            return None
        # A fault that breaks both directions is among the suspects of both.
        common = [place for place in located[0] if all(place in other for other in located)] or list(located[0])
        if len(common) == 1:
            return common[0]
        place = ("circuit", circuit.id)
        self.suspects[place] = tuple(name for _, name in common)
        return place

    def _by_monitors(self, receiver: str, sender: str) -> set[str]:
        """The ends at which a dark receiver's light may be lost, by the power at device ports; empty if unknown."""
        lanes = self._look.inventory.transponders
        last, first = lanes[receiver].lane, lanes[sender].lane
        leaves = self._look.light.port_power(last.device, last.rx)
        if leaves is None:
            return set()
        if leaves >= _dark_dbm():
            return {receiver}
        geometry = self._look.inventory.devices[first.device].geometry
        # A mesh measures only the light that leaves it; a switch also measures the light that enters.
        enters = self._look.light.port_power(first.device, first.tx) if geometry is None else -inf
        return {sender} if enters is not None and enters < _dark_dbm() and geometry is None else set()


def is_gone(gpu: ComponentHealth) -> bool:
    """Whether a GPU is in service but its host no longer reaches it."""
    return gpu.state is not State.DISABLED and any((f.rule, f.case) in _GPU_IS_GONE for f in gpu.findings)


def _lanes_of(circuit: Circuit) -> frozenset[str]:
    return frozenset({circuit.a.transponder, circuit.b.transponder})


def _dark_dbm() -> float:
    return verdict("circuit.dark", "no-light").limit


def _dark(optics: OpticsReading | None) -> bool:
    return has_no_light(optics, below_dbm=_dark_dbm())
