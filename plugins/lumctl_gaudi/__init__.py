"""The probe ``hl-smi`` for Intel Gaudi accelerators: one CSV table, and the kernel lines of habanalabs.

The facts are from Intel's guide to hl-smi (releases 1.13 to 1.22), from published tables, and from the messages of the
habanalabs driver. The probe was not run on hardware.
"""

import csv
import math
from collections.abc import Mapping
from typing import ClassVar

from lumctl.fleet.probe_api import (
    AcceleratorProbe,
    CommandOutput,
    GpuReading,
    KernelLine,
    ProbeCommand,
    ProbeReport,
    pci_address,
)

_VOLATILE, _LIFETIME = "ecc.errors.uncorrected.volatile.total", "ecc.errors.uncorrected.aggregate.total"
_CORRECTED = "ecc.errors.corrected.volatile.total"
_COLUMNS = (
    "index", "bus_id", "uuid", "name", "temperature.aip", "utilization.aip", "memory.used", "memory.total",
    "power.draw", _VOLATILE, _LIFETIME, _CORRECTED, "ecc.mode.current",
)  # fmt: skip
_NEEDED = ("temperature.aip", "memory.used", _VOLATILE)
"""Columns without which the state of an accelerator is unknown."""
_NONE = frozenset({"", "N/A", "[N/A]", "Not Supported"})
_DRIVER = "(habanalabs|accel accel[0-9]+)"


class HlSmi(AcceleratorProbe):
    """Reads ``hl-smi -Q ... -f csv,nounits``."""

    api_version: ClassVar[int] = 1
    name: ClassVar[str] = "hl-smi"
    proven: ClassVar[str] = "not run on hardware; read from published output of releases 1.13 to 1.22"
    commands: ClassVar[tuple[ProbeCommand, ...]] = (
        ProbeCommand("table", f"hl-smi -Q {','.join(_COLUMNS)} -f csv,nounits", "hl-smi.csv", 10.0, 5.0),
    )
    values: ClassVar[Mapping[str, str]] = {"lifetime_uncorrectable": "errors"}
    # The first pattern that matches a line gives its kind, so the narrower ones come first.
    kernel_lines: ClassVar[tuple[KernelLine, ...]] = (
        KernelLine("reset-failed", f"{_DRIVER}.*Failed to reset! Device is NOT usable"),
        KernelLine("heartbeat", f"{_DRIVER}.*[Dd]evice heartbeat failed"),
        KernelLine("reset-done", f"{_DRIVER}.*Successfully finished resetting the"),
        KernelLine("reset-begin", f"{_DRIVER}.*Going to (reset|RESET) device($|!)"),
        KernelLine("ecc-critical", f"{_DRIVER}.*(ECC error detected.*critical 1|_DERR)"),
        KernelLine("ecc", f"{_DRIVER}.*(ECC error detected|_SERR)"),
    )
    minor_pattern: ClassVar[str] = r"\b(?:hl|accel)([0-9]{1,3}):"

    @staticmethod
    def read(outputs: Mapping[str, CommandOutput], taken_at: float) -> ProbeReport:
        """One reading for each row; a row without an address or with too few columns gives no reading."""
        lines = outputs["table"].text.splitlines()
        begins = next((at for at, line in enumerate(lines) if line.lstrip().startswith("index")), None)
        if begins is None:
            return ProbeReport(problem="hl-smi printed no table with the requested columns")
        header = [name.partition("[")[0].strip() for name in next(csv.reader([lines[begins]]))]
        missing = [name for name in _COLUMNS if name not in header]
        if missing:
            return ProbeReport(problem=f"hl-smi printed no column {missing[0]}")
        readings: list[GpuReading] = []
        problem = ""
        for line in lines[begins + 1 :]:
            cells = [cell.strip() for cell in next(csv.reader([line]), [])]
            if not any(cells):
                continue
            row = dict(zip(header, cells, strict=False))
            pci = pci_address(row.get("bus_id", ""))
            if len(cells) != len(header) or pci is None or pci in {each.pci for each in readings}:
                problem = problem or "hl-smi printed a row that is truncated or has no bus_id of its own"
            else:
                readings.append(_reading(pci, row, taken_at))
        return ProbeReport(tuple(readings), problem=problem)


def _reading(pci: str, row: Mapping[str, str], taken_at: float) -> GpuReading:
    index, lifetime = _number(row, "index"), _number(row, _LIFETIME)
    unread = {name: row[name] or "empty" for name in _NEEDED if _number(row, name) is None}
    ecc = row["ecc.mode.current"].lower()
    if ecc == "disabled":  # errors are not counted then
        unread.pop(_VOLATILE, None)
    return GpuReading(
        taken_at,
        pci,
        minor=None if index is None else int(index),
        uuid=row["uuid"] if row["uuid"] not in _NONE else None,
        product=f"Intel Gaudi {row['name']}" if row["name"] not in _NONE else None,
        temperature_c=_number(row, "temperature.aip"),
        utilization_percent=_number(row, "utilization.aip"),
        memory_used_mib=_number(row, "memory.used"),
        memory_total_mib=_number(row, "memory.total"),
        power_w=_number(row, "power.draw"),
        ecc_volatile_uncorrectable=_count(row, _VOLATILE),
        ecc_aggregate_uncorrectable=_count(row, _LIFETIME),
        ecc_volatile_correctable=_count(row, _CORRECTED),
        ecc_enabled={"enabled": True, "disabled": False}.get(ecc),
        unread=unread,
        vendor_values={} if lifetime is None else {"lifetime_uncorrectable": lifetime},
    )


def _number(row: Mapping[str, str], name: str) -> float | None:
    try:
        value = float(row[name].split()[0])
    except (ValueError, IndexError):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _count(row: Mapping[str, str], name: str) -> int | None:
    value = _number(row, name)
    return None if value is None else int(value)
