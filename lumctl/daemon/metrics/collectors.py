"""An observation as Prometheus metrics: states, findings, hosts and circuits here, readings in :mod:`.hardware`.

Names and base units follow Prometheus' conventions, except light, which is in dBm. Lost data disappears: readings
that are too old, or come from an unreachable host, are omitted.
"""

import math
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lumctl.context.job_files import light_totals
from lumctl.daemon.metrics.hardware import (
    FreshReadings,
    accelerators,
    counter,
    devices,
    events,
    gauge,
    links,
    nvlinks,
    ports,
)
from lumctl.fleet.readings import ProbeStatus
from lumctl.health.observation import Observation, counted_states, standing_incidents
from lumctl.health.states import HARMLESS, State
from lumctl.slices.documents import report
from lumctl.spares.fitness import spares_by_pool

_LABELS = ("kind", "id")


def components(look: Observation, now: float, *, ages: bool) -> Iterator[Metric]:
    """The state, the age and the acknowledgement of each component; one series for each possible state."""
    states = gauge("component_state", "Whether a component is in a state (1) or not (0).", [*_LABELS, "state"])
    read_at = gauge("component_read_timestamp_seconds", "When a component was last read.", _LABELS)
    age = gauge("component_read_age_seconds", "How long ago a component was last read.", _LABELS)
    maintenance = gauge("component_in_maintenance", "1 for each component in a maintenance window.", _LABELS)
    known = gauge("component_acknowledged", "1 for each faulty component whose findings are all acknowledged.", _LABELS)
    counted = counted_states(look)
    for group, of_group in look.report.groups().items():
        kind = group.removesuffix("s")
        for health in of_group.values():
            place = [look.target, kind, health.id]
            for state in State:
                states.add_metric([*place, state.value], float(health.state is state))
            if health.maintenance is not None:
                maintenance.add_metric(place, 1)
            # A fault that is acknowledged as a whole counts as ok.
            if health.state not in HARMLESS and counted[group][health.id] is State.OK:
                known.add_metric(place, 1)
            if health.read_at is not None:
                read_at.add_metric(place, health.read_at)
                age.add_metric(place, max(now - health.read_at, 0.0))
    yield states
    yield read_at
    yield maintenance
    yield known
    if ages:
        yield age


_OPEN_STATES = (State.UNKNOWN, State.DEGRADED, State.FAILED)


def findings(look: Observation) -> Iterator[Metric]:
    """Findings and incidents, each a series as long as it lasts; the number of unfinished runs and acknowledgements."""
    yield _since(look)
    yield from _incidents(look)
    yield from _maintenance(look)
    acknowledged = gauge("acknowledgements", "Acknowledgements in force.")
    acknowledged.add_metric([look.target], len(look.acknowledgements))
    yield acknowledged
    unfinished = gauge("unfinished_runs", "Runs that were interrupted or left half done.")
    unfinished.add_metric([look.target], len(look.unfinished))
    yield unfinished


def _since(look: Observation) -> Metric:
    """One series for each component, rule and incident, even if it has several findings."""
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
    since = gauge("finding_since_timestamp_seconds", "Start time of a finding, by rule and component.", labels)
    for series, at in found.items():
        since.add_metric(list(series), at)
    return since


def _incidents(look: Observation) -> Iterator[Metric]:
    incidents = look.report.incidents
    counts = {incident.id for incident in standing_incidents(look)}
    opened = gauge("incidents", "Incidents that are open, by state.", ["state"])
    for state in _OPEN_STATES:
        opened.add_metric([look.target, state.value], sum(each.state is state for each in incidents))
    yield opened
    labels = ["cause", "rule"]
    text = "Start time of an open incident; acknowledged: or in maintenance."
    since = gauge("incident_since_timestamp_seconds", text, [*labels, "state", "acknowledged"])
    touched = gauge("incident_components", "How many components belong to an incident.", labels)
    # Two incidents of one cause and rule would give equal series, and Prometheus would refuse the whole scrape.
    for incident in {(each.cause, each.rule): each for each in incidents}.values():
        place = [look.target, incident.cause, incident.rule]
        since.add_metric([*place, incident.state.value, _word(incident.id not in counts)], incident.since)
        touched.add_metric(place, len(incident.members))
    yield since
    yield touched


def _maintenance(look: Observation) -> Iterator[Metric]:
    """The end of each component's maintenance; with several windows, the latest end."""
    ends: dict[str, float] = {}
    for window in look.windows:
        if window.open_at(look.at):
            ends[window.component] = max(window.ends, ends.get(window.component, -math.inf))
    family = gauge("maintenance_end_timestamp_seconds", "End time of the present maintenance window.", ["component"])
    for component, at in ends.items():
        family.add_metric([look.target, component], at)
    yield family


def _word(said: bool) -> str:
    return "true" if said else "false"


_WELL = frozenset({ProbeStatus.OK, ProbeStatus.ABSENT})


def hosts(look: Observation) -> Iterator[Metric]:
    """Whether hosts answer, when they booted, and the state of their probes; for unreachable hosts only the first."""
    up = gauge("host_up", "Whether a host could be reached (1) or not (0).", ["host"])
    booted = gauge("host_boot_timestamp_seconds", "When a host started.", ["host"])
    labels = ["host", "probe"]
    well = gauge("probe_success", "Whether all probes of a kind returned an answer (1) or not (0).", labels)
    took = gauge("probe_duration_seconds", "Duration of the slowest probe of a kind when it last ended.", labels)
    for name, host in look.snapshot.hosts.items():
        up.add_metric([look.target, name], float(host.reachable))
        if not host.reachable:
            continue
        if host.booted_at is not None:
            booted.add_metric([look.target, name], host.booted_at)
        kinds: dict[str, tuple[bool, float]] = {}
        for outcome in host.probes.values():
            if outcome.status is ProbeStatus.NOT_ASKED:
                continue
            kind = outcome.probe.partition(":")[0]
            success, seconds = kinds.get(kind, (True, 0.0))
            kinds[kind] = (success and outcome.status in _WELL, max(seconds, outcome.seconds))
        for kind, (success, seconds) in kinds.items():
            well.add_metric([look.target, name, kind], float(success))
            took.add_metric([look.target, name, kind], seconds)
    yield up
    yield booted
    yield well
    yield took


def circuits(look: Observation) -> Iterator[Metric]:
    """The light at the ends of each circuit, and the expected loss of its route."""
    text = "Light received at one end of a circuit; -Inf is no light."
    power = gauge("circuit_rx_power_dbm", text, ["circuit", "lane"])
    loss = gauge("circuit_expected_loss_db", "Expected loss of a circuit's route.", ["circuit"])
    for circuit in look.report.circuits.values():
        for end in circuit.ends:
            if end.rx_power_dbm is not None:
                power.add_metric([look.target, circuit.id, end.transponder], end.rx_power_dbm)
        if circuit.loss_db is not None:
            loss.add_metric([look.target, circuit.id], circuit.loss_db)
    yield power
    yield loss


def spares(look: Observation) -> Iterator[Metric]:
    """The spares of each rack and class: all, and those that any job can take now."""
    every = gauge("spares", "Spares of a class, in use or not.", ["rack", "class"])
    free = gauge("spares_free", "Spares of a class that any job can take now.", ["rack", "class"])
    for (rack, name), pool in spares_by_pool(look).items():
        every.add_metric([look.target, rack, name], len(pool.spares))
        free.add_metric([look.target, rack, name], len(pool.free))
    yield every
    yield free


def slices(look: Observation) -> Iterator[Metric]:
    """How fragmented each torus is, what is free and in use, and the largest slice that is still possible.

    What is free needs an answer of the server's mesh or switch in this observation.
    """
    tori = report(look, lambda device: device in look.devices and look.devices[device].problem is None)["racks"]
    free = gauge("torus_free_accelerators", "Accelerators of a torus that a slice may take.", ["rack"])
    largest = gauge(
        "slice_largest_accelerators",
        "Accelerators of the largest slice that is possible: as an aligned box, as any box, or scattered.",
        ["rack", "form"],
    )
    index = gauge(
        "torus_fragmentation_ratio",
        "The share of the free accelerators that the largest slice leaves, by its form.",
        ["rack", "form"],
    )
    ports = gauge("torus_ports", "Ports of the accelerators of a torus.", ["rack", "state"])
    fibres = gauge(
        "torus_fibres", "Circuits that the fibres of a torus carry, and could carry besides.", ["rack", "state"]
    )
    for row in tori:
        place = [look.target, row["rack"]]
        free.add_metric(place, row["free"])
        for form, count in row["largest"].items():
            largest.add_metric([*place, form], count)
            index.add_metric([*place, form], row["fragmentation"][form])
        for family, what in ((ports, "ports"), (fibres, "fibres")):
            family.add_metric([*place, "used"], row[f"{what}_used"])
            family.add_metric([*place, "idle"], max(row[what] - row[f"{what}_used"], 0))
    if tori:
        yield from (free, largest, index, ports, fibres)


def phased_jobs(look: Observation, now: float) -> Iterator[Metric]:
    """What changes of light between phases cost each job that lumctl runs on this machine."""
    waited = "Time that the rank with the longest wait waited for light and for other ranks, over all training steps."
    hidden = "Time of changes that asking ahead hid, over all training steps."
    worst = "The longest wait for light in the last training steps."
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {
        "changes": counter("job_light_changes", "Changes of light between the phases of a job.", ["job"]),
        "failed_changes": counter("job_light_failed_changes", "Changes of light of a job that failed.", ["job"]),
        "wait_s": counter("job_light_wait_seconds", waited, ["job"]),
        "hidden_s": counter("job_light_hidden_seconds", hidden, ["job"]),
        "worst_s": gauge("job_light_worst_wait_seconds", worst, ["job"]),
    }
    found = light_totals(look.inventory, look.target, now)
    for job, totals in found.items():
        for name, family in families.items():
            family.add_metric([look.target, job], totals[name])
    if found:
        yield from families.values()


def look_metrics(look: Observation, *, now: float, ages: bool) -> Iterator[Metric]:
    """All metrics of an observation. ``ages``: include the ages of readings, which become wrong in a file."""
    readable = FreshReadings(look, now)
    yield from components(look, now, ages=ages)
    yield from findings(look)
    yield from hosts(look)
    yield from events(readable)
    yield from accelerators(readable)
    yield from nvlinks(readable)
    yield from links(readable)
    yield from ports(readable)
    yield from devices(readable)
    yield from circuits(look)
    yield from slices(look)
    yield from spares(look)
    yield from phased_jobs(look, now)


def metrics_text(look: Observation) -> str:
    """All metrics of an observation in the text format, for node_exporter's textfile collector.

    Times are time stamps, not ages, so that a file that is no longer written shows its age.
    """
    registry = CollectorRegistry()
    registry.register(_OneLook(look))
    return generate_latest(registry).decode()


class _OneLook(Collector):
    def __init__(self, look: Observation) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        yield from look_metrics(self._look, now=self._look.at, ages=False)
        made_at = GaugeMetricFamily("lumctl_check_timestamp_seconds", "Time of the observation.", labels=["target"])
        made_at.add_metric([self._look.target], self._look.at)
        yield made_at
        took = GaugeMetricFamily("lumctl_check_collection_seconds", "How long the collection took.", labels=["target"])
        took.add_metric([self._look.target], self._look.snapshot.seconds)
        yield took
