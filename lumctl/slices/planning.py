"""Plan slices: choose accelerators and fibres for new jobs, route their circuits, and state what is left."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lumctl.change.plan import SLICE, Plan, SliceFacts
from lumctl.context import Context, Observation
from lumctl.errors import RefusedError
from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import Inventory, Job
from lumctl.inventory.slice_records import record_of, shape_of, slice_record, slices_in
from lumctl.inventory.wiring import Circuit, job_circuits, job_links, orders_in
from lumctl.printable import shape_text
from lumctl.slices.allocation import (
    Allocation,
    SliceDemand,
    SlicePlacement,
    SliceVerdict,
    redirected_widths,
    ring_demand,
    with_slice,
)
from lumctl.slices.allocator import PlaceSlots, allocate, allocate_box
from lumctl.slices.bounds import too_few_free
from lumctl.slices.documents import port_rows
from lumctl.slices.fragmentation import largest_slice
from lumctl.slices.rack_state import RackState, rack_state
from lumctl.slices.request import SliceRequest, require_request
from lumctl.slices.slot_search import place_slots
from lumctl.slices.torus import Torus
from lumctl.swap.draft import start_of, thin_margins, timed, with_timer
from lumctl.swap.light_paths import LightPaths
from lumctl.swap.path_routing import DeviceUnroutable, light_paths_along
from lumctl.swap.steps import StepList

_ATTEMPTS = 8
"""How many choices of accelerators and fibres are tried until the meshes have a way for each circuit."""
_REASONS = 4
"""How many reasons a refusal names."""


Search = Callable[[Torus, Sequence[SliceDemand]], Allocation]
"""The answer of an allocator to the demands that would do, the best one first."""


@dataclass(frozen=True)
class _Placed:
    """A slice with its place in a rack; ``circuits`` are those of its job."""

    job: Job
    allocation: Allocation
    demand: SliceDemand
    placement: SlicePlacement
    circuits: tuple[Circuit, ...]

    @property
    def record(self) -> tuple[str, ...]:
        """Its record in an assignment."""
        return record_of(self.job)


def plan_slice(
    context: Context,
    asked: SliceRequest,
    *,
    seed: int = 0,
    place: PlaceSlots = place_slots,
    seen: Observation | None = None,
) -> Plan:
    """Plan the slices that are asked for, all in one rack: the one where they lie best.

    A contiguous box is best; otherwise servers that light joins, with the least full edge. The same rack and ``seed``
    give the same plan. ``place`` searches for scattered servers. ``seen`` is a fresh observation, if the caller has
    one.

    Raises:
        UsageError: a name is unknown or taken, or the slice is larger than every torus.
        RefusedError: there is no place for them, or none was found; the message says which, and what would make room.
    """
    context.assignment()  # reads which slices there are; a bad request is refused before any host is asked
    asked = require_request(context.inventory, asked)
    seen = seen or context.observe()
    states = [
        rack_state(seen, rack, context.known_cells, model=asked.model, memory_gib=asked.memory_gib)
        for rack in asked.racks
    ]
    search = partial(allocate, seed=seed, place=place)
    choice = _best(seen, states, asked, search)
    for _ in range(_ATTEMPTS):
        try:
            paths = light_paths_along(*_change(context, seen, choice), choice.fibres)
            return _plan(context, seen, choice, paths)
        except DeviceUnroutable as error:
            why = error
        states = [state.without(why.device) if why.device in state.devices else state for state in states]
        try:
            choice = _best(seen, states, asked, search)
        except RefusedError:
            break
    raise RefusedError(
        f"accelerators and fibres are free, but no way through the meshes was found for the circuits: {why.message}",
        hint="release a slice that shares a server, or name other servers: lumctl slice plan --hosts HOST,...",
    )


@dataclass(frozen=True)
class _Choice:
    """A rack, and the place of each slice in it."""

    state: RackState
    placed: list[_Placed]

    @property
    def circuits(self) -> tuple[Circuit, ...]:
        """The circuits of all slices."""
        return tuple(circuit for each in self.placed for circuit in each.circuits)

    @property
    def fibres(self) -> dict[str, tuple[str, ...]]:
        """The fibres of each circuit from its first end, by id."""
        ways = (fibres_by_circuit(each.job, each.placement, each.circuits) for each in self.placed)
        return {name: way for own in ways for name, way in own.items()}


def fibres_by_circuit(job: Job, placement: SlicePlacement, circuits: Sequence[Circuit]) -> dict[str, tuple[str, ...]]:
    """The fibres that a placement gives each circuit of a slice, from the circuit's first end, by id."""
    ways: dict[tuple[int, int], list[tuple[str, ...]]] = {}
    for each in placement.circuits:
        ways.setdefault(each.ranks, []).append(each.edges)
    of_link = {link.name(job.name): ways[link.a_rank, link.b_rank][link.number] for link in job_links(job)}
    found: dict[str, tuple[str, ...]] = {}
    for circuit in circuits:
        link, _, direction = circuit.id.partition(":")
        found[circuit.id] = of_link[link][::-1] if direction == "ba" else of_link[link]
    return found


def _best(seen: Observation, states: Sequence[RackState], asked: SliceRequest, search: Search) -> _Choice:
    """The rack where the slices lie best: boxes in any rack before scattered servers in the first.

    Raises:
        RefusedError: there is no place for them, or none was found.
    """
    answers: list[tuple[RackState, list[_Placed] | Allocation]] = []
    for find in (allocate_box, search):
        answers = [(state, _allocated(seen, state, asked, find)) for state in states]
        met = [_Choice(state, placed) for state, placed in answers if not isinstance(placed, Allocation)]
        if met:
            return min(met, key=lambda choice: _worth(choice.placed))
    raise _no_place(asked, [(state, found) for state, found in answers if isinstance(found, Allocation)])


def _change(
    context: Context, seen: Observation, choice: _Choice
) -> tuple[Inventory, tuple[Circuit, ...], tuple[Circuit, ...], dict[str, dict[int, str]]]:
    """The inventory, the circuits before and after, and the known states of the rack's devices."""
    known = {device: cells for device, cells in context.known_fabric(choice.state.rack).items() if cells}
    return seen.inventory, seen.circuits, (*seen.circuits, *choice.circuits), known


def _allocated(
    seen: Observation,
    state: RackState,
    asked: SliceRequest,
    find: Search,
) -> list[_Placed] | Allocation:
    """The place of each slice, each beside those before it; or the answer for the first that has none."""
    demands = _demands(seen.inventory, state, asked)
    torus, found = state.torus, list[_Placed]()
    if asked.accelerators * len(asked.jobs) > len(torus.free):
        few = too_few_free(asked.accelerators * len(asked.jobs), len(torus.free))
        return Allocation(SliceVerdict.IMPOSSIBLE, reasons=(few,), in_the_way=tuple(state.accelerators))
    for job in asked.jobs:
        answer = find(torus, demands)
        if answer.placement is None or answer.demand is None:
            return answer
        found.append(_placed(seen, state, job, answer, answer.demand, answer.placement))
        torus = with_slice(torus, answer.placement)
    return found


def _demands(inventory: Inventory, state: RackState, asked: SliceRequest) -> list[SliceDemand]:
    """What would do, the best one first: the most circuits for each link, and then the most compact shape."""
    servers = state.servers_of(inventory, asked.hosts) if asked.hosts else None
    ports = min((len(inventory.transponders_of(name)) for name in state.accelerators.values()), default=0)
    widest = {shape: redirected_widths(shape, ports if asked.redirect else 0) for shape in asked.shapes}
    most = max(max(widths) for widths in widest.values())
    return list(
        dict.fromkeys(
            replace(ring_demand(shape, (min(x, level), min(y, level), min(z, level))), servers=servers)
            for level in range(most, 0, -1)
            for shape, (x, y, z) in widest.items()
        )
    )


def _placed(
    seen: Observation, state: RackState, job: str, answer: Allocation, demand: SliceDemand, placement: SlicePlacement
) -> _Placed:
    ranks = tuple(state.accelerators[place] for place in placement.accelerators)
    widths = demand.widths if max(demand.widths) > 1 else ()
    records = {job: ranks, shape_of(job): slice_record(demand.shape, ranks, widths)}
    made = slices_in(seen.inventory, records)[job]
    circuits = job_circuits(seen.inventory, made, ranks, orders_in(seen.assignment))
    return _Placed(made, answer, demand, placement, circuits)


def _worth(placed: list[_Placed]) -> tuple[int, int, int]:
    """The order of racks: the fewest scattered slices, the least full edge, the fewest fibres."""
    placements = [each.placement for each in placed]
    return (
        sum(not each.contiguous for each in placements),
        max(each.fullest for each in placements),
        sum(each.fibres_used for each in placements),
    )


def _no_place(asked: SliceRequest, answers: list[tuple[RackState, Allocation]]) -> RefusedError:
    shape = shape_text(asked.shapes[0]) if len(asked.shapes) == 1 else f"{asked.accelerators} accelerators"
    state, answer = answers[0]
    proven = all(each.verdict is SliceVerdict.IMPOSSIBLE for _, each in answers)
    reasons = _brief(answer.reasons)
    where = f"rack {state.rack}" if len(answers) == 1 else f"any of {len(answers)} racks (in {state.rack}"
    end = "" if len(answers) == 1 else ")"
    said = "there is no place for" if proven else "no place was found, which does not prove that there is none, for"
    return RefusedError(f"{said} a slice of {shape} in {where}: {reasons}{end}", hint=_what_makes_room(state, answer))


def _brief(reasons: Sequence[str]) -> str:
    """The reasons in one line: the first of each kind."""
    different = list({reason.rpartition(": ")[2]: reason for reason in reversed(reasons)}.values())[::-1]
    more = f"; and {len(different) - _REASONS} more reasons" if len(different) > _REASONS else ""
    return "; ".join(different[:_REASONS]) + more


def _what_makes_room(state: RackState, answer: Allocation) -> str:
    """What keeps accelerators from being free that would make room."""
    reasons: dict[str, list[str]] = {}
    for place in answer.in_the_way:
        name = state.accelerators[place]
        if why := state.kept_from.get(name):
            ranks = why.startswith("runs rank ")
            reasons.setdefault(f"run {why.rpartition(' of ')[2]}" if ranks else why, []).append(name)
    if not reasons:
        return "see what is free: lumctl slice list"
    ways = "; ".join(f"{', '.join(fold(names))} ({why})" for why, names in reasons.items())
    return f"what would make room: {ways}"


def _plan(context: Context, seen: Observation, choice: _Choice, paths: LightPaths) -> Plan:
    inventory, rack, placed, circuits = seen.inventory, choice.state.rack, choice.placed, choice.circuits
    known = _change(context, seen, choice)[3]
    jobs = {each.job.name: each.job.ranks for each in placed}
    records = {shape_of(each.job.name): each.record for each in placed}
    nothing: dict[str, tuple[str, ...]] = dict.fromkeys((*jobs, *records), ())
    steps, kept = StepList(inventory), [circuit.id for circuit in paths.keep]
    steps.check([name for ranks in jobs.values() for name in ranks], kept=kept, replaced=[])
    for lane in dict.fromkeys(end.transponder for circuit in circuits for end in (circuit.a, circuit.b)):
        steps.transmit(lane, enabled=True, required=True)
    steps.program(paths.writes)
    if circuits or kept:
        steps.verify([circuit.id for circuit in paths.add], kept)
    steps.confirm(with_timer(context, paths))
    steps.assign(nothing, {**jobs, **records})
    listed, measured = timed(context.store(rack), steps.steps)
    facts = _facts(inventory, choice.state, placed, paths)
    return Plan(
        kind=SLICE,
        title=_title(placed),
        rack=rack,
        target=context.target,
        created_at=seen.at,
        inventory_digest=inventory.digest,
        start=start_of(nothing, known, paths, beside=seen.assignment),
        add=paths.add,
        keep=paths.keep,
        changes=tuple(change for cells in paths.writes.values() for change in cells),
        steps=listed,
        warnings=thin_margins(context, paths),
        why=tuple(_why(placed, facts)),
        measured=measured,
        slices=facts,
    ).sealed()


def _title(placed: list[_Placed]) -> str:
    jobs = ", ".join(each.job.name for each in placed)
    hosts = sorted({name for each in placed for name in each.job.ranks})
    shapes = " and ".join(dict.fromkeys(shape_text(each.demand.shape) for each in placed))
    form = "a box" if all(each.placement.contiguous for each in placed) else "scattered servers"
    return f"place {jobs} ({shapes}) on {form}: {', '.join(fold(hosts))}"


def _facts(inventory: Inventory, state: RackState, placed: list[_Placed], paths: LightPaths) -> SliceFacts:
    taken = {place for each in placed for place in each.placement.accelerators}
    after = with_circuits(replace(state.torus, free=state.torus.free - taken), paths)
    losses = {circuit.id: circuit.loss_db or 0.0 for circuit in paths.add}
    fibres = {circuit.id: len(circuit.fibres) for circuit in paths.add}
    return SliceFacts(
        slices=tuple(
            {
                "job": each.job.name,
                "shape": shape_text(each.demand.shape),
                "contiguous": each.placement.contiguous,
                "optimal": each.placement.optimal,
                "circuits": len(each.circuits),
                "fibres_used": sum(fibres[circuit.id] for circuit in each.circuits),
                "worst_loss_db": round(max((losses[circuit.id] for circuit in each.circuits), default=0.0), 3),
            }
            for each in placed
        ),
        placement=tuple(
            {"job": each.job.name, "rank": rank, "accelerator": name, "host": inventory.accelerators[name].host}
            for each in placed
            for rank, name in enumerate(each.job.ranks)
        ),
        fullest_edge=fullest_edge(state.torus, after),
        bandwidth=tuple({"job": each.job.name, **row} for each in placed for row in port_rows(inventory, each.job)),
        largest_left=None if (left := largest_slice(after, ring_demand)) is None else shape_text(left),
    )


def with_circuits(torus: Torus, paths: LightPaths) -> Torus:
    """The torus with new circuits on the fibres that they really take."""
    added = Counter(name for circuit in paths.add for name in circuit.fibres)
    return replace(torus, edges=tuple(replace(edge, used=edge.used + added[edge.name]) for edge in torus.edges))


def fullest_edge(before: Torus, after: Torus) -> dict[str, Any]:
    """The edge that carries the most circuits afterwards, and what it and the fullest one carried before."""
    if not after.edges:
        return {}
    was = {edge.name: edge.used for edge in before.edges}
    fullest = max(after.edges, key=lambda edge: edge.used)
    return {
        "fibre": fullest.name,
        "capacity": fullest.capacity,
        "before": before.fullest,
        "after": fullest.used,
        "added": fullest.used - was[fullest.name],
    }


def _why(placed: list[_Placed], facts: SliceFacts) -> Iterator[str]:
    for each, told in zip(placed, facts.slices, strict=True):
        yield from (f"{each.job.name}: {reason}" for reason in dict.fromkeys(each.allocation.reasons))
        form = "a contiguous box" if each.placement.contiguous else "scattered servers that light joins"
        bound = "" if each.placement.optimal else f"; not proven to be the best: the bound is {each.placement.bound}"
        yield f"{each.job.name} takes {form}{bound}"
        yield (
            f"{told['circuits']} circuits added over {told['fibres_used']} fibres; "
            f"the worst loses {told['worst_loss_db']:.1f} dB"
        )
    edge = facts.fullest_edge
    if edge:
        yield (
            f"fullest edge: {edge['before']} circuits before, {edge['after']} of {edge['capacity']} after "
            f"({edge['fibre']})"
        )
    for row in facts.bandwidth:
        gb_s = "" if row["gb_s"] is None else f" ({row['gb_s']:g} Gb/s)"
        line = f"{row['job']}, dimension {row['dimension']}: {row['ports_used']} ports of each rank used{gb_s}"
        if row["ports_redirected"] != row["ports_used"]:
            gb_s = "" if row["gb_s"] is None else f" ({row['gb_s_redirected']:g} Gb/s)"
            line += f", {row['ports_redirected']}{gb_s} with --redirect"
        yield line
    yield f"largest slice still possible: {facts.largest_left or 'none'}"
