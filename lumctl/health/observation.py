"""What is known of a rack at one moment: readings, verdicts, who runs where, and what the fabric should carry."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lumctl.devices.types import DeviceReading
from lumctl.fleet.readings import Snapshot
from lumctl.health.acknowledgements import Acknowledgement, MaintenanceWindow
from lumctl.health.remedy import Remedy, remedies
from lumctl.health.states import (
    CircuitHealth,
    ComponentHealth,
    Finding,
    HealthReport,
    Incident,
    State,
    gravest_first,
    worst,
)
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
    """The acknowledgements in the stores at that time."""
    windows: tuple[MaintenanceWindow, ...] = ()
    """Maintenance that continues or is still to come."""
    devices: Mapping[str, DeviceReading] = field(default_factory=dict)
    """The readings of each mesh and switch."""
    not_kept: str | None = None
    """Why this observation could not be remembered, if it should have been: for example, the disk is full."""
    awaited: tuple[str, ...] = ()
    """Hosts and devices whose first answers have not come yet; such a look is not remembered."""

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """What repairs each fault of this look, the worst first."""
        return remedies(self.report, self.inventory, self.assignment)

    def remedies_of(self, component: str) -> tuple[Remedy, ...]:
        """The remedies of the causes that affect a component, or that use it as a replacement."""
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
        """The job and rank of every accelerator in use: for callers that need all of them."""
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
    """The results of :func:`place_of` for all accelerators at once."""
    found: dict[str, tuple[str, int]] = {}
    for job, accelerators in assignment.items():
        if not is_order(job):
            for rank, accelerator in enumerate(accelerators):
                found.setdefault(accelerator, (job, rank))
    return found


def current_role(inventory: Inventory, assignment: Assignment, accelerator: str) -> Role:
    """Active if a job runs on it; disabled if a swap removed it from its job; otherwise the inventory's role."""
    if place_of(assignment, accelerator):
        return Role.ACTIVE
    if place_of(initial_assignment(inventory), accelerator):
        return Role.DISABLED
    return inventory.accelerators[accelerator].role


Counted = dict[str, dict[str, State]]
"""The state that counts, by group and component, in the order of the report."""
_OF_NO_WEIGHT = frozenset({State.OK, State.DISABLED})


def counted_states(observation: Observation) -> Counted:
    """The state of each component without acknowledged findings.

    A component whose findings are all acknowledged counts as ok, as does one that is unread because of a host whose
    fault is acknowledged.
    """
    hosts = {name: _counted(health) for name, health in observation.report.hosts.items()}
    quiet = {
        name
        for name, health in observation.report.hosts.items()
        if health.state not in _OF_NO_WEIGHT and hosts[name] is State.OK
    }

    def of(health: ComponentHealth | CircuitHealth) -> State:
        if health.state is State.UNKNOWN and not weighty(health) and quiet:
            silent = set(_silent_hosts(observation, health))
            return State.OK if silent and silent <= quiet else State.UNKNOWN
        return _counted(health)

    return {
        name: hosts if name == "hosts" else {id_: of(health) for id_, health in group.items()}
        for name, group in observation.report.groups().items()
    }


def weighty(health: ComponentHealth | CircuitHealth) -> tuple[Finding, ...]:
    """The findings that make a component other than ok; notes do not."""
    return tuple(finding for finding in health.findings if finding.state not in _OF_NO_WEIGHT)


def acknowledged_count(observation: Observation) -> int:
    """How many findings of components in service are acknowledged."""
    return sum(
        finding.acknowledged is not None
        for group in observation.report.groups().values()
        for health in group.values()
        if health.state is not State.DISABLED
        for finding in weighty(health)
    )


def standing_incidents(observation: Observation) -> tuple[Incident, ...]:
    """The incidents that count, gravest first: those of which something is not acknowledged and not in maintenance."""
    open_ids = {
        finding.incident
        for group in observation.report.groups().values()
        for health in group.values()
        if health.state is not State.DISABLED
        for finding in weighty(health)
        if finding.acknowledged is None
    }
    return gravest_first(incident for incident in observation.report.incidents if incident.id in open_ids)


def own_trouble(health: ComponentHealth | CircuitHealth, incidents: Collection[Incident]) -> bool:
    """Whether a component has a fault that none of these incidents contains."""
    told = {incident.id for incident in incidents}
    found = [finding for finding in weighty(health) if finding.acknowledged is None]
    if not found:
        return not any(health.id in (incident.cause, *incident.members) for incident in incidents)
    return any(finding.incident not in told for finding in found)


def _counted(health: ComponentHealth | CircuitHealth) -> State:
    found = weighty(health)
    if health.state in _OF_NO_WEIGHT or all(finding.acknowledged is None for finding in found):
        return health.state
    return worst((State.OK, *(finding.state for finding in found if finding.acknowledged is None)))


def _silent_hosts(observation: Observation, health: ComponentHealth | CircuitHealth) -> Iterator[str]:
    """The hosts that are not well, of those by which a component is read."""
    inventory = observation.inventory
    if isinstance(health, CircuitHealth):
        ends = [end.transponder for end in health.ends if end.expected is not None]
        read_by = [inventory.transponders[end].host for end in ends if end in inventory.transponders]
    elif health.id in inventory.accelerators:
        read_by = [inventory.accelerators[health.id].host]
    elif health.id in inventory.transponders:
        read_by = [inventory.transponders[health.id].host]
    else:
        return
    for host in read_by:
        known = observation.report.hosts.get(host)
        if known is not None and known.state not in _OF_NO_WEIGHT:
            yield host


def rack_of(inventory: Inventory, component: str, circuits: tuple[Circuit, ...] = ()) -> str | None:
    """The rack of a component, of one of the given circuits, or of a rack itself; ``None`` if it is none of them."""
    if component in inventory.racks:
        return component
    for group in (inventory.hosts, inventory.accelerators, inventory.devices):
        if component in group:
            return group[component].rack
    if component in inventory.transponders:
        return inventory.hosts[inventory.transponders[component].host].rack
    return next((inventory.devices[c.device].rack for c in circuits if c.id == component), None)
