"""One accelerator as its rules are asked about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lumctl.fleet.host_readings import ComponentReport
from lumctl.fleet.readings import AcceleratorEvent, GpuReading, NvlinkReading, XidEvent
from lumctl.health.events import HostEvents
from lumctl.health.expectations import Expected
from lumctl.health.trend import Trend
from lumctl.inventory.model import NVIDIA_SMI, Thresholds


class Absence(StrEnum):
    """How an accelerator is missing from what its probe says."""

    NAMED_LOST = "named-lost"
    NOT_LISTED = "not-listed"
    NOT_TOLD_APART = "not-told-apart"
    LIST_ABORTED = "list-aborted"


@dataclass(frozen=True, slots=True)
class Usual:
    """The value of a setting that ``alike`` of ``total`` GPUs have."""

    value: float
    alike: int
    total: int


@dataclass(frozen=True, slots=True)
class GpuCase:
    """One accelerator with everything that one collection says of it.

    ``reading`` is its own and fresh, or ``None``; ``stale`` says how old it is where it is not fresh. ``xids`` are
    those of its PCI address that are not too old, ``nvlinks`` its links that were read lately. ``trend`` is what is
    remembered of it, ``None`` where nothing is. ``beside`` is how many other GPUs its host lists.
    ``usual`` is what most GPUs of its kind in its rack have, by setting. ``events`` tells which of the XIDs earlier
    looks saw, ``None`` where nothing is remembered of its host. ``source`` is the program that lists the GPUs of its
    host; ``reports`` are other programs' verdicts on it. ``probe`` reads its host's accelerators; where that is a
    plug-in, ``vendor_events`` are its kernel events about this one that are not too old.
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
