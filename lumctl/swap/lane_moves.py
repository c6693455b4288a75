"""Another lane of the same accelerator for what leads through a dying one; and back once that is well."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations, product

from lumctl.context import Observation
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.fabric import trace
from lumctl.fabric.condition import mesh_of
from lumctl.health.states import State
from lumctl.inventory.components import Part, find_component, lanes_at
from lumctl.inventory.model import Inventory, Transponder
from lumctl.inventory.wiring import Circuit, is_order, job_links, jobs_in, lanes_in_order, order_of, orders_in
from lumctl.swap.light_paths import States


@dataclass(frozen=True)
class Avoided:
    """What no circuit may use: PUCs by device, and lanes. ``named`` is how all of it was written."""

    named: tuple[str, ...] = ()
    pucs: Mapping[str, frozenset[int]] = field(default_factory=dict)
    lanes: tuple[str, ...] = ()


def parse_avoided(inventory: Inventory, names: Sequence[str]) -> Avoided:
    """What the names mean: MESH/puc/N, DEVICE/port/N, or a transponder.

    Raises:
        UsageError: there is no such component, or it is nothing that a circuit could be routed around.
    """
    pucs: dict[str, set[int]] = {}
    lanes: list[str] = []
    for name in names:
        found = find_component(inventory, name)
        if found.part is Part.PUC:
            pucs.setdefault(str(found.device), set()).add(found.number)
        elif found.part is Part.TRANSPONDER:
            lanes.append(found.id)
        elif found.part is Part.PORT:
            here = lanes_at(inventory, str(found.device)).get(found.number, ())
            if not here:
                raise UsageError(f"no lane meets {found.id}: no circuit of ours ends there")
            lanes += [lane.id for lane, _ in here]
        else:
            raise UsageError(
                f"circuits cannot be routed around {found.id}: all that it carries would be lost",
                hint="name a PUC (MESH/puc/N), a port (DEVICE/port/N) or a transponder",
            )
    return Avoided(tuple(names), {device: frozenset(cells) for device, cells in pucs.items()}, tuple(lanes))


def circuits_through(
    seen: Observation, states: Mapping[str, States], avoided: Avoided, jobs: Collection[str]
) -> Iterator[str]:
    """The circuits of these jobs that pass a PUC to avoid."""
    for circuit in seen.circuits:
        cells = avoided.pucs.get(circuit.device)
        if cells and circuit.owner in jobs and cells & _passed(seen.inventory, states, circuit):
            yield circuit.id


def nothing_there(
    seen: Observation, states: Mapping[str, States], avoided: Avoided, jobs: Sequence[str]
) -> RefusedError:
    """The message if no circuit of these jobs passes a component to avoid."""
    others = [job for job in jobs_in(seen.assignment) if job not in jobs]
    there = list(circuits_through(seen, states, avoided, others))
    hint = "see the ways of all circuits: lumctl fabric show"
    if there:
        owners = {circuit.owner for circuit in seen.circuits if circuit.id in there}
        hint = f"{', '.join(there)} does; lumctl swap plan {min(owners)} --avoid {','.join(avoided.named)}"
    return RefusedError(
        f"no circuit of {', '.join(jobs)} passes {', '.join(avoided.named)}: nothing to move", hint=hint
    )


def _passed(inventory: Inventory, states: Mapping[str, States], circuit: Circuit) -> frozenset[int]:
    device, held = inventory.devices[circuit.device], states.get(circuit.device)
    if device.geometry is None or not held:
        return frozenset()
    found = trace(mesh_of(device), {puc: PucState(mark) for puc, mark in held.items()}, circuit.ports[0])
    return frozenset(found.pucs)


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
        """In words, for a title."""
        return f"{', '.join(self.circuits)} from {self.leaves} to {self.takes}"


LaneMoves = tuple[LaneMove, ...]


def lane_choices(
    seen: Observation, avoided: Avoided, replaced: Collection[str], jobs: Collection[str]
) -> Iterator[LaneMoves]:
    """Every way to free the lanes to avoid, with each accelerator of these jobs kept in place; the best first.

    Lanes of replaced accelerators are left out. If nothing has to move, there is one empty way.

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
    """The orders of lanes that moves lead to, by their names in an assignment."""
    orders = {move.accelerator: _order(seen, move.accelerator) for move in moves}
    for move in moves:
        order = orders[move.accelerator]
        one, other = order.index(move.leaves), order.index(move.takes)
        order[one], order[other] = order[other], order[one]
    written = {a: [lane.id for lane in seen.inventory.transponders_of(a)] for a in orders}
    return {order_of(a): () if order == written[a] else tuple(order) for a, order in orders.items()}


def orders_before(seen: Observation, after: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The present orders of lanes, under the same names."""
    return {name: seen.assignment.get(name, ()) for name in after if is_order(name)}


def moves_home(seen: Observation, accelerators: Collection[str]) -> tuple[LaneMoves, dict[str, str]]:
    """The moves by which lanes of these accelerators are used as written again; and by accelerator why they are not."""
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
    """Whether a link of the rank that runs on its accelerator uses a lane."""
    accelerator = seen.inventory.transponders[lane].accelerator
    place = seen.place_of(accelerator)
    if place is None:
        return False
    ends = [
        number
        for link in job_links(seen.inventory.jobs[place[0]])
        for rank, number in ((link.a_rank, link.a_lane), (link.b_rank, link.b_lane))
        if rank == place[1]
    ]
    return _order(seen, accelerator).index(lane) in ends


def _free(
    seen: Observation, avoided: Avoided, accelerator: str, dying: Transponder
) -> tuple[list[Transponder], dict[str, str]]:
    """Lanes that could take a dying one's circuits, those first that are ok; and of those that could not, why not."""
    fit: list[Transponder] = []
    unfit: dict[str, str] = {}
    for lane in seen.inventory.transponders_of(accelerator):
        link = seen.report.links[lane.id]
        if lane.id in avoided.lanes:
            continue
        if _needed(seen, lane.id):
            unfit[lane.id] = f"carries {', '.join(_circuits_at(seen, lane.id))}"
        elif lane.lane.device != dying.lane.device:
            unfit[lane.id] = f"leads to {lane.lane.device}"
        elif lane.lane.duplex != dying.lane.duplex:
            unfit[lane.id] = "has one port for both ways" if lane.lane.duplex else "has separate ports"
        elif link.maintenance is not None or link.state is State.FAILED:
            unfit[lane.id] = _trouble(seen, lane.id)
        else:
            fit.append(lane)
    return sorted(fit, key=lambda lane: seen.report.links[lane.id].state is not State.OK), unfit


def _trouble(seen: Observation, lane: str) -> str:
    """Why a lane is not well, to follow its name; empty if it is, or is just not in use."""
    link = seen.report.links[lane]
    if link.maintenance is not None:
        return f"is in maintenance: {link.maintenance}"
    if link.state in {State.OK, State.DISABLED}:
        return ""
    return f"is {link.state}" + (f": {link.findings[0].evidence}" if link.findings else "")


def _no_lane(seen: Observation, lanes: list[Transponder], unfit: Mapping[str, str]) -> RefusedError:
    names, accelerator = ", ".join(lane.id for lane in lanes), lanes[0].accelerator
    using = dict.fromkeys(circuit for lane in lanes for circuit in _circuits_at(seen, lane.id))
    why = "; ".join(f"{name} {said}" for name, said in unfit.items())
    return RefusedError(
        f"{names} carries {', '.join(using)}, and {accelerator} has no lane to spare" + (f": {why}" if why else ""),
        hint=f"replace the accelerator: lumctl swap plan --failed {accelerator} --avoid {names.replace(' ', '')} "
        "--even-if-healthy",
    )
