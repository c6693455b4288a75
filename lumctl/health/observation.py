"""The known state of a rack at one time: readings, verdicts, job assignments, and the circuits of the fabric."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lumctl.devices.types import DeviceReading
from lumctl.fabric.paths import LightPath
from lumctl.fleet.readings import GpuReading, Snapshot
from lumctl.health.acknowledgements import Acknowledgement, MaintenanceWindow
from lumctl.health.identity import gpu_readings
from lumctl.health.remedy import Remedy, job_parts, remedies
from lumctl.health.replaced_faults import ReplacedFault, faults_of, unproven
from lumctl.health.rulebook import verdict
from lumctl.health.states import (
    HARMLESS,
    CircuitHealth,
    ComponentHealth,
    Finding,
    Health,
    HealthReport,
    Incident,
    State,
    gravest_first,
    worst,
)
from lumctl.inventory.filler_records import running_fillers
from lumctl.inventory.model import Inventory, Job, Role
from lumctl.inventory.slice_records import is_job
from lumctl.inventory.wiring import Assignment, Circuit, initial_assignment

NEW_S = 1.0
"""What began at most so long before an observation, in seconds, was found by it first."""


@dataclass(frozen=True)
class Observation:
    """Everything found at one time. ``losses`` are the expected losses (dB) of circuits whose route is known."""

    at: float
    target: str
    inventory: Inventory
    assignment: Assignment
    circuits: tuple[Circuit, ...]
    losses: Mapping[str, float]
    snapshot: Snapshot
    report: HealthReport
    unfinished: tuple[str, ...] = ()
    """Runs that were interrupted or left incomplete and still need an operator."""
    acknowledgements: tuple[Acknowledgement, ...] = ()
    """The acknowledgements in the stores at that time."""
    windows: tuple[MaintenanceWindow, ...] = ()
    """Maintenance windows that are open or still to come."""
    devices: Mapping[str, DeviceReading] = field(default_factory=dict)
    """The readings of each mesh and switch."""
    not_kept: str | None = None
    """Why this observation could not be stored, if it should have been: for example, the disk is full."""
    awaited: tuple[str, ...] = ()
    """Hosts and devices that have not answered for the first time yet; such an observation is not remembered."""
    paths: Mapping[str, LightPath | None] = field(default_factory=dict)
    """The path of each circuit by the recorded states of the devices; ``None`` if they form no path."""
    replaced: Mapping[str, tuple[ReplacedFault, ...]] = field(default_factory=dict)
    """The faults because of which swaps took accelerators out of their jobs, by accelerator."""

    def devices_of(self, circuit: Circuit) -> tuple[str, ...]:
        """The devices that a circuit passes; only the devices at its ends if its path is unknown."""
        path = self.paths.get(circuit.id)
        return path.devices if path else circuit.devices

    def passing(self, circuit: Circuit, device: str) -> tuple[int, int | None] | None:
        """The two ports of a circuit at a device, ``None`` if the circuit does not pass it.

        The second port is ``None`` if the circuit continues to another device and its path is unknown.
        """
        if not circuit.spans_devices:
            return circuit.ports if circuit.a.device == device else None
        path = self.paths.get(circuit.id)
        here = next((part.ports for part in path.segments if part.device == device), None) if path else None
        ends = circuit.ports_at(device)
        return here or ((ends[0], None) if ends else None)

    @cached_property
    def gpus(self) -> Mapping[str, GpuReading]:
        """The latest reading of each accelerator that has one."""
        return gpu_readings(self.inventory, self.snapshot)

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """The remedy of each cause of faults in this observation, the worst first."""
        return remedies(self.report, self.inventory, self.assignment)

    @cached_property
    def job_parts(self) -> frozenset[str]:
        """What jobs run on now, as :func:`~lumctl.health.remedy.job_parts` lists it."""
        return job_parts(self.report, self.inventory, self.assignment)

    def remedies_of(self, component: str) -> tuple[Remedy, ...]:
        """The remedies that name a component: as affected, as one to replace, or as one to avoid."""
        return tuple(r for r in self.remedies if component in (*r.components, *r.replace, *r.avoid))

    def in_trouble(self, accelerator: str) -> bool:
        """Whether an accelerator may be replaced: it is not ok, a lane has no reading, or a remedy replaces it.

        A lane without received light is no reason to replace the accelerator: the cause may be at the other end.
        """
        if any(accelerator in remedy.replace for remedy in self.remedies):
            return True
        lanes = [self.report.links[lane.id].state for lane in self.inventory.transponders_of(accelerator)]
        return State.UNKNOWN in lanes or self.report.accelerators[accelerator].state is not State.OK

    def faults_of(self, accelerator: str) -> tuple[ReplacedFault, ...]:
        """The faults because of which an accelerator is replaced now; none if it is healthy."""
        return faults_of(self.report, self.inventory, self.remedies, accelerator)

    def unproven(self, accelerator: str) -> tuple[ReplacedFault, ...]:
        """The faults because of which an accelerator was replaced, of which no reading shows that they are gone."""
        return unproven(self.report, self.replaced.get(accelerator, ()))

    def cause_elsewhere(self, accelerator: str) -> Remedy | None:
        """The remedy of a cause elsewhere that affects an accelerator or one of its lanes, if it gives advice."""
        names = {accelerator, *(lane.id for lane in self.inventory.transponders_of(accelerator))}
        touching = (remedy for remedy in self.remedies if names & set(remedy.components))
        return next((remedy for remedy in touching if remedy.words), None)

    @cached_property
    def lit_transmitters(self) -> Mapping[str, tuple[int, int]]:
        """By host: how many of its transmitters bring light to their receivers, and of how many this was read.

        Receivers at other hosts report it, so it is also known for a host that does not answer. It does not prove that
        the light is the host's own: see ``hears``.
        """
        dark_dbm, found = verdict("circuit.dark", "no-light").limit, dict[str, tuple[int, int]]()
        for circuit in self.report.circuits.values():
            for end in circuit.ends:
                sender = self.inventory.transponders.get(end.expected) if end.expected is not None else None
                if sender is not None and end.rx_power_dbm is not None:
                    lit, read = found.get(sender.host, (0, 0))
                    found[sender.host] = (lit + (end.rx_power_dbm >= dark_dbm), read + 1)
        return found

    def is_new(self, since: float) -> bool:
        """Whether this observation was the first to find what began then."""
        return is_new(since, self.at, self.snapshot.seconds)

    def life_signs(self, host: str) -> str:
        """That a host which does not answer may be up, in words, because its light arrives elsewhere; else empty."""
        health, (lit, read) = self.report.hosts.get(host), self.lit_transmitters.get(host, (0, 0))
        if not lit or health is None or all(finding.rule != "host.unreachable" for finding in health.findings):
            return ""
        return f"{host} does not answer, but {lit} of its {read} links carry light: find out whether it is really down"

    def place_of(self, accelerator: str) -> tuple[str, int] | None:
        """The job and rank that run on an accelerator now."""
        return self._places.get(accelerator)

    def filler_on(self, accelerator: str) -> Job | None:
        """The filler job that runs on a spare now; the spare counts as unused."""
        return self._fillers.get(accelerator)

    def places(self) -> Mapping[str, tuple[str, int]]:
        """The job and rank of every accelerator in use."""
        return self._places

    def role_of(self, accelerator: str) -> Role:
        """The present role of an accelerator, as :func:`current_role` decides it."""
        if accelerator in self._places:
            return Role.ACTIVE
        return Role.DISABLED if accelerator in self._homes else self.inventory.accelerators[accelerator].role

    @cached_property
    def _places(self) -> dict[str, tuple[str, int]]:
        return places(self.assignment)

    @cached_property
    def _fillers(self) -> dict[str, Job]:
        return running_fillers(self.inventory, self.assignment)

    @cached_property
    def _homes(self) -> dict[str, tuple[str, int]]:
        return places(initial_assignment(self.inventory))


def is_new(since: float, at: float, collection_s: float) -> bool:
    """Whether an observation, which took so long, was the first to find what began then; it may have begun before."""
    return at - since <= collection_s + NEW_S


def place_of(assignment: Assignment, accelerator: str) -> tuple[str, int] | None:
    """The job and rank that an assignment puts on an accelerator."""
    for job, accelerators in assignment.items():
        if accelerator in accelerators and is_job(job):
            return job, accelerators.index(accelerator)
    return None


def places(assignment: Assignment) -> dict[str, tuple[str, int]]:
    """The results of :func:`place_of` for all accelerators at once."""
    found: dict[str, tuple[str, int]] = {}
    for job, accelerators in assignment.items():
        if is_job(job):
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


def rolled_up(states: Iterable[State]) -> State:
    """The worst state of some components; those out of service count only if there are no others.

    A component's state in a report comes from its own findings, on which remedies and alerts are based. A host, rack or
    job is shown with the worst state among its own and its members': with a failed member it is not ok.
    """
    given = tuple(states)
    return worst(tuple(state for state in given if state is not State.DISABLED) or given)


def host_states(observation: Observation) -> dict[str, State]:
    """The state of each host: the worst of its own and of its accelerators in service.

    A report always has each accelerator, unless it is a part that was selected, such as the accelerators of one job.
    """
    inventory, report = observation.inventory, observation.report
    found = {name: [_state(report.hosts.get(name))] for name in inventory.hosts}
    for name, health in report.accelerators.items():
        if health.state is not State.DISABLED:
            found[inventory.accelerators[name].host].append(health.state)
    return {name: rolled_up(states) for name, states in found.items()}


def job_members(observation: Observation, job: str) -> list[Health]:
    """The components of a job: the accelerators of its ranks in order, then its circuits."""
    report = observation.report
    ranks = observation.assignment.get(job, ())
    accelerators = [report.accelerators[rank] for rank in ranks if rank in report.accelerators]
    return [*accelerators, *report.circuits_by_owner.get(job, ())]


def out_of_service(observation: Observation) -> dict[str, int]:
    """How many accelerators are out of service, by the order that took them out; each counts once."""
    counts = Counter(
        _order(observation, health)
        for health in observation.report.accelerators.values()
        if health.state is State.DISABLED
    )
    return {order: counts[order] for order in _ORDERS if counts[order]}


_ORDERS = ("swapped_out", "in_maintenance", "disabled_in_inventory")


def _order(observation: Observation, health: ComponentHealth) -> str:
    if observation.inventory.accelerators[health.id].role is Role.DISABLED:
        return "disabled_in_inventory"
    return "swapped_out" if observation.role_of(health.id) is Role.DISABLED else "in_maintenance"


def orders_text(out: Mapping[str, int]) -> str:
    """The counts of :func:`out_of_service` in words: ``1 swapped out, 4 in maintenance``."""
    return ", ".join(f"{count} {order.replace('_', ' ')}" for order, count in out.items())


def _state(health: ComponentHealth | None) -> State:
    return health.state if health is not None else State.UNKNOWN


Counted = dict[str, dict[str, State]]
"""The state of each component without acknowledged findings, by group, in the order of the report."""


def counted_states(observation: Observation) -> Counted:
    """The state of each component without acknowledged findings.

    A component whose findings are all acknowledged counts as ok. So does a component that is unread because of its
    host, if the host's fault is acknowledged.
    """
    hosts = {name: _counted(health) for name, health in observation.report.hosts.items()}
    quiet = {
        name
        for name, health in observation.report.hosts.items()
        if health.state not in HARMLESS and hosts[name] is State.OK
    }

    def of(health: Health) -> State:
        if health.state is State.UNKNOWN and not weighty(health) and quiet:
            silent = set(_silent_hosts(observation, health))
            return State.OK if silent and silent <= quiet else State.UNKNOWN
        return _counted(health)

    return {
        name: hosts if name == "hosts" else {id_: of(health) for id_, health in group.items()}
        for name, group in observation.report.groups().items()
    }


def weighty(health: Health) -> tuple[Finding, ...]:
    """The findings that affect the state of a component: all except notes."""
    return tuple(finding for finding in health.findings if finding.state not in HARMLESS)


def acknowledged_count(observation: Observation) -> int:
    """How many findings of components in service are acknowledged."""
    return sum(
        finding.acknowledged is not None
        for health in observation.report.with_findings
        if health.state is not State.DISABLED
        for finding in weighty(health)
    )


def standing_incidents(observation: Observation) -> tuple[Incident, ...]:
    """The incidents with a finding that is neither acknowledged nor of a component in maintenance, worst first."""
    open_ids = {
        finding.incident
        for health in observation.report.with_findings
        if health.state is not State.DISABLED
        for finding in weighty(health)
        if finding.acknowledged is None
    }
    return gravest_first(incident for incident in observation.report.incidents if incident.id in open_ids)


def own_trouble(health: Health, incidents: Collection[Incident]) -> bool:
    """Whether a component has a fault that belongs to none of these incidents."""
    told = {incident.id for incident in incidents}
    found = [finding for finding in weighty(health) if finding.acknowledged is None]
    if not found:
        return not any(health.id in (incident.cause, *incident.members) for incident in incidents)
    return any(finding.incident not in told for finding in found)


def _counted(health: Health) -> State:
    found = weighty(health)
    if health.state in HARMLESS or all(finding.acknowledged is None for finding in found):
        return health.state
    return worst((State.OK, *(finding.state for finding in found if finding.acknowledged is None)))


def _silent_hosts(observation: Observation, health: Health) -> Iterator[str]:
    """The hosts through which a component is read and that are not ok."""
    inventory = observation.inventory
    if isinstance(health, CircuitHealth):
        # An end that expects no transmitter only sends, and is not read for the circuit.
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
        if known is not None and known.state not in HARMLESS:
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
    if component in inventory.fibres:
        return inventory.devices[inventory.fibres[component].devices[0]].rack
    return next((inventory.devices[c.a.device].rack for c in circuits if c.id == component), None)
