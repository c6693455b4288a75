"""Answers of probes, and the readings gathered from them, which are kept from tick to tick."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol, TypeVar

from lumctl.devices.formats.complaint import first_line, is_denial
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
from lumctl.fleet.parsers.fields import is_missing_tool, said_in
from lumctl.fleet.parsers.kernel_log import KernelEvents
from lumctl.fleet.parsers.nvlink import NvlinkTraffic
from lumctl.fleet.parsers.smi_cache import SmiCache
from lumctl.fleet.readings import (
    AcceleratorEvent,
    GpuReading,
    InfinibandPort,
    InterfaceReading,
    NicEvent,
    NvlinkReading,
    PortCounters,
    ProbeOutcome,
    ProbeStatus,
    SxidEvent,
    XidEvent,
)

Verdict = tuple[ProbeStatus, str]
"""How a probe ended, and the reason if it failed."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The output of one run of a probe.

    ``text`` is its output and error output, merged by the shell. If ``appended`` is true, it is only the part that
    follows the earlier answers.
    """

    status: int
    text: str
    appended: bool = False


@dataclass
class Gathered:
    """The newest readings of one host. Values are replaced and never changed in place, so a snapshot may hold them.

    ``booted_at`` (seconds since the epoch) dates kernel lines whose time counts from the host's start. ``kernel`` and
    ``smi`` are the parsers' memory from one answer to the next. ``heard_at`` is when the present answer arrived;
    ``None`` in a capture, where that is unknown. ``nvlink_traffic`` is what NVLinks counted at the last answer.
    ``answered`` has, for each exporter, the probes of the shell that its last page replaces.
    """

    booted_at: float | None = None
    gpus: tuple[GpuReading, ...] = ()
    lost_gpus: tuple[str, ...] = ()
    nvlinks: tuple[NvlinkReading, ...] = ()
    xids: tuple[XidEvent, ...] = ()
    sxids: tuple[SxidEvent, ...] = ()
    nic_events: tuple[NicEvent, ...] = ()
    host_events: tuple[HostEvent, ...] = ()
    accelerator_events: tuple[AcceleratorEvent, ...] = ()
    mounts: Mounts | None = None
    disks: Disks | None = None
    clock: ClockReading | None = None
    crashes: tuple[float, ...] = ()
    fabric_errors: tuple[FabricError, ...] = ()
    services: Services | None = None
    capacity: Capacity | None = None
    adapters: Adapters = field(default_factory=Adapters)
    heard_at: float | None = None
    interfaces: Mapping[str, InterfaceReading] = field(default_factory=dict)
    infiniband: tuple[InfinibandPort, ...] = ()
    counters: Mapping[str, PortCounters] = field(default_factory=dict)
    optics: Mapping[str, OpticsReading] = field(default_factory=dict)
    neighbours: Mapping[str, tuple[Neighbour, ...]] = field(default_factory=dict)
    kernel: KernelEvents = field(default_factory=KernelEvents)
    smi: SmiCache = field(default_factory=SmiCache)
    nvlink_traffic: NvlinkTraffic = field(default_factory=NvlinkTraffic)
    reports: Mapping[str, tuple[ComponentReport, ...]] = field(default_factory=dict)
    answered: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def forget_log(self) -> None:
        """Forget the kernel log: the host has started again, and the lines of an earlier start are not of this one."""
        self.kernel = KernelEvents()
        self.xids = self.sxids = self.nic_events = self.host_events = self.accelerator_events = ()


OK: Verdict = (ProbeStatus.OK, "")

R = TypeVar("R", GpuReading, InterfaceReading, InfinibandPort, PortCounters, NvlinkReading)


class Taker(Protocol):
    """Reads the answers of one probe."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read an answer; if the probe failed, older readings stay and age."""

    def again(self, taken_at: float, gathered: Gathered) -> None:
        """Note that the same answer came again, byte for byte, so its readings also hold at this later time."""


def failure(answer: ProbeAnswer, *, otherwise: str = "") -> Verdict:
    """Why there is no answer: not permitted, no such tool, or the tool's message."""
    said = said_in(answer.text)
    if is_denial(said):
        return ProbeStatus.DENIED, said
    if is_missing_tool(answer.status, said):
        return ProbeStatus.ABSENT, said or "command not found"
    # With exit status 0 the text is not an error message but an answer that is not understood.
    return ProbeStatus.FAILED, first_line((said if answer.status else "") or otherwise or f"status {answer.status}")


def read_at(readings: Iterable[R], taken_at: float) -> tuple[R, ...]:
    """The same readings, with a later time."""
    return tuple(replace(reading, taken_at=taken_at) for reading in readings)


def all_read_at(readings: Mapping[str, R], taken_at: float) -> dict[str, R]:
    """The same readings by name, with a later time."""
    return {name: replace(reading, taken_at=taken_at) for name, reading in readings.items()}


def visible(gathered: Gathered, outcomes: Mapping[str, ProbeOutcome], since: float | None) -> dict[str, Any]:
    """The reading fields of a snapshot.

    With ``since`` (epoch seconds), readings from before that time are omitted: they may precede a change that must be
    verified. Neighbours have ages but no time, so they are returned only if their table was read successfully. Events
    of the kernel log have their own times and are always returned.
    """
    shown: dict[str, Any] = {
        "gpus": gathered.gpus,
        "lost_gpus": gathered.lost_gpus,
        "nvlinks": gathered.nvlinks,
        "xids": gathered.xids,
        "sxids": gathered.sxids,
        "nic_events": gathered.nic_events,
        "host_events": gathered.host_events,
        "accelerator_events": gathered.accelerator_events,
        "mounts": gathered.mounts,
        "disks": gathered.disks,
        "clock": gathered.clock,
        "crashes": gathered.crashes,
        "fabric_errors": gathered.fabric_errors,
        "services": gathered.services,
        "capacity": gathered.capacity,
        "adapters": gathered.adapters,
        "interfaces": gathered.interfaces,
        "infiniband": gathered.infiniband,
        "counters": gathered.counters,
        "optics": gathered.optics,
        "neighbours": gathered.neighbours,
        "reports": tuple(chain.from_iterable(gathered.reports.values())) if gathered.reports else (),
    }
    lldp = outcomes.get("lldp")
    if lldp is None or lldp.status is not ProbeStatus.OK or (since is not None and lldp.taken_at < since):
        shown["neighbours"] = {}
    if since is not None:
        for name in ("gpus", "nvlinks", "infiniband", "reports"):
            if shown[name]:
                shown[name] = tuple(reading for reading in shown[name] if reading.taken_at >= since)
        for name in ("interfaces", "counters", "optics"):
            if shown[name]:
                shown[name] = {key: reading for key, reading in shown[name].items() if reading.taken_at >= since}
        for name in ("mounts", "disks", "clock", "services", "capacity"):
            if shown[name] is not None and shown[name].taken_at < since:
                shown[name] = None
        gpu = outcomes.get("gpu")
        if gpu is None or gpu.taken_at < since:
            shown["lost_gpus"] = ()
    return shown
