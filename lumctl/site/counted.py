"""What counts of a report: a fault that an operator knows of rings no bell again."""

from collections.abc import Collection, Iterator

from lumctl.health.states import CircuitHealth, ComponentHealth, Finding, Incident, State, gravest_first, worst
from lumctl.site.observation import Observation

Counted = dict[str, dict[str, State]]
"""The state that counts, by group and component, in the order of the report."""
_OF_NO_WEIGHT = frozenset({State.OK, State.DISABLED})


def counted_states(observation: Observation) -> Counted:
    """The state of each component as far as it is not acknowledged.

    Where all that was found of a component is acknowledged it counts as ok; so does what cannot be read because of a
    host whose fault is acknowledged.
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
    """The findings that make a component other than ok: notes do not."""
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
    """Whether something is wrong with a component that none of these incidents tells."""
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
