"""Where the light of a circuit is lost: at a host, a transmitter, a receiver, a PUC, in a mesh, or between its ends."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from lumctl.devices.types import OpticsReading, PucState
from lumctl.fabric.condition import Disobedience, disobeying_pucs
from lumctl.health.look import HostLook, Look, Place
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
"""Findings on a GPU that its host no longer reaches: what its lanes do from then on is no fault of theirs."""
_MOST_STUCK = 3


class Causes:
    """Names the cause of circuits that are not ok. ``owner`` maps components to the cause that they already have.

    ``suspects`` are those of causes whose component is not known exactly.
    """

    def __init__(self, look: Look, report: HealthReport, owner: Mapping[Place, Place]) -> None:
        self._look = look
        self._report = report
        self._owner = owner
        self.suspects: dict[Place, Suspects] = {}

    def of(self, circuits: Sequence[Circuit]) -> list[Place]:
        """The cause of each of these circuits, which are all that are not well."""
        known = [self._named(circuit) for circuit in circuits]
        dark_by: dict[str, Suspects] = {}
        for device in {circuit.device for circuit in self._lost_inside(circuits, known)}:
            found = self._disobeying(device)
            pucs = tuple(f"{device}/puc/{puc}" for puc in found.pucs)
            if pucs and found.shown:
                place = ("puc", pucs[0])
                self.suspects[place] = pucs if len(pucs) > 1 else ()
                known = [
                    place if cause is None and circuit.device == device and self._is_lost(circuit) else cause
                    for circuit, cause in zip(circuits, known, strict=True)
                ]
            elif pucs:
                dark_by[device] = pucs
        inside = [c for c, cause in zip(circuits, known, strict=True) if cause is None and self._is_fault(c)]
        astray = {circuit.device for circuit in inside if self._is_astray(circuit)}
        # The two directions of a link are one loss.
        lost = Counter(device for device, _ in {(c.device, _lanes_of(c)) for c in inside})
        least = verdict("incident.mesh", "many-circuits").limits["least"]
        shared = {
            device: None if device in astray else self._shared_end([c for c in inside if c.device == device])
            for device in lost
        }
        for device, pucs in dark_by.items():
            if lost[device] >= least:
                place = shared[device] = shared[device] or ("puc", pucs[0])
                self.suspects[place] = pucs
        return [
            cause
            if cause is not None
            else shared[circuit.device] or ("device", circuit.device)
            if lost[circuit.device] >= least
            else self._between([c for c in inside if _lanes_of(c) == _lanes_of(circuit)] or [circuit], dark_by)
            for circuit, cause in zip(circuits, known, strict=True)
        ]

    def _named(self, circuit: Circuit) -> Place | None:
        """A component that is known to be at fault, the greatest first."""
        ends = [self._look.inventory.transponders[end.transponder] for end in (circuit.a, circuit.b)]
        senders = [self._look.inventory.transponders[sender] for _, sender in circuit.receivers]
        lost = {lane.id: cause for lane in ends if (cause := self._lost_with(lane, circuit)) is not None}
        if lost:
            # A fault at the other end is its own cause, and remains when this one is repaired.
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
        # A device that was not asked is not suspected, nor is one that answers and has an alarm.
        if self._is_unreachable(circuit.device) and self._is_fault(circuit):
            return ("device", circuit.device)
        weak = [lane.id for lane in senders if self._sends_weakly(lane.id)]
        if weak and self._is_fault(circuit):
            return ("link", weak[0])
        return self._deaf_receiver(circuit)

    def _lost_with(self, lane: Transponder, circuit: Circuit) -> Place | None:
        """The lost host or GPU that takes one end of a circuit with it, or what that is a part of."""
        host = self._owner.get(("host", lane.host))
        if host is not None and (not self._look.readable(lane.host) or self._unread_with(host, lane.id, circuit)):
            return host
        gpu = self._report.accelerators.get(lane.accelerator)
        # Light that arrives from elsewhere went astray on its way: no end can do that.
        if gpu is None or not is_gone(gpu) or self._is_astray(circuit):
            return None
        place = ("accelerator", gpu.id)
        return self._owner.get(place, place)

    def _has_own_fault(self, lane: Transponder, circuit: Circuit) -> bool:
        """Whether an end shows a fault that the loss of the other end does not explain."""
        weak = self._sends_weakly(lane.id) and not self._is_lost(circuit)
        return weak or self._sends_nothing(lane) or self._is_down(lane)

    def _unread_with(self, host: Place, link: str, circuit: Circuit) -> bool:
        """Whether nothing at all is known of a circuit, and its link is silent for the same cause."""
        return self._owner.get(("link", link)) == host and not self._report.circuits[circuit.id].findings

    def _is_astray(self, circuit: Circuit) -> bool:
        """Whether a receiver hears another transmitter: the light takes another way inside the device."""
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
        """Whether the interface is gone, or down though light arrives."""
        here, optics = self._look.readable(lane.host), self._optics(lane)
        if here is None:
            return False
        lit = optics is not None and optics.rx_power_dbm is not None and not _dark(optics)
        return self._is_missing(lane.id) or (lit and has_no_carrier(here.seen.interfaces.get(lane.interface)))

    def _sends_weakly(self, link: str) -> bool:
        """Whether a module finds fault with its own laser."""
        return any((f.rule, f.case) in _WEAK_SENDER for f in self._report.links[link].findings)

    def _deaf_receiver(self, circuit: Circuit) -> Place | None:
        """The one dark receiver of a duplex circuit: the other direction proves the fibres, and its module the sender.

        Where two directions use two fibres this proves nothing.
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

        That is known by the mesh's read-back, otherwise by the transmitters that are heard.
        """
        written, cells = self._look.inventory.devices[device], self._look.light.cells.get(device)
        if written.geometry is None or not cells:
            return Disobedience()
        if held := self._look.light.read_cells(device):
            differ = tuple(puc for puc, state in cells.items() if held.get(puc, state) != state)
            # Many at once did not get stuck one by one: the mesh was written by another user, or restarted.
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
        sending |= {port for port in heard.values() if port is not None}
        return disobeying_pucs(written, {puc: PucState(state) for puc, state in cells.items()}, sending, heard)

    def _heard(self, here: HostLook, lane: Transponder) -> str | None:
        """The transmitter that a lit receiver hears by LLDP, in use or not."""
        if has_no_carrier(here.seen.interfaces.get(lane.interface)):
            return None
        neighbours = here.seen.neighbours.get(lane.interface, ())
        freshest = min(neighbours, key=lambda neighbour: neighbour.age_s, default=None)
        return self._look.announced_lanes.transponder(freshest) if freshest is not None else None

    # --- between the ends ---

    def _shared_end(self, circuits: Sequence[Circuit]) -> Place | None:
        """The one accelerator at which several lost circuits end: they are lost there rather than in the mesh."""
        lanes = self._look.inventory.transponders
        ends = [{lanes[end.transponder].accelerator for end in (c.a, c.b)} for c in circuits]
        shared = set.intersection(*ends) if len({frozenset(end) for end in ends}) > 1 else set()
        return ("accelerator", shared.pop()) if len(shared) == 1 else None

    def _between(self, directions: Sequence[Circuit], dark_by: Mapping[str, Suspects]) -> Place:
        """The first of the circuits between two lanes; the device's monitors may show at which lane light is lost."""
        circuit = directions[0]
        place = ("circuit", circuit.id)
        if any(map(self._is_astray, directions)):
            return ("device", circuit.device)
        either = set(_lanes_of(circuit))
        for each in directions:
            for receiver, sender in each.receivers:
                if _dark(self._optics(self._look.inventory.transponders[receiver])):
                    either &= self._by_monitors(each, receiver, sender) or either
        if len(either) == 1:
            return ("link", either.pop())
        self.suspects[place] = (circuit.a.transponder, circuit.b.transponder, *dark_by.get(circuit.device, ()))
        return place

    def _by_monitors(self, circuit: Circuit, receiver: str, sender: str) -> set[str]:
        """The ends at which a dark receiver's light may be lost, by the power at the device's ports; empty: unknown."""
        lanes = self._look.inventory.transponders
        leaves = self._look.light.port_power(circuit.device, lanes[receiver].lane.rx)
        if leaves is None:
            return set()
        if leaves >= _dark_dbm():
            return {receiver}
        geometry = self._look.inventory.devices[circuit.device].geometry
        # A mesh measures what leaves it, a switch also what comes in.
        enters = self._look.light.port_power(circuit.device, lanes[sender].lane.tx) if geometry is None else -inf
        return {sender} if enters is not None and enters < _dark_dbm() and geometry is None else set()


def is_gone(gpu: ComponentHealth) -> bool:
    """Whether a GPU in service is lost to its host."""
    return gpu.state is not State.DISABLED and any((f.rule, f.case) in _GPU_IS_GONE for f in gpu.findings)


def _lanes_of(circuit: Circuit) -> frozenset[str]:
    return frozenset({circuit.a.transponder, circuit.b.transponder})


def _dark_dbm() -> float:
    return verdict("circuit.dark", "no-light").limit


def _dark(optics: OpticsReading | None) -> bool:
    return has_no_light(optics, below_dbm=_dark_dbm())
