"""Move circuits from a failing lane to another lane of the same accelerator, and back once that lane is healthy."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations, product

from lumctl.context import Observation
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import FabricStates
from lumctl.health.states import HARMLESS, State
from lumctl.inventory.components import Part, find_component, lanes_at
from lumctl.inventory.model import Inventory, Transponder
from lumctl.inventory.wiring import jobs_in, lanes_in_order, links_of_all_phases, order_of, orders_in
from lumctl.swap.light_paths import States


@dataclass(frozen=True)
class Avoided:
    """The parts that no circuit may use: PUCs by device, lanes, and fibres. ``named`` has the names as typed."""

    named: tuple[str, ...] = ()
    pucs: Mapping[str, frozenset[int]] = field(default_factory=dict)
    lanes: tuple[str, ...] = ()
    fibres: frozenset[str] = frozenset()


def parse_avoided(inventory: Inventory, names: Sequence[str]) -> Avoided:
    """Parse the names of components to avoid: MESH/puc/N, DEVICE/port/N, a transponder or a fibre.

    Raises:
        UsageError: there is no such component, or no circuit can be routed around it.
    """
    pucs: dict[str, set[int]] = {}
    lanes: list[str] = []
    for name in names:
        if name in inventory.fibres:
            continue
        found = find_component(inventory, name)
        if found.part is Part.PUC:
            pucs.setdefault(str(found.device), set()).add(found.number)
        elif found.part is Part.TRANSPONDER:
            lanes.append(found.id)
        elif found.part is Part.PORT:
            here = lanes_at(inventory, str(found.device)).get(found.number, ())
            if not here:
                raise UsageError(f"no lane is connected to {found.id}: no circuit of ours ends there")
            lanes += [lane.id for lane, _ in here]
        else:
            raise UsageError(
                f"circuits cannot be routed around {found.id}: all its circuits would be lost",
                hint="give a PUC (MESH/puc/N), a port (DEVICE/port/N), a transponder or a fibre",
            )
    cells = {device: frozenset(numbers) for device, numbers in pucs.items()}
    return Avoided(tuple(names), cells, tuple(lanes), frozenset(inventory.fibres).intersection(names))


def rack_of_avoided(inventory: Inventory, name: str) -> str:
    """The rack of a component to avoid."""
    if name in inventory.fibres:
        return inventory.devices[inventory.fibres[name].devices[0]].rack
    return find_component(inventory, name).rack


def circuits_through(
    seen: Observation, states: Mapping[str, States], avoided: Avoided, jobs: Collection[str]
) -> Iterator[str]:
    """The circuits of these jobs that pass a PUC or a fibre to avoid."""
    fabric = FabricStates(seen.inventory, states)
    for circuit in seen.circuits:
        path = fabric.path_of(circuit) if circuit.owner in jobs else None
        if path is None:
            continue
        pucs = (avoided.pucs.get(part.device, frozenset()).intersection(part.pucs) for part in path.segments)
        if any(pucs) or not avoided.fibres.isdisjoint(path.fibres):
            yield circuit.id


def nothing_there(
    seen: Observation, states: Mapping[str, States], avoided: Avoided, jobs: Sequence[str]
) -> RefusedError:
    """The message if no circuit of these jobs passes a component to avoid."""
    others = [job for job in jobs_in(seen.assignment) if job not in jobs]
    there = list(circuits_through(seen, states, avoided, others))
    hint = "see the routes of all circuits: lumctl fabric show"
    if there:
        owners = {circuit.owner for circuit in seen.circuits if circuit.id in there}
        hint = f"{', '.join(there)} does; lumctl swap plan {min(owners)} --avoid {','.join(avoided.named)}"
    return RefusedError(
        f"no circuit of {', '.join(jobs)} passes {', '.join(avoided.named)}: nothing to reroute", hint=hint
    )


MOST_WAYS = 48
"""How many choices of free lanes are routed at most."""


@dataclass(frozen=True, slots=True)
class LaneMove:
    """The circuits of one lane go to another lane of the same accelerator."""

    accelerator: str
    leaves: str
    takes: str
    circuits: tuple[str, ...]

    @property
    def words(self) -> str:
        """The move in words, for a title."""
        return f"{', '.join(self.circuits)} from {self.leaves} to {self.takes}"


LaneMoves = tuple[LaneMove, ...]


def lane_choices(
    seen: Observation, avoided: Avoided, replaced: Collection[str], jobs: Collection[str]
) -> Iterator[LaneMoves]:
    """The options to free the lanes to avoid while the accelerators of these jobs stay in place, the best first.

    Lanes of replaced accelerators are omitted. If nothing has to move, there is one empty path.

    Raises:
        RefusedError: an accelerator has no free lane; the message gives the reason and the alternatives.
    """
    dying: dict[str, list[Transponder]] = {}
    for name in dict.fromkeys(avoided.lanes):
        lane = seen.inventory.transponders[name]
        place = seen.place_of(lane.accelerator)
        if _circuits_at(seen, name) and lane.accelerator not in replaced and place is not None and place[0] in jobs:
            dying.setdefault(lane.accelerator, []).append(lane)
    ways = []
    for accelerator, lanes in dying.items():
        free, unfit = _free(seen, avoided, accelerator, lanes[0])
        if len(free) < len(lanes):
            raise _no_lane(seen, lanes, unfit)
        ways.append([tuple(zip(lanes, taken, strict=True)) for taken in permutations(free, len(lanes))])
    return islice((_moves(seen, [pair for part in way for pair in part]) for way in product(*ways)), MOST_WAYS)


def orders_after(seen: Observation, moves: LaneMoves) -> dict[str, tuple[str, ...]]:
    """The orders of lanes after these moves, by their names in an assignment."""
    orders = {move.accelerator: _order(seen, move.accelerator) for move in moves}
    for move in moves:
        order = orders[move.accelerator]
        one, other = order.index(move.leaves), order.index(move.takes)
        order[one], order[other] = order[other], order[one]
    written = {a: [lane.id for lane in seen.inventory.transponders_of(a)] for a in orders}
    # An empty order stands for that of the inventory.
    return {order_of(a): () if order == written[a] else tuple(order) for a, order in orders.items()}


def moves_home(seen: Observation, accelerators: Collection[str]) -> tuple[LaneMoves, dict[str, str]]:
    """The moves that return these accelerators to their lanes of the inventory; and by accelerator, why it cannot."""
    moves: list[LaneMove] = []
    stay: dict[str, str] = {}
    for accelerator, order in orders_in(seen.assignment).items():
        if accelerator not in accelerators:
            continue
        written = seen.inventory.transponders_of(accelerator)
        back = [(now, lane) for now, lane in zip(order, written, strict=True) if now != lane.id and _needed(seen, now)]
        ill = [f"{lane.id} {_trouble(seen, lane.id)}" for _, lane in back if _trouble(seen, lane.id)]
        if ill:
            stay[accelerator] = ill[0]
            continue
        lanes = seen.inventory.transponders
        moves += _moves(seen, [(lanes[now], lane) for now, lane in back])
    return tuple(moves), stay


def _moves(seen: Observation, pairs: Collection[tuple[Transponder, Transponder]]) -> LaneMoves:
    return tuple(LaneMove(old.accelerator, old.id, new.id, _circuits_at(seen, old.id)) for old, new in pairs)


def _order(seen: Observation, accelerator: str) -> list[str]:
    return [lane.id for lane in lanes_in_order(seen.inventory, accelerator, orders_in(seen.assignment))]


def _circuits_at(seen: Observation, lane: str) -> tuple[str, ...]:
    return tuple(c.id for c in seen.circuits if lane in {c.a.transponder, c.b.transponder})


def _needed(seen: Observation, lane: str) -> bool:
    """Whether a lane is used by a link of the rank that runs on the lane's accelerator."""
    accelerator = seen.inventory.transponders[lane].accelerator
    place = seen.place_of(accelerator)
    if place is None:
        return False
    ends = [
        number
        for link in links_of_all_phases(seen.inventory.jobs[place[0]])
        for rank, number in ((link.a_rank, link.a_lane), (link.b_rank, link.b_lane))
        if rank == place[1]
    ]
    return _order(seen, accelerator).index(lane) in ends


def _free(
    seen: Observation, avoided: Avoided, accelerator: str, dying: Transponder
) -> tuple[list[Transponder], dict[str, str]]:
    """The lanes that can take a failing lane's circuits, healthy ones first; and by other lane, why it cannot."""
    fit: list[Transponder] = []
    unfit: dict[str, str] = {}
    for lane in seen.inventory.transponders_of(accelerator):
        link = seen.report.links[lane.id]
        if lane.id in avoided.lanes:
            continue
        if _needed(seen, lane.id):
            carried = ", ".join(_circuits_at(seen, lane.id))
            unfit[lane.id] = f"carries {carried}" if carried else "is needed in another phase of the job"
        elif not seen.inventory.joined_by_fibres(lane.lane.device, dying.lane.device):
            unfit[lane.id] = f"leads to {lane.lane.device}"
        elif lane.lane.duplex != dying.lane.duplex:
            unfit[lane.id] = "has one port for both directions" if lane.lane.duplex else "has separate ports"
        elif link.maintenance is not None or link.state is State.FAILED:
            unfit[lane.id] = _trouble(seen, lane.id)
        else:
            fit.append(lane)
    return sorted(fit, key=lambda lane: seen.report.links[lane.id].state is not State.OK), unfit


def _trouble(seen: Observation, lane: str) -> str:
    """Why a lane is not healthy, in words that follow its name; empty if it is healthy, or merely not in use."""
    link = seen.report.links[lane]
    if link.maintenance is not None:
        return f"is in maintenance: {link.maintenance}"
    if link.state in HARMLESS:
        return ""
    return f"is {link.state}" + (f": {link.findings[0].evidence}" if link.findings else "")


def _no_lane(seen: Observation, lanes: list[Transponder], unfit: Mapping[str, str]) -> RefusedError:
    names, accelerator = ", ".join(lane.id for lane in lanes), lanes[0].accelerator
    using = dict.fromkeys(circuit for lane in lanes for circuit in _circuits_at(seen, lane.id))
    why = "; ".join(f"{name} {said}" for name, said in unfit.items())
    return RefusedError(
        f"{names} carries {', '.join(using)}, but {accelerator} has no lane to spare" + (f": {why}" if why else ""),
        hint=f"replace the accelerator: lumctl swap plan --failed {accelerator} --avoid {names.replace(' ', '')} "
        "--even-if-healthy",
    )
