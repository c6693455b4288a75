"""NVIDIA's dcgm-exporter: the metrics of GPUs, by the names of DCGM's fields.

Which fields an exporter prints is its operator's choice; the default of version 4 lacks most error counters.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lumctl.fleet.exporters.gpu_values import GpuPage, GpuValues
from lumctl.fleet.exporters.text_format import PageError, Sample, count_of, samples_of
from lumctl.fleet.host_readings import ComponentReport
from lumctl.fleet.probe_output import OK, Gathered, ProbeAnswer, Verdict
from lumctl.fleet.readings import NVLINK_TOTAL, GpuReading, NvlinkReading, ProbeStatus, XidEvent

SOURCE = "dcgm-exporter"
_DEVICE = "DCGM_FI_DEV_"
_XID, _XID_COUNT, _HEALTH = "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_GPU_HEALTH_STATUS"
_MOST_XIDS = 256
_READINGS: Mapping[str, str] = {
    "GPU_TEMP": "temperature_c",
    "MEMORY_TEMP": "memory_temperature_c",
    "SLOWDOWN_TEMP": "temperature_slowdown_c",
    "GPU_MAX_OP_TEMP": "temperature_max_c",
    "MEM_MAX_OP_TEMP": "memory_temperature_max_c",
    "POWER_USAGE": "power_w",
    "POWER_MGMT_LIMIT": "power_limit_w",
    "GPU_UTIL": "utilization_percent",
    "MEM_COPY_UTIL": "memory_utilization_percent",
    "FB_USED": "memory_used_mib",
    "SM_CLOCK": "sm_clock_mhz",
    "MAX_SM_CLOCK": "sm_clock_max_mhz",
    "MEM_CLOCK": "memory_clock_mhz",
    "MAX_MEM_CLOCK": "memory_clock_max_mhz",
    "PERSISTENCE_MODE": "persistence_enabled",
    "ECC_CURRENT": "ecc_enabled",
    "ECC_SBE_VOL_TOTAL": "ecc_volatile_correctable",
    "ECC_DBE_VOL_TOTAL": "ecc_volatile_uncorrectable",
    "ECC_DBE_AGG_TOTAL": "ecc_aggregate_uncorrectable",
    "RETIRED_SBE": "retired_single_bit",
    "RETIRED_DBE": "retired_double_bit",
    "RETIRED_PENDING": "retirement_pending",
    "UNCORRECTABLE_REMAPPED_ROWS": "remap_uncorrectable",
    "ROW_REMAP_FAILURE": "remap_failed",
    "ROW_REMAP_PENDING": "remap_pending",
    "BANKS_REMAP_ROWS_AVAIL_NONE": "banks_without_spare_rows",
    "MEMORY_UNREPAIRABLE_FLAG": "unrepairable_memory",
    "MEMORY_UNREPAIRABLE": "unrepairable_memory",
    "THRESHOLD_SRM": "sram_threshold_exceeded",
    "PCIE_REPLAY_COUNTER": "pcie_replays",
    "PCIE_LINK_GEN": "pcie_generation",
    "PCIE_MAX_LINK_GEN": "pcie_generation_max",
    "PCIE_LINK_WIDTH": "pcie_width",
    "PCIE_MAX_LINK_WIDTH": "pcie_width_max",
}
"""The reading that each field gives; fields are named without ``DCGM_FI_DEV_``."""
_OTHERS = frozenset(
    {
        "FB_TOTAL", "FB_FREE", "FB_RESERVED", "ECC_DBE_AGG_DEV", "CLOCK_THROTTLE_REASONS", "CLOCKS_EVENT_REASONS",
        "CLOCKS_EVENT_REASON", "GET_GPU_RECOVERY_ACTION", "GPU_RECOVERY_ACTION",
        "NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    }
)  # fmt: skip
_RATES = {
    "DCGM_FI_PROF_PCIE_TX_BYTES": "pcie_tx_kb_s",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "pcie_rx_kb_s",
    "DCGM_FI_PROF_NVLINK_TX_BYTES": "nvlink_tx_kb_s",
    "DCGM_FI_PROF_NVLINK_RX_BYTES": "nvlink_rx_kb_s",
}
"""Fields that are rates in bytes per second over the exporter's own interval, and the readings that they give."""
_REASONS = (
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal_slowdown",
    "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clocks_setting",
)  # fmt: skip
"""The clock event reason of each bit of the mask, from the lowest bit."""
_RECOVERY_ACTIONS = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")
_HEALTH_WORDS = {10.0: "degraded", 20.0: "unhealthy"}
# DCGM_INT32_BLANK, and the three values above it that say why a value is missing.
_BLANK_INT32 = range(0x7FFFFFF0, 0x7FFFFFF4)
_BLANK_FROM = 2.0**47
"""The lowest 64-bit value with which DCGM marks a missing one: 2^47 for a fraction, almost 2^63 for a whole number."""


def is_blank(value: float) -> bool:
    """Whether DCGM marks a value as missing: not found, not supported or not permitted."""
    return math.isnan(value) or math.isinf(value) or value >= _BLANK_FROM or value in _BLANK_INT32


class Dcgm:
    """Reads the pages of one dcgm-exporter."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read a page. It replaces the readings of all GPUs of the host."""
        page = GpuPage(pci=("pci_bus_id",), uuid=("UUID", "uuid", "gpu_uuid"), product=("modelName", "model_name"))
        shown: set[tuple[str, int]] = set()
        reports: list[ComponentReport] = []
        try:
            for sample in samples_of(answer.text, "DCGM_"):
                if is_blank(sample.value) or (gpu := page.gpu(sample.labels)) is None:
                    continue
                if sample.name in {_XID, _XID_COUNT}:
                    shown |= _xids(sample, gpu.key)
                elif sample.name == _HEALTH:
                    reports += _reports(sample, gpu, taken_at)
                else:
                    _add(sample, gpu)
        except PageError as error:
            return ProbeStatus.FAILED, str(error)
        readings = tuple(_reading(gpu, taken_at) for gpu in page if gpu.values)
        # Not an empty list: a page without a GPU does not prove that the host has none.
        if not readings:
            return ProbeStatus.FAILED, "the page lists no GPU"
        gathered.gpus = readings
        gathered.nvlinks = tuple(
            link for place, gpu in enumerate(page) if (link := _nvlinks(gpu, place, taken_at)) is not None
        )
        gathered.xids = _events(gathered.xids, shown, taken_at)
        gathered.reports = {**gathered.reports, "dcgm": tuple(reports)}
        gathered.answered = {**gathered.answered, "dcgm": frozenset({"gpu"})}
        return OK


def _add(sample: Sample, gpu: GpuValues) -> None:
    name = sample.name.removeprefix(_DEVICE)
    if "GPU_I_ID" in sample.labels:
        gpu.partitioned = True
    if sample.name in _RATES or (sample.name.startswith(_DEVICE) and (name in _READINGS or name in _OTHERS)):
        gpu.add(sample, name)


def _xids(sample: Sample, key: str) -> set[tuple[str, int]]:
    """The XID that a sample shows: as its value (the last XID), or as a label (its value counts them in a window)."""
    if sample.name == _XID:
        number = count_of(sample.value)
    else:
        number = count_of(float(sample.labels["xid"])) if sample.labels.get("xid", "").isdecimal() else None
    return {(key, number)} if number and sample.value > 0 else set()


def _events(before: tuple[XidEvent, ...], shown: set[tuple[str, int]], taken_at: float) -> tuple[XidEvent, ...]:
    """XIDs as events. DCGM reports only the last one, without its time.

    While a page shows an XID, its event has no time and does not age. When a page no longer shows it (another XID
    replaced it, or DCGM was restarted), the event is kept with the present time, the latest at which it can have
    happened.
    """
    gone = [replace(e, at=taken_at) if e.at is None else e for e in before if (e.pci, e.xid) not in shown]
    lasting = [XidEvent(None, pci, xid, f"{SOURCE}: the last XID was {xid}") for pci, xid in sorted(shown)]
    return tuple([*gone, *lasting][-_MOST_XIDS:])


def _reports(sample: Sample, gpu: GpuValues, taken_at: float) -> list[ComponentReport]:
    health = _HEALTH_WORDS.get(sample.value)
    if health is None and sample.value == 0:
        return []
    watch, code = (sample.labels.get(label, "") for label in ("health_watch", "health_error_code"))
    devices = frozenset(name.lower() for name in (gpu.key, gpu.uuid) if name)
    return [ComponentReport(taken_at, SOURCE, f"health watch {watch}".strip(), health or "unknown", code, devices)]


def _reading(gpu: GpuValues, taken_at: float) -> GpuReading:
    values = gpu.values
    said: dict[str, Any] = {reading: values[name] for name, reading in _READINGS.items() if name in values}
    said |= {reading: values[name] / 1000 for name, reading in _RATES.items() if name in values}
    parts = [values.get(name) for name in ("FB_USED", "FB_FREE")]
    if "FB_TOTAL" in values:
        said["memory_total_mib"] = values["FB_TOTAL"]
    # Of a partitioned GPU each part prints its own memory, and the greatest values are not of one part.
    elif not gpu.partitioned and None not in parts:
        said["memory_total_mib"] = sum(part or 0.0 for part in parts) + values.get("FB_RESERVED", 0.0)
    # The total does not state the kind of memory. It counts as DRAM, which is by far the largest.
    dram = values.get("ECC_DBE_AGG_DEV", values.get("ECC_DBE_AGG_TOTAL"))
    if dram is not None:
        said["dram_aggregate_uncorrectable"] = dram
    masks = ("CLOCK_THROTTLE_REASONS", "CLOCKS_EVENT_REASONS", "CLOCKS_EVENT_REASON")
    mask = max((count_of(values.get(name)) or 0 for name in masks), default=0)
    said["throttle_reasons"] = frozenset(reason for bit, reason in enumerate(_REASONS) if mask >> bit & 1)
    action = max((values[n] for n in ("GET_GPU_RECOVERY_ACTION", "GPU_RECOVERY_ACTION") if n in values), default=None)
    if action is not None:
        known = action in range(len(_RECOVERY_ACTIONS))
        said["recovery_action"] = _RECOVERY_ACTIONS[int(action)] if known else f"action {action:g}"
    return gpu.reading(SOURCE, taken_at, said)


def _nvlinks(gpu: GpuValues, place: int, taken_at: float) -> NvlinkReading | None:
    """The sum over all NVLinks of a GPU; ``None`` if the page does not have it."""
    kinds = {what: count_of(gpu.values.get(f"NVLINK_{what.upper()}_ERROR_COUNT_TOTAL")) for what in _NVLINK_ERRORS}
    if all(count is None for count in kinds.values()):
        return None
    crc = [kinds[name] or 0 for name in ("crc_flit", "crc_data") if kinds[name] is not None]
    return NvlinkReading(
        taken_at=taken_at,
        index=place,
        uuid=gpu.uuid,
        link=NVLINK_TOTAL,
        errors_at=taken_at,
        replay_errors=kinds["replay"],
        recovery_errors=kinds["recovery"],
        crc_errors=sum(crc) if crc else None,
        errors={f"{name} errors": count for name, count in kinds.items() if count is not None},
    )


_NVLINK_ERRORS = ("replay", "recovery", "crc_flit", "crc_data")
