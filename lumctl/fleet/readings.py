"""What was read from the hosts of a rack. Nothing here judges; ``None`` means that the host did not say.

Times are seconds since the epoch, temperatures degrees Celsius, memory MiB, powers (electrical) watts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lumctl.devices.types import Neighbour, OpticsReading


class ProbeStatus(StrEnum):
    """How a probe ended."""

    OK = "ok"
    ABSENT = "absent"
    """The host does not have the tool or the file: not a fault of what it would read."""
    DENIED = "denied"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """One run of one probe (``gpu``, ``kernel``, ``net``, ``infiniband``, ``lldp``, ``optics:eth2``)."""

    probe: str
    status: ProbeStatus
    taken_at: float
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU as nvidia-smi prints it.

    ``minor`` is stable when a sibling falls off the bus; ``pci`` is lower case ``dddd:bb:dd.f`` with a four-digit
    domain. ``throttle_reasons`` holds the active ones by their short names
    (``hw_slowdown``, ``hw_thermal_slowdown``, ``hw_power_brake_slowdown``, ``sw_thermal_slowdown``, ...).
    ``reset_required`` and ``drain_and_reset_recommended`` are how drivers before 570 ask for what ``recovery_action``
    says since. ``unread`` are the leaves that health is read from and that hold an error in place of a value;
    ``says_reset`` is one that says instead that the GPU requires a reset.
    ``raw`` keeps every leaf of the XML by its path, so that unknown fields survive.
    """

    taken_at: float
    pci: str
    minor: int | None = None
    uuid: str | None = None
    product: str | None = None
    recovery_action: str | None = None
    reset_required: bool | None = None
    drain_and_reset_recommended: bool | None = None
    temperature_c: float | None = None
    temperature_slowdown_c: float | None = None
    temperature_max_c: float | None = None
    memory_temperature_c: float | None = None
    memory_temperature_max_c: float | None = None
    utilization_percent: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    power_w: float | None = None
    ecc_volatile_uncorrectable: int | None = None
    ecc_aggregate_uncorrectable: int | None = None
    ecc_volatile_correctable: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    remap_uncorrectable: int | None = None
    retired_single_bit: int | None = None
    retired_double_bit: int | None = None
    retirement_pending: bool | None = None
    sram_threshold_exceeded: bool | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    throttle_reasons: frozenset[str] = frozenset()
    processes: tuple[tuple[int, str], ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    says_reset: str | None = None
    raw: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class XidEvent:
    """One XID line of the kernel log."""

    at: float | None
    pci: str
    xid: int
    text: str


@dataclass(frozen=True, slots=True)
class InterfaceReading:
    """One network interface from /sys/class/net. ``speed_mbps`` is ``None`` where the kernel prints -1 or nothing."""

    name: str
    taken_at: float
    operstate: str | None = None
    carrier_changes: int | None = None
    speed_mbps: int | None = None


@dataclass(frozen=True, slots=True)
class InfinibandPort:
    """One port from /sys/class/infiniband: ``state`` and ``phys_state`` without their numbers, counters by name."""

    device: str
    port: int
    taken_at: float
    state: str | None = None
    phys_state: str | None = None
    rate: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """All that one collection learnt of one host. ``error`` is set where no session could be had.

    ``host_key_problem`` tells an unknown or changed host key from a silent network. ``lost_gpus`` are PCI addresses
    that nvidia-smi itself names as lost.
    """

    host: str
    taken_at: float
    reachable: bool
    error: str | None = None
    host_key_problem: bool = False
    connect_seconds: float | None = None
    probes: Mapping[str, ProbeOutcome] = field(default_factory=dict)
    gpus: tuple[GpuReading, ...] = ()
    lost_gpus: tuple[str, ...] = ()
    xids: tuple[XidEvent, ...] = ()
    interfaces: Mapping[str, InterfaceReading] = field(default_factory=dict)
    infiniband: tuple[InfinibandPort, ...] = ()
    optics: Mapping[str, OpticsReading] = field(default_factory=dict)
    neighbours: Mapping[str, tuple[Neighbour, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One collection of a whole inventory, by host name."""

    taken_at: float
    seconds: float
    hosts: Mapping[str, HostSnapshot]
