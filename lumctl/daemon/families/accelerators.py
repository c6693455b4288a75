"""Readings of accelerators: heat, power, load, memory and its errors, clocks, the way to the host."""

from collections.abc import Iterator

from prometheus_client.core import InfoMetricFamily, Metric

from lumctl.daemon.families.making import counter, filled, gauge
from lumctl.daemon.families.readable import Readable
from lumctl.fleet.readings import GpuReading

_MIB = 1024 * 1024
_GAUGES: tuple[tuple[str, str, str, float], ...] = (
    ("temperature_celsius", "Temperature of the accelerator.", "temperature_c", 1),
    ("slowdown_temperature_celsius", "Temperature at which it slows itself down.", "temperature_slowdown_c", 1),
    ("memory_temperature_celsius", "Temperature of the accelerator's memory.", "memory_temperature_c", 1),
    ("utilization_ratio", "Share of time in which the accelerator computed.", "utilization_percent", 0.01),
    ("memory_utilization_ratio", "Share of time in which its memory was used.", "memory_utilization_percent", 0.01),
    ("memory_used_bytes", "Memory in use.", "memory_used_mib", _MIB),
    ("memory_size_bytes", "Memory that the accelerator has.", "memory_total_mib", _MIB),
    ("power_watts", "Electrical power that the accelerator draws.", "power_w", 1),
    ("power_limit_watts", "Electrical power that the accelerator may draw.", "power_limit_w", 1),
    ("sm_clock_hertz", "Clock of the accelerator's processors.", "sm_clock_mhz", 1e6),
    ("uncorrectable_remapped_rows", "Rows of memory remapped for uncorrectable errors.", "remap_uncorrectable", 1),
    ("row_remap_pending", "Whether rows wait for a reset to be remapped (1) or not (0).", "remap_pending", 1),
    ("row_remap_failed", "Whether a row could not be remapped (1) or not (0).", "remap_failed", 1),
    ("reset_required", "Whether the accelerator asks for a reset (1) or not (0).", "reset_required", 1),
    ("pcie_generation", "Generation of PCI Express at which the accelerator speaks now.", "pcie_generation", 1),
    ("pcie_lanes", "Lanes of PCI Express on which the accelerator speaks now.", "pcie_width", 1),
)
_ERRORS = (
    ("volatile", "true", "ecc_volatile_correctable"),
    ("volatile", "false", "ecc_volatile_uncorrectable"),
    ("aggregate", "false", "ecc_aggregate_uncorrectable"),
)


def accelerators(readable: Readable) -> Iterator[Metric]:
    """What nvidia-smi says of each accelerator of the inventory, and where that is."""
    yield _places(readable)
    target, gpus = readable.target, readable.gpus
    for name, text, field, factor in _GAUGES:
        numbers = {accelerator: getattr(gpu, field) for accelerator, gpu in gpus.items()}
        yield filled(gauge(f"accelerator_{name}", text, ["id"]), target, numbers, factor)
    replays = counter("accelerator_pcie_replays", "PCI Express replays since the accelerator was reset.", ["id"])
    yield filled(replays, target, {name: gpu.pcie_replays for name, gpu in gpus.items()})
    errors = counter(
        "accelerator_ecc_errors", "ECC errors; volatile: since the driver was loaded.", ["id", "scope", "correctable"]
    )
    retired = gauge("accelerator_retired_pages", "Pages of memory that were retired, by cause.", ["id", "cause"])
    held = gauge("accelerator_throttled", "1 for each reason that holds the clocks down now.", ["id", "reason"])
    held_for = counter("accelerator_throttled_seconds", "How long a reason held the clocks down.", ["id", "reason"])
    for name, gpu in gpus.items():
        for scope, correctable, field in _ERRORS:
            if (count := getattr(gpu, field)) is not None:
                errors.add_metric([target, name, scope, correctable], count)
        for cause, count in _retired(gpu):
            retired.add_metric([target, name, cause], count)
        for reason in sorted(gpu.throttle_reasons):
            held.add_metric([target, name, reason], 1)
        for reason, microseconds in gpu.throttled_us.items():
            held_for.add_metric([target, name, reason], microseconds / 1e6)
    yield errors
    yield retired
    yield held
    yield held_for


def _places(readable: Readable) -> Metric:
    look = readable.look
    info = InfoMetricFamily("lumctl_accelerator", "Where an accelerator is, and what runs on it.", labels=["id"])
    for accelerator in look.inventory.accelerators.values():
        job, rank = look.place_of(accelerator.id) or ("", "")
        told = {
            "target": look.target,
            "host": accelerator.host,
            "rack": accelerator.rack,
            "model": accelerator.model,
            "role": look.role_of(accelerator.id).value,
            "job": job,
            "rank": str(rank),
        }
        info.add_metric([accelerator.id], told)
    return info


def _retired(gpu: GpuReading) -> Iterator[tuple[str, int]]:
    for cause, count in (("single-bit", gpu.retired_single_bit), ("double-bit", gpu.retired_double_bit)):
        if count is not None:
            yield cause, count
