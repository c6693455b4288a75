"""Faults that show only while a GPU works, or over time: reduced clocks, a slow bus, a late rank, a hung kernel."""

from collections.abc import Iterator
from math import ceil

from lumctl.fleet.readings import GpuReading
from lumctl.health.lateness import STRAGGLER
from lumctl.health.rulebook import found, verdict
from lumctl.health.rules.cases import GpuCase
from lumctl.health.rules.counters import counted
from lumctl.health.states import Finding
from lumctl.quantity_text import seconds_text

HARDWARE_THROTTLING = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
"""Reasons that point at power or cooling; idle clocks and a power cap are normal."""

_BEST_GENERATION, _BEST_WIDTH = 6, 16


def is_throttled(reading: GpuReading) -> bool:
    """Whether the clocks are reduced because of power or cooling."""
    return not HARDWARE_THROTTLING.isdisjoint(reading.throttle_reasons)


def throttled(case: GpuCase) -> Iterator[Finding]:
    """Clocks reduced because of power or cooling: a note for one sample, a fault if it lasts."""
    if case.reading is None:
        return
    if is_throttled(case.reading):
        reasons = sorted(case.reading.throttle_reasons & HARDWARE_THROTTLING)
        evidence = f"clocks reduced: {', '.join(reasons)}"
        yield found(case.id, "gpu.throttled", "noted", evidence, since=case.read_at)
    yield from counted(case.id, "gpu.throttled", case.trend, now=case.read_at, read_at=case.read_at)


def pcie_replays(case: GpuCase) -> Iterator[Finding]:
    """More replayed PCIe packets than a link of this speed and width may have."""
    line, reading = verdict("gpu.pcie-replays", "above-allowed"), case.reading
    if reading is None or case.trend is None:
        return
    # An exporter may not report the link's present speed and width: then assume the best possible link.
    generation, width = reading.pcie_generation or _BEST_GENERATION, reading.pcie_width or _BEST_WIDTH
    per_lane = line.limits.get(f"gen{generation}")
    if per_lane is None:
        return
    allowed = ceil(per_lane * width)
    replays = case.trend.events("pcie_replays", line.window_s, case.read_at).get("", 0)
    if replays > allowed:
        evidence = f"{replays} PCIe replays in the last minute (allowed for Gen{generation} x{width}: {allowed})"
        yield found(case.id, "gpu.pcie-replays", "above-allowed", evidence, since=case.read_at)


def pcie_link(case: GpuCase) -> Iterator[Finding]:
    """A PCIe link below its best speed or width while the GPU works; an idle GPU reduces them to save power."""
    reading = case.reading
    if reading is None or reading.utilization_percent is None:
        return
    for name, now, best, word in (
        ("narrow", reading.pcie_width, reading.pcie_width_max, "lanes"),
        ("slow", reading.pcie_generation, reading.pcie_generation_max, "generation"),
    ):
        busy = reading.utilization_percent >= verdict("gpu.pcie-link", name).limits["utilization_percent"]
        if busy and now is not None and best is not None and now < best:
            evidence = f"PCIe {word} {now} of {best} at {reading.utilization_percent:g} % load"
            yield found(case.id, "gpu.pcie-link", name, evidence, since=case.read_at)


def hung(case: GpuCase) -> Iterator[Finding]:
    """Busy cores without progress: no memory or bus traffic, and less power than real work draws."""
    reading, limits = case.reading, verdict("gpu.hung", "no-progress").limits
    if reading is None:
        return
    cores, memory, power = reading.utilization_percent, reading.memory_utilization_percent, reading.power_w
    sent, received = reading.pcie_tx_kb_s, reading.pcie_rx_kb_s
    # All of these values are required to prove a hang.
    if cores is None or memory is None or power is None or sent is None or received is None:
        return
    low_w = limits["power_share"] * reading.power_limit_w if reading.power_limit_w else limits["power_w"]
    idle_bus = sent < limits["pcie_kb_s"] and received < limits["pcie_kb_s"]
    if cores > limits["cores_percent"] and memory < limits["memory_percent"] and power < low_w and idle_bus:
        evidence = f"cores {cores:g} % busy, memory {memory:g} %, {power:g} W, but the PCIe link carries no data"
        yield found(case.id, "gpu.hung", "no-progress", evidence, since=case.read_at)


def straggler(case: GpuCase) -> Iterator[Finding]:
    """A rank that has been late for the collectives of its job for some time: all others wait for it in each step."""
    late = case.lateness
    if late is None or late.at - late.since < verdict(STRAGGLER, "late").limit:
        return
    others, gap, step = f"the others{f' of ranks {late.group}' if late.group else ''}", late.gap_s, late.step_s
    of_step = f"{seconds_text(gap)} of each {seconds_text(step)} step"
    does = f"work around {of_step} by a schedule" if late.worked_around else f"wait {of_step}"
    evidence = f"{late.job} rank {late.rank} is late: {others} {does}"
    yield found(case.id, STRAGGLER, "late", evidence, since=late.since, about=late.job)


RULES = (throttled, pcie_replays, pcie_link, straggler, hung)
