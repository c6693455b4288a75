"""The readings that rules use, as text, by their names in the rules' data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isinf

from lumctl.devices.types import DeviceReading, OpticsReading
from lumctl.fleet.host_readings import ComponentReport, Disks, HostEvent, Services
from lumctl.fleet.readings import (
    ALL_NVLINKS,
    AcceleratorEvent,
    GpuReading,
    HostSnapshot,
    NicEvent,
    ProbeStatus,
    Snapshot,
    SxidEvent,
    XidEvent,
)
from lumctl.health.identity import match_gpus, match_nvlinks, xids_of
from lumctl.health.rules.device import is_plausible_c
from lumctl.health.states import CircuitHealth, Health, HealthReport, kind_and_id
from lumctl.inventory.model import Inventory

_NOT_TOLD = "not reported"
_NO_READINGS = frozenset({"raw", "vendor_values"})
ENDED_WELL = frozenset({ProbeStatus.OK, ProbeStatus.ABSENT})
"""The outcomes of probes that did not fail; a probe for something that the host does not have is ``ABSENT``."""


@dataclass(frozen=True, slots=True)
class ReadingText:
    """One reading that a rule uses, as text; ``taken_at`` is ``None`` if it was never read."""

    name: str
    value: str
    taken_at: float | None


def readings_of(
    health: Health,
    report: HealthReport,
    *,
    inventory: Inventory,
    snapshot: Snapshot,
    devices: Mapping[str, DeviceReading],
) -> Mapping[str, ReadingText]:
    """The readings of a component of a report by name; empty if its host is not read."""
    kind, name = kind_and_id(health)
    if isinstance(health, CircuitHealth):
        values = _of_circuit(health, inventory)
    elif kind == "accelerator":
        values = _of_gpu(name, report.slots.get(name), inventory, snapshot)
        values["collectives"] = "recorded" if "collectives" in health.seen else "not recorded"
    elif kind == "link":
        values = _of_link(name, inventory, snapshot)
    elif kind == "host":
        values = _of_host(snapshot.hosts.get(name))
    else:
        values = _of_device(devices.get(name))
    if health.read_at is not None:
        values["age_s"] = f"{report.at - health.read_at:.1f}"
    return {reading: ReadingText(reading, value, health.read_at) for reading, value in values.items()}


def _of_gpu(name: str, slot: str | None, inventory: Inventory, snapshot: Snapshot) -> dict[str, str]:
    accelerator = inventory.accelerators[name]
    seen = snapshot.hosts.get(accelerator.host)
    if seen is None:
        return {}
    gpus = match_gpus(inventory.accelerators_of(accelerator.host), seen.gpus)
    gpu_probe = seen.probes.get("gpu")
    listing = gpu_probe is not None and gpu_probe.status is ProbeStatus.OK
    values = {
        "listed": "yes" if name in gpus else "no" if listing else _NOT_TOLD,
        "xids": _events(xids_of(slot, seen.xids)),
        "accelerator_events": _events(seen.accelerator_events),
    }
    values["reports"] = _reports(seen.reports)
    if name in gpus:
        values |= {key: _said(value) for key, value in gpus[name].vendor_values.items()}
        values |= {
            field: _said(getattr(gpus[name], field)) for field in GpuReading.__slots__ if field not in _NO_READINGS
        }
    links = match_nvlinks(gpus, seen).get(name, ())
    active = sum(link.active is True for link in links)
    counted = {error for link in links for error, count in link.errors.items() if count}
    if links:
        errors = f", with {', '.join(sorted(counted))}" if counted else ""
        none_active = any(link.link == ALL_NVLINKS for link in links)
        counted_alone = all(link.active is None for link in links)
        state = f"{active} of {len(links)} active{errors}" if not counted_alone else f"not told{errors}"
        values["nvlinks"] = "none active" if none_active else state
    return values


def _of_sender(optics: OpticsReading) -> dict[str, str]:
    """The readings of the sending side of a module, as far as it reports them."""
    told = {
        "tx_power_dbm": optics.tx_power_dbm,
        "bias_ma": optics.bias_ma,
        "temperature_c": optics.temperature_c,
        "voltage_v": optics.voltage_v,
        "tx_fault": optics.tx_fault,
        "module_state": optics.module_state,
    }
    limits = [f"{n} {value:g}" for n, value in optics.thresholds.items() if not n.startswith("rx_power")]
    said = {name: _said(value) for name, value in told.items() if value is not None}
    return said | ({"limits": ", ".join(limits)} if limits else {})


def _of_link(name: str, inventory: Inventory, snapshot: Snapshot) -> dict[str, str]:
    lane = inventory.transponders[name]
    seen = snapshot.hosts.get(lane.host)
    if seen is None:
        return {}
    values: dict[str, str] = {}
    interface, optics = seen.interfaces.get(lane.interface), seen.optics.get(lane.interface)
    if interface is not None:
        values |= {"operstate": _said(interface.operstate), "carrier_changes": _said(interface.carrier_changes)}
    if optics is not None:
        values["rx_power_dbm"] = _said(optics.rx_power_dbm) if optics.optical else "copper"
        values["thresholds"] = ", ".join(
            f"{limit.removeprefix('rx_power_')} {value:g}"
            for limit, value in optics.thresholds.items()
            if limit.startswith("rx_power")
        )
        values |= _of_sender(optics)
    ports = [port for port in seen.infiniband if port.device == lane.interface]
    speed = f"{interface.speed_mbps} Mb/s" if interface is not None and interface.speed_mbps else None
    rates = [port.rate for port in ports if port.rate]
    values["rate"] = ", ".join(rates) or speed or _NOT_TOLD
    if ports:
        values["infiniband"] = ", ".join(f"port {port.port} {_said(port.state)}" for port in ports)
    counted = [
        f"{port.name} {counter} {value}"
        for port in seen.counters.values()
        if port.name.partition("/")[0] == lane.interface
        for counter, value in port.values.items()
        if value and ("err" in counter or "down" in counter or "discard" in counter)
    ]
    values["counters"] = ", ".join(counted) or "no errors"
    values["nic_events"] = _events(event for event in seen.nic_events if event.interface == lane.interface)
    return values


def _of_circuit(health: CircuitHealth, inventory: Inventory) -> dict[str, str]:
    return {
        "hears": ", ".join(f"{end.transponder} hears {end.hears or 'nobody'}" for end in health.ends),
        "rx_power_dbm": ", ".join(f"{end.transponder} {_said(end.rx_power_dbm)}" for end in health.ends),
        "rx_margin_db": _said(inventory.thresholds.rx_margin_db),
        "loss_db": _said(health.loss_db),
    }


def _of_host(seen: HostSnapshot | None) -> dict[str, str]:
    if seen is None:
        return {}
    return {
        "session": "it answers" if seen.reachable else seen.error or "no session",
        "attempts": str(seen.attempts),
        "probes": _outcomes(seen),
        "xids": _events(seen.xids),
        "sxids": _events(seen.sxids),
        "nic_events": _events(seen.nic_events),
        "rdma_ports": str(len(seen.infiniband)),
        "host_events": _events(seen.host_events),
        "accelerator_events": _events(seen.accelerator_events),
        "mounts": f"{len(seen.mounts.by_path)} mounted" if seen.mounts else _NOT_TOLD,
        "disks": _disks(seen.disks),
        "clock": f"{seen.clock.least_ahead_s:+.2f} to {seen.clock.most_ahead_s:+.2f} s" if seen.clock else _NOT_TOLD,
        "reports": _reports(seen.reports),
        "fabric_errors": f"{len(seen.fabric_errors)}, the last: {seen.fabric_errors[-1].text}"
        if seen.fabric_errors
        else "none",
        "crashes": f"{len(seen.crashes)} records" if seen.crashes else "none",
        "services": _services(seen.services),
        "memory_gib": _said(seen.capacity.memory_gib if seen.capacity else None),
        "processors": _said(seen.capacity.processors if seen.capacity else None),
    }


def _services(services: Services | None) -> str:
    if services is None:
        return _NOT_TOLD
    return ", ".join(f"{service.name} {service.state}" for service in services.by_name.values()) or "none"


def _reports(reports: Iterable[ComponentReport]) -> str:
    """The verdicts of other programs that report a problem."""
    return ", ".join(f"{each.source}: {each.component} {each.health}" for each in reports) or "none"


def _disks(disks: Disks | None) -> str:
    """The fullest local file system."""
    if disks is None:
        return _NOT_TOLD
    fullest = max(disks.uses, key=lambda use: use.used or 0.0, default=None)
    return f"{fullest.path} {100 * (fullest.used or 0.0):.0f} % used" if fullest else "none"


def _of_device(reading: DeviceReading | None) -> dict[str, str]:
    """The readings of a mesh or a switch that its driver supports."""
    if reading is None:
        return {"answer": "it has never been read"}
    if reading.problem is not None:
        return {"answer": reading.problem}
    told = {"answer": "it answers", "unread": ", ".join(reading.unread) or "none"}
    if reading.alarms is not None:
        said = [f"{alarm.severity} {alarm.text}".strip() for alarm in reading.alarms]
        told["alarms"] = said[0] if len(said) == 1 else f"{len(said)} alarms, one: {said[0]}" if said else "none"
    if reading.temperature_c is not None and is_plausible_c(reading.temperature_c):
        told["temperature_c"] = _said(reading.temperature_c)
    return told


def _outcomes(seen: HostSnapshot) -> str:
    """How the probes ended. Only those that failed are named, because a host may have dozens."""
    asked = {name: each for name, each in seen.probes.items() if each.status is not ProbeStatus.NOT_ASKED}
    bad = [f"{name} {outcome.status.value}" for name, outcome in asked.items() if outcome.status not in ENDED_WELL]
    fine = len(asked) - len(bad)
    unasked = [f"{len(seen.probes) - len(asked)} not asked"] if len(asked) < len(seen.probes) else []
    return ", ".join([*bad, f"{fine} {'others ' if bad else ''}succeeded", *unasked])


def _events(events: Iterable[XidEvent | SxidEvent | NicEvent | HostEvent | AcceleratorEvent]) -> str:
    """The number of these kernel log lines, and the last one."""
    listed = list(events)
    if not listed:
        return "none"
    last = f"{_number(listed[-1])}{listed[-1].text}"
    return last if len(listed) == 1 else f"{len(listed)} lines, the last: {last}"


def _number(event: XidEvent | SxidEvent | NicEvent | HostEvent | AcceleratorEvent) -> str:
    match event:
        case XidEvent():
            return f"XID {event.xid}: "
        case SxidEvent():
            return f"SXid {event.sxid}: "
        case NicEvent() | HostEvent() | AcceleratorEvent():
            return ""


def _said(value: object) -> str:
    match value:
        case None:
            return _NOT_TOLD
        case bool():
            return "yes" if value else "no"
        case float():
            return "no light" if isinf(value) else f"{value:g}"
        case frozenset():
            words = sorted(map(str, value))
        case Mapping():
            words = [f"{key} {_said(item)}" for key, item in value.items()]
        case tuple() | list():
            words = [_said(item) for item in value]
        case _:
            return str(value)
    return ", ".join(words) or "none"
