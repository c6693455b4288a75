"""The output of ``amd-smi`` on a simulated host, as JSON in the form of ROCm 7."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from lumctl.sim.world.faults import FaultKind
from lumctl.sim.world.gpus import SLOWDOWN_C, GpuCondition

_NONE = "No bad pages found."
_IDLE_W, _BUSY_W, _LIMIT_W = 136, 620, 750


def amd_smi_json(command: str, gpus: Sequence[GpuCondition]) -> str | None:
    """The output of one subcommand for the GPUs that the driver sees; ``None`` if the subcommand is unknown."""
    form = _FORMS.get(command)
    if form is None:
        return None
    # As with amd-smi, the numbers move up when a GPU is lost.
    entries = [{"gpu": number, **form(condition)} for number, condition in enumerate(gpus)]
    return json.dumps({"gpu_data": entries}, indent=4) + "\n"


def _unit(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit}


def _list(condition: GpuCondition) -> dict[str, Any]:
    gpu = condition.gpu
    return {"bdf": gpu.pci, "uuid": gpu.uuid.removeprefix("GPU-"), "kfd_id": gpu.pid, "node_id": 2, "partition_id": 0}


def _static(condition: GpuCondition) -> dict[str, Any]:
    cap = {"max_power_limit": _unit(_LIMIT_W, "W"), "socket_power_limit": _unit(_LIMIT_W, "W")}
    return {
        "asic": {"market_name": condition.gpu.accelerator.model, "vendor_id": "0x1002", "oam_id": 0},
        "bus": {"bdf": condition.gpu.pci, "max_pcie_width": 16, "max_pcie_speed": _unit(32, "GT/s")},
        "limit": {
            "ppt0": cap,
            "slowdown_edge_temperature": "N/A",
            "slowdown_hotspot_temperature": _unit(SLOWDOWN_C, "C"),
            "slowdown_vram_temperature": _unit(95, "C"),
        },
    }


def _bad_pages(condition: GpuCondition) -> dict[str, Any]:
    page = {"page_address": 4096, "page_size": 4096, "status": "UNRESERVABLE"}
    failed = FaultKind.ROW_REMAP_FAILED in condition.faults
    return {"retired": _NONE, "pending": _NONE, "un_res": page if failed else _NONE}


def _metric(condition: GpuCondition) -> dict[str, Any]:
    busy, warm = condition.running is not None, round(condition.temperature_c)
    total = round(condition.gpu.accelerator.memory_gib * 1024)
    used = round(total * 0.8) if busy else 283
    hot = "ACTIVE" if FaultKind.THROTTLED in condition.faults else "NOT ACTIVE"
    return {
        "usage": {"gfx_activity": _unit(96 if busy else 0, "%"), "umc_activity": _unit(41 if busy else 0, "%")},
        "power": {"socket_power": _unit(_BUSY_W if busy else _IDLE_W, "W"), "power_management": "ENABLED"},
        "temperature": {"edge": "N/A", "hotspot": _unit(warm, "C"), "mem": _unit(min(warm + 4, 90), "C")},
        "pcie": {"width": 16, "speed": _unit(32, "GT/s"), "replay_count": 0, "replay_roll_over_count": 0},
        "ecc": {
            "total_correctable_count": 0,
            "total_uncorrectable_count": int(condition.faults.get(FaultKind.ECC) or 0),
            "total_deferred_count": 0,
            "cache_correctable_count": 0,
            "cache_uncorrectable_count": 0,
        },
        "xgmi_err": "N/A",
        "mem_usage": {
            "total_vram": _unit(total, "MB"),
            "used_vram": _unit(used, "MB"),
            "free_vram": _unit(total - used, "MB"),
        },
        "throttle": {"prochot_violation_status": "NOT ACTIVE", "socket_thermal_violation_status": hot},
    }


_FORMS: dict[str, Callable[[GpuCondition], dict[str, Any]]] = {
    "list": _list,
    "static": _static,
    "bad-pages": _bad_pages,
    "metric": _metric,
}
