"""One observation of a rack: a collection with its inventory, and which of its readings are still current."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import TypeVar

from lumctl.fleet.host_readings import Capacity, ClockReading, ComponentReport, Disks, Mounts, Services
from lumctl.fleet.parsers.nic_log import is_rdma_device
from lumctl.fleet.readings import (
    AcceleratorEvent,
    GpuReading,
    HostSnapshot,
    NicEvent,
    NvlinkReading,
    PortCounters,
    ProbeStatus,
    Snapshot,
    XidEvent,
)
from lumctl.health.events import HostEvents
from lumctl.health.identity import TransmitterNames, addresses, match_gpus, match_nvlinks, pci_slot, recent
from lumctl.health.lateness import NOBODY_LATE, Lateness
from lumctl.health.probe_rules import rules_of
from lumctl.health.rulebook import verdict
from lumctl.health.states import State
from lumctl.health.trend import Trend
from lumctl.inventory.model import Accelerator, Inventory, Thresholds, Transponder
from lumctl.inventory.wiring import Circuit

R = TypeVar("R", Mounts, Disks, ClockReading, Services, Capacity)
Place = tuple[str, str]
"""A component: its kind and its id. The id alone is not unique: a host and its only accelerator may share a name."""


@dataclass(frozen=True)
class Past:
    """The memory of earlier observations.

    ``lost`` are the hosts that were already found unreachable; ``quiet_until`` is when work on a host last ended.
    ``events`` are the XIDs and SXids that count, by host; for a missing host, those in its log count.
    """

    trends: Mapping[Place, Trend] = field(default_factory=dict)
    lost: Collection[str] = ()
    quiet_until: Mapping[str, float] = field(default_factory=dict)
    events: Mapping[str, HostEvents] = field(default_factory=dict)


@dataclass(frozen=True)
class HostLook:
    """One collected host, with its readings assigned to its accelerators.

    ``slots`` are the known PCI slots of its accelerators. ``xids`` are the XIDs that count: those of ``events`` if
    events are remembered, otherwise the recent ones of the log. ``vendor_events`` are the kernel events of a probe
    plug-in, chosen in the same way. Readings from before ``stale_before`` are not current.
    """

    seen: HostSnapshot
    accelerators: tuple[Accelerator, ...]
    gpus: dict[str, GpuReading]
    slots: dict[str, str]
    xids: tuple[XidEvent, ...]
    nvlinks: Mapping[str, tuple[NvlinkReading, ...]]
    stale_before: float
    events: HostEvents | None = None
    vendor_events: tuple[AcceleratorEvent, ...] = ()

    def probe_ended_well(self, probe: str) -> bool:
        """Whether a probe recently returned a complete answer: only then is a missing part of it a fault."""
        outcome = self.seen.probes.get(probe)
        return outcome is not None and outcome.status is ProbeStatus.OK and outcome.taken_at >= self.stale_before

    @cached_property
    def ports(self) -> dict[str, list[PortCounters]]:
        """The port counters, by interface or InfiniBand device; an InfiniBand device may have several ports."""
        found: dict[str, list[PortCounters]] = {}
        for name, port in self.seen.counters.items():
            found.setdefault(name.partition("/")[0], []).append(port)
        return found

    def ports_of(self, interface: str) -> list[PortCounters]:
        """The counters of an interface or RDMA device, and of the RDMA device at the same PCI address.

        RoCE traffic is counted under the name of the RDMA device. If two interfaces share a PCI address, their counts
        cannot be separated, so those of the RDMA device are omitted.
        """
        adapters = self.seen.adapters
        if not adapters.rdma_devices:
            return self.ports.get(interface, [])
        pci = adapters.interfaces.get(interface)
        shared = sum(address == pci for address in adapters.interfaces.values()) > 1
        devices = [name for name, address in adapters.rdma_devices.items() if address == pci and not shared]
        return [port for name in dict.fromkeys((interface, *devices)) for port in self.ports.get(name, ())]

    def nic_events_of(self, interface: str) -> tuple[NicEvent, ...]:
        """The network drivers' log lines about an interface or RDMA device, by its name or its card's PCI address."""
        return tuple(event for event in self.seen.nic_events if self._is_of(event, interface))

    def foreign_nic_events(self, lanes: Collection[Transponder]) -> tuple[NicEvent, ...]:
        """The network drivers' log lines about none of these lanes, nor about an interface outside the inventory."""
        return tuple(
            event
            for event in self.seen.nic_events
            if (event.interface is None or is_rdma_device(event.interface))
            and not any(self._is_of(event, lane.interface) for lane in lanes)
        )

    def _is_of(self, event: NicEvent, interface: str) -> bool:
        if event.interface == interface:
            return True
        if event.interface is not None and not is_rdma_device(event.interface):
            return False
        adapters = self.seen.adapters
        here = adapters.interfaces.get(interface) or adapters.rdma_devices.get(interface)
        there = event.pci or adapters.rdma_devices.get(event.interface or "")
        return here is not None and here == there

    def vendor_events_of(self, accelerator: Accelerator) -> tuple[AcceleratorEvent, ...]:
        """The kernel events about one accelerator, by the PCI address or the minor number that a line names.

        A line that names neither is assigned only if the host has a single accelerator.
        """
        if not self.vendor_events:
            return ()
        slot, reading = self.slots.get(accelerator.id), self.gpus.get(accelerator.id)
        minor = reading.minor if reading is not None and reading.minor is not None else accelerator.index
        alone = len(self.accelerators) == 1
        return tuple(
            event
            for event in self.vendor_events
            if (
                pci_slot(event.pci) == slot
                if event.pci is not None
                else event.minor == minor
                if event.minor is not None
                else alone
            )
        )

    @property
    def without_slot(self) -> tuple[str, ...]:
        """The accelerators whose PCI slot is not known."""
        return tuple(accelerator.id for accelerator in self.accelerators if accelerator.id not in self.slots)

    @property
    def stray_xids(self) -> tuple[XidEvent, ...]:
        """XIDs whose PCI address belongs to no accelerator and no listed GPU."""
        owned = {*self.slots.values(), *(pci_slot(gpu.pci) for gpu in self.seen.gpus)}
        return tuple(event for event in self.xids if pci_slot(event.pci) not in owned)


PortPower = Callable[[str, int], float | None]
"""Power (dBm) that a device measures at a port, by device id and port; ``None`` where it does not measure."""


def no_port_power(_device: str, _port: int) -> None:
    """The power at a port if devices are not read: never known."""
    return


ReadCells = Callable[[str], Mapping[int, str]]
"""The states of a mesh by PUC, read from the device."""


def no_cells(_device: str) -> Mapping[int, str]:
    """The states of a mesh that is not read: none."""
    return {}


@dataclass(frozen=True)
class LightEvidence:
    """Other evidence of where light is lost.

    ``cells`` are the intended states of each device, empty if uncertain. ``port_power`` reads the power at a port of
    a device, ``read_cells`` the states of a mesh, empty if it cannot be read back. Both are called only if light is
    lost.
    """

    cells: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    port_power: PortPower = no_port_power
    read_cells: ReadCells = no_cells


NO_EVIDENCE = LightEvidence()


@dataclass(frozen=True)
class Look:
    """A collection with its inventory. ``disabled`` are the accelerators out of service.

    ``past`` is empty if nothing is remembered; rules about time then find nothing. ``moved`` has the time when a run
    last changed the light path of a link or circuit: readings from before that time do not count. ``lateness`` says
    which ranks are late in their jobs.
    """

    inventory: Inventory
    snapshot: Snapshot
    circuits: tuple[Circuit, ...]
    disabled: Collection[str]
    now: float
    past: Past = field(default_factory=Past)
    moved: Mapping[Place, float] = field(default_factory=dict)
    light: LightEvidence = NO_EVIDENCE
    lateness: Lateness = NOBODY_LATE

    @property
    def limits(self) -> Thresholds:
        """The operator's thresholds."""
        return self.inventory.thresholds

    @cached_property
    def in_use(self) -> frozenset[str]:
        """The transponders at which a circuit ends."""
        return frozenset(end.transponder for circuit in self.circuits for end in (circuit.a, circuit.b))

    @cached_property
    def lanes(self) -> dict[str, list[Transponder]]:
        """The transponders of each host."""
        by_host: dict[str, list[Transponder]] = {name: [] for name in self.inventory.hosts}
        for transponder in self.inventory.transponders.values():
            by_host[transponder.host].append(transponder)
        return by_host

    @cached_property
    def collected(self) -> dict[str, HostLook]:
        """Every host in the collection, regardless of the age of its readings."""
        found: dict[str, HostLook] = {}
        for host in self.inventory.hosts:
            seen = self.snapshot.hosts.get(host)
            if seen is not None:
                events = self.past.events.get(host)
                if events is not None:
                    # Before `addresses`, which may take the address of a lost GPU from a remembered XID.
                    seen = replace(seen, xids=events.xids, sxids=events.sxids)
                accelerators = self.accelerators[host]
                gpus = match_gpus(accelerators, seen.gpus)
                slots = addresses(accelerators, gpus, seen, events.slots if events is not None else {})
                max_age_s = self.limits.xid_max_age_s
                recently = recent(seen.xids, now=self.now, max_age_s=max_age_s, booted_at=seen.booted_at)
                xids = recently if events is None else events.xids
                nvlinks = match_nvlinks(gpus, seen) if seen.nvlinks else {}
                stale_before = self.now - self.limits.stale_after_s
                lately = recent(seen.accelerator_events, now=self.now, max_age_s=max_age_s, booted_at=seen.booted_at)
                vendor_events = lately if events is None else events.vendor
                found[host] = HostLook(
                    seen, accelerators, gpus, slots, xids, nvlinks, stale_before, events, vendor_events
                )
        return found

    def stray_events(self, host: str) -> tuple[AcceleratorEvent, ...]:
        """Kernel events that a rule of the host's probe plug-in uses and that belong to no accelerator."""
        here = self.collected[host]
        if not here.vendor_events:
            return ()
        rules = rules_of(self.inventory.hosts[host].probe).rules
        telling = {rule.event for rule in rules if rule.event and rule.line.state is not State.OK}
        owned = {event for accelerator in here.accelerators for event in here.vendor_events_of(accelerator)}
        listed = {pci_slot(gpu.pci) for gpu in here.seen.gpus}
        return tuple(
            event
            for event in here.vendor_events
            if event.kind in telling and event not in owned and (event.pci is None or pci_slot(event.pci) not in listed)
        )

    @cached_property
    def accelerators(self) -> dict[str, tuple[Accelerator, ...]]:
        """The accelerators of each host, in the order of the inventory."""
        by_host: dict[str, list[Accelerator]] = {name: [] for name in self.inventory.hosts}
        for accelerator in self.inventory.accelerators.values():
            by_host[accelerator.host].append(accelerator)
        return {host: tuple(found) for host, found in by_host.items()}

    @cached_property
    def announced_lanes(self) -> TransmitterNames:
        """The transmitters by the names that neighbours announce."""
        return TransmitterNames(self.inventory)

    def trend(self, kind: str, component: str) -> Trend | None:
        """The trend of a component, if one is recorded."""
        return self.past.trends.get((kind, component))

    def readable(self, host: str) -> HostLook | None:
        """The readings of a host, if it was reached and they are not too old."""
        look = self.collected.get(host)
        return look if look and look.seen.reachable and not self.stale(look.seen.taken_at) else None

    def age(self, taken_at: float) -> float:
        """How old a reading is, in seconds."""
        return max(self.now - taken_at, 0.0)

    def stale(self, taken_at: float) -> bool:
        """Whether a reading is too old to be current."""
        return self.age(taken_at) > self.limits.stale_after_s

    def outdated(self, taken_at: float, *places: Place) -> bool:
        """Whether a run changed the light path of one of these components after the time of a reading."""
        return any(taken_at < self.moved[place] for place in places if place in self.moved)

    def reports_of(self, here: HostLook, accelerator: Accelerator | None) -> tuple[ComponentReport, ...]:
        """Recent verdicts of other programs about an accelerator; with ``None``, those about none of the host's."""
        if not here.seen.reports:
            return ()
        reports = [report for report in here.seen.reports if not self.stale(report.taken_at)]
        names = {each.id: self._names_of(here, each) for each in here.accelerators}
        if accelerator is not None:
            return tuple(report for report in reports if report.devices & names[accelerator.id])
        return tuple(report for report in reports if not any(report.devices & each for each in names.values()))

    @staticmethod
    def _names_of(here: HostLook, accelerator: Accelerator) -> frozenset[str]:
        reading = here.gpus.get(accelerator.id)
        known = [accelerator.pci, accelerator.uuid]
        known += [reading.pci, reading.uuid] if reading is not None else []
        return frozenset(name.lower() for name in known if name)

    def stale_nvlink(self, link: NvlinkReading) -> bool:
        """Whether the reading of an NVLink is too old; NVLinks are read less often, so their limit is longer."""
        return link.taken_at < self._oldest_nvlink

    @cached_property
    def _oldest_nvlink(self) -> float:
        return self.now - self.limits.stale_after_s - self.inventory.probes["nvlink"].every_s

    def fresh(self, kind: str, reading: R | None) -> R | None:
        """A reading, unless it is older than the age limit plus the interval at which its probe runs."""
        oldest = self.limits.stale_after_s + self.inventory.probes[kind].every_s
        return reading if reading is not None and self.age(reading.taken_at) <= oldest else None

    @cached_property
    def ahead_s(self) -> dict[str, float]:
        """How far the clocks of each rack are ahead of this machine's, as a median; racks with too few are omitted."""
        found: dict[str, list[float]] = {}
        for name, host in self.inventory.hosts.items():
            here = self.readable(name)
            clock = self.fresh("clock", here.seen.clock) if here is not None else None
            if clock is not None:
                # The middle of the range: a clock is known only within the time that its answer took.
                found.setdefault(host.rack, []).append((clock.least_ahead_s + clock.most_ahead_s) / 2)
        least = verdict("host.clock", "apart").limits["least"]
        return {rack: median(ahead) for rack, ahead in found.items() if len(ahead) >= least}

    def stale_evidence(self, taken_at: float) -> str:
        """How old a reading is, in words."""
        return f"last read {self.age(taken_at):.0f} s ago (limit: {self.limits.stale_after_s:g} s)"
