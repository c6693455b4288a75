"""Readings of the host itself, not its GPUs: kernel log, mounts, disks, clock, services, memory, network cards.

Times are seconds since the epoch; ``None`` means that the host did not report the value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

DISK_KINDS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "nilfs2", "reiserfs"})
"""Kinds of file systems on disks. Images (squashfs, iso9660) are always full; overlays lie on another file system."""


class HostEventKind(StrEnum):
    """The kind of an event that the kernel log reports about the host itself, not its GPUs."""

    MEMORY = "memory"
    """An uncorrectable error of the main memory."""
    MACHINE_CHECK = "machine-check"
    """An uncorrected error of a processor, or one that the firmware reports."""
    FILESYSTEM = "filesystem"
    """A file system that no longer accepts writes: read-only after an error, or shut down."""
    HUNG_TASK = "hung-task"
    LOCKUP = "lockup"
    """A processor that got stuck in the kernel."""
    OUT_OF_MEMORY = "out-of-memory"
    """The host had no memory left and killed a process."""
    JOB_KILLED = "job-killed"
    """A process of a job was killed because the job's own memory limit was reached."""
    MEMORY_LIMIT = "memory-limit"
    """As ``JOB_KILLED``, for a process that is unknown to belong to a job."""
    NVME_RESET = "nvme-reset"
    NVME_LOST = "nvme-lost"
    DISK = "disk"
    """A disk or a file system could not read or write, or found its contents damaged."""
    FILE_SERVER = "file-server"
    """A file server does not answer."""
    FILE_SERVER_BACK = "file-server-back"
    """A file server answers again."""
    FILE_LIMIT = "file-limit"
    """The host can open no more files."""
    GPU_START = "gpu-start"
    """The driver cannot start a GPU."""
    PANIC = "panic"


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One line of the kernel log about the host. ``device`` is what the line names.

    It is a PCI address, a disk, a file system's device, or a process id.
    """

    at: float | None
    kind: HostEventKind
    text: str
    device: str | None = None
    stamp: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """The event's identity within its host and boot; it is the same each time the log is read."""
        return (self.stamp, self.kind.value, self.device or "", self.text)


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted file system. ``stopped`` means that the kernel accepts no more writes to it, because of an error."""

    path: str
    source: str
    kind: str
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Mounts:
    """All mounted file systems, by path. Of several at one path, the last one counts, because it hides the others."""

    taken_at: float
    by_path: Mapping[str, Mount]


@dataclass(frozen=True, slots=True)
class DiskUse:
    """How full a local file system is: used space and inodes as fractions of 1, ``None`` if it does not count them."""

    path: str
    used: float | None
    inodes_used: float | None
    free_gib: float


@dataclass(frozen=True, slots=True)
class Disks:
    """The local file systems on disks. ``unreadable`` are the ones that answer with an error, by path."""

    taken_at: float
    uses: tuple[DiskUse, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClockReading:
    """How many seconds a host's clock is ahead of ours: a range, because the answer took some time."""

    taken_at: float
    least_ahead_s: float
    most_ahead_s: float


@dataclass(frozen=True, slots=True)
class Service:
    """A unit of systemd on the host, in systemd's own words.

    ``state`` is its ActiveState (``active``, ``failed``, ``inactive``, ...), ``sub_state`` its SubState (``running``,
    ``auto-restart``, ...); ``enabled``: it starts with the host. ``restarts`` counts automatic restarts by systemd,
    and is reset by a manual start.
    """

    name: str
    state: str
    sub_state: str
    enabled: bool
    restarts: int | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """The units that GPUs need, by name without ``.service``; units that the host does not have are omitted."""

    taken_at: float
    by_name: Mapping[str, Service] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FabricError:
    """One line of the fabric manager's log that reports an error."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """The main memory and the processors (hardware threads) that the kernel uses."""

    taken_at: float
    memory_gib: float | None = None
    processors: int | None = None


@dataclass(frozen=True, slots=True)
class Adapters:
    """The PCI address of each network interface of the inventory, and of each RDMA device of the host."""

    interfaces: Mapping[str, str] = field(default_factory=dict)
    rdma_devices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComponentReport:
    """The verdict of another program on a part of the host, such as gpud's on a component.

    ``health`` is that program's word in lower case (``unhealthy``, ``degraded``, ...); ``devices`` are the PCI
    addresses and UUIDs of GPUs that it names, in lower case.
    """

    taken_at: float
    source: str
    component: str
    health: str
    reason: str = ""
    devices: frozenset[str] = frozenset()
