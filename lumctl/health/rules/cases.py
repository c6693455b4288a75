"""The input of the rules: one host, accelerator or link with its readings and its expected values."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from lumctl.devices.types import OpticsReading
from lumctl.fleet.host_readings import Capacity, ClockReading, ComponentReport, Disks, Mounts, Services
from lumctl.fleet.readings import (
    AcceleratorEvent,
    GpuReading,
    HostSnapshot,
    InfinibandPort,
    InterfaceReading,
    NicEvent,
    NvlinkReading,
    XidEvent,
)
from lumctl.health.events import HostEvents
from lumctl.health.lateness import RankLateness
from lumctl.health.trend import Trend
from lumctl.inventory.model import NVIDIA_SMI, Thresholds


class Expected(NamedTuple):
    """An expected value and its source."""

    value: float
    source: str


class PortRate(NamedTuple):
    """The rate of a port: Gb/s, and electrical lanes if known."""

    gb_s: float
    lanes: int | None = None


@dataclass(frozen=True, slots=True)
class Usual:
    """The value of a setting that ``alike`` of ``total`` GPUs have."""

    value: float
    alike: int
    total: int


@dataclass(frozen=True, slots=True)
class HostCase:
    """One collected host.

    ``stale`` is the age of its readings, in words, if they are too old to judge. ``needed`` are the probes without
    which some components of the host cannot be judged. ``stray_xids`` are recent XIDs with a PCI address of no
    accelerator and no listed GPU; they may be of ``without_slot``, the accelerators whose address is not known.
    ``lost``: the host was already found unreachable. ``quiet_until`` is the end of the last work on it.
    ``needed_mounts`` are the mounts that the inventory names. ``mounts``, ``disks``, ``clock``, ``services`` and
    ``capacity`` are its readings if they are fresh. ``rack_ahead_s`` is how far the clocks of its rack are ahead of
    this machine's, as a median. ``nic_events`` are network drivers' lines that concern no link of the inventory.
    ``events`` are its remembered kernel events, ``None`` if nothing is remembered. ``by_exporters``: the host is read
    only over HTTP. ``reports`` are other programs' verdicts on it. ``probe`` is the probe that reads its accelerators;
    ``stray_events`` are recent kernel events of a probe plug-in that belong to no accelerator.
    """

    id: str
    seen: HostSnapshot | None
    stale: str | None
    needed: Collection[str]
    stray_xids: tuple[XidEvent, ...]
    read_at: float
    now: float
    lost: bool = False
    quiet_until: float = 0.0
    needed_mounts: Collection[str] = ()
    mounts: Mounts | None = None
    disks: Disks | None = None
    clock: ClockReading | None = None
    rack_ahead_s: float | None = None
    nic_events: Collection[NicEvent] = ()
    rdma_ports: int | None = None
    expected_rdma_ports: Expected | None = None
    events: HostEvents | None = None
    services: Services | None = None
    capacity: Capacity | None = None
    expected_memory_gib: Expected | None = None
    expected_processors: Expected | None = None
    trend: Trend | None = None
    by_exporters: bool = False
    reports: tuple[ComponentReport, ...] = ()
    probe: str = NVIDIA_SMI
    stray_events: tuple[AcceleratorEvent, ...] = ()
    without_slot: Collection[str] = ()

    @property
    def readable(self) -> bool:
        """Whether the readings of this host are current."""
        return self.seen is not None and self.seen.reachable and self.stale is None


class Absence(StrEnum):
    """How an accelerator is missing from the answer of its probe."""

    NAMED_LOST = "named-lost"
    NOT_LISTED = "not-listed"
    NOT_TOLD_APART = "not-told-apart"
    LIST_ABORTED = "list-aborted"


@dataclass(frozen=True, slots=True)
class GpuCase:
    """One accelerator with all its data of one collection.

    ``reading`` is its reading if that is fresh, otherwise ``None``; ``stale`` is then the reading's age, in words.
    ``xids`` are the XIDs at its PCI address that count. ``nvlinks`` are its recently read links. ``trend`` is its
    recorded history, ``None`` if nothing is recorded. ``beside`` is the number of other GPUs that its host lists.
    ``usual`` has the values of most GPUs of its kind in its rack, by setting. ``events`` are the remembered kernel
    events of its host, ``None`` if nothing is remembered. ``source`` is the program that lists the GPUs of its host.
    ``reports`` are other programs' verdicts on the accelerator. ``probe`` is the probe that reads its host's
    accelerators; if that is a plug-in, ``vendor_events`` are its kernel events about this accelerator that count.
    ``lateness``: its rank is late for the collectives of its job.
    """

    id: str
    reading: GpuReading | None
    stale: str | None
    absence: Absence | None
    xids: tuple[XidEvent, ...]
    thresholds: Thresholds
    read_at: float
    nvlinks: tuple[NvlinkReading, ...] = ()
    trend: Trend | None = None
    beside: int = 0
    usual: Mapping[str, Usual] = field(default_factory=dict)
    expected_nvlinks: Expected | None = None
    expected_pcie_width: Expected | None = None
    events: HostEvents | None = None
    source: str = "nvidia-smi"
    reports: tuple[ComponentReport, ...] = ()
    probe: str = NVIDIA_SMI
    vendor_events: tuple[AcceleratorEvent, ...] = ()
    now: float = 0.0
    lateness: RankLateness | None = None


@dataclass(frozen=True, slots=True)
class LinkCase:
    """One transponder with the fresh readings of its interface and module.

    ``in_use``: a circuit ends here; a lane without a circuit may be dark and without carrier. ``listed``: the host
    listed its interfaces, so an interface that is not listed is missing. ``stale`` is the age, in words, of readings
    that are too old to judge. ``rx_sensitivity_dbm`` comes from the inventory. ``nic_events`` are the kernel log's
    lines about its interface. ``trend`` is its recorded history, ``None`` if nothing is recorded.
    ``unread``: no source of its host reports modules. ``rates`` are the rates of its ports; the expected values come
    from the inventory or from the majority in the rack.
    """

    id: str
    name: str
    in_use: bool
    listed: bool
    stale: str | None
    interface: InterfaceReading | None
    optics: OpticsReading | None
    infiniband: tuple[InfinibandPort, ...]
    rx_sensitivity_dbm: float
    read_at: float
    now: float = 0.0
    nic_events: tuple[NicEvent, ...] = ()
    trend: Trend | None = None
    rates: tuple[PortRate, ...] = ()
    expected_rate: Expected | None = None
    expected_lanes: int | None = None
    expected_part: str | None = None
    unread: bool = False
