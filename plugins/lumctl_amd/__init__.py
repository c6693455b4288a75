"""The probe ``amd-smi`` for AMD Instinct and Radeon accelerators: its commands, kernel lines, and JSON parser.

The facts are from the documentation and the releases of amd-smi (ROCm 6.1 to 7.1) and from the messages of the amdgpu
driver. The probe was not run on hardware.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from lumctl.fleet.probe_api import (
    AcceleratorProbe,
    CommandOutput,
    GpuReading,
    KernelLine,
    ProbeCommand,
    ProbeReport,
    pci_address,
)

_NUMBER = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*[A-Za-z/%°]{0,5}\s*")
_NONE = "N/A"
_SCALE = {"GB": 1024.0, "GiB": 1024.0, "KB": 1 / 1024, "B": 1 / 2**20}
"""Units of memory in MiB; the MB of amd-smi is 2^20 bytes."""


def entries(text: str) -> dict[int, Mapping[str, Any]] | None:
    """The JSON object of each GPU, by its number; ``None`` if the text holds no complete document of that form.

    Warnings may precede the document.
    """
    begins = min((at for at in (text.find("\n["), text.find("\n{")) if at >= 0), default=-1)
    if not text.lstrip().startswith(("[", "{")) and begins >= 0:
        text = text[begins:]
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = document.get("gpu_data") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        return None
    found: dict[int, Mapping[str, Any]] = {}
    for entry in listed:
        gpu = entry.get("gpu") if isinstance(entry, dict) else None
        if not isinstance(gpu, int) or isinstance(gpu, bool) or gpu in found:
            return None
        found[gpu] = entry
    return found


def leaf(entry: Mapping[str, Any], path: str) -> Any:
    """The value at a path such as ``ecc.total_uncorrectable_count``; ``None`` if nothing is there."""
    here: Any = entry
    for name in path.split("."):
        if not isinstance(here, Mapping):
            return None
        here = here.get(name)
    return here.get("value") if isinstance(here, Mapping) and "value" in here else here


def number(entry: Mapping[str, Any], path: str) -> float | None:
    """The number at a path, memory in MiB; ``None`` if there is none."""
    value, unit = leaf(entry, path), leaf(entry, f"{path}.unit")
    if isinstance(value, str):
        read = _NUMBER.fullmatch(value)
        value = float(read[1]) if read else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) * _SCALE.get(unit, 1.0) if isinstance(unit, str) else float(value)


def whole(value: float | None) -> int | None:
    """The value as a count; ``None`` if it is negative or absent."""
    return int(value) if value is not None and value >= 0 else None


def text(entry: Mapping[str, Any], path: str) -> str | None:
    """The text at a path; ``None`` if there is none."""
    value = leaf(entry, path)
    return value if isinstance(value, str) and value not in {"", _NONE} else None


def flag(entry: Mapping[str, Any], path: str, word: str) -> bool:
    """Whether the value at a path equals a word, or is a list that contains it."""
    value = leaf(entry, path)
    return value == word or (isinstance(value, list) and word in value)


_NOT_ONE = r"[^0-9]0*[1-9][0-9]*( new)?"
"""A count that is not 0; the driver also prints the count if it found no error."""
_RESET_FAILED = "GPU reset.*(failed|end with ret = -)|ASIC reset failed|GPU Recovery Failed"
_QUEUE_HANGS = "fence wait loop timeout|MES.*failed to respon|might be in an unrecoverable state"
_THROTTLE = {
    "prochot_violation_status": "hw_slowdown",
    "socket_thermal_violation_status": "hw_thermal_slowdown",
    "vr_thermal_violation_status": "hw_thermal_slowdown",
    "hbm_thermal_violation_status": "hw_thermal_slowdown",
    "ppt_violation_status": "sw_power_cap",
}
"""Violations in amd-smi's words (MI300 and later), each with lumctl's name for the throttle reason."""
_MORE = ("static", "bad-pages")
"""Optional commands: the accelerators can be read without them."""
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""Generations of PCI Express by the speed of a lane in GT/s."""


class AmdSmi(AcceleratorProbe):
    """Reads ``amd-smi list``, ``static``, ``bad-pages`` and ``metric``, all with ``--json``."""

    api_version: ClassVar[int] = 1
    name: ClassVar[str] = "amd-smi"
    proven: ClassVar[str] = "not run on hardware; read from published output of ROCm 6.1 to 7.1"
    commands: ClassVar[tuple[ProbeCommand, ...]] = (
        ProbeCommand("static", "amd-smi static --json", "amd-smi-static.json", 600.0, 10.0, needed=False),
        ProbeCommand("bad-pages", "amd-smi bad-pages --json", "amd-smi-bad-pages.json", 60.0, 5.0, needed=False,
                     sudo=True),
        ProbeCommand("list", "amd-smi list --json", "amd-smi-list.json", 10.0, 5.0, sudo=True),
        ProbeCommand("metric", "amd-smi metric --json", "amd-smi.json", 10.0, 5.0, sudo=True),
    )  # fmt: skip
    values: ClassVar[Mapping[str, str]] = {
        "deferred_errors": "errors",
        "xgmi_errors": "errors",
        "retired_pages": "pages",
        "pending_pages": "pages",
        "unreservable_pages": "pages",
    }
    # The first pattern that matches a line gives its kind.
    kernel_lines: ClassVar[tuple[KernelLine, ...]] = (
        KernelLine("uncorrectable", f"amdgpu.*{_NOT_ONE} uncorrectable hardware errors detected"),
        KernelLine("deferred", f"amdgpu.*{_NOT_ONE} deferred hardware errors detected"),
        KernelLine("correctable", f"amdgpu.*{_NOT_ONE} correctable hardware errors detected"),
        KernelLine("fatal-error", "amdgpu.*(RAS (fatal|poison)|[Ff]atal error (event|detected)|ERREVENT_ATHUB)"),
        KernelLine("bad-page-threshold", "amdgpu.*(exceeds? bad_page_threshold|bad page.* exceed|RAS.*GPU is bad)"),
        KernelLine("lost", "amdgpu.*(device lost from bus|GPU is lost|fallen off the bus)"),
        KernelLine("reset-failed", f"amdgpu.*({_RESET_FAILED})"),
        KernelLine("reset-done", "amdgpu.*GPU reset(\\([0-9]+\\))? succeeded"),
        KernelLine("reset-begin", "amdgpu.*GPU reset begin"),
        KernelLine("ring-timeout", "amdgpu.*ring [^ ]+ timeout"),
        KernelLine("queue-hang", f"amdgpu.*({_QUEUE_HANGS})"),
    )  # fmt: skip

    @staticmethod
    def read(outputs: Mapping[str, CommandOutput], taken_at: float) -> ProbeReport:
        """The readings of the accelerators that ``list`` names, with the values that ``metric`` prints for each."""
        more = {name: entries(outputs[name].text) for name in _MORE if name in outputs}
        listed, metrics = entries(outputs["list"].text), entries(outputs["metric"].text)
        if listed is None or metrics is None:
            which = "list" if listed is None else "metric"
            return ProbeReport(problem=f"amd-smi {which} printed no complete JSON document")
        readings: dict[str, GpuReading] = {}
        problem = ""
        for gpu, entry in listed.items():
            bdf = pci_address(text(entry, "bdf") or "")
            if bdf is None:
                problem = f"amd-smi list printed no bdf of GPU {gpu}"
            elif gpu not in metrics:
                problem = problem or f"amd-smi lists GPU {gpu} but printed no metric of it"
            elif bdf not in readings:  # partitions of one accelerator share its address; the first is read
                beside = {name: None if found is None else found.get(gpu) for name, found in more.items()}
                readings[bdf] = _reading(bdf, gpu, entry, metrics[gpu], beside, taken_at)
        if metrics.keys() - listed.keys():
            problem = problem or "amd-smi printed metrics of a GPU that it does not list"
        return ProbeReport(tuple(readings.values()), problem=problem)


def _reading(
    bdf: str,
    gpu: int,
    listed: Mapping[str, Any],
    metric: Mapping[str, Any],
    beside: Mapping[str, Mapping[str, Any] | None],
    taken_at: float,
) -> GpuReading:
    static, pages = beside.get("static") or {}, beside.get("bad-pages") or {}
    # A host may lack these commands; if one answers, its answer must be readable.
    unread = {name: "no complete JSON document with this GPU" for name, found in beside.items() if found is None}
    if pages:
        unread |= {f"bad-pages.{key}": "not printed" for key in _PAGES.values() if key not in pages}

    def needed(*paths: str) -> float | None:
        """The first of some leaves that exists; recorded as unread if all are absent or the leaf is not a number."""
        found = [path for path in paths if leaf(metric, path) not in (None, "N/A")]
        value = number(metric, found[0]) if found else None
        if value is None:
            unread[found[0] if found else paths[0]] = str(leaf(metric, found[0])) if found else "not printed"
        return value

    hotspot = needed("temperature.hotspot", "temperature.edge")
    uncorrectable = None
    if leaf(metric, "ecc.total_uncorrectable_count") != "N/A":  # without ECC there is nothing to count
        uncorrectable = needed("ecc.total_uncorrectable_count")
    speed = number(metric, "pcie.speed")
    # A value that is not the speed of a lane is that of the whole link.
    lane = None if speed is None else speed if speed in _GENERATIONS else speed / (number(metric, "pcie.width") or 1)
    best_speed = number(static, "bus.max_pcie_speed")
    return GpuReading(
        taken_at,
        bdf,
        minor=gpu,
        uuid=text(listed, "uuid"),
        product=text(static, "asic.market_name") or text(static, "board.product_name"),
        temperature_c=hotspot,
        temperature_slowdown_c=number(static, "limit.slowdown_hotspot_temperature"),
        memory_temperature_c=number(metric, "temperature.mem"),
        memory_temperature_max_c=number(static, "limit.slowdown_vram_temperature"),
        utilization_percent=number(metric, "usage.gfx_activity"),
        memory_utilization_percent=number(metric, "usage.umc_activity"),
        memory_used_mib=number(metric, "mem_usage.used_vram"),
        memory_total_mib=number(metric, "mem_usage.total_vram"),
        power_w=number(metric, "power.socket_power"),
        power_limit_w=number(static, "limit.socket_power") or number(static, "limit.ppt0.socket_power_limit"),
        ecc_volatile_uncorrectable=whole(uncorrectable),
        ecc_volatile_correctable=whole(number(metric, "ecc.total_correctable_count")),
        pcie_width=whole(number(metric, "pcie.width")),
        pcie_width_max=whole(number(static, "bus.max_pcie_width")),
        pcie_generation=_GENERATIONS.get(lane) if lane is not None else None,
        pcie_generation_max=_GENERATIONS.get(best_speed) if best_speed is not None else None,
        pcie_replays=whole(number(metric, "pcie.replay_count")),
        pcie_replay_rollovers=whole(number(metric, "pcie.replay_roll_over_count")),
        throttle_reasons=frozenset(
            reason for path, reason in _THROTTLE.items() if flag(metric, f"throttle.{path}", "ACTIVE")
        ),
        unread=unread,
        vendor_values=_values(metric, pages),
    )


def _values(metric: Mapping[str, Any], pages: Mapping[str, Any]) -> dict[str, float | bool | str]:
    xgmi = leaf(metric, "xgmi_err")
    told = {
        "deferred_errors": number(metric, "ecc.total_deferred_count"),
        "xgmi_errors": 1.0 if isinstance(xgmi, str) and "error detected" in xgmi.lower() else None,
        **{f"{kind}_pages": _count(pages.get(key)) for kind, key in _PAGES.items()},
    }
    return {name: value for name, value in told.items() if value is not None}


_PAGES = {"retired": "retired", "pending": "pending", "unreservable": "un_res"}
"""The lists in the output of ``bad-pages``, by the state of their pages."""


def _count(pages: object) -> float | None:
    """The number of pages in a list; amd-smi prints a single page without brackets, and a text if there is no page."""
    if isinstance(pages, list | dict):
        return float(len(pages)) if isinstance(pages, list) else 1.0
    return 0.0 if isinstance(pages, str) and pages != "N/A" else None
