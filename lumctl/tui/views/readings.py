"""The readings of one component as they are now, each with its age and its limits; pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import GpuReading
from lumctl.health.identity import match_gpus
from lumctl.health.observation import Observation
from lumctl.health.quantities import ACCELERATOR, TRANSPONDER, UNITS
from lumctl.inventory.model import Thresholds
from lumctl.tui.look.marks import power


class Limit(NamedTuple):
    """A value that means something, and the words for it, such as ``slows at``."""

    words: str
    value: float


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading: its name, unit and value, when it was taken (seconds since the epoch), its limits."""

    name: str
    value: float
    at: float
    limits: tuple[Limit, ...] = ()

    @property
    def unit(self) -> str:
        """The unit; empty of a count."""
        return UNITS[self.name]

    @property
    def nearest(self) -> Limit | None:
        """The limit nearest to the value; ``None`` if there is none."""
        return min(self.limits, key=lambda limit: abs(limit.value - self.value), default=None)

    @property
    def text(self) -> str:
        """The value with its unit."""
        return shown(self.value, self.unit)


def shown(value: float, unit: str) -> str:
    """A value with its unit, as a person writes it; no light at all is ``dark``."""
    if unit == "dBm":
        return power(value, " dBm")
    return f"{value:.7g} {unit}".rstrip()


def readings_of(observation: Observation, component: str) -> tuple[Reading, ...]:
    """The readings that are kept over time of an accelerator or a transponder; of anything else, none."""
    inventory, hosts = observation.inventory, observation.snapshot.hosts
    if (accelerator := inventory.accelerators.get(component)) is not None:
        read = hosts.get(accelerator.host)
        gpu = match_gpus((accelerator,), read.gpus).get(component) if read is not None else None
        return tuple(_of_gpu(gpu, inventory.thresholds)) if gpu is not None else ()
    if (transponder := inventory.transponders.get(component)) is not None:
        read = hosts.get(transponder.host)
        optics = read.optics.get(transponder.interface) if read is not None else None
        return tuple(_of_optics(optics)) if optics is not None else ()
    return ()


def is_kept(observation: Observation, component: str) -> bool:
    """Whether readings of a component are kept over time at all."""
    return component in observation.inventory.accelerators or component in observation.inventory.transponders


def _of_gpu(gpu: GpuReading, thresholds: Thresholds) -> Iterator[Reading]:
    memory_limit = gpu.memory_temperature_max_c or thresholds.memory_temperature_c
    limits = {
        "temperature": _limit("slows at", gpu.temperature_slowdown_c) or _limit("limit", thresholds.gpu_temperature_c),
        "memory temperature": _limit("limit", memory_limit),
        "memory used": _limit("of", gpu.memory_total_mib),
        "power": _limit("limit", gpu.power_limit_w),
    }
    for quantity in ACCELERATOR:
        value = getattr(gpu, quantity.field)
        if value is not None:
            yield Reading(quantity.name, value, gpu.taken_at, limits.get(quantity.name, ()))


def _of_optics(optics: OpticsReading) -> Iterator[Reading]:
    for quantity in TRANSPONDER:
        value = getattr(optics, quantity.field)
        if value is None:
            continue
        kind = quantity.field.rpartition("_")[0]  # the unit is the end of the field's name
        levels = ("low_alarm", "low_warning", "high_warning", "high_alarm")
        named = ((level.replace("_", " "), optics.thresholds.get(f"{kind}_{level}")) for level in levels)
        limits = tuple(Limit(words, limit) for words, limit in named if limit is not None)
        yield Reading(quantity.name, value, optics.taken_at, limits)


def _limit(words: str, value: float | None) -> tuple[Limit, ...]:
    return () if value is None else (Limit(words, value),)
