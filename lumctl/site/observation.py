"""What is known of a rack at one moment: readings, verdicts, who runs where, and what the fabric should carry."""

from collections.abc import Mapping
from dataclasses import dataclass

from lumctl.fleet.readings import Snapshot
from lumctl.health.attention import Acknowledgement, MaintenanceWindow
from lumctl.health.states import HealthReport
from lumctl.inventory.lane_orders import is_order
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.wiring import Assignment, Circuit, initial_assignment


@dataclass(frozen=True)
class Observation:
    """One look at everything. ``losses`` are the expected losses (dB) of circuits whose route is known."""

    at: float
    target: str
    inventory: Inventory
    assignment: Assignment
    circuits: tuple[Circuit, ...]
    losses: Mapping[str, float]
    snapshot: Snapshot
    report: HealthReport
    unfinished: tuple[str, ...] = ()
    """Runs that were cut or left half done and still wait for a hand."""
    acknowledgements: tuple[Acknowledgement, ...] = ()
    """What operators know of, as it stood in the stores."""
    windows: tuple[MaintenanceWindow, ...] = ()
    """Maintenance that goes on or is still to come."""
    not_kept: str | None = None
    """Why this look could not be remembered, where it was to be: the disk is full, say."""

    def place_of(self, accelerator: str) -> tuple[str, int] | None:
        """The job and rank that run on an accelerator now."""
        return place_of(self.assignment, accelerator)

    def places(self) -> dict[str, tuple[str, int]]:
        """The job and rank of every accelerator that one runs on: for whoever asks about all of them."""
        return places(self.assignment)

    def role_of(self, accelerator: str) -> Role:
        """What an accelerator is for now."""
        return current_role(self.inventory, self.assignment, accelerator)


def place_of(assignment: Assignment, accelerator: str) -> tuple[str, int] | None:
    """The job and rank that an assignment puts on an accelerator."""
    for job, accelerators in assignment.items():
        if accelerator in accelerators and not is_order(job):
            return job, accelerators.index(accelerator)
    return None


def places(assignment: Assignment) -> dict[str, tuple[str, int]]:
    """What :func:`place_of` says, of all accelerators at once."""
    found: dict[str, tuple[str, int]] = {}
    for job, accelerators in assignment.items():
        if not is_order(job):
            for rank, accelerator in enumerate(accelerators):
                found.setdefault(accelerator, (job, rank))
    return found


def current_role(inventory: Inventory, assignment: Assignment, accelerator: str) -> Role:
    """Active when a job runs on it; disabled when a swap took it out of its job; else what the inventory says."""
    if place_of(assignment, accelerator):
        return Role.ACTIVE
    if place_of(initial_assignment(inventory), accelerator):
        return Role.DISABLED
    return inventory.accelerators[accelerator].role
