"""The present readings of one component, each with its time and its limits; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import GpuReading, NvlinkReading
from lumctl.health.identity import match_gpus, match_nvlinks
from lumctl.health.observation import Observation
from lumctl.health.quantities import ACCELERATOR, QUANTITIES, TRANSPONDER, UNITS
from lumctl.inventory.model import Thresholds, Transponder
from lumctl.tui.look.marks import power


class Limit(NamedTuple):
    """A limit of a reading: its value and its meaning, such as ``slows at``."""

    words: str
    value: float


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading: its name, unit and value, when it was taken (seconds since the epoch), its limits.

    ``high`` is where its scale ends; ``None`` if unknown. ``over_s``: the value is a mean over this many seconds.
    """

    name: str
    value: float
    at: float
    limits: tuple[Limit, ...] = ()
    high: float | None = None
    over_s: float | None = None

    @property
    def unit(self) -> str:
        """The unit; empty for a count."""
        return UNITS[self.name]

    @property
    def low(self) -> float:
        """Where its scale begins."""
        return QUANTITIES[self.name].low

    @property
    def nearest(self) -> Limit | None:
        """The limit nearest to the value; ``None`` if there is none."""
        return min(self.limits, key=lambda limit: abs(limit.value - self.value), default=None)

    @property
    def text(self) -> str:
        """The value with its unit."""
        return shown(self.value, self.unit)


_LARGER: Mapping[str, tuple[float, tuple[str, ...]]] = {
    "MiB": (1024.0, ("MiB", "GiB", "TiB")),
    "KB/s": (1000.0, ("KB/s", "MB/s", "GB/s", "TB/s")),
}
_NEXT_UNIT, _LARGE = 1000.0, 100.0
"""The value from which the next larger unit is used, and the value from which there are no decimals."""


def scaled(unit: str, greatest: float) -> tuple[float, str]:
    """The unit in which values up to ``greatest`` are written, and its divisor."""
    factor, units = _LARGER.get(unit, (1.0, (unit,)))
    level = 0
    while level + 1 < len(units) and abs(greatest) / factor**level >= _NEXT_UNIT:
        level += 1
    return factor**level, units[level]


def shown(value: float, unit: str) -> str:
    """A value with its unit as text; a power without light is ``dark``."""
    if unit == "dBm":
        return power(value, " dBm")
    if unit not in _LARGER:
        # Small values, such as bit error rates, need their digits; a hundredth of a large one is noise.
        digits = f"{value:.7g}" if abs(value) < 1 else f"{round(value, 2):.12g}"
        return f"{digits} {unit}".rstrip()
    divisor, written = scaled(unit, value)
    is_whole = divisor == 1 or value / divisor >= _LARGE
    return f"{value / divisor:.{0 if is_whole else 1}f} {written}"


def readings_of(observation: Observation, component: str) -> tuple[Reading, ...]:
    """The readings of an accelerator or a transponder that are stored over time; empty for other components."""
    inventory, hosts = observation.inventory, observation.snapshot.hosts
    if (accelerator := inventory.accelerators.get(component)) is not None:
        read = hosts.get(accelerator.host)
        gpu = match_gpus((accelerator,), read.gpus).get(component) if read is not None else None
        if read is None or gpu is None:
            return ()
        links = match_nvlinks({component: gpu}, read).get(component, ())
        return tuple(_of_gpu(gpu, links, inventory.thresholds))
    if (transponder := inventory.transponders.get(component)) is not None:
        optics = optics_of(observation, transponder)
        return tuple(_of_optics(optics)) if optics is not None else ()
    return ()


def optics_of(observation: Observation, transponder: Transponder) -> OpticsReading | None:
    """The newest reading of a transponder's module; ``None`` if there is none."""
    host = observation.snapshot.hosts.get(transponder.host)
    return host.optics.get(transponder.interface) if host is not None else None


def is_kept(observation: Observation, component: str) -> bool:
    """Whether readings of a component are stored over time."""
    return component in observation.inventory.accelerators or component in observation.inventory.transponders


_PCIE_LANE_KB_S = {1: 250e3, 2: 500e3, 3: 984.6e3, 4: 1969e3, 5: 3938e3, 6: 7563e3}
"""The capacity of a PCI Express lane of each generation in each direction, without its encoding."""


def _of_gpu(gpu: GpuReading, links: Sequence[NvlinkReading], thresholds: Thresholds) -> Iterator[Reading]:
    memory_limit = gpu.memory_temperature_max_c or thresholds.memory_temperature_c
    nvlink, pcie = _of("of", _nvlink_kb_s(links)), _of("of", _pcie_kb_s(gpu))
    limits = {
        "temperature": _of("slows at", gpu.temperature_slowdown_c) or _of("limit", thresholds.gpu_temperature_c),
        "memory temperature": _of("limit", memory_limit),
        "memory used": _of("of", gpu.memory_total_mib),
        "power": _of("limit", gpu.power_limit_w),
        "SM clock": _of("of", gpu.sm_clock_max_mhz),
        "memory clock": _of("of", gpu.memory_clock_max_mhz),
        "NVLink sends": nvlink,
        "NVLink receives": nvlink,
        "PCIe sends": pcie,
        "PCIe receives": pcie,
    }
    for quantity in ACCELERATOR:
        value = getattr(gpu, quantity.field)
        if value is None:
            continue
        known = limits.get(quantity.name, ())
        high = quantity.high if quantity.high is not None or not known else known[0].value
        # Rates of NVLinks are computed from two counts, and so have a time and a span of their own.
        of_counts = quantity.name.startswith("NVLink") and gpu.nvlink_rates_at is not None
        at = gpu.nvlink_rates_at if of_counts and gpu.nvlink_rates_at is not None else gpu.taken_at
        yield Reading(quantity.name, value, at, known, high, gpu.nvlink_rates_over_s if of_counts else None)


def _nvlink_kb_s(links: Sequence[NvlinkReading]) -> float | None:
    """The capacity of a GPU's active links in each direction; ``None`` if a speed is unknown."""
    speeds = [link.speed_gb_s for link in links if link.active]
    return 1e6 * sum(speed or 0.0 for speed in speeds) if speeds and None not in speeds else None


def _pcie_kb_s(gpu: GpuReading) -> float | None:
    """The best capacity of the link to the host in each direction; idle cards lower its generation to save power."""
    generation, width = gpu.pcie_generation_max or gpu.pcie_generation, gpu.pcie_width
    lane = _PCIE_LANE_KB_S.get(generation) if generation is not None else None
    return lane * width if lane is not None and width is not None else None


def _of_optics(optics: OpticsReading) -> Iterator[Reading]:
    for quantity in TRANSPONDER:
        value = getattr(optics, quantity.field)
        if value is None:
            continue
        kind = quantity.field.rpartition("_")[0]  # the unit is the end of the field's name
        levels = ("low_alarm", "low_warning", "high_warning", "high_alarm")
        named = ((level.replace("_", " "), optics.thresholds.get(f"{kind}_{level}")) for level in levels)
        limits = tuple(Limit(words, limit) for words, limit in named if limit is not None)
        high = quantity.high if quantity.high is not None else optics.thresholds.get(f"{kind}_high_alarm")
        yield Reading(quantity.name, value, optics.taken_at, limits, high)


def _of(words: str, value: float | None) -> tuple[Limit, ...]:
    return () if value is None else (Limit(words, value),)
