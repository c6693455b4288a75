"""Slices and tori as documents: where slices lie, the fibres and ports that they use, what is free, how fragmented."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from lumctl.context import Context, Observation, current_role
from lumctl.fabric import FabricStates
from lumctl.inventory.model import Inventory, Job, Role
from lumctl.inventory.slice_records import torus_links
from lumctl.inventory.wiring import Assignment, circuits_of, jobs_in
from lumctl.printable import shape_text
from lumctl.slices.allocation import redirected_widths, ring_demand
from lumctl.slices.fragmentation import Fragmentation, fragmentation, overall
from lumctl.slices.rack_state import RackState, rack_state
from lumctl.slices.release import find_slice
from lumctl.slices.torus import Torus


def slices_document(context: Context) -> dict[str, Any]:
    """All slices, and for each rack with a torus how many accelerators it has and how many no job uses."""
    placed = context.assignment()
    inventory = context.inventory
    used = {name for ranks in jobs_in(placed).values() for name in ranks}
    here = [a for a in inventory.accelerators.values() if inventory.racks[a.rack].torus is not None]
    idle = [(a.rack, current_role(inventory, placed, a.id)) for a in here if a.id not in used]
    free = Counter(rack for rack, role in idle if role is Role.ACTIVE)
    spares = Counter(rack for rack, role in idle if role is Role.SPARE)
    racks = Counter(a.rack for a in here)
    return {
        "slices": [slice_row(inventory, job, placed) for job in inventory.jobs.values() if job.is_slice],
        "racks": [
            {"rack": rack, "accelerators": count, "free": free[rack], "spares": spares[rack]}
            for rack, count in racks.items()
        ],
    }


def slice_row(inventory: Inventory, job: Job, placed: Assignment) -> dict[str, Any]:
    """One slice as a row of a list."""
    ranks = placed[job.name]
    return {
        "job": job.name,
        "rack": job.rack,
        "shape": shape_text(torus_links(job).shape),
        "rank_count": len(ranks),
        "accelerators": list(ranks),
        "hosts": list(dict.fromkeys(inventory.accelerators[name].host for name in ranks)),
        "moved": sum(now != first for now, first in zip(ranks, job.ranks, strict=True)),
    }


def slice_document(context: Context, name: str) -> dict[str, Any]:
    """One slice with its ports by dimension, the fibres that its circuits run through, and its worst loss.

    Raises:
        UsageError: there is no such slice.
    """
    placed = context.assignment()
    inventory = context.inventory
    job = find_slice(inventory, name)
    states = FabricStates(inventory, context.known_fabric(job.rack))
    own = [circuit for circuit in circuits_of(inventory, placed) if circuit.owner == name]
    paths = [path for circuit in own if (path := states.path_of(circuit)) is not None]
    fibres = Counter(fibre for path in paths for fibre in path.fibres)
    ports = list(port_rows(inventory, job))
    return {
        **slice_row(inventory, job, placed),
        "circuits": len(own),
        "not_programmed": len(own) - len(paths),
        "worst_loss_db": round(max(map(states.loss_db, paths), default=0.0), 3),
        "fibres": [
            {"fibre": fibre, "circuits": count, "capacity": inventory.fibres[fibre].capacity}
            for fibre, count in sorted(fibres.items())
        ],
        "ports_used": sum(row["ports_used"] for row in ports),
        "ports_available": len(inventory.transponders_of(placed[name][0])),
        "ports": ports,
    }


def port_rows(inventory: Inventory, job: Job) -> Iterable[dict[str, Any]]:
    """By dimension of a slice, the ports that each rank uses, and those that it uses with redirection.

    ``gb_s`` is what the ports in use carry to a neighbour in each direction, where the inventory states the rate.
    """
    lanes = inventory.transponders_of(job.ranks[0])
    rate = min((lane.rate_gb_s for lane in lanes if lane.rate_gb_s is not None), default=None)
    links = torus_links(job)
    x, y, z = (*links.shape, 1, 1)[:3]
    widths, widest = links.widths or (1, 1, 1), redirected_widths((x, y, z), len(lanes))
    for dimension, extent in enumerate(links.shape):
        if extent > 1:
            yield {
                "dimension": dimension,
                "ranks": extent,
                "ports_used": 2 * widths[dimension],
                "ports_redirected": 2 * widest[dimension],
                "gb_s": None if rate is None else rate * widths[dimension],
                "gb_s_redirected": None if rate is None else rate * widest[dimension],
            }


def report_document(context: Context, *, seen: Observation | None = None) -> dict[str, Any]:
    """Each rack with a torus, and all together: ``seen`` is a fresh observation, if the caller has one.

    The index of fragmentation is the share of the free accelerators that the largest possible slice leaves: if slices
    are aligned boxes (the published allocator of a fixed torus), any boxes, or scattered servers too.
    """
    return report(seen or context.observe(), context.known_cells)


def report(seen: Observation, is_known: Callable[[str], object]) -> dict[str, Any]:
    """See :func:`report_document`. ``is_known`` says of a mesh or switch whether its states are certain."""
    states = [rack_state(seen, name, is_known) for name, rack in seen.inventory.racks.items() if rack.torus is not None]
    parts = [_fragmentation(state.torus) for state in states]
    return {
        "racks": [
            {"rack": state.rack, **_row(part), **_in_use(seen, state)}
            for state, part in zip(states, parts, strict=True)
        ],
        "overall": _row(overall(parts)),
    }


@lru_cache(maxsize=256)
def _fragmentation(torus: Torus) -> Fragmentation:
    """The fragmentation of a torus. The daemon asks at every scrape, and a torus changes seldom."""
    return fragmentation(torus, ring_demand)


def _row(part: Fragmentation) -> dict[str, Any]:
    return {
        "free": part.free,
        "largest_shape": None if part.shape is None else shape_text(part.shape),
        "largest": {"aligned": part.aligned, "box": part.contiguous, "scattered": part.scattered},
        "fragmentation": {
            "aligned": round(part.aligned_index, 4),
            "box": round(part.contiguous_index, 4),
            "scattered": round(part.scattered_index, 4),
        },
    }


def _in_use(seen: Observation, state: RackState) -> dict[str, Any]:
    """The largest shape, and how many ports of accelerators and how many fibres carry circuits."""
    lit = {end.transponder for circuit in seen.circuits for end in (circuit.a, circuit.b)}
    lanes = [lane.id for name in state.accelerators.values() for lane in seen.inventory.transponders_of(name)]
    return {
        "accelerators": len(state.accelerators),
        "ports": len(lanes),
        "ports_used": sum(lane in lit for lane in lanes),
        "fibres": sum(edge.capacity for edge in state.torus.edges),
        "fibres_used": sum(edge.used for edge in state.torus.edges),
    }
