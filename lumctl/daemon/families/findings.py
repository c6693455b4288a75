"""What is wrong, since when, and who knows of it: findings, incidents, maintenance, and runs that wait for a hand."""

import math
from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import gauge
from lumctl.health.states import State
from lumctl.site.counted import standing_incidents
from lumctl.site.observation import Observation

_OPEN = (State.UNKNOWN, State.DEGRADED, State.FAILED)


def findings(look: Observation) -> Iterator[Metric]:
    """Findings and incidents have a series as long as they last: their number is that of faults, not of components."""
    yield _since(look)
    yield from _incidents(look)
    yield from _maintenance(look)
    acknowledged = gauge("acknowledgements", "Acknowledgements in force.")
    acknowledged.add_metric([look.target], len(look.acknowledgements))
    yield acknowledged
    unfinished = gauge("unfinished_runs", "Runs that were cut or left half done.")
    unfinished.add_metric([look.target], len(look.unfinished))
    yield unfinished


def _since(look: Observation) -> Metric:
    """One series for each component, rule and incident, however many findings there are of it."""
    found: dict[tuple[str, ...], float] = {}
    incidents = {incident.id for incident in look.report.incidents}
    for group, components in look.report.groups().items():
        for health in components.values():
            for finding in health.findings:
                known = _word(finding.acknowledged is not None)
                kind = group.removesuffix("s")
                incident = finding.incident if finding.incident in incidents else ""
                key = (look.target, kind, health.id, finding.rule, finding.state.value, known, incident or "")
                found[key] = min(found.get(key, math.inf), finding.since)
    labels = ["kind", "id", "rule", "state", "acknowledged", "incident"]
    since = gauge("finding_since_timestamp_seconds", "Since when a rule finds something at a component.", labels)
    for series, at in found.items():
        since.add_metric(list(series), at)
    return since


def _incidents(look: Observation) -> Iterator[Metric]:
    incidents = look.report.incidents
    counts = {incident.id for incident in standing_incidents(look)}
    opened = gauge("incidents", "Incidents that are open, by state.", ["state"])
    for state in _OPEN:
        opened.add_metric([look.target, state.value], sum(each.state is state for each in incidents))
    yield opened
    labels = ["cause", "rule"]
    text = "Since when an incident is open; acknowledged: or in maintenance."
    since = gauge("incident_since_timestamp_seconds", text, [*labels, "state", "acknowledged"])
    touched = gauge("incident_components", "How many components an incident touches.", labels)
    for incident in {(each.cause, each.rule): each for each in incidents}.values():
        place = [look.target, incident.cause, incident.rule]
        since.add_metric([*place, incident.state.value, _word(incident.id not in counts)], incident.since)
        touched.add_metric(place, len(incident.members))
    yield since
    yield touched


def _maintenance(look: Observation) -> Iterator[Metric]:
    """Of several windows on one component the one that is open for longest."""
    ends: dict[str, float] = {}
    for window in look.windows:
        if window.open_at(look.at):
            ends[window.component] = max(window.ends, ends.get(window.component, -math.inf))
    family = gauge("maintenance_end_timestamp_seconds", "When the maintenance that goes on will end.", ["component"])
    for component, at in ends.items():
        family.add_metric([look.target, component], at)
    yield family


def _word(said: bool) -> str:
    return "true" if said else "false"
