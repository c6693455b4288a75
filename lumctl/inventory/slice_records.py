"""Slices in an assignment: jobs that lumctl placed, which no inventory names.

An assignment holds for each slice, besides its ranks, the record of its shape under the name ``shape of JOB``: the
shape (``4x4x1``; with several circuits for each link ``4x4x1*2x1x1``), and the accelerators on which it was first
placed. So the assignment alone is enough to make the job.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from lumctl.inventory.model import Inventory, Job, TorusLinks
from lumctl.printable import shape_text

SHAPE = "shape of "
"""The beginning of the name of a slice's record. It has blanks, so no job's name can begin with it."""

_TIMES = "*"
"""Stands between shape and widths."""

Placed = Mapping[str, tuple[str, ...]]


def is_job(name: str) -> bool:
    """Whether a name in an assignment is that of a job: names of other records have blanks."""
    return " " not in name


def shape_of(job: str) -> str:
    """The name of a slice's record in an assignment."""
    return f"{SHAPE}{job}"


def is_shape(name: str) -> bool:
    """Whether a name in an assignment is that of a slice's record."""
    return name.startswith(SHAPE)


def slice_record(shape: Iterable[int], accelerators: Iterable[str], widths: Iterable[int] = ()) -> tuple[str, ...]:
    """The record of a slice: its shape and widths, and the accelerator of each rank when it was placed."""
    wide = shape_text(widths)
    return (f"{shape_text(shape)}{_TIMES}{wide}" if wide else shape_text(shape), *accelerators)


def slice_misfit(inventory: Inventory, name: str, record: tuple[str, ...]) -> str | None:
    """Why the record of a slice does not fit the inventory, or ``None``. An empty record fits: there is no slice."""
    if not record:
        return None
    job, (text, *first) = name.removeprefix(SHAPE), record
    links = _shape_and_widths(text)
    if links is None or prod(links[0]) != len(first):
        return f"{text} is not the shape of {len(first)} accelerators"
    named = inventory.jobs.get(job)
    if named is not None and not named.is_slice:
        return f"{job} is a job of the inventory too"
    gone = [accelerator for accelerator in first if accelerator not in inventory.accelerators]
    return f"{gone[0]} is not in it" if gone else None


def slices_in(inventory: Inventory, assignment: Placed) -> dict[str, Job]:
    """The slices of an assignment by name; records that do not fit the inventory are ignored."""
    found: dict[str, Job] = {}
    for name, record in assignment.items():
        job = name.removeprefix(SHAPE)
        if record and is_shape(name) and assignment.get(job) and slice_misfit(inventory, name, record) is None:
            text, *first = record
            rack = inventory.accelerators[first[0]].rack
            torus = inventory.racks[rack].torus
            found[job] = Job(
                name=job,
                rack=rack,
                ranks=tuple(first),
                links=tuple(
                    TorusLinks(tuple(range(len(first))), *links) for links in [_shape_and_widths(text)] if links
                ),
                hook=torus.hook if torus else None,
                needs_no_pause=torus is not None and torus.needs_no_pause,
                run=torus.run if torus else None,
                is_slice=True,
            )
    return found


def slices_among(assignment: Placed, jobs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The ranks and the records of the slices among some jobs."""
    records = {job: shape_of(job) for job in jobs if shape_of(job) in assignment}
    return {name: assignment[name] for names in records.items() for name in names}


def torus_links(job: Job) -> TorusLinks:
    """The links of a slice."""
    return next(links for links in job.links if isinstance(links, TorusLinks))


def record_of(job: Job) -> tuple[str, ...]:
    """The record of a slice that has been placed."""
    links = torus_links(job)
    return slice_record(links.shape, job.ranks, links.widths)


def with_slices(inventory: Inventory, assignment: Placed) -> Inventory:
    """The inventory with the slices of an assignment as its last jobs, instead of those that it had before."""
    slices = slices_in(inventory, assignment)
    written = {name: job for name, job in inventory.jobs.items() if not job.is_slice}
    jobs = {**written, **slices}
    return inventory if jobs == inventory.jobs else replace(inventory, jobs=jobs)


def _shape_and_widths(text: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """What the first part of a record states; ``None`` if it cannot be read."""
    shape, times, wide = text.partition(_TIMES)
    extents, widths = _extents(shape), _extents(wide) if times else ()
    if extents is None or widths is None or (widths and (len(widths) != len(extents) or min(widths) < 1)):
        return None
    return extents, widths


def _extents(text: str) -> tuple[int, ...] | None:
    parts = text.split("x")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdigit() for part in parts) else None
