"""The output of ``nvidia-smi -q -x`` on a simulated host, by the schema of driver branch 570, in its order."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

from lumctl.sim.world.faults import FaultKind
from lumctl.sim.world.gpus import SLOWDOWN_C, GpuCondition

_DRIVER, _CUDA = "570.124.06", "12.8"
_NA = "N/A"
_HBM_FAMILIES = {"A100": "Ampere", "A800": "Ampere", "H100": "Hopper", "H200": "Hopper", "GH200": "Hopper",
                 "B100": "Blackwell", "B200": "Blackwell", "GB200": "Blackwell"}  # fmt: skip
_CLOCK_REASONS = ("gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
                  "hw_power_brake_slowdown", "sync_boost", "sw_thermal_slowdown", "display_clocks_setting")  # fmt: skip


def nvidia_smi_xml(gpus: Sequence[GpuCondition], now: float) -> str:
    """The whole document, for the GPUs that the driver sees."""
    head = (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f"\t<timestamp>{datetime.fromtimestamp(now, UTC):%a %b %e %H:%M:%S %Y}</timestamp>\n"
        f"\t<driver_version>{_DRIVER}</driver_version>\n\t<cuda_version>{_CUDA}</cuda_version>\n"
        f"\t<attached_gpus>{len(gpus)}</attached_gpus>\n"
    )
    bodies = (f'\t<gpu id="{_bus_id(gpu.gpu.pci)}">\n{_elements(_gpu(gpu), 2)}\t</gpu>\n' for gpu in gpus)
    return head + "".join(bodies) + "</nvidia_smi_log>\n"


def _elements(content: Mapping[str, Any], depth: int) -> str:
    """Nested mappings as nested elements; a list repeats its element."""
    out: list[str] = []
    indent = "\t" * depth
    for tag, value in content.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                out.append(f"{indent}<{tag}>\n{_elements(item, depth + 1)}{indent}</{tag}>\n")
            else:
                out.append(f"{indent}<{tag}>{escape(str(item))}</{tag}>\n")
    return "".join(out)


def _bus_id(pci: str) -> str:
    """``0000:9b:00.0`` as nvidia-smi writes it: ``00000000:9B:00.0``."""
    return f"0000{pci}".upper()


def _gpu(condition: GpuCondition) -> dict[str, Any]:
    gpu, accelerator, faults = condition.gpu, condition.gpu.accelerator, condition.faults
    model = accelerator.model
    architecture = next((arch for word, arch in _HBM_FAMILIES.items() if word in model), None)
    return {
        "product_name": model if model.startswith("NVIDIA") else f"NVIDIA {model}",
        "product_brand": "NVIDIA",
        "product_architecture": architecture or "Ada Lovelace",
        "display_mode": "Disabled",
        "display_active": "Disabled",
        "persistence_mode": "Enabled",
        "addressing_mode": "None",
        "mig_mode": {"current_mig": _NA, "pending_mig": _NA},
        "mig_devices": "None",
        "accounting_mode": "Disabled",
        "accounting_mode_buffer_size": "4000",
        "driver_model": {"current_dm": _NA, "pending_dm": _NA},
        "serial": f"{1_320_023_000_000 + gpu.pid}",
        "uuid": gpu.uuid,
        "minor_number": accelerator.index,
        "vbios_version": "95.02.66.00.02",
        "multigpu_board": "No",
        "board_id": f"0x{int(gpu.pci[5:7], 16) << 8:x}",
        "gpu_virtualization_mode": {"virtualization_mode": "None", "host_vgpu_mode": _NA},
        "gpu_reset_status": {"reset_required": _yes(FaultKind.ECC in faults), "drain_and_reset_recommended": "No"},
        "gpu_recovery_action": "Reset" if FaultKind.ECC in faults else "None",
        "gsp_firmware_version": _DRIVER,
        "pci": _pci(condition, generation=5 if architecture in {"Hopper", "Blackwell"} else 4),
        # The server cools these models, so they state no fan of their own.
        "fan_speed": _NA if architecture else "30 %",
        "performance_state": "P0" if condition.running else "P8",
        "clocks_event_reasons": _clock_reasons(condition),
        **_memory(condition),
        "compute_mode": "Default",
        "utilization": _utilization(condition),
        "ecc_mode": {"current_ecc": "Enabled", "pending_ecc": "Enabled"},
        "ecc_errors": _ecc(int(faults.get(FaultKind.ECC) or 0)),
        "retired_pages": _retired_pages(),
        "remapped_rows": _remapped_rows(condition),
        "temperature": _temperature(condition, hbm=architecture is not None),
        "gpu_power_readings": _power(condition),
        "clocks": _clocks(condition),
        "max_clocks": {"graphics_clock": "2505 MHz", "sm_clock": "2505 MHz", "mem_clock": "9001 MHz"},
        "processes": _processes(condition),
    }


def _pci(condition: GpuCondition, *, generation: int) -> dict[str, Any]:
    pci = condition.gpu.pci
    sent_kb_s, received_kb_s = (1_850_000, 2_100_000) if condition.running else (350, 400)
    link = {f"{which}_link_gen": generation
            for which in ("max", "current", "device_current", "max_device", "max_host")}  # fmt: skip
    return {
        "pci_bus": pci[5:7].upper(),
        "pci_device": pci[8:10].upper(),
        "pci_domain": pci[:4],
        "pci_bus_id": _bus_id(pci),
        "pci_gpu_link_info": {
            "pcie_gen": link,
            "link_widths": {"max_link_width": "16x", "current_link_width": "16x"},
        },
        "replay_counter": "0",
        "replay_rollover_counter": "0",
        "tx_util": f"{sent_kb_s} KB/s",
        "rx_util": f"{received_kb_s} KB/s",
    }


def _clock_reasons(condition: GpuCondition) -> dict[str, str]:
    active = set() if condition.running else {"gpu_idle"}
    if FaultKind.THROTTLED in condition.faults:
        active |= {"hw_slowdown", "hw_thermal_slowdown"}
    return {
        f"clocks_event_reason_{reason}": "Active" if reason in active else "Not Active" for reason in _CLOCK_REASONS
    }


def _memory(condition: GpuCondition) -> dict[str, Any]:
    total = round(condition.gpu.accelerator.memory_gib * 1024)
    used = round(total * 0.8) if condition.running else 4
    reserved = round(total * 0.01)
    return {
        "fb_memory_usage": {
            "total": f"{total} MiB",
            "reserved": f"{reserved} MiB",
            "used": f"{used} MiB",
            "free": f"{total - used - reserved} MiB",
        },
        "bar1_memory_usage": {"total": f"{2 * total} MiB", "used": "4 MiB", "free": f"{2 * total - 4} MiB"},
    }


def _utilization(condition: GpuCondition) -> dict[str, str]:
    busy = condition.running is not None
    return {
        "gpu_util": "96 %" if busy else "0 %",
        "memory_util": "54 %" if busy else "0 %",
        "encoder_util": "0 %",
        "decoder_util": "0 %",
        "jpeg_util": "0 %",
        "ofa_util": "0 %",
    }


def _ecc(uncorrectable: int) -> dict[str, Any]:
    counters = {
        "sram_correctable": 0,
        "sram_uncorrectable_parity": 0,
        "sram_uncorrectable_secded": 0,
        "dram_correctable": 0,
        "dram_uncorrectable": uncorrectable,
    }
    return {
        "volatile": counters,
        "aggregate": {**counters, "sram_threshold_exceeded": "No"},
        "aggregate_uncorrectable_sram_sources": dict.fromkeys(
            ("sram_l2", "sram_sm", "sram_microcontroller", "sram_pcie", "sram_other"), 0
        ),
    }


def _retired_pages() -> dict[str, Any]:
    none = {"retired_count": _NA, "retired_pagelist": _NA}
    return {
        "multiple_single_bit_retirement": none,
        "double_bit_retirement": none,
        "pending_blacklist": _NA,
        "pending_retirement": _NA,
    }


def _remapped_rows(condition: GpuCondition) -> dict[str, Any]:
    faults = condition.faults
    return {
        "remapped_row_corr": 0,
        "remapped_row_unc": 1 if FaultKind.ECC in faults else 0,
        "remapped_row_pending": _yes(FaultKind.ECC in faults),
        "remapped_row_failure": _yes(FaultKind.ROW_REMAP_FAILED in faults),
        "row_remapper_histogram": {
            "row_remapper_histogram_max": "640 bank(s)",
            "row_remapper_histogram_high": "0 bank(s)",
            "row_remapper_histogram_partial": "0 bank(s)",
            "row_remapper_histogram_low": "0 bank(s)",
            "row_remapper_histogram_none": "0 bank(s)",
        },
    }


def _temperature(condition: GpuCondition, *, hbm: bool) -> dict[str, str]:
    warm = round(condition.temperature_c)
    return {
        "gpu_temp": f"{warm} C",
        "gpu_temp_tlimit": _NA,
        "gpu_temp_max_threshold": f"{SLOWDOWN_C + 3:.0f} C",
        "gpu_temp_slow_threshold": f"{SLOWDOWN_C:.0f} C",
        "gpu_temp_max_gpu_threshold": f"{SLOWDOWN_C - 4:.0f} C",
        "gpu_target_temperature": _NA,
        "memory_temp": f"{min(warm + 8, 90)} C" if hbm else _NA,
        "gpu_temp_max_mem_threshold": "95 C" if hbm else _NA,
    }


def _power(condition: GpuCondition) -> dict[str, str]:
    draw = "284.37 W" if condition.running else "31.20 W"
    limits = dict.fromkeys(
        ("current_power_limit", "requested_power_limit", "default_power_limit", "max_power_limit"), "300.00 W"
    )
    return {"power_state": "P0", "average_power_draw": draw, "instant_power_draw": draw, **limits}


def _clocks(condition: GpuCondition) -> dict[str, str]:
    core = 2_490 if condition.running else 210
    if FaultKind.THROTTLED in condition.faults:
        core //= 2
    return {"graphics_clock": f"{core} MHz", "sm_clock": f"{core} MHz", "mem_clock": "9001 MHz"}


def _processes(condition: GpuCondition) -> Any:
    if condition.running is None:
        return ""
    used = round(condition.gpu.accelerator.memory_gib * 1024 * 0.8) - 4
    return {
        "process_info": {
            "gpu_instance_id": _NA,
            "compute_instance_id": _NA,
            "pid": condition.gpu.pid,
            "type": "C",
            "process_name": f"/opt/{condition.running}/bin/python3",
            "used_memory": f"{used} MiB",
        }
    }


def _yes(whether: bool) -> str:
    return "Yes" if whether else "No"


_LINKS: Mapping[str, tuple[int, str]] = {
    "V100": (6, "25.781"),
    "A100": (12, "25"),
    "A800": (8, "25"),
    "GH200": (18, "26.562"),
    "H100": (18, "26.562"),
    "H200": (18, "26.562"),
    "GB200": (18, "50"),
    "B100": (18, "50"),
    "B200": (18, "50"),
}
"""The number of links of each model, and the GB/s of a link. A model that is not listed has no links."""


def nvlink_speeds(gpus: Sequence[GpuCondition]) -> str:
    """The output of ``nvidia-smi nvlink -s``."""
    return "".join(
        head + "".join(f"\t Link {link}: {speed} GB/s\n" for link in range(count))
        for head, count, speed, _ in _linked(gpus)
    )


def nvlink_errors(gpus: Sequence[GpuCondition]) -> str:
    """The output of ``nvidia-smi nvlink -e``."""
    return "".join(head + "\n".join(map(_no_errors, range(count))) for head, count, _, _ in _linked(gpus))


_BUSY_LINK_KIB_S = 9_000_000
"""The traffic of a link in each direction while its GPU works, in KiB/s."""


def nvlink_traffic(gpus: Sequence[GpuCondition]) -> str:
    """The output of ``nvidia-smi nvlink -gt d``: the traffic of each link so far."""
    return "".join(
        head + "".join(f"\t Link {link}: Data {way}: {kib} KiB\n" for link in range(count) for way in ("Tx", "Rx"))
        for head, count, _, kib in _linked(gpus)
    )


def _no_errors(link: int) -> str:
    return "".join(f"\t Link {link}: {kind} Errors: 0\n" for kind in ("Replay", "Recovery", "CRC"))


def _linked(gpus: Sequence[GpuCondition]) -> Iterator[tuple[str, int, str, int]]:
    """For each GPU with links: its heading, the number of its links, the speed of each, and the KiB moved by each."""
    for number, condition in enumerate(gpus):
        model = condition.gpu.accelerator.model
        found = next((links for word, links in _LINKS.items() if word in model), None)
        if found:
            name = model if model.startswith("NVIDIA") else f"NVIDIA {model}"
            yield (
                f"GPU {number}: {name} (UUID: {condition.gpu.uuid})\n",
                *found,
                round(condition.worked_s * _BUSY_LINK_KIB_S),
            )
