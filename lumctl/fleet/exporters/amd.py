"""AMD's device-metrics-exporter. The label ``gpu_uuid`` identifies a GPU; without it, the serial number does.

This module has never been run against real hardware: names and meanings are from the exporter's list of metrics.
"""

import math
from collections.abc import Mapping
from typing import Any

from lumctl.fleet.exporters.gpu_values import GpuPage, GpuValues
from lumctl.fleet.exporters.text_format import PageError, samples_of
from lumctl.fleet.host_readings import ComponentReport
from lumctl.fleet.probe_output import OK, Gathered, ProbeAnswer, Verdict
from lumctl.fleet.readings import GpuReading, ProbeStatus

SOURCE = "AMD exporter"
_PREFIX = "amd_"
"""Operators may put a prefix before all names; this is the usual one."""
_READINGS: Mapping[str, str] = {
    "gpu_edge_temperature": "temperature_c",
    "gpu_junction_temperature": "temperature_c",
    "gpu_memory_temperature": "memory_temperature_c",
    "gpu_hbm_temperature": "memory_temperature_c",
    "gpu_power_usage": "power_w",
    "gpu_package_power": "power_w",
    "gpu_average_package_power": "power_w",
    "gpu_gfx_activity": "utilization_percent",
    "gpu_umc_activity": "memory_utilization_percent",
    "gpu_used_vram": "memory_used_mib",
    "gpu_total_vram": "memory_total_mib",
    "gpu_ecc_correct_total": "ecc_volatile_correctable",
    "gpu_ecc_uncorrect_total": "ecc_volatile_uncorrectable",
    "pcie_replay_count": "pcie_replays",
}
_UNCORRECTABLE = "gpu_ecc_uncorrect_"
_THROTTLED = {
    f"gpu_violation_{what}_residency_percentage": "hw_thermal_slowdown"
    for what in ("processor_hot", "socket_thermal", "vr_thermal", "hbm_thermal")
}
_SPEEDS = {"pcie_speed": "pcie_generation", "pcie_max_speed": "pcie_generation_max"}
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""PCI Express generations by their gigatransfers per second."""
_HEALTH = "gpu_health"
_NAMES = frozenset({*_READINGS, *_THROTTLED, *_SPEEDS, _HEALTH})


class Amd:
    """Reads the pages of one device-metrics-exporter."""

    def take(self, answer: ProbeAnswer, taken_at: float, gathered: Gathered) -> Verdict:
        """Read a page. It replaces the readings of all GPUs of the host."""
        page = GpuPage(
            pci=("pcie_bus_id", "pci_bus_id", "gpu_bdf"),
            uuid=("gpu_uuid", "serial_number"),
            product=("card_series", "card_model"),
        )
        unwell: dict[str, ComponentReport] = {}
        nameless = False
        try:
            for sample in samples_of(answer.text, "gpu_", "pcie_", _PREFIX):
                name = sample.name.removeprefix(_PREFIX)
                if (name not in _NAMES and not name.startswith(_UNCORRECTABLE)) or math.isnan(sample.value):
                    continue
                gpu = page.gpu(sample.labels)
                if gpu is None:
                    nameless = True
                    continue
                gpu.add(sample, name)
                if name == _HEALTH and sample.value != 1:
                    unwell[gpu.key] = _unwell(gpu, taken_at)
        except PageError as error:
            return ProbeStatus.FAILED, str(error)
        readings = tuple(_reading(gpu, taken_at) for gpu in page)
        if nameless or not readings:
            missing = "names a GPU by neither gpu_uuid nor serial_number" if nameless else "lists no GPU"
            return ProbeStatus.FAILED, f"the page {missing}"
        gathered.gpus = readings
        gathered.reports = {**gathered.reports, "amd": tuple(unwell.values())}
        gathered.answered = {**gathered.answered, "amd": frozenset({"gpu"})}
        return OK


def _unwell(gpu: GpuValues, taken_at: float) -> ComponentReport:
    devices = frozenset(name.lower() for name in (gpu.key, gpu.uuid) if name)
    return ComponentReport(taken_at, SOURCE, _HEALTH, "unhealthy", "its health service reports it", devices)


def _reading(gpu: GpuValues, taken_at: float) -> GpuReading:
    values = gpu.values
    said: dict[str, Any] = {}
    for name, reading in _READINGS.items():
        if name in values:
            said[reading] = max(values[name], said.get(reading, values[name]))
    # Each block of the chip has its own count, and the operator chooses which counts are printed.
    blocks = [value for name, value in values.items() if name.startswith(_UNCORRECTABLE)]
    if blocks:
        said["ecc_volatile_uncorrectable"] = max(blocks)
    said |= {
        reading: _GENERATIONS[values[name]]
        for name, reading in _SPEEDS.items()
        if values.get(name, 0.0) in _GENERATIONS
    }
    said["throttle_reasons"] = frozenset(reason for name, reason in _THROTTLED.items() if values.get(name, 0.0) > 0)
    return gpu.reading(SOURCE, taken_at, said)
