"""Filler jobs in an assignment: one that gave its spares up has a record, under the name ``stopped filler NAME``.

The record holds the accelerators that it ran on. Without a record, or with an empty one, a filler job runs where the
inventory places it.
"""

from collections.abc import Mapping

from lumctl.inventory.model import Inventory, Job

FILLER = "stopped filler "
"""The beginning of the name of a filler job's record. It has blanks, so no job's name can begin with it."""

Placed = Mapping[str, tuple[str, ...]]


def stopped_filler(name: str) -> str:
    """The name of a filler job's record in an assignment."""
    return f"{FILLER}{name}"


def is_stopped_filler(name: str) -> bool:
    """Whether a name in an assignment is that of a filler job's record."""
    return name.startswith(FILLER)


def running_fillers(inventory: Inventory, assignment: Placed) -> dict[str, Job]:
    """The filler jobs that have not given their spares up, by accelerator."""
    running = [job for job in inventory.fillers.values() if not assignment.get(stopped_filler(job.name))]
    return {accelerator: job for job in running for accelerator in job.ranks}


def stopped_fillers(inventory: Inventory, assignment: Placed) -> list[Job]:
    """The filler jobs that have given their spares up."""
    return [job for job in inventory.fillers.values() if assignment.get(stopped_filler(job.name))]
