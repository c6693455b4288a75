"""The faults that the autopilot decides about: one per faulty component; one for a whole faulty host or rack."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lumctl.health.observation import Observation, rack_of
from lumctl.health.states import CircuitHealth, ComponentHealth, Finding, Incident, State, gravest_first, is_fault
from lumctl.inventory.policies import PolicySubject


@dataclass(frozen=True, slots=True)
class ComponentFault:
    """A component with its findings, worst first.

    ``incident`` is the id of its incident if another component is the cause; then no action is taken for this component
    itself. ``out_of_service`` is the reason if it is out of service. ``jobs`` are the accelerators of each job that a
    swap would replace.
    """

    kind: PolicySubject
    component: str
    rack: str
    findings: tuple[Finding, ...]
    jobs: Mapping[str, tuple[str, ...]]
    incident: str | None = None
    out_of_service: str | None = None

    @property
    def key(self) -> str:
        """The fault's unique key; it includes the kind, as a host and its only accelerator may share a name."""
        return f"{self.kind}:{self.component}"


def faults_of(look: Observation) -> tuple[ComponentFault, ...]:
    """All faults of an observation: racks, hosts, then the components on hosts."""
    found = [*_whole_racks(look), *_components(look)]
    # Wider faults first: the pilot acts on one of them, and then looks again.
    order = (
        PolicySubject.RACK,
        PolicySubject.HOST,
        *(kind for kind in PolicySubject if kind not in {PolicySubject.RACK, PolicySubject.HOST}),
    )
    return tuple(sorted(found, key=lambda fault: order.index(fault.kind)))


def jobs_on(look: Observation, kind: PolicySubject, component: str) -> dict[str, tuple[str, ...]]:
    """The accelerators of each job that depend on a component now."""
    inventory = look.inventory
    if kind is PolicySubject.ACCELERATOR:
        meant = [component]
    elif kind is PolicySubject.LINK:
        meant = [inventory.transponders[component].accelerator]
    elif kind is PolicySubject.HOST:
        meant = [accelerator.id for accelerator in inventory.accelerators_of(component)]
    else:
        meant = []
    jobs: dict[str, list[str]] = {}
    for accelerator in meant:
        place = look.place_of(accelerator)
        if place is not None:
            jobs.setdefault(place[0], []).append(accelerator)
    return {job: tuple(accelerators) for job, accelerators in jobs.items()}


def _whole_racks(look: Observation) -> Iterator[ComponentFault]:
    for incident in look.report.incidents:
        # A host may have the rack's name, so the incident's id decides.
        of_a_rack = incident.cause in look.inventory.racks and incident.id == f"{PolicySubject.RACK}:{incident.cause}"
        # Hosts that missed one round may only be slow: the rack is not at fault until one is lost.
        if of_a_rack and (findings := _speaking(look, incident)):
            yield ComponentFault(PolicySubject.RACK, incident.cause, incident.cause, findings, {})


def _components(look: Observation) -> Iterator[ComponentFault]:
    incidents = {incident.id: incident for incident in look.report.incidents}
    # If no reading shows which end of a circuit is faulty, nothing is replaced automatically.
    uncertain = {remedy.key for remedy in look.remedies if not remedy.certain}
    for group, components in look.report.groups().items():
        kind = PolicySubject(group.removesuffix("s"))
        for name, health in components.items():
            own = incidents.get(f"{kind}:{name}")
            faults = _faults(health)
            if own is not None and kind is PolicySubject.HOST:
                faults = gravest_first([*faults, *(f for f in _speaking(look, own) if f.component != name)])
            if faults:
                yield ComponentFault(
                    kind,
                    name,
                    rack_of(look.inventory, name, look.circuits) or "",
                    faults,
                    jobs_on(look, kind, name) if f"{kind}:{name}" not in uncertain else {},
                    incident=next((f.incident for f in health.findings if f.incident), None) if own is None else None,
                    out_of_service=_out_of_service(health),
                )


def _faults(health: ComponentHealth | CircuitHealth) -> tuple[Finding, ...]:
    return gravest_first([finding for finding in health.findings if is_fault(finding.state)])


def _speaking(look: Observation, incident: Incident) -> tuple[Finding, ...]:
    """The findings of an incident's own rule."""
    everything = look.report.findings()
    return tuple(f for f in everything if f.incident == incident.id and f.rule == incident.rule and is_fault(f.state))


def _out_of_service(health: ComponentHealth | CircuitHealth) -> str | None:
    if health.maintenance is not None:
        return f"in maintenance: {health.maintenance}"
    return "out of service" if health.disabled or health.state is State.DISABLED else None
