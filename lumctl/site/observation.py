"""What is known of a rack at one moment: readings, verdicts, who runs where, and what the fabric should carry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lumctl.devices.types import DeviceReading
from lumctl.fleet.readings import Snapshot
from lumctl.health.attention import Acknowledgement, MaintenanceWindow
from lumctl.health.remedy import Remedy, remedies
from lumctl.health.states import HealthReport, State
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.wiring import Assignment, Circuit, initial_assignment, is_order


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
    devices: Mapping[str, DeviceReading] = field(default_factory=dict)
    """What each mesh and switch said of itself."""
    not_kept: str | None = None
    """Why this look could not be remembered, where it was to be: the disk is full, say."""
    awaited: tuple[str, ...] = ()
    """Hosts and devices whose first answers have not come yet; such a look is not remembered."""

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """What repairs each fault of this look, the worst first."""
        return remedies(self.report, self.inventory, self.assignment)

    def remedies_of(self, component: str) -> tuple[Remedy, ...]:
        """The remedies of the causes that touch a component, or by which it is replaced."""
        return tuple(r for r in self.remedies if component in (*r.components, *r.replace, *r.avoid))

    def in_trouble(self, accelerator: str) -> bool:
        """Whether an accelerator may be replaced: it is not ok, nothing is known of a lane, or a remedy names it.

        That a lane of it receives no light is no trouble of its own: the cause may be at the other end.
        """
        if any(accelerator in remedy.replace for remedy in self.remedies):
            return True
        lanes = [self.report.links[lane.id].state for lane in self.inventory.transponders_of(accelerator)]
        return State.UNKNOWN in lanes or self.report.accelerators[accelerator].state is not State.OK

    def cause_elsewhere(self, accelerator: str) -> Remedy | None:
        """The remedy of a cause that touches an accelerator which is well itself, or a lane of it."""
        names = {accelerator, *(lane.id for lane in self.inventory.transponders_of(accelerator))}
        touching = (remedy for remedy in self.remedies if names & set(remedy.components))
        return next((remedy for remedy in touching if remedy.words), None)

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
