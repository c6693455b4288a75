"""An observation as data: the JSON documents for scripts, which tables and the dashboard also show.

Fields may be added, never renamed. ``age_s`` is ``None`` for a component that was never read.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lumctl.context import Observation
from lumctl.fleet.readings import GpuReading
from lumctl.health.acknowledgements import MaintenanceWindow
from lumctl.health.identity import gpu_readings
from lumctl.health.observation import host_states, out_of_service
from lumctl.health.remedy import Remedy
from lumctl.health.states import CircuitHealth, ComponentHealth, Finding, Incident, State
from lumctl.inventory.model import Accelerator, Transponder
from lumctl.time_text import iso_text

GPU_READINGS = (
    "temperature_c",
    "memory_temperature_c",
    "utilization_percent",
    "memory_used_mib",
    "memory_total_mib",
    "power_w",
    "ecc_volatile_uncorrectable",
    "ecc_volatile_correctable",
    "remap_pending",
    "remap_failed",
    "remap_uncorrectable",
    "recovery_action",
    "pci",
    "uuid",
    "source",
)
INTERFACE_READINGS = ("operstate", "speed_mbps", "carrier_changes")
OPTICS_READINGS = ("rx_power_dbm", "tx_power_dbm", "bias_ma", "temperature_c", "transmitting")


def status_document(
    observation: Observation,
    remedies: Sequence[Mapping[str, Any]] = (),
    waiting: Sequence[Mapping[str, Any]] = (),
    repairs: Sequence[Mapping[str, Any]] = (),
    stopped_jobs: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The data of ``status``: the document of ``lumctl/status/v1`` without its schema field.

    ``remedies`` are made by :func:`remedy_document`, the worst fault's first; ``waiting`` are the queued demands,
    ``repairs`` the accelerators that swaps took out of their jobs, ``stopped_jobs`` those that wait to be resumed.
    """
    report, inventory = observation.report, observation.inventory
    whole = host_states(observation)
    gpus = gpu_readings(inventory, observation.snapshot)
    return {
        "target": str(observation.target),
        "racks": list(inventory.racks),
        "at": iso_text(observation.at),
        "collection_s": observation.snapshot.seconds,
        "summary": summary(observation),
        "out_of_service": out_of_service(observation),
        "unfinished_runs": list(observation.unfinished),
        "waiting": [dict(row) for row in waiting],
        "stopped_jobs": [dict(row) for row in stopped_jobs],
        "remedies": [dict(remedy) for remedy in remedies],
        "repairs": [dict(row) for row in repairs],
        "incidents": [incident_document(incident) for incident in report.incidents],
        "maintenance": [window_document(window, observation.at) for window in observation.windows],
        "hosts": [_host(observation, health, whole[health.id]) for health in report.hosts.values()],
        "devices": [_common(observation, health) for health in report.devices.values()],
        "accelerators": [
            _accelerator(observation, inventory.accelerators[id_], health, gpus.get(id_))
            for id_, health in report.accelerators.items()
        ],
        "links": [_link(observation, inventory.transponders[id_], health) for id_, health in report.links.items()],
        "circuits": [_circuit(observation, health) for health in report.circuits.values()],
    }


def summary(observation: Observation) -> dict[str, dict[str, int]]:
    """The number of components by group and state; a host with a failed accelerator is failed, as everywhere."""
    groups = observation.report.groups()
    counted = {name: Counter(health.state for health in group.values()) for name, group in groups.items()}
    whole = host_states(observation)
    counted["hosts"] = Counter(whole.get(name, health.state) for name, health in groups["hosts"].items())
    return {name: {state.value: counts[state] for state in State} for name, counts in counted.items()}


def finding_document(finding: Finding) -> dict[str, Any]:
    """One finding as data."""
    return {
        "component": finding.component,
        "rule": finding.rule,
        "state": finding.state.value,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "since": iso_text(finding.since),
        "case": finding.case,
        "gravity": finding.gravity,
        "acknowledged": finding.acknowledged,
        "incident": finding.incident,
    }


def incident_line(incident: Incident) -> str:
    """One incident in one line: its cause, its state and its summary."""
    return f"{incident.cause} {incident.state}: {incident.summary.removeprefix(f'{incident.cause}: ')}"


def incident_document(incident: Incident) -> dict[str, Any]:
    """One incident as data."""
    return {
        "id": incident.id,
        "cause": incident.cause,
        "rule": incident.rule,
        "state": incident.state.value,
        "since": iso_text(incident.since),
        "summary": incident.summary,
        "members": list(incident.members),
        "suspects": list(incident.suspects),
    }


def remedy_document(remedy: Remedy, command: str) -> dict[str, Any]:
    """The repair of a cause, as data; ``command`` plans the repair, and is empty if an operator must do it."""
    return {
        "cause": remedy.cause,
        "state": remedy.state.value,
        "evidence": remedy.evidence.removeprefix(f"{remedy.cause}: "),
        "replace": list(remedy.replace),
        "avoid": list(remedy.avoid),
        "command": command,
        "by_hand": remedy.by_hand,
        "hand_first": remedy.hand_first,
        "certain": remedy.certain,
    }


def window_document(window: MaintenanceWindow, now: float) -> dict[str, Any]:
    """One maintenance window as data; ``open``: it is in force at ``now``."""
    return {
        "id": window.id,
        "component": window.component,
        "by": window.by,
        "comment": window.comment,
        "starts": iso_text(window.starts),
        "ends": iso_text(window.ends),
        "open": window.open_at(now),
    }


def _common(observation: Observation, health: ComponentHealth | CircuitHealth) -> dict[str, Any]:
    age = None if health.read_at is None else round(max(observation.at - health.read_at, 0.0), 3)
    return {
        "id": health.id,
        "state": health.state.value,
        "age_s": age,
        "maintenance": health.maintenance,
        "findings": [finding_document(finding) for finding in health.findings],
    }


def _host(observation: Observation, health: ComponentHealth, whole: State) -> dict[str, Any]:
    host = observation.inventory.hosts[health.id]
    seen = observation.snapshot.hosts.get(host.name)
    probes = seen.probes.values() if seen else ()
    return {
        **_common(observation, health),
        "whole": whole.value,
        "rack": host.rack,
        "address": host.address,
        "reachable": bool(seen and seen.reachable),
        "probes": {p.probe: {"status": p.status.value, "seconds": p.seconds, "detail": p.detail} for p in probes},
    }


def _accelerator(
    observation: Observation, accelerator: Accelerator, health: ComponentHealth, gpu: GpuReading | None
) -> dict[str, Any]:
    job, rank = observation.place_of(accelerator.id) or (None, None)
    return {
        **_common(observation, health),
        "host": accelerator.host,
        "rack": accelerator.rack,
        "model": accelerator.model,
        "role": observation.role_of(accelerator.id).value,
        "job": job,
        "rank": rank,
        "readings": _values(gpu, GPU_READINGS) | {"throttle_reasons": sorted(gpu.throttle_reasons) if gpu else []},
    }


def _link(observation: Observation, transponder: Transponder, health: ComponentHealth) -> dict[str, Any]:
    seen = observation.snapshot.hosts.get(transponder.host)
    interface = seen.interfaces.get(transponder.interface) if seen else None
    optics = seen.optics.get(transponder.interface) if seen else None
    return {
        **_common(observation, health),
        "accelerator": transponder.accelerator,
        "host": transponder.host,
        "interface": transponder.interface,
        "device": transponder.lane.device,
        "ports": list(transponder.lane.ports),
        "readings": _values(interface, INTERFACE_READINGS) | _values(optics, OPTICS_READINGS),
    }


def _circuit(observation: Observation, health: CircuitHealth) -> dict[str, Any]:
    path = observation.paths.get(health.id)
    return {
        **_common(observation, health),
        "owner": health.owner,
        "device": health.devices[0],
        "devices": list(health.devices),
        "fibres": list(path.fibres) if path else [],
        "direction": health.direction,
        "loss_db": health.loss_db,
        "ends": [
            {
                "device": end.device,
                "port": end.port,
                "lane": end.transponder,
                "rx_power_dbm": end.rx_power_dbm,
                # JSON has no infinity: without this field no light would look like no reading.
                "dark": end.rx_power_dbm == -math.inf,
                "hears": end.hears,
                "expected": end.expected,
            }
            for end in health.ends
        ],
    }


def _values(reading: object | None, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(reading, name, None) for name in names}
