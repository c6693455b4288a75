"""Derive the circuits that the fabric must carry from a job's links and its assignment to accelerators.

The rule is fixed, so that everyone (planner, status, simulator's commissioning, replay) means the same circuit by the
same name. A ring or a torus dimension ``d`` uses two lanes of each accelerator: the link towards the next rank leaves
through lane ``2d + 1`` and arrives at lane ``2d``. A list of pairs takes each accelerator's lanes in order. A link of
several circuits takes as many pairs of lanes, and those of the next dimension follow.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from lumctl.errors import UsageError
from lumctl.inventory.filler_records import FILLER, is_stopped_filler
from lumctl.inventory.model import (
    Device,
    DeviceKind,
    DevicePort,
    Inventory,
    Job,
    PairLinks,
    RingLinks,
    TorusLinks,
    Transponder,
)
from lumctl.inventory.phase_records import PHASE, as_lit, is_phase, phase_misfit
from lumctl.inventory.slice_records import SHAPE, is_job, is_shape, slice_misfit, slices_in

PREFIX = "lanes of "
"""The beginning of the name of an order of lanes. It has blanks, so no job's name can begin with it."""

Placed = Mapping[str, tuple[str, ...]]


def devices_of(inventory: Inventory, accelerator: str) -> frozenset[str]:
    """The devices to which an accelerator's lanes are connected."""
    return frozenset(lane.lane.device for lane in inventory.transponders_of(accelerator))


def networks_of(inventory: Inventory, accelerator: str) -> frozenset[str]:
    """The networks of devices to which an accelerator's lanes lead: fibres lead its circuits to any device of these.

    A spare can replace only accelerators of the same networks.
    """
    return frozenset(map(inventory.network_of, devices_of(inventory, accelerator)))


def order_of(accelerator: str) -> str:
    """The name of an accelerator's order of lanes in an assignment."""
    return f"{PREFIX}{accelerator}"


def is_order(name: str) -> bool:
    """Whether a name in an assignment is that of an order of lanes and not of a job."""
    return name.startswith(PREFIX)


def orders_in(assignment: Placed) -> dict[str, tuple[str, ...]]:
    """The orders of lanes in an assignment, by accelerator, except those that equal the inventory's."""
    return {name.removeprefix(PREFIX): lanes for name, lanes in assignment.items() if lanes and is_order(name)}


def jobs_in(assignment: Placed) -> dict[str, tuple[str, ...]]:
    """The jobs of an assignment with the accelerator of each rank."""
    return {name: ranks for name, ranks in assignment.items() if is_job(name)}


def lanes_in_order(inventory: Inventory, accelerator: str, orders: Placed) -> tuple[Transponder, ...]:
    """Lane 0, lane 1, ... of an accelerator. An order that does not fit the inventory is ignored."""
    written = inventory.transponders_of(accelerator)
    order = orders.get(accelerator)
    if not order or misfit(inventory, accelerator, order):
        return written
    return tuple(inventory.transponders[name] for name in order)


def record_misfit(inventory: Inventory, name: str, record: tuple[str, ...]) -> str | None:
    """Why a record other than a job's ranks does not fit the inventory, or ``None``. An empty record always fits."""
    if is_shape(name):
        return slice_misfit(inventory, name, record)
    if is_stopped_filler(name):
        return None  # a filler job that the inventory no longer has is of no interest
    if is_phase(name):
        return phase_misfit(inventory, name, record)
    return misfit(inventory, name.removeprefix(PREFIX), record) if record else None


def misfit(inventory: Inventory, accelerator: str, order: tuple[str, ...]) -> str | None:
    """Why an order does not fit the inventory, or ``None``."""
    if accelerator not in inventory.accelerators:
        return f"{accelerator} is not in it"
    written = [lane.id for lane in inventory.transponders_of(accelerator)]
    if sorted(order) == sorted(written):
        return None
    return f"{accelerator} has the lanes {', '.join(written) or '(none)'}, but the store lists {', '.join(order)}"


def placed_words(name: str) -> str:
    """The words for a name in an assignment that continue a text after ``where``: ``where JOB runs``."""
    if is_shape(name):
        return f"slice {name.removeprefix(SHAPE)} was placed"
    if is_stopped_filler(name):
        return f"filler job {name.removeprefix(FILLER)} ran"
    if is_phase(name):
        return f"the phase of {name.removeprefix(PHASE)} is"
    return f"the {name} lead" if is_order(name) else f"{name} runs"


def moved_words(name: str) -> str:
    """The message that an assignment no longer fits; it goes on with a time, such as "when the plan was made"."""
    if is_shape(name):
        return f"slice {name.removeprefix(SHAPE)} is not the one that there was"
    if is_stopped_filler(name):
        return f"filler job {name.removeprefix(FILLER)} was started or stopped"
    if is_phase(name):
        return f"{name.removeprefix(PHASE)} has light for another phase than it had"
    return f"the {name} do not lead where they led" if is_order(name) else f"{name} does not run where it ran"


Assignment = Mapping[str, tuple[str, ...]]
"""The present placement: job name -> accelerator of each rank, in rank order.

It also has the orders of lanes that differ from the inventory's, under the names of :func:`order_of`, the records of
slices (:mod:`lumctl.inventory.slice_records`), and the phases that have light (:mod:`lumctl.inventory.phase_records`).
"""

_AS_WRITTEN: Placed = {}


class Direction(StrEnum):
    """Whether a circuit carries light both ways or from its first end to its second."""

    DUPLEX = "duplex"
    A_TO_B = "a-to-b"


@dataclass(frozen=True, slots=True)
class RankLink:
    """Two ranks that a job joins, and the lane (0, 1, ...) that each rank uses for the link.

    ``number`` counts from 0 among the circuits of one link.
    """

    a_rank: int
    b_rank: int
    a_lane: int
    b_lane: int
    number: int = 0

    def name(self, job: str) -> str:
        """The name of its circuit. By rank, not by accelerator: a swap does not change the name of a circuit."""
        return f"{job}/{self.a_rank}-{self.b_rank}" + (f".{self.number + 1}" if self.number else "")


@dataclass(frozen=True, slots=True)
class CircuitEnd:
    """One end of a circuit: a transponder, and the device and port to which it is connected."""

    transponder: str
    device: str
    port: int

    @property
    def place(self) -> DevicePort:
        """The device port."""
        return DevicePort(self.device, self.port)


@dataclass(frozen=True, slots=True)
class Circuit:
    """A light path that a job needs. On ``a-to-b``, ``a`` transmits and ``b`` receives.

    Its ends may be at different devices if fibres join them. The devices and fibres between the ends are not part of
    the circuit: they follow from the states of the devices (:mod:`lumctl.fabric.paths`).
    """

    id: str
    owner: str
    a: CircuitEnd
    b: CircuitEnd
    direction: Direction

    @property
    def ports(self) -> tuple[int, int]:
        """The port of each end, on the device of that end."""
        return (self.a.port, self.b.port)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of its two ends, each once."""
        return (self.a.device,) if self.a.device == self.b.device else (self.a.device, self.b.device)

    @property
    def spans_devices(self) -> bool:
        """Whether its ends are at different devices."""
        return self.a.device != self.b.device

    @property
    def between(self) -> str:
        """Its two ports as tables show them: ``3:9`` within a device, ``m0:3,m1:9`` across devices."""
        return f"{self.a.place},{self.b.place}" if self.spans_devices else f"{self.a.port}:{self.b.port}"

    def ports_at(self, device: str) -> tuple[int, ...]:
        """The ports of its ends at one device."""
        return tuple(end.port for end in (self.a, self.b) if end.device == device)

    @property
    def receivers(self) -> tuple[tuple[str, str], ...]:
        """Pairs (receiving transponder, transponder that it should receive)."""
        forward = (self.b.transponder, self.a.transponder)
        if self.direction is Direction.A_TO_B:
            return (forward,)
        return (forward, (self.a.transponder, self.b.transponder))


def initial_assignment(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """The placement that the inventory states, before any swap."""
    return {job.name: job.ranks for job in inventory.jobs.values()}


def job_links(job: Job) -> tuple[RankLink, ...]:
    """Every link of a job with the lanes that it uses; the module's docstring states the rule."""
    found: list[RankLink] = []
    next_free: dict[int, int] = {}
    for links in job.links:
        for a, b, lane, number in _rank_pairs(links):
            if lane is None:
                a_lane, b_lane = next_free.get(a, 0), next_free.get(b, 0)
            else:
                a_lane, b_lane = lane + 1, lane
            # A ring takes fixed lanes; pairs that are listed after it take the lanes after these.
            next_free[a] = max(next_free.get(a, 0), a_lane + 1)
            next_free[b] = max(next_free.get(b, 0), b_lane + 1)
            found.append(RankLink(a, b, a_lane, b_lane, number))
    return tuple(found)


def links_of_all_phases(job: Job) -> tuple[RankLink, ...]:
    """Every link that a job has at some time of a training step."""
    return tuple(link for each in job.in_phases() for link in job_links(each))


def _rank_pairs(links: RingLinks | PairLinks | TorusLinks) -> Iterator[tuple[int, int, int | None, int]]:
    """Pairs of ranks, the lane at which the second one is reached (``None``: its next one), the circuit's number."""
    match links:
        case PairLinks(pairs):
            for a, b in pairs:
                yield a, b, None, 0
        case RingLinks(ranks):
            for here, there in zip(ranks, ranks[1:] + ranks[:1], strict=True):
                yield here, there, 0, 0
        case TorusLinks(ranks, shape, widths):
            rank_at = dict(zip(product(*map(range, shape)), ranks, strict=True))
            first = 0
            for dimension, extent in enumerate(shape):
                # A dimension with one rank would link that rank to itself.
                if extent == 1:
                    first += 0 if widths else 2
                    continue
                width = widths[dimension] if widths else 1
                for position, rank in rank_at.items():
                    ahead = list(position)
                    ahead[dimension] = (position[dimension] + 1) % extent
                    for number in range(width):
                        yield rank, rank_at[tuple(ahead)], first + 2 * number, number
                first += 2 * width


def job_circuits(
    inventory: Inventory, job: Job, accelerators: tuple[str, ...], orders: Placed = _AS_WRITTEN
) -> tuple[Circuit, ...]:
    """The circuits of ``job`` when rank ``i`` runs on ``accelerators[i]``.

    ``orders`` has the order of an accelerator's lanes if it differs from the inventory's.

    A link between two duplex lanes is one duplex circuit; between lanes with separate ports it is two directed ones.

    Raises:
        UsageError: a rank has too few lanes, or the two lanes of a link differ in kind, or no fibres join their
            devices.
    """
    circuits: list[Circuit] = []
    for link in job_links(job):
        name = link.name(job.name)
        a = _lane_of(inventory, accelerators[link.a_rank], link.a_lane, name, orders)
        b = _lane_of(inventory, accelerators[link.b_rank], link.b_lane, name, orders)
        circuits.extend(_circuits_between(inventory, job.name, name, a, b))
    return tuple(circuits)


def circuits_of(inventory: Inventory, assignment: Assignment) -> tuple[Circuit, ...]:
    """The circuits of all jobs under an assignment, in the order of the inventory; then those of its slices."""
    orders, jobs = orders_in(assignment), {**inventory.jobs, **slices_in(inventory, assignment)}
    placed = ((job, assignment.get(job.name, ()) if job.is_slice else assignment[job.name]) for job in jobs.values())
    return tuple(
        circuit
        for job, ranks in placed
        if ranks or not job.is_slice
        for circuit in job_circuits(inventory, as_lit(job, assignment), ranks, orders)
    )


def _lane_of(inventory: Inventory, accelerator: str, lane: int, link: str, orders: Placed) -> Transponder:
    lanes = lanes_in_order(inventory, accelerator, orders)
    if lane >= len(lanes):
        raise UsageError(f"link {link} needs lane {lane} of {accelerator}, which has {len(lanes)} (numbered from 0)")
    return lanes[lane]


def _circuits_between(inventory: Inventory, owner: str, name: str, a: Transponder, b: Transponder) -> Iterator[Circuit]:
    if not inventory.joined_by_fibres(a.lane.device, b.lane.device):
        raise UsageError(
            f"link {name} connects {a.id} on {a.lane.device} and {b.id} on {b.lane.device}, but no fibres lead from "
            f"{a.lane.device} to {b.lane.device}"
        )
    if a.lane.duplex != b.lane.duplex:
        raise UsageError(f"link {name} connects a duplex lane to one with separate ports ({a.id}, {b.id})")
    if a.lane.duplex:
        yield Circuit(name, owner, _end(a, a.lane.tx), _end(b, b.lane.tx), Direction.DUPLEX)
        return
    for sender, receiver, mark in ((a, b, "ab"), (b, a, "ba")):
        yield Circuit(
            f"{name}:{mark}",
            owner,
            _end(sender, sender.lane.tx),
            _end(receiver, receiver.lane.rx),
            Direction.A_TO_B,
        )


def _end(transponder: Transponder, port: int) -> CircuitEnd:
    return CircuitEnd(transponder.id, transponder.lane.device, port)


FREE = "-"
"""The state of an ingress port that is connected to nothing."""


def own_cells(inventory: Inventory, device: Device) -> tuple[int, ...]:
    """The numbers under which a device's state is stored.

    For a mesh they are all PUCs. For a switch they are the ingress ports that have a lane or a fibre of the inventory.
    """
    if device.kind is not DeviceKind.SWITCH:
        return tuple(range(device.geometry.puc_count if device.geometry else 0))
    return tuple(sorted(port for port in own_ports(inventory, device.id) if port < device.input_count))


def own_ports(inventory: Inventory, device: str) -> set[int]:
    """The ports of a device that have a lane or a fibre of the inventory."""
    lanes = {port for lane in inventory.transponders.values() if lane.lane.device == device for port in lane.lane.ports}
    return lanes | {place.port for place in inventory.fibre_at if place.device == device}


def join_of(device: Device, ports: tuple[int, int], *, reciprocal: bool) -> tuple[int, int]:
    """The (ingress, egress) join that takes light from the first port to the second; ``reciprocal``: in either order.

    Raises:
        UsageError: the switch cannot connect these two.
    """
    if device.input_count == device.port_count:
        # Any port may be the ingress here. The lower one always is, so that a join has one form.
        return min(ports), max(ports)
    for ingress, egress in (ports, ports[::-1]) if reciprocal else (ports,):
        if ingress < device.input_count <= egress:
            return ingress, egress
    raise UsageError(
        f"{device.id} cannot connect port {ports[0]} to port {ports[1]}: light enters at ports 0 to "
        f"{device.input_count - 1} and leaves at {device.input_count} to {device.port_count - 1}",
        hint="if any port can be joined to any other, write input_count: "
        f"{device.port_count}; otherwise give each lane an input (tx) and an output (rx)",
    )


def in_the_way(joins: Mapping[int, str], ingress: int, egress: int) -> tuple[int, int] | None:
    """Another join that uses one of two ports; ``None`` if there is none.

    On a switch that may join any port to any other, a port may be at either end of a join.
    """
    for at, to in joins.items():
        if to != FREE and {at, int(to)} & {ingress, egress} and (at, int(to)) != (ingress, egress):
            return at, int(to)
    return None


def is_joined(joins: Mapping[int, str], ports: tuple[int, int]) -> bool:
    """Whether two ports are joined. A switch's path carries light both ways, and its ingress has the lower number."""
    return joins.get(min(ports)) == str(max(ports))
