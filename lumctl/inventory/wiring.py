"""From a job's links and who runs where to the circuits that the fabric must carry.

The rule is fixed, so that everyone (planner, status, simulator's commissioning, replay) means the same circuit by the
same name. A ring or a torus dimension ``d`` uses two lanes of each accelerator: the link towards the next rank leaves
through lane ``2d + 1`` and arrives at lane ``2d``. A list of pairs takes each accelerator's lanes in order.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from lumctl.errors import UsageError
from lumctl.inventory.model import (
    Device,
    DeviceKind,
    Inventory,
    Job,
    Lane,
    PairLinks,
    RingLinks,
    TorusLinks,
    Transponder,
)

PREFIX = "lanes of "
"""What the name of an order begins with; no job's name can: there are blanks in it."""

Placed = Mapping[str, tuple[str, ...]]


def order_of(accelerator: str) -> str:
    """The name of an accelerator's order of lanes in an assignment."""
    return f"{PREFIX}{accelerator}"


def is_order(name: str) -> bool:
    """Whether a name of an assignment is not a job's."""
    return name.startswith(PREFIX)


def orders_in(assignment: Placed) -> dict[str, tuple[str, ...]]:
    """The orders of an assignment, by accelerator; those that are as written are left out."""
    return {name.removeprefix(PREFIX): lanes for name, lanes in assignment.items() if lanes and is_order(name)}


def jobs_in(assignment: Placed) -> dict[str, tuple[str, ...]]:
    """The jobs of an assignment with the accelerator of each rank."""
    return {name: ranks for name, ranks in assignment.items() if not is_order(name)}


def lanes_in_order(inventory: Inventory, accelerator: str, orders: Placed) -> tuple[Transponder, ...]:
    """Lane 0, lane 1, ... of an accelerator. An order that does not fit the inventory is ignored."""
    written = inventory.transponders_of(accelerator)
    order = orders.get(accelerator)
    if not order or misfit(inventory, accelerator, order):
        return written
    return tuple(inventory.transponders[name] for name in order)


def misfit(inventory: Inventory, accelerator: str, order: tuple[str, ...]) -> str | None:
    """Why an order does not fit the inventory, or ``None``."""
    if accelerator not in inventory.accelerators:
        return f"{accelerator} is not in it"
    written = [lane.id for lane in inventory.transponders_of(accelerator)]
    if sorted(order) == sorted(written):
        return None
    return f"{accelerator} has the lanes {', '.join(written) or '(none)'}, the store orders {', '.join(order)}"


def placed_words(name: str) -> str:
    """The meaning of a name in an assignment, to follow ``where``: ``where JOB runs``."""
    return f"the {name} lead" if is_order(name) else f"{name} runs"


def moved_words(name: str) -> str:
    """The message that an assignment no longer fits."""
    return f"the {name} do not lead where they did" if is_order(name) else f"{name} does not run where it did"


Assignment = Mapping[str, tuple[str, ...]]
"""The present placement: job name -> accelerator of each rank, in rank order; and orders of lanes unlike the
inventory's.

The latter have names of :mod:`lumctl.inventory.wiring`.
"""

_AS_WRITTEN: Placed = {}


class Direction(StrEnum):
    """Whether a circuit carries light both ways or from its first end to its second."""

    DUPLEX = "duplex"
    A_TO_B = "a-to-b"


@dataclass(frozen=True, slots=True)
class RankLink:
    """Two ranks that a job joins, and which of its lanes (0, 1, ...) each uses for it."""

    a_rank: int
    b_rank: int
    a_lane: int
    b_lane: int


@dataclass(frozen=True, slots=True)
class CircuitEnd:
    """One end of a circuit: a transponder and the device port at which the circuit meets it."""

    transponder: str
    port: int


@dataclass(frozen=True, slots=True)
class Circuit:
    """A light path that a job needs. On ``a-to-b``, ``a`` transmits and ``b`` receives."""

    id: str
    owner: str
    device: str
    a: CircuitEnd
    b: CircuitEnd
    direction: Direction

    @property
    def ports(self) -> tuple[int, int]:
        """The two device ports it joins."""
        return (self.a.port, self.b.port)

    @property
    def receivers(self) -> tuple[tuple[str, str], ...]:
        """Pairs (receiving transponder, transponder it is meant to hear)."""
        forward = (self.b.transponder, self.a.transponder)
        if self.direction is Direction.A_TO_B:
            return (forward,)
        return (forward, (self.a.transponder, self.b.transponder))


def initial_assignment(inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """The placement that the inventory states, before any swap."""
    return {job.name: job.ranks for job in inventory.jobs.values()}


def job_links(job: Job) -> tuple[RankLink, ...]:
    """Every link of a job with the lanes it uses; see the module's text for the rule."""
    found: list[RankLink] = []
    next_free: dict[int, int] = {}
    for links in job.links:
        for a, b, dimension in _rank_pairs(links):
            if dimension is None:
                a_lane, b_lane = next_free.get(a, 0), next_free.get(b, 0)
            else:
                a_lane, b_lane = 2 * dimension + 1, 2 * dimension
            next_free[a] = max(next_free.get(a, 0), a_lane + 1)
            next_free[b] = max(next_free.get(b, 0), b_lane + 1)
            found.append(RankLink(a, b, a_lane, b_lane))
    return tuple(found)


def _rank_pairs(links: RingLinks | PairLinks | TorusLinks) -> Iterator[tuple[int, int, int | None]]:
    """Pairs of ranks with the ring dimension they belong to (``None`` for listed pairs)."""
    match links:
        case PairLinks(pairs):
            for a, b in pairs:
                yield a, b, None
        case RingLinks(ranks):
            for here, there in zip(ranks, ranks[1:] + ranks[:1], strict=True):
                yield here, there, 0
        case TorusLinks(ranks, shape):
            rank_at = dict(zip(product(*map(range, shape)), ranks, strict=True))
            for dimension, extent in enumerate(shape):
                if extent == 1:
                    continue
                for position, rank in rank_at.items():
                    ahead = list(position)
                    ahead[dimension] = (position[dimension] + 1) % extent
                    yield rank, rank_at[tuple(ahead)], dimension


def job_circuits(
    inventory: Inventory, job: Job, accelerators: tuple[str, ...], orders: Placed = _AS_WRITTEN
) -> tuple[Circuit, ...]:
    """The circuits of ``job`` when rank ``i`` runs on ``accelerators[i]``.

    ``orders`` are the lanes of accelerators, by number, where these are not as written.

    A link between two duplex lanes is one duplex circuit; between lanes with separate ports it is two directed ones.

    Raises:
        UsageError: a rank has too few lanes, or the two lanes of a link meet different devices or differ in kind.
    """
    circuits: list[Circuit] = []
    for link in job_links(job):
        name = f"{job.name}/{link.a_rank}-{link.b_rank}"
        a = _lane_of(inventory, accelerators[link.a_rank], link.a_lane, name, orders)
        b = _lane_of(inventory, accelerators[link.b_rank], link.b_lane, name, orders)
        circuits.extend(_circuits_between(job.name, name, a, b))
    return tuple(circuits)


def circuits_of(inventory: Inventory, assignment: Assignment) -> tuple[Circuit, ...]:
    """The circuits of all jobs under an assignment, in the order of the inventory."""
    orders = orders_in(assignment)
    return tuple(
        circuit
        for job in inventory.jobs.values()
        for circuit in job_circuits(inventory, job, assignment[job.name], orders)
    )


def _lane_of(inventory: Inventory, accelerator: str, lane: int, link: str, orders: Placed) -> Transponder:
    lanes = lanes_in_order(inventory, accelerator, orders)
    if lane >= len(lanes):
        raise UsageError(f"link {link} needs lane {lane} of {accelerator}, which has {len(lanes)} (numbered from 0)")
    return lanes[lane]


def _circuits_between(owner: str, name: str, a: Transponder, b: Transponder) -> Iterator[Circuit]:
    if a.lane.device != b.lane.device:
        raise UsageError(
            f"link {name} joins {a.id} on {a.lane.device} and {b.id} on {b.lane.device}: one device must carry it"
        )
    if a.lane.duplex != b.lane.duplex:
        raise UsageError(f"link {name} joins a duplex lane to one with separate ports ({a.id}, {b.id})")
    device = a.lane.device
    if a.lane.duplex:
        yield Circuit(name, owner, device, _end(a, a.lane), _end(b, b.lane), Direction.DUPLEX)
        return
    for sender, receiver, mark in ((a, b, "ab"), (b, a, "ba")):
        yield Circuit(
            f"{name}:{mark}",
            owner,
            device,
            CircuitEnd(sender.id, sender.lane.tx),
            CircuitEnd(receiver.id, receiver.lane.rx),
            Direction.A_TO_B,
        )


def _end(transponder: Transponder, lane: Lane) -> CircuitEnd:
    return CircuitEnd(transponder.id, lane.tx)


FREE = "-"
"""The state of an ingress port that is joined to nothing."""


def own_cells(inventory: Inventory, device: Device) -> tuple[int, ...]:
    """The numbers under which a device's state is kept: every PUC of a mesh, a switch's ingress ports of our lanes."""
    if device.kind is not DeviceKind.SWITCH:
        return tuple(range(device.geometry.puc_count if device.geometry else 0))
    ports = {
        port for lane in inventory.transponders.values() if lane.lane.device == device.id for port in lane.lane.ports
    }
    return tuple(sorted(port for port in ports if port < device.input_count))


def join_of(device: Device, ports: tuple[int, int], *, reciprocal: bool) -> tuple[int, int]:
    """The (ingress, egress) join that takes light from the first port to the second; a duplex circuit either way round.

    Raises:
        UsageError: the switch cannot join these two.
    """
    if device.input_count == device.port_count:
        return min(ports), max(ports)
    for ingress, egress in (ports, ports[::-1]) if reciprocal else (ports,):
        if ingress < device.input_count <= egress:
            return ingress, egress
    raise UsageError(
        f"{device.id} cannot join port {ports[0]} to port {ports[1]}: light enters at ports 0 to "
        f"{device.input_count - 1} and leaves at {device.input_count} to {device.port_count - 1}",
        hint="put transmitting lanes on the inputs (tx) and receiving ones on the outputs (rx)",
    )


def in_the_way(joins: Mapping[int, str], ingress: int, egress: int) -> tuple[int, int] | None:
    """A foreign join of one of two ports.

    If any port may be joined to any, a port may be at either end of it.
    """
    for at, to in joins.items():
        if to != FREE and {at, int(to)} & {ingress, egress} and (at, int(to)) != (ingress, egress):
            return at, int(to)
    return None


def is_joined(joins: Mapping[int, str], ports: tuple[int, int]) -> bool:
    """Whether two ports are joined; a switch's path carries light both ways, and its ingress has the lower number."""
    return joins.get(min(ports)) == str(max(ports))
