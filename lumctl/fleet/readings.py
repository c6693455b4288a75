"""Readings of the hosts of a rack. Nothing here judges; ``None`` means that the host did not report the value.

Times are seconds since the epoch, temperatures degrees Celsius, memory MiB, powers (electrical) watts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from lumctl.devices.types import Neighbour, OpticsReading
from lumctl.fleet.host_readings import (
    Adapters,
    Capacity,
    ClockReading,
    ComponentReport,
    Disks,
    FabricError,
    HostEvent,
    Mounts,
    Services,
)


class ProbeStatus(StrEnum):
    """How a probe ended."""

    OK = "ok"
    ABSENT = "absent"
    """The host does not have the tool or the file. This is not a fault of the component that the probe would read."""
    DENIED = "denied"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    NOT_ASKED = "not-asked"
    """The host is read by exporters, and none of them has the data of the probe."""


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """One run of one probe, by its name in :mod:`lumctl.fleet.probes` (``gpu``, ``kernel``, ``optics:eth2``, ...)."""

    probe: str
    status: ProbeStatus
    taken_at: float
    seconds: float
    detail: str = ""


class GpuProcess(NamedTuple):
    """A process on a GPU: its id on the host, its program, and the GPU memory that it uses."""

    pid: int
    name: str
    memory_mib: float | None = None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU as nvidia-smi reports it, or as another source reports it in the same terms.

    ``source`` names the program that reported it, such as ``nvidia-smi``, ``amd-smi`` or ``dcgm-exporter``. ``pci`` is
    lower case ``dddd:bb:dd.f`` with a four-digit domain, or the UUID if a source prints no address. ``minor`` does not
    change when another GPU falls off the bus. ``unlisted_by`` names a source that lists other GPUs of the host and not
    this one. ``throttle_reasons`` holds the active reasons by their short names (``hw_slowdown``,
    ``hw_thermal_slowdown``, ``hw_power_brake_slowdown``, ``sw_thermal_slowdown``, ...). ``throttled_us`` has, by the
    same names, for how many microseconds each reason reduced the clocks since the driver was loaded. It lacks
    ``hw_slowdown``, whose parts are counted.

    ``reset_required`` and ``drain_and_reset_recommended`` replace ``recovery_action`` in drivers before 570. ``unread``
    are the leaves that health uses and that contain an error instead of a value. ``says_reset`` is the path of a leaf
    that reports, instead of a value, that the GPU requires a reset. ``raw`` keeps every leaf of the XML by its path, so
    that unknown fields survive.

    ``pcie_replays`` and ``pcie_replay_rollovers`` count since the GPU was reset. ``pcie_tx_kb_s`` and ``pcie_rx_kb_s``
    are the latest traffic. ``nvlink_tx_kb_s`` and ``nvlink_rx_kb_s`` are the traffic of all NVLinks together. If a
    source prints counters instead of rates, they are means over the ``nvlink_rates_over_s`` seconds before
    ``nvlink_rates_at``.

    Errors are counted over the life of a card (``aggregate``) and since its driver was loaded (``volatile``).
    ``inforom_corrupted``: nvidia-smi printed this warning in addition to the XML. ``fabric`` is the GPU's registration
    in the NVLink fabric, if reported: ``state``, ``status``, and the parts of its ``health``, by their paths under
    ``<fabric>``. ``vendor_values`` are values that only one vendor's tool reports, by the names that its probe has.
    """

    taken_at: float
    pci: str
    minor: int | None = None
    uuid: str | None = None
    product: str | None = None
    driver: str | None = None
    firmware: str | None = None
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
    sram_aggregate_uncorrectable: int | None = None
    dram_aggregate_uncorrectable: int | None = None
    ecc_volatile_correctable: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    remap_uncorrectable: int | None = None
    retired_single_bit: int | None = None
    retired_double_bit: int | None = None
    retirement_pending: bool | None = None
    sram_threshold_exceeded: bool | None = None
    unrepairable_memory: bool | None = None
    channel_repair_pending: bool | None = None
    tpc_repair_pending: bool | None = None
    banks_without_spare_rows: int | None = None
    inforom_corrupted: bool = False
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None
    pcie_replay_rollovers: int | None = None
    pcie_tx_kb_s: float | None = None
    pcie_rx_kb_s: float | None = None
    nvlink_tx_kb_s: float | None = None
    nvlink_rx_kb_s: float | None = None
    nvlink_rates_at: float | None = None
    nvlink_rates_over_s: float | None = None
    memory_utilization_percent: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    application_clock_mhz: float | None = None
    ecc_enabled: bool | None = None
    persistence_enabled: bool | None = None
    throttled_us: Mapping[str, int] = field(default_factory=dict)
    throttle_reasons: frozenset[str] = frozenset()
    fabric: Mapping[str, str] = field(default_factory=dict)
    processes: tuple[GpuProcess, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    says_reset: str | None = None
    raw: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: str = "nvidia-smi"
    unlisted_by: str | None = None
    vendor_values: Mapping[str, float | bool | str] = field(default_factory=dict)

    @property
    def mig_enabled(self) -> bool:
        """Whether the GPU is partitioned into instances (MIG), which use no NVLink."""
        return self.raw.get("mig_mode/current_mig") == "Enabled"

    @property
    def is_idle(self) -> bool:
        """Whether no process is on it and it does nothing; if its utilisation is not reported, that is unknown."""
        return not self.processes and self.utilization_percent == 0


ALL_NVLINKS = -1
"""Used instead of a link's number if nvidia-smi reports, for all links of a GPU at once, that none is active."""

NVLINK_TOTAL = -2
"""Used instead of a link's number if a source counts the errors of all links of a GPU together."""


@dataclass(frozen=True, slots=True)
class NvlinkReading:
    """One NVLink of one GPU. ``index`` is the GPU's place in nvidia-smi's list, ``uuid`` its UUID if printed.

    ``link`` is the link's number, :data:`ALL_NVLINKS`, or :data:`NVLINK_TOTAL` (``active`` is then unknown).
    ``speed_gb_s`` is ``None`` for a link that is not active. The counters are read separately from the state, at
    ``errors_at``, and count since the driver was loaded. ``errors`` holds all of them under the names that nvidia-smi
    prints, in lower case. NVLink 5 does not count replays; it states ``effective_ber`` instead.
    """

    taken_at: float
    index: int
    uuid: str | None
    link: int
    active: bool | None = None
    speed_gb_s: float | None = None
    errors_at: float | None = None
    replay_errors: int | None = None
    recovery_errors: int | None = None
    crc_errors: int | None = None
    effective_ber: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class XidEvent:
    """One XID line of the kernel log. ``stamp`` is its time as the kernel wrote it."""

    at: float | None
    pci: str
    xid: int
    text: str
    stamp: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """The event's identity within its host and boot; it is the same each time the log is read."""
        return (self.stamp, self.pci, str(self.xid), self.text)


@dataclass(frozen=True, slots=True)
class SxidEvent:
    """One SXid line: an NVSwitch's error report. ``fatal`` and ``link`` are ``None`` if the line does not have them."""

    at: float | None
    pci: str
    sxid: int
    text: str
    stamp: str = ""
    fatal: bool | None = None
    link: int | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """As in :class:`XidEvent`."""
        return (self.stamp, self.pci, str(self.sxid), self.text)


@dataclass(frozen=True, slots=True)
class AcceleratorEvent:
    """One kernel line about an accelerator that a probe plug-in reads, of a kind that the plug-in declares.

    The line names the accelerator by ``pci``, by its ``minor`` number, or not at all.
    """

    at: float | None
    pci: str | None
    minor: int | None
    kind: str
    text: str
    stamp: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """As in :class:`XidEvent`."""
        return (self.stamp, self.pci or "", "" if self.minor is None else str(self.minor), self.kind, self.text)


class NicEventKind(StrEnum):
    """What a network driver reports in the kernel log."""

    LINK_UP = "link-up"
    LINK_DOWN = "link-down"
    FATAL = "fatal"
    """The firmware or the device died: a health report, a failed assertion, a reset by force."""
    TX_TIMEOUT = "tx-timeout"
    TEMPERATURE = "temperature"
    CABLE = "cable"
    """A module or cable was unplugged, or the port does not support it."""
    CABLE_ERROR = "cable-error"
    """A module or cable that is plugged in does not work."""
    PLUGGED = "plugged"
    """A module or cable was plugged in, so earlier reports about the previous one no longer hold."""
    COMMAND = "command"
    """The card did not answer a driver command. The command's resources are lost until the driver is loaded again."""
    QUEUE = "queue"
    """A queue of the card stopped with an error."""
    PCIE = "pcie"
    """An error of the PCI Express link to the device."""


@dataclass(frozen=True, slots=True)
class NicEvent:
    """One line of a network driver. ``interface`` and ``pci`` are what it names; one of them may be missing."""

    at: float | None
    interface: str | None
    pci: str | None
    kind: NicEventKind
    text: str
    stamp: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """As in :class:`XidEvent`."""
        return (self.stamp, self.interface or "", self.pci or "", self.kind.value, self.text)


@dataclass(frozen=True, slots=True)
class InterfaceReading:
    """One network interface from /sys/class/net. ``speed_mbps`` is ``None`` if the kernel prints -1 or nothing."""

    name: str
    taken_at: float
    operstate: str | None = None
    carrier_changes: int | None = None
    speed_mbps: int | None = None


@dataclass(frozen=True, slots=True)
class InfinibandPort:
    """One port from /sys/class/infiniband: ``state`` and ``phys_state`` without their numbers.

    ``rate`` is as the kernel prints it (``400 Gb/sec (4X NDR)``), ``board`` the model of its card.
    """

    device: str
    port: int
    taken_at: float
    state: str | None = None
    phys_state: str | None = None
    rate: str | None = None
    board: str | None = None


@dataclass(frozen=True, slots=True)
class PortCounters:
    """The counters of one port since its driver was loaded, by the names of the kernel's files.

    ``name`` is a network interface (``eth2``) or an InfiniBand device and port (``mlx5_0/1``). A counter may saturate,
    wrap, or start again when its driver is loaded.
    """

    name: str
    taken_at: float
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """All readings of one collection from one host. ``error`` is the reason if no session could be opened.

    ``host_key_problem`` distinguishes an unknown or changed host key from a network without an answer. ``lost_gpus``
    are PCI addresses that nvidia-smi itself names as lost. Each reading has its own ``taken_at``, because probes run at
    their own cadence. ``counters`` are by the name of their port. ``reports`` are verdicts of other programs.
    ``boot_id`` changes when the host restarts. ``attempts`` counts the failed connects since the last successful one.
    ``crashes`` are the times of the records that crashed kernels left. ``awaited`` means that at least one probe has
    not ended once since this process began to read the host.
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
    sxids: tuple[SxidEvent, ...] = ()
    nic_events: tuple[NicEvent, ...] = ()
    nvlinks: tuple[NvlinkReading, ...] = ()
    counters: Mapping[str, PortCounters] = field(default_factory=dict)
    boot_id: str | None = None
    booted_at: float | None = None
    attempts: int = 0
    host_events: tuple[HostEvent, ...] = ()
    mounts: Mounts | None = None
    disks: Disks | None = None
    clock: ClockReading | None = None
    crashes: tuple[float, ...] = ()
    fabric_errors: tuple[FabricError, ...] = ()
    services: Services | None = None
    capacity: Capacity | None = None
    adapters: Adapters = field(default_factory=Adapters)
    awaited: bool = False
    reports: tuple[ComponentReport, ...] = ()
    accelerator_events: tuple[AcceleratorEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One collection from all hosts of an inventory, by host name."""

    taken_at: float
    seconds: float
    hosts: Mapping[str, HostSnapshot]
