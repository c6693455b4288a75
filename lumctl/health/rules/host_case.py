"""One host as its rules are asked about it."""

from collections.abc import Collection
from dataclasses import dataclass

from lumctl.fleet.host_readings import Capacity, ClockReading, ComponentReport, Disks, Mounts, Services
from lumctl.fleet.readings import AcceleratorEvent, HostSnapshot, NicEvent, XidEvent
from lumctl.health.events import HostEvents
from lumctl.health.expectations import Expected
from lumctl.health.trend import Trend
from lumctl.inventory.model import NVIDIA_SMI


@dataclass(frozen=True, slots=True)
class HostCase:
    """One host as collected.

    ``stale`` says how old that is where it is too old to judge. ``needed`` are the probes without which some of its
    inventory cannot be judged. ``stray_xids`` are recent ones of PCI addresses that belong to no accelerator and no
    listed GPU. ``lost`` tells that it was already found unreachable. ``quiet_until`` is the end of the last work on it.
    ``needed_mounts`` are those of the inventory. ``mounts``, ``disks``, ``clock``, ``services`` and ``capacity`` are
    its readings where they are fresh; ``rack_ahead_s`` is by how much the clocks of its rack are ahead of ours, in the
    median. ``nic_events`` are those that belong to no link of the inventory. ``events`` tells which of its XIDs and
    SXids earlier looks saw, ``None`` where nothing is remembered of it.
    ``by_exporters`` tells that it is read over HTTP alone; ``reports`` are other programs' verdicts on it. ``probe``
    reads its accelerators; of a plug-in, ``stray_events`` are recent kernel events that belong to none of them.
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

    @property
    def readable(self) -> bool:
        """Whether what was read of this host says something about now."""
        return self.seen is not None and self.seen.reachable and self.stale is None
