"""What a look says, as Prometheus metrics: names and base units by convention, light in dBm as optics have it.

What is lost disappears: a reading that is too old to say anything about now is left out, and so is one of a host that
cannot be reached.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from lumctl.fleet.readings import GpuReading, ProbeStatus, Snapshot
from lumctl.health.matching import gpu_readings
from lumctl.health.states import State
from lumctl.site.observation import Observation

_MIB = 1024 * 1024
_GPU_GAUGES: tuple[tuple[str, str, str, float], ...] = (
    ("temperature_celsius", "Temperature of the accelerator.", "temperature_c", 1),
    ("memory_temperature_celsius", "Temperature of the accelerator's memory.", "memory_temperature_c", 1),
    ("utilization_ratio", "Share of time in which the accelerator computed.", "utilization_percent", 0.01),
    ("memory_used_bytes", "Memory in use.", "memory_used_mib", _MIB),
    ("memory_size_bytes", "Memory that the accelerator has.", "memory_total_mib", _MIB),
    ("power_watts", "Electrical power that the accelerator draws.", "power_w", 1),
    ("uncorrectable_remapped_rows", "Rows of memory remapped for uncorrectable errors.", "remap_uncorrectable", 1),
)
_GPU_ERRORS = (
    ("volatile", "true", "ecc_volatile_correctable"),
    ("volatile", "false", "ecc_volatile_uncorrectable"),
    ("aggregate", "false", "ecc_aggregate_uncorrectable"),
)
_OPTICS_GAUGES: tuple[tuple[str, str, str, float], ...] = (
    ("rx_power_dbm", "Light received by the module of a link; -Inf is no light.", "rx_power_dbm", 1),
    ("tx_power_dbm", "Light sent by the module of a link; -Inf is no light.", "tx_power_dbm", 1),
    ("temperature_celsius", "Temperature of the module of a link.", "temperature_c", 1),
    ("bias_amperes", "Bias current of the laser of a link.", "bias_ma", 0.001),
)


def families(look: Observation, *, now: float, ages: bool) -> Iterator[Metric]:
    """All that a look says. ``ages``: of readings, besides their times; a file that is no longer renewed needs none."""
    yield from _components(look, now, ages=ages)
    yield from _findings(look)
    yield from _hosts(look)
    reached = replace(look.snapshot, hosts={name: host for name, host in look.snapshot.hosts.items() if host.reachable})
    yield from _accelerators(look, reached, now)
    yield from _links(look, reached, now)
    yield from _circuits(look)


def _gauge(name: str, text: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"lumctl_{name}", text, labels=["target", *labels])


def _components(look: Observation, now: float, *, ages: bool) -> Iterator[Metric]:
    states = _gauge("component_state", "Whether a component is in a state (1) or not (0).", ["kind", "id", "state"])
    read_at = _gauge("component_read_timestamp_seconds", "When a component was last read.", ["kind", "id"])
    age = _gauge("component_read_age_seconds", "How long ago a component was last read.", ["kind", "id"])
    maintenance = _gauge("component_in_maintenance", "1 for each component in a maintenance window.", ["kind", "id"])
    for group, components in look.report.groups().items():
        kind = group.removesuffix("s")
        for health in components.values():
            for state in State:
                states.add_metric([look.target, kind, health.id, state.value], float(health.state is state))
            if health.maintenance is not None:
                maintenance.add_metric([look.target, kind, health.id], 1)
            if health.read_at is not None:
                read_at.add_metric([look.target, kind, health.id], health.read_at)
                age.add_metric([look.target, kind, health.id], max(now - health.read_at, 0.0))
    yield states
    yield read_at
    yield maintenance
    if ages:
        yield age


def _findings(look: Observation) -> Iterator[Metric]:
    """One series for each component and rule, however many findings there are of it."""
    found: dict[tuple[str, ...], float] = {}
    for group, components in look.report.groups().items():
        for health in components.values():
            for finding in health.findings:
                known = str(finding.acknowledged is not None).lower()
                key = (look.target, group.removesuffix("s"), health.id, finding.rule, finding.state.value, known)
                found[key] = min(found.get(key, math.inf), finding.since)
    labels = ["kind", "id", "rule", "state", "acknowledged"]
    since = _gauge("finding_since_timestamp_seconds", "Since when a rule finds something at a component.", labels)
    for series, at in found.items():
        since.add_metric(list(series), at)
    yield since
    open_now = _gauge("incidents", "Incidents that are open, by state.", ["state"])
    for state in (State.UNKNOWN, State.DEGRADED, State.FAILED):
        open_now.add_metric([look.target, state.value], sum(each.state is state for each in look.report.incidents))
    yield open_now
    unfinished = _gauge("unfinished_runs", "Runs that were cut or left half done.", [])
    unfinished.add_metric([look.target], len(look.unfinished))
    yield unfinished


def _hosts(look: Observation) -> Iterator[Metric]:
    up = _gauge("host_up", "Whether a host could be reached (1) or not (0).", ["host"])
    well = _gauge("probe_success", "Whether all probes of a kind brought an answer (1) or not (0).", ["host", "probe"])
    for name, host in look.snapshot.hosts.items():
        up.add_metric([look.target, name], float(host.reachable))
        kinds: dict[str, bool] = {}
        for probe in host.probes.values() if host.reachable else ():
            kind = probe.probe.partition(":")[0]
            kinds[kind] = kinds.get(kind, True) and probe.status in {ProbeStatus.OK, ProbeStatus.ABSENT}
        for kind, success in kinds.items():
            well.add_metric([look.target, name, kind], float(success))
    yield up
    yield well


def _accelerators(look: Observation, reached: Snapshot, now: float) -> Iterator[Metric]:
    limit_s = look.inventory.thresholds.stale_after_s
    readings = gpu_readings(look.inventory, reached)
    fresh = {name: gpu for name, gpu in readings.items() if now - gpu.taken_at <= limit_s}
    info = InfoMetricFamily("lumctl_accelerator", "Where an accelerator is, and what runs on it.", labels=["id"])
    for accelerator in look.inventory.accelerators.values():
        job, rank = look.place_of(accelerator.id) or ("", "")
        told = {
            "target": look.target,
            "host": accelerator.host,
            "rack": accelerator.rack,
            "model": accelerator.model,
            "role": look.role_of(accelerator.id).value,
            "job": job,
            "rank": str(rank),
        }
        info.add_metric([accelerator.id], told)
    yield info
    for name, text, field, factor in _GPU_GAUGES:
        yield _values(_gauge(f"accelerator_{name}", text, ["id"]), look.target, fresh, field, factor)
    yield _errors(look.target, fresh)


def _errors(target: str, fresh: dict[str, GpuReading]) -> Metric:
    labels = ["target", "id", "scope", "correctable"]
    errors = CounterMetricFamily(
        "lumctl_accelerator_ecc_errors", "ECC errors; volatile: since the driver was loaded.", labels=labels
    )
    for name, gpu in fresh.items():
        for scope, correctable, field in _GPU_ERRORS:
            count = getattr(gpu, field)
            if count is not None:
                errors.add_metric([target, name, scope, correctable], count)
    return errors


def _links(look: Observation, reached: Snapshot, now: float) -> Iterator[Metric]:
    limit_s = look.inventory.thresholds.stale_after_s
    up = _gauge("link_up", "Whether a link's interface is up (1) or not (0).", ["id"])
    labels = ["target", "id"]
    changes = CounterMetricFamily("lumctl_link_carrier_changes", "Times a link went up or down.", labels=labels)
    modules: dict[str, Any] = {}
    for lane in look.inventory.transponders.values():
        host = reached.hosts.get(lane.host)
        interface = host.interfaces.get(lane.interface) if host else None
        if interface and now - interface.taken_at <= limit_s:
            if interface.operstate is not None:
                up.add_metric([look.target, lane.id], float(interface.operstate == "up"))
            if interface.carrier_changes is not None:
                changes.add_metric([look.target, lane.id], interface.carrier_changes)
        module = host.optics.get(lane.interface) if host else None
        if module and now - module.taken_at <= limit_s:
            modules[lane.id] = module
    yield up
    yield changes
    for name, text, field, factor in _OPTICS_GAUGES:
        yield _values(_gauge(f"link_{name}", text, ["id"]), look.target, modules, field, factor)


def _circuits(look: Observation) -> Iterator[Metric]:
    text = "Light received at one end of a circuit; -Inf is no light."
    power = _gauge("circuit_rx_power_dbm", text, ["circuit", "lane"])
    loss = _gauge("circuit_expected_loss_db", "Loss that a circuit's route should have.", ["circuit"])
    for circuit in look.report.circuits.values():
        for end in circuit.ends:
            if end.rx_power_dbm is not None:
                power.add_metric([look.target, circuit.id, end.transponder], end.rx_power_dbm)
        if circuit.loss_db is not None:
            loss.add_metric([look.target, circuit.id], circuit.loss_db)
    yield power
    yield loss


def _values(family: GaugeMetricFamily, target: str, readings: dict[str, Any], field: str, factor: float) -> Metric:
    for name, reading in readings.items():
        value = getattr(reading, field)
        if value is not None:
            family.add_metric([target, name], value * factor)
    return family
