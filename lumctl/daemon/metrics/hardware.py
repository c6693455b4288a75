"""Readings as Prometheus metrics: accelerators, NVLinks, links and their ports, devices, and events in kernel logs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from lumctl.devices.types import DeviceReading, OpticsReading
from lumctl.fleet.readings import (
    ALL_NVLINKS,
    NVLINK_TOTAL,
    GpuReading,
    HostSnapshot,
    InterfaceReading,
    NicEventKind,
    NvlinkReading,
    PortCounters,
    ProbeStatus,
)
from lumctl.health.identity import match_gpus, match_nvlinks, pci_slot
from lumctl.health.observation import Observation
from lumctl.health.rulebook import rulebook
from lumctl.health.rules.device import is_plausible_c, is_plausible_dbm, severity_of
from lumctl.health.rules.link import NO_CARRIER
from lumctl.inventory.model import Transponder


@dataclass(frozen=True)
class FreshReadings:
    """The readings of an observation that are recent enough at a given time (seconds since the epoch)."""

    look: Observation
    now: float

    @property
    def target(self) -> str:
        """The target of the observation."""
        return self.look.target

    def is_new(self, taken_at: float, *, beyond_s: float = 0.0) -> bool:
        """Whether a reading is recent enough; ``beyond_s`` extends the limit for readings taken less often."""
        return self.now - taken_at <= self.look.inventory.thresholds.stale_after_s + beyond_s

    @cached_property
    def hosts(self) -> Mapping[str, HostSnapshot]:
        """The reachable hosts."""
        return {name: host for name, host in self.look.snapshot.hosts.items() if host.reachable}

    @cached_property
    def devices(self) -> Mapping[str, DeviceReading]:
        """The meshes and switches that answer and were read recently."""
        said = self.look.devices.items()
        return {name: d for name, d in said if d.problem is None and d.read_at is not None and self.is_new(d.read_at)}

    @cached_property
    def _matched(self) -> Mapping[str, Mapping[str, GpuReading]]:
        """The readings of each host's accelerators, of any age: they identify the accelerators."""
        accelerators = self.look.inventory.accelerators_of
        return {name: match_gpus(accelerators(name), host.gpus) for name, host in self.hosts.items()}

    @cached_property
    def gpus(self) -> Mapping[str, GpuReading]:
        """The reading of each accelerator."""
        everything = (found for gpus in self._matched.values() for found in gpus.items())
        return {name: gpu for name, gpu in everything if self.is_new(gpu.taken_at)}

    @cached_property
    def nvlinks(self) -> Mapping[str, tuple[NvlinkReading, ...]]:
        """The NVLinks of each accelerator."""
        return {
            name: links
            for host, seen in self.hosts.items()
            if seen.nvlinks
            for name, links in match_nvlinks(self._matched[host], seen).items()
        }

    def interfaces(self) -> Iterator[tuple[Transponder, InterfaceReading]]:
        """The links whose interface was read."""
        for lane, host in self._lanes():
            interface = host.interfaces.get(lane.interface)
            if interface is not None and self.is_new(interface.taken_at):
                yield lane, interface

    def modules(self) -> Iterator[tuple[Transponder, OpticsReading]]:
        """The links whose module was read."""
        for lane, host in self._lanes():
            module = host.optics.get(lane.interface)
            if module is not None and self.is_new(module.taken_at):
                yield lane, module

    def ports(self) -> Iterator[tuple[Transponder, PortCounters]]:
        """The counters of each link: of its interface, or of the ports of its InfiniBand device."""
        for lane, host in self._lanes():
            for port in host.counters.values():
                if port.name.partition("/")[0] == lane.interface and self.is_new(port.taken_at):
                    yield lane, port

    def _lanes(self) -> Iterator[tuple[Transponder, HostSnapshot]]:
        for lane in self.look.inventory.transponders.values():
            if lane.host in self.hosts:
                yield lane, self.hosts[lane.host]


Numbers = Mapping[str, float | int | bool | None]
"""A value for each component; ``None`` if it has no value."""
Filled = TypeVar("Filled", GaugeMetricFamily, CounterMetricFamily)


def gauge(name: str, text: str, labels: Iterable[str] = ()) -> GaugeMetricFamily:
    """An empty family of gauges."""
    return GaugeMetricFamily(f"lumctl_{name}", text, labels=["target", *labels])


def counter(name: str, text: str, labels: Iterable[str] = ()) -> CounterMetricFamily:
    """An empty family of counters; ``_total`` is appended to its name."""
    return CounterMetricFamily(f"lumctl_{name}", text, labels=["target", *labels])


def with_values(family: Filled, target: str, numbers: Numbers, factor: float = 1) -> Filled:
    """Add a series to a family for each component that has a value."""
    for name, value in numbers.items():
        if value is not None:
            family.add_metric([target, name], value * factor)
    return family


_MIB = 1024 * 1024
_ACCELERATOR_GAUGES: tuple[tuple[str, str, str, float], ...] = (
    ("temperature_celsius", "Temperature of the accelerator.", "temperature_c", 1),
    (
        "slowdown_temperature_celsius",
        "Temperature at which the accelerator slows itself down.",
        "temperature_slowdown_c",
        1,
    ),
    ("memory_temperature_celsius", "Temperature of the accelerator's memory.", "memory_temperature_c", 1),
    ("utilization_ratio", "Share of time in which the accelerator computed.", "utilization_percent", 0.01),
    ("memory_utilization_ratio", "Share of time in which its memory was used.", "memory_utilization_percent", 0.01),
    ("memory_used_bytes", "Memory in use.", "memory_used_mib", _MIB),
    ("memory_size_bytes", "Memory that the accelerator has.", "memory_total_mib", _MIB),
    ("power_watts", "Electrical power that the accelerator draws.", "power_w", 1),
    ("power_limit_watts", "Electrical power that the accelerator may draw.", "power_limit_w", 1),
    ("sm_clock_hertz", "Clock of the accelerator's processors.", "sm_clock_mhz", 1e6),
    ("uncorrectable_remapped_rows", "Rows of memory remapped for uncorrectable errors.", "remap_uncorrectable", 1),
    ("row_remap_pending", "Whether rows need a reset to be remapped (1) or not (0).", "remap_pending", 1),
    ("row_remap_failed", "Whether a row could not be remapped (1) or not (0).", "remap_failed", 1),
    ("reset_required", "Whether the accelerator asks for a reset (1) or not (0).", "reset_required", 1),
    ("pcie_generation", "Generation of PCI Express that the accelerator uses now.", "pcie_generation", 1),
    ("pcie_lanes", "Lanes of PCI Express that the accelerator uses now.", "pcie_width", 1),
)
_ECC_ERRORS = (
    ("volatile", "true", "ecc_volatile_correctable"),
    ("volatile", "false", "ecc_volatile_uncorrectable"),
    ("aggregate", "false", "ecc_aggregate_uncorrectable"),
)


def accelerators(readable: FreshReadings) -> Iterator[Metric]:
    """The readings of each accelerator, its place, and the job that runs on it."""
    yield _places(readable)
    target, gpus = readable.target, readable.gpus
    for name, text, field, factor in _ACCELERATOR_GAUGES:
        numbers = {accelerator: getattr(gpu, field) for accelerator, gpu in gpus.items()}
        yield with_values(gauge(f"accelerator_{name}", text, ["id"]), target, numbers, factor)
    replays = counter("accelerator_pcie_replays", "PCI Express replays since the accelerator was reset.", ["id"])
    yield with_values(replays, target, {name: gpu.pcie_replays for name, gpu in gpus.items()})
    errors = counter(
        "accelerator_ecc_errors", "ECC errors; volatile: since the driver was loaded.", ["id", "scope", "correctable"]
    )
    retired = gauge("accelerator_retired_pages", "Pages of memory that were retired, by cause.", ["id", "cause"])
    held = gauge("accelerator_throttled", "1 for each reason that reduces the clocks now.", ["id", "reason"])
    held_for = counter("accelerator_throttled_seconds", "How long a reason has reduced the clocks.", ["id", "reason"])
    for name, gpu in gpus.items():
        for scope, correctable, field in _ECC_ERRORS:
            if (count := getattr(gpu, field)) is not None:
                errors.add_metric([target, name, scope, correctable], count)
        for cause, count in _retired(gpu):
            retired.add_metric([target, name, cause], count)
        for reason in sorted(gpu.throttle_reasons):
            held.add_metric([target, name, reason], 1)
        for reason, microseconds in gpu.throttled_us.items():
            held_for.add_metric([target, name, reason], microseconds / 1e6)
    yield errors
    yield retired
    yield held
    yield held_for


def _places(readable: FreshReadings) -> Metric:
    look = readable.look
    info = InfoMetricFamily("lumctl_accelerator", "Location of an accelerator, and what runs on it.", labels=["id"])
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
    return info


def _retired(gpu: GpuReading) -> Iterator[tuple[str, int]]:
    for cause, count in (("single-bit", gpu.retired_single_bit), ("double-bit", gpu.retired_double_bit)):
        if count is not None:
            yield cause, count


_NVLINK_ERRORS = (("replay", "replay_errors"), ("recovery", "recovery_errors"), ("crc", "crc_errors"))


def nvlinks(readable: FreshReadings) -> Iterator[Metric]:
    """The number of working NVLinks of each accelerator, their error counts and the worst error rate.

    Counts are summed over each accelerator: eighteen links with three counters each would be too many series.
    """
    beyond_s = readable.look.inventory.probes["nvlink"].every_s
    count = gauge("accelerator_nvlinks", "NVLinks of an accelerator, by whether they are active.", ["id", "active"])
    errors = counter("accelerator_nvlink_errors", "Errors of an accelerator's NVLinks, by kind.", ["id", "kind"])
    rates: dict[str, float] = {}
    for name, known in readable.nvlinks.items():
        # If no link is active, nvidia-smi does not report how many links there are.
        links = tuple(link for link in known if link.link != ALL_NVLINKS)
        single = [link for link in links if link.link != NVLINK_TOTAL]
        stated = [link for link in single if readable.is_new(link.taken_at, beyond_s=beyond_s)]
        for active in (True, False):
            if stated:
                found = sum(link.active is active for link in stated)
                count.add_metric([readable.target, name, str(active).lower()], found)
        counted = [link for link in links if _is_counted(readable, link, beyond_s)]
        # A sum over fewer links than before would look like a counter reset.
        if links and len(counted) == len(links):
            for kind, total in _sums(counted):
                errors.add_metric([readable.target, name, kind], total)
        stated_rates = [link.effective_ber for link in counted if link.effective_ber is not None]
        if stated_rates:
            rates[name] = max(stated_rates)
    yield count
    yield errors
    text = "Effective bit error rate of an accelerator's worst NVLink."
    yield with_values(gauge("accelerator_nvlink_bit_error_ratio", text, ["id"]), readable.target, rates)


def _is_counted(readable: FreshReadings, link: NvlinkReading, beyond_s: float) -> bool:
    return link.errors_at is not None and readable.is_new(link.errors_at, beyond_s=beyond_s)


def _sums(links: list[NvlinkReading]) -> Iterator[tuple[str, int]]:
    for kind, field in _NVLINK_ERRORS:
        counts = [getattr(link, field) for link in links]
        if counts and None not in counts:
            yield kind, sum(counts)


_MODULE: tuple[tuple[str, str, str, float], ...] = (
    ("rx_power_dbm", "Light received by the module of a link; -Inf is no light.", "rx_power_dbm", 1),
    ("tx_power_dbm", "Light sent by the module of a link; -Inf is no light.", "tx_power_dbm", 1),
    ("temperature_celsius", "Temperature of the module of a link.", "temperature_c", 1),
    ("bias_amperes", "Bias current of the laser of a link.", "bias_ma", 0.001),
    ("transmitting", "Whether the module of a link sends light (1) or not (0).", "transmitting", 1),
    ("pre_fec_bit_error_ratio", "Bit error rate before correction, of the worst lane.", "pre_fec_ber", 1),
)
_BITS_PER_BYTE = 8
_ACTIVE = "ACTIVE"


def links(readable: FreshReadings) -> Iterator[Metric]:
    """Whether links are up, their speed, and the readings of their modules."""
    target = readable.target
    interfaces = {lane.id: interface for lane, interface in readable.interfaces()}
    up: dict[str, bool | None] = dict(_infiniband(readable))
    up |= {
        name: interface.operstate not in NO_CARRIER
        for name, interface in interfaces.items()
        if interface.operstate is not None
    }
    yield with_values(gauge("link_up", "Whether a link is up (1) or not (0).", ["id"]), target, up)
    speeds: Numbers = {name: interface.speed_mbps for name, interface in interfaces.items()}
    speed = gauge("link_speed_bytes", "Full rate of a link.", ["id"])
    yield with_values(speed, target, speeds, 1e6 / _BITS_PER_BYTE)
    changes: Numbers = {name: interface.carrier_changes for name, interface in interfaces.items()}
    yield with_values(counter("link_carrier_changes", "Times a link went up or down.", ["id"]), target, changes)
    modules = {lane.id: module for lane, module in readable.modules()}
    for name, text, field, factor in _MODULE:
        numbers = {lane: getattr(module, field) for lane, module in modules.items()}
        yield with_values(gauge(f"link_{name}", text, ["id"]), target, numbers, factor)
    limits: Numbers = {lane: module.thresholds.get("rx_power_low_alarm") for lane, module in modules.items()}
    text = "Received light power below which the module of a link raises its own alarm."
    yield with_values(gauge("link_rx_power_low_alarm_dbm", text, ["id"]), target, limits)


def _infiniband(readable: FreshReadings) -> Iterator[tuple[str, bool]]:
    """Links that the inventory names by an InfiniBand device; a link is up if all ports of the device are."""
    for lane in readable.look.inventory.transponders.values():
        host = readable.hosts.get(lane.host)
        ports = [port for port in host.infiniband if port.device == lane.interface] if host else []
        stated = [port for port in ports if port.state is not None and readable.is_new(port.taken_at)]
        if stated:
            yield lane.id, all((port.state or "").upper() == _ACTIVE for port in stated)


_WORD_BYTES = 4
"""InfiniBand counts data in words of four bytes."""
_TRAFFIC: tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...] = (
    ("receive_bytes", "Bytes that a port of a link received.", (("rx_bytes", 1), ("port_rcv_data", _WORD_BYTES))),
    ("transmit_bytes", "Bytes that a port of a link sent.", (("tx_bytes", 1), ("port_xmit_data", _WORD_BYTES))),
)
_PORT_ERRORS = frozenset(
    {
        "rx_errors",
        "tx_errors",
        "rx_dropped",
        "tx_dropped",
        "rx_crc_errors",
        "link_downed",
        "link_error_recovery",
        "symbol_error",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "port_xmit_discards",
        "out_of_sequence",
        "packet_seq_err",
        "local_ack_timeout_err",
        "rnr_nak_retry_err",
        "rx_icrc_encapsulated",
    }
)
_CONGESTION = frozenset(
    {
        "port_xmit_wait",
        "out_of_buffer",
        "roce_adp_retrans",
        "roce_slow_restart",
        "np_cnp_sent",
        "rp_cnp_handled",
    }
)
"""All other counters read are parts of these or of ``link_carrier_changes``."""


def ports(readable: FreshReadings) -> Iterator[Metric]:
    """Traffic, errors and congestion of the ports of links; errors and congestion by the kernel's counter names."""
    target = readable.target
    counted = list(readable.ports())
    for name, text, sources in _TRAFFIC:
        family = counter(f"link_{name}", text, ["id", "port"])
        for lane, port in counted:
            for source, unit in sources:
                if source in port.values:
                    family.add_metric([target, lane.id, port.name], port.values[source] * unit)
        yield family
    kinds = (
        ("errors", "Errors that a port of a link counted, by the kernel's name of the counter.", _PORT_ERRORS),
        (
            "congestion_events",
            "Signs of congestion that a port of a link counted, by the kernel's name of the counter.",
            _CONGESTION,
        ),
    )
    for name, text, names in kinds:
        family = counter(f"link_{name}", text, ["id", "port", "counter"])
        for lane, port in counted:
            for source, value in port.values.items():
                if source in names:
                    family.add_metric([target, lane.id, port.name, source], value)
        yield family


def devices(readable: FreshReadings) -> Iterator[Metric]:
    """Alarms, temperatures and port powers of meshes and switches, if they are new and plausible."""
    said = readable.devices
    text = "Alarms of a mesh or a switch, by severity: the device's own word as classified by lumctl health rules."
    alarms = gauge("device_alarms", text, ["id", "severity"])
    severities = [line.case for line in rulebook().lines("device.alarm")]
    powers = gauge("device_port_power_dbm", "Light at a port of a mesh or a switch; -Inf is no light.", ["id", "port"])
    for name, reading in said.items():
        if reading.alarms is not None:
            counted = Counter(map(severity_of, reading.alarms))
            for severity in severities:
                alarms.add_metric([readable.target, name, severity], counted[severity])
        for port, dbm in (reading.powers_dbm or {}).items():
            if is_plausible_dbm(dbm):
                powers.add_metric([readable.target, name, str(port)], dbm)
    yield alarms
    warm: Numbers = {
        name: celsius
        for name, reading in said.items()
        if (celsius := reading.temperature_c) is not None and is_plausible_c(celsius)
    }
    yield with_values(
        gauge("device_temperature_celsius", "Temperature of a mesh or a switch.", ["id"]), readable.target, warm
    )
    yield powers


_FATAL = {True: "true", False: "false", None: "unknown"}

Latest = dict[tuple[str, ...], float]


def events(readable: FreshReadings) -> Iterator[Metric]:
    """Events in kernel logs: XIDs by accelerator where known, SXids and events of network drivers by host.

    They are gauges, because old lines leave the log. Counts start at zero, so that the first event shows as an
    increase. A code has a series only after its first event.
    """
    target = readable.target
    xids = gauge("host_xid_events", "XID lines found in a host's kernel log.", ["host"])
    sxids = gauge("host_sxid_events", "SXid lines found in a host's kernel log.", ["host", "fatal"])
    nics = gauge("host_nic_events", "Lines of network drivers found in a host's kernel log.", ["host", "event"])
    xid_at: Latest = {}
    sxid_at: Latest = {}
    report, inventory = readable.look.report, readable.look.inventory
    owners = {(inventory.accelerators[name].host, slot): name for name, slot in report.slots.items()}
    for name, host in readable.hosts.items():
        kernel = host.probes.get("kernel")
        # Without an answer, counts of 0 would look like a log without events.
        if kernel is None or kernel.status is not ProbeStatus.OK:
            continue
        xids.add_metric([target, name], len(host.xids))
        weights = Counter(event.fatal for event in host.sxids)
        for fatal, word in _FATAL.items():
            sxids.add_metric([target, name, word], weights[fatal])
        kinds = Counter(event.kind for event in host.nic_events)
        for kind in NicEventKind:
            nics.add_metric([target, name, kind.value], kinds[kind])
        for xid in host.xids:
            _note(xid_at, (name, owners.get((name, pci_slot(xid.pci)), ""), str(xid.xid)), xid.at)
        for sxid in host.sxids:
            _note(sxid_at, (name, str(sxid.sxid)), sxid.at)
    yield xids
    yield sxids
    yield nics
    yield _times("xid_timestamp_seconds", "When an XID was last logged.", ["host", "id", "xid"], target, xid_at)
    yield _times("sxid_timestamp_seconds", "When an SXid was last logged.", ["host", "sxid"], target, sxid_at)


def _note(latest: Latest, series: tuple[str, ...], at: float | None) -> None:
    if at is not None:
        latest[series] = max(at, latest.get(series, at))


def _times(name: str, text: str, labels: list[str], target: str, latest: Latest) -> Metric:
    family = gauge(name, text, labels)
    for series, at in latest.items():
        family.add_metric([target, *series], at)
    return family
