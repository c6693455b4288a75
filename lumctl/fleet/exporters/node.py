"""Prometheus' node_exporter: network interfaces, InfiniBand ports, file systems, main memory, clock and boot time.

It reports nothing about GPUs, the kernel log, neighbours (LLDP) and optical modules.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from lumctl.fleet.exporters.text_format import PageError, Sample, count_of, samples_of
from lumctl.fleet.host_readings import (
    DISK_KINDS,
    ClockReading,
    Disks,
    DiskUse,
    HostEvent,
    HostEventKind,
    Mount,
    Mounts,
)
from lumctl.fleet.probe_output import OK, Gathered, ProbeAnswer, Verdict
from lumctl.fleet.readings import InfinibandPort, InterfaceReading, PortCounters, ProbeStatus

SOURCE = "node_exporter"
_PREFIXES = (
    "node_network_", "node_infiniband_", "node_filesystem_", "node_edac_", "node_time_seconds",
    "node_boot_time_seconds", "node_scrape_collector_success",
)  # fmt: skip
_BITS_PER_MB_S = 8 / 1e6
_GIB = 1024**3
_BOOT_SLACK_S = 60.0
"""The boot time is computed from two clocks: if it differs by less than this, it is the same boot."""
_INTERFACE_COUNTERS: Mapping[str, str] = {
    "carrier_up_changes_total": "carrier_up_count",
    "carrier_down_changes_total": "carrier_down_count",
    "receive_bytes_total": "rx_bytes",
    "transmit_bytes_total": "tx_bytes",
    "receive_packets_total": "rx_packets",
    "transmit_packets_total": "tx_packets",
    "receive_errs_total": "rx_errors",
    "transmit_errs_total": "tx_errors",
    "receive_drop_total": "rx_dropped",
    "transmit_drop_total": "tx_dropped",
    "receive_fifo_total": "rx_fifo_errors",
    "transmit_fifo_total": "tx_fifo_errors",
    "transmit_carrier_total": "tx_carrier_errors",
}
"""Counters of interfaces, without their prefix, and the kernel's files that hold the same counters."""
_INFINIBAND_COUNTERS: Mapping[str, str] = {
    "link_downed_total": "link_downed",
    "link_error_recovery_total": "link_error_recovery",
    "symbol_error_total": "symbol_error",
    "local_link_integrity_errors_total": "local_link_integrity_errors",
    "excessive_buffer_overrun_errors_total": "excessive_buffer_overrun_errors",
    "port_errors_received_total": "port_rcv_errors",
    "port_receive_remote_physical_errors_total": "port_rcv_remote_physical_errors",
    "port_discards_transmitted_total": "port_xmit_discards",
    "port_transmit_wait_total": "port_xmit_wait",
}
_STATES = {1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
_PHYSICAL_STATES = {
    1: "Sleep",
    2: "Polling",
    3: "Disabled",
    4: "PortConfigurationTraining",
    5: "LinkUp",
    6: "LinkErrorRecovery",
    7: "Phy Test",
}
_READ_ONLY_BY_DESIGN = ("/dev/dm-", "/dev/mapper/", "/dev/loop")
"""Devices whose file systems an image may mount read-only on purpose."""


class _FileSystem(NamedTuple):
    path: str
    device: str
    kind: str


class _Page:
    """The samples of one page, by what they describe."""

    def __init__(self) -> None:
        self.interfaces: dict[str, dict[str, float]] = defaultdict(dict)
        self.operstates: dict[str, str] = {}
        self.ports: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
        self.boards: dict[str, str] = {}
        self.systems: dict[_FileSystem, dict[str, float]] = defaultdict(dict)
        self.memory_errors: dict[str, float] = {}
        self.time: float | None = None
        self.booted_at: float | None = None
        self.failed: set[str] = set()

    def add(self, sample: Sample) -> None:
        """Store one sample."""
        name, labels, value = sample.name, sample.labels, sample.value
        if name == "node_scrape_collector_success" and value == 0:
            self.failed.add(labels.get("collector", ""))
        elif name == "node_time_seconds":
            self.time = value
        elif name == "node_boot_time_seconds":
            self.booted_at = value
        elif name == "node_edac_uncorrectable_errors_total":
            self.memory_errors[labels.get("controller", "")] = value
        elif device := labels.get("device"):
            self._add_of_device(name, device, labels, value)

    def _add_of_device(self, name: str, device: str, labels: Mapping[str, str], value: float) -> None:
        family, _, quantity = name.removeprefix("node_").partition("_")
        port = labels.get("port", "")
        if family == "network" and quantity == "info":
            self.operstates[device] = labels.get("operstate", "")
        elif family == "network":
            self.interfaces[device][quantity] = value
        elif family == "infiniband" and quantity == "info":
            self.boards[device] = labels.get("board_id", "")
        elif family == "infiniband" and port.isdecimal():
            self.ports[device, int(port)][quantity] = value
        elif family == "filesystem" and "mountpoint" in labels:
            self.systems[_FileSystem(labels["mountpoint"], device, labels.get("fstype", ""))][quantity] = value


class NodeExporterReader:
    """Reads the pages of one node_exporter, for a host with these interfaces and mounts in the inventory.

    If ``interfaces`` is ``None``, all interfaces are read. Otherwise the others are ignored: a host of containers has
    hundreds of them.
    """

    def __init__(self, interfaces: Collection[str] | None, mounts: Collection[str]) -> None:
        self._interfaces = None if interfaces is None else frozenset(interfaces)
        self._mounts = frozenset(mounts)

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read a page. It replaces earlier readings; readings that the page lacks stay and age."""
        page = _Page()
        try:
            for sample in samples_of(answer.text, *_PREFIXES):
                page.add(sample)
        except PageError as error:
            return ProbeStatus.FAILED, str(error)
        answered = {*self._network(page, taken_at, gathered), *self._host(page, taken_at, gathered)}
        gathered.answered = {**gathered.answered, "node": frozenset(answered)}
        if not answered:
            return ProbeStatus.FAILED, "the page is not from node_exporter"
        # A failed collector leaves its metrics out, and mounts or interfaces without metrics would count as missing.
        needed = {"filesystem"} | ({"netclass"} if self._interfaces else set())
        failed = sorted(needed & page.failed)
        return (ProbeStatus.FAILED, f"its collector {failed[0]} failed") if failed else OK

    def _network(self, page: _Page, taken_at: float, gathered: Gathered) -> Iterator[str]:
        named = set(page.operstates) | {name for name, values in page.interfaces.items() if "up" in values}
        if named and "netclass" not in page.failed:
            wanted = named if self._interfaces is None else named & (self._interfaces | {"lo"})
            gathered.interfaces = {name: _interface(name, page, taken_at) for name in sorted(wanted)}
            yield "net"
        counters = {
            name: counted
            for name in (page.interfaces if self._interfaces is None else self._interfaces)
            if (counted := _counted(name, page.interfaces.get(name, {}), _INTERFACE_COUNTERS, taken_at)).values
        }
        for (device, port), values in page.ports.items():
            counted = _counted(f"{device}/{port}", values, _INFINIBAND_COUNTERS, taken_at)
            counters |= {counted.name: counted} if counted.values else {}
        if counters:
            gathered.counters = counters
            yield "counters"
        if page.ports:
            gathered.infiniband = tuple(
                _port(device, port, values, page.boards.get(device), taken_at)
                for (device, port), values in sorted(page.ports.items())
            )
            yield "infiniband"

    def _host(self, page: _Page, taken_at: float, gathered: Gathered) -> Iterator[str]:
        if any(system.path == "/" for system in page.systems) and "filesystem" not in page.failed:
            mounts = {system.path: _mount(system, values) for system, values in page.systems.items()}
            gathered.mounts = Mounts(taken_at, mounts)
            gathered.disks = self._disks(page, taken_at)
            yield from ("mounts", "disks")
        if page.time is not None and gathered.heard_at is not None:
            gathered.clock = ClockReading(taken_at, page.time - gathered.heard_at, page.time - taken_at)
            yield "clock"
        booted_at = gathered.booted_at
        if page.booted_at and (booted_at is None or abs(page.booted_at - booted_at) > _BOOT_SLACK_S):
            gathered.booted_at = page.booted_at
        # The kernel counts these events since its start, without times. So they have no time and do not age.
        gathered.host_events = tuple(
            HostEvent(
                None, HostEventKind.MEMORY, f"{SOURCE}: {count:g} uncorrectable memory errors at {name}", device=name
            )
            for name, count in page.memory_errors.items()
            if count > 0
        )

    def _disks(self, page: _Page, taken_at: float) -> Disks:
        judged = {s: values for s, values in page.systems.items() if s.kind in DISK_KINDS or s.path in self._mounts}
        broken = {system.path for system, values in judged.items() if values.get("device_error")}
        uses = [_use(s.path, v) for s, v in judged.items() if s.kind in DISK_KINDS and s.path not in broken]
        return Disks(taken_at, tuple(uses), dict.fromkeys(sorted(broken), f"{SOURCE} cannot read it"))


def _mount(system: _FileSystem, values: Mapping[str, float]) -> Mount:
    """The mount of a file system. Read-only counts as stopped by an error, except for the read-only root of an image.

    Rules look at the root and at the paths that the inventory names.
    """
    by_design = system.kind not in DISK_KINDS or system.device.startswith(_READ_ONLY_BY_DESIGN)
    stopped = bool(values.get("readonly")) and (system.path != "/" or not by_design)
    return Mount(system.path, system.device, system.kind, stopped=stopped)


def _interface(name: str, page: _Page, taken_at: float) -> InterfaceReading:
    values = page.interfaces.get(name, {})
    state = page.operstates.get(name)
    if not state and "up" in values:
        state = "up" if values["up"] else "down"
    speed_mbps = values.get("speed_bytes", -1.0) * _BITS_PER_MB_S
    return InterfaceReading(
        name=name,
        taken_at=taken_at,
        operstate=state or None,
        carrier_changes=count_of(values.get("carrier_changes_total")),
        # If there is no carrier, the kernel reports -1, or 4294967295 if the driver stores the speed unsigned.
        speed_mbps=round(speed_mbps) if 0 <= speed_mbps < 2**32 - 1 else None,
    )


def _port(device: str, port: int, values: Mapping[str, float], board: str | None, taken_at: float) -> InfinibandPort:
    rate = values.get("rate_bytes_per_second")
    return InfinibandPort(
        device=device,
        port=port,
        taken_at=taken_at,
        state=_word(values.get("state_id"), _STATES),
        phys_state=_word(values.get("physical_state_id"), _PHYSICAL_STATES),
        rate=f"{rate * _BITS_PER_MB_S / 1000:g} Gb/sec" if rate else None,
        board=board or None,
    )


def _word(value: float | None, words: Mapping[int, str]) -> str | None:
    number = count_of(value)
    return None if number is None else words.get(number, f"state {number}")


def _counted(name: str, values: Mapping[str, float], names: Mapping[str, str], taken_at: float) -> PortCounters:
    counts = {file: count for metric, file in names.items() if (count := count_of(values.get(metric))) is not None}
    return PortCounters(name, taken_at, counts)


def _use(path: str, values: Mapping[str, float]) -> DiskUse:
    size, free, available = (values.get(f"{what}_bytes", 0.0) for what in ("size", "free", "avail"))
    files, files_free = values.get("files", 0.0), values.get("files_free", 0.0)
    used = size - free
    return DiskUse(
        path,
        used / (used + available) if used + available > 0 else None,
        (files - files_free) / files if files else None,
        available / _GIB,
    )
