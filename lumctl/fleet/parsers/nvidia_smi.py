"""``nvidia-smi -q -x``: GPU readings from every generation of its schema.

Fields were renamed, moved and split over the years; each reading lists its possible places, newest first.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lumctl.fleet.parsers.fields import find_pci, leading_float, leading_int, whole_pci
from lumctl.fleet.parsers.smi_cache import SmiCache, SmiGpu
from lumctl.fleet.parsers.smi_sections import Leaves
from lumctl.fleet.readings import GpuProcess, GpuReading

_NO_HANDLE = re.compile(r"\s*unable to determine the device handle for\b(.{0,100})", re.IGNORECASE)
_LOST_HANDLE = ("is lost", "unknown error", "not found")
"""The reasons for a missing handle if the GPU is gone. Missing rights or power cables are other reasons."""
_CORRUPTED = "infoROM is corrupted at gpu"
_LONGEST_WORD = 256
_NOT_TOLD = re.compile(r"\[?(?:n/a|unknown error|not supported|requested functionality .*|err!)\]?", re.IGNORECASE)
_PROCESS = re.compile(r"processes/process_info(?:\[\d+\])?$")
_HISTOGRAM = "remapped_rows/row_remapper_histogram"
_HELD_DOWN = "clocks_event_reasons_counters"
_ABSOLUTE_ZERO_C, _MOST_C = -273.15, 1000.0


@dataclass(frozen=True, slots=True)
class SmiReport:
    """One answer of nvidia-smi.

    ``lost`` are PCI addresses that it names as lost. ``complete`` is whether the answer was not cut short. ``withheld``
    are its complaints about GPUs that it omits for a reason other than loss. ``nameless`` counts GPUs without an
    address.
    """

    gpus: tuple[GpuReading, ...]
    lost: tuple[str, ...]
    complete: bool
    withheld: tuple[str, ...] = ()
    nameless: int = 0


def parse_nvidia_smi(text: str, taken_at: float, cache: SmiCache | None = None) -> SmiReport:
    """Read the XML, and complaints around it or instead of it. A cache must be used for one host only."""
    log = (cache or SmiCache()).read(text)
    complaints = _complaints(text)
    withheld = tuple(line.strip() for line in complaints if not _is_loss(line))
    lost = dict.fromkeys(pci for line in complaints if _is_loss(line) and (pci := find_pci(line)))
    corrupted = _corrupted_inforoms(text)
    driver = _driver(text)
    gpus = []
    for gpu in log.gpus:
        reading = _reading(gpu, driver, taken_at)
        if reading is None:
            continue
        gpus.append(replace(reading, inforom_corrupted=True) if reading.pci in corrupted else reading)
        if any(section.lost for section in gpu.leaves.sections):
            lost[reading.pci] = None
    return SmiReport(tuple(gpus), tuple(lost), log.complete, withheld, nameless=len(log.gpus) - len(gpus))


def _complaints(text: str) -> list[str]:
    if "device handle" not in text.lower():
        return []
    return [line for line in text.splitlines() if _NO_HANDLE.match(line)]


def _corrupted_inforoms(text: str) -> frozenset[str]:
    """The PCI addresses of GPUs whose infoROM is corrupted, according to nvidia-smi's warnings."""
    if _CORRUPTED not in text:
        return frozenset()
    named = (find_pci(line) for line in text.splitlines() if _CORRUPTED in line)
    return frozenset(pci for pci in named if pci is not None)


def _is_loss(complaint: str) -> bool:
    """Whether a line such as ``Unable to determine the device handle for GPU...: Unknown Error`` reports a loss."""
    found = _NO_HANDLE.match(complaint)
    return found is not None and any(reason in found[1].lower() for reason in _LOST_HANDLE)


def _driver(text: str) -> str | None:
    """The version of the driver, which stands before the first GPU."""
    _, begins, rest = text.partition("<driver_version>")
    return _word(rest[:_LONGEST_WORD].partition("<")[0].strip()) if begins else None


def _reading(gpu: SmiGpu, driver: str | None, taken_at: float) -> GpuReading | None:
    leaves = gpu.leaves
    pci = whole_pci(gpu.id) or whole_pci(leaves.get("pci/pci_bus_id", ""))
    if pci is None:
        return None
    link = "pci/pci_gpu_link_info"
    return GpuReading(
        taken_at=taken_at,
        pci=pci,
        minor=leading_int(leaves.get("minor_number")),
        uuid=_word(leaves.get("uuid")),
        product=_word(leaves.get("product_name")),
        driver=driver,
        firmware=_word(leaves.get("vbios_version")),
        recovery_action=_word(leaves.get("gpu_recovery_action")),
        reset_required=_flag(leaves, "gpu_reset_status/reset_required"),
        drain_and_reset_recommended=_flag(leaves, "gpu_reset_status/drain_and_reset_recommended"),
        temperature_c=_degrees(_float(leaves, "temperature/gpu_temp")),
        temperature_slowdown_c=_limit(leaves, "gpu_temp_slow_threshold", "gpu_temp_slow_tlimit_threshold"),
        temperature_max_c=_limit(leaves, "gpu_temp_max_gpu_threshold", "gpu_temp_max_gpu_tlimit_threshold"),
        memory_temperature_c=_degrees(_float(leaves, "temperature/memory_temp")),
        memory_temperature_max_c=_above_zero(_float(leaves, "temperature/gpu_temp_max_mem_threshold")),
        utilization_percent=_float(leaves, "utilization/gpu_util"),
        memory_utilization_percent=_float(leaves, "utilization/memory_util"),
        memory_used_mib=_float(leaves, "fb_memory_usage/used"),
        memory_total_mib=_float(leaves, "fb_memory_usage/total"),
        power_w=_float(
            leaves,
            "gpu_power_readings/instant_power_draw",
            "gpu_power_readings/power_draw",
            "gpu_power_readings/average_power_draw",
            "power_readings/power_draw",
        ),
        power_limit_w=_float(
            leaves,
            "gpu_power_readings/current_power_limit",
            "gpu_power_readings/power_limit",
            "power_readings/enforced_power_limit",
            "power_readings/power_limit",
        ),
        sm_clock_mhz=_float(leaves, "clocks/sm_clock"),
        sm_clock_max_mhz=_float(leaves, "max_clocks/sm_clock"),
        memory_clock_mhz=_float(leaves, "clocks/mem_clock"),
        memory_clock_max_mhz=_float(leaves, "max_clocks/mem_clock"),
        application_clock_mhz=_float(leaves, "applications_clocks/graphics_clock"),
        ecc_enabled=_flag(leaves, "ecc_mode/current_ecc"),
        persistence_enabled=_flag(leaves, "persistence_mode"),
        ecc_volatile_uncorrectable=_ecc(leaves, "volatile", "uncorrectable"),
        ecc_aggregate_uncorrectable=_ecc(leaves, "aggregate", "uncorrectable"),
        sram_aggregate_uncorrectable=_ecc_of(leaves, "aggregate", "sram"),
        dram_aggregate_uncorrectable=_ecc_of(leaves, "aggregate", "dram"),
        ecc_volatile_correctable=_ecc(leaves, "volatile", "correctable"),
        remap_pending=_flag(leaves, "remapped_rows/remapped_row_pending"),
        remap_failed=_flag(leaves, "remapped_rows/remapped_row_failure"),
        remap_uncorrectable=leading_int(leaves.get("remapped_rows/remapped_row_unc")),
        retired_single_bit=leading_int(leaves.get("retired_pages/multiple_single_bit_retirement/retired_count")),
        retired_double_bit=leading_int(leaves.get("retired_pages/double_bit_retirement/retired_count")),
        retirement_pending=_either(
            _flag(leaves, "retired_pages/pending_retirement"), _flag(leaves, "retired_pages/pending_blacklist")
        ),
        sram_threshold_exceeded=_flag(leaves, "ecc_errors/aggregate/sram_threshold_exceeded"),
        unrepairable_memory=_flag(leaves, "ecc_errors/unrepairable_memory"),
        channel_repair_pending=_flag(leaves, "ecc_errors/channel_repair_pending"),
        tpc_repair_pending=_flag(leaves, "ecc_errors/tpc_repair_pending"),
        banks_without_spare_rows=leading_int(leaves.get(f"{_HISTOGRAM}/row_remapper_histogram_none")),
        pcie_generation=leading_int(leaves.get(f"{link}/pcie_gen/current_link_gen")),
        pcie_generation_max=leading_int(leaves.get(f"{link}/pcie_gen/max_link_gen")),
        pcie_width=leading_int(leaves.get(f"{link}/link_widths/current_link_width")),
        pcie_width_max=leading_int(leaves.get(f"{link}/link_widths/max_link_width")),
        pcie_replays=leading_int(leaves.get("pci/replay_counter")),
        pcie_replay_rollovers=leading_int(leaves.get("pci/replay_rollover_counter")),
        pcie_tx_kb_s=_float(leaves, "pci/tx_util"),
        pcie_rx_kb_s=_float(leaves, "pci/rx_util"),
        throttle_reasons=frozenset[str]().union(*(section.active for section in leaves.sections)),
        throttled_us=_throttled(leaves),
        fabric=_fabric(leaves.under("fabric")),
        processes=_processes(leaves.under("processes")),
        unread=_unread(leaves),
        says_reset=next((section.needs_reset for section in leaves.sections if section.needs_reset), None),
        raw=leaves,
    )


def _unread(leaves: Leaves) -> dict[str, str]:
    """The leaves that health uses but that contain an error, and missing counts of memory errors."""
    unread = {path: leaf for section in leaves.sections for path, leaf in section.unread.items()}
    if leaves.get("ecc_mode/current_ecc") == "Enabled" and _ecc(leaves, "volatile", "uncorrectable") is None:
        unread.setdefault("ecc_errors", "no count")
    return unread


# As the XML spells them, and as a transcript gives them, whose names are converted to lower case.
_FABRIC_IDS = frozenset({"fabric/cliqueId", "fabric/clusterUuid", "fabric/cliqueid", "fabric/clusteruuid"})


def _fabric(leaves: Mapping[str, str]) -> dict[str, str]:
    """State, status and health of the registration in the NVLink fabric, without its ids."""
    told = {path.partition("/")[2]: leaf for path, leaf in leaves.items() if path not in _FABRIC_IDS}
    # "Unknown error" is a valid status of the registration, although elsewhere it means that there is no value.
    kept = {
        path: leaf[:_LONGEST_WORD] if path == "status" and _is_error(leaf) else _word(leaf)
        for path, leaf in told.items()
    }
    return {path: word for path, word in kept.items() if path and word is not None}


def _is_error(leaf: str) -> bool:
    return leaf.lower() == "unknown error"


def _word(leaf: str | None) -> str | None:
    """A printed word; ``None`` if nvidia-smi prints that it has no value (a printed ``None`` is a word)."""
    return None if not leaf or _NOT_TOLD.fullmatch(leaf) else leaf[:_LONGEST_WORD]


def _float(leaves: Mapping[str, str], *paths: str) -> float | None:
    return next((value for path in paths if (value := leading_float(leaves.get(path))) is not None), None)


_FLAGS = {"yes": True, "no": False, "1": True, "0": False, "enabled": True, "disabled": False}


def _flag(leaves: Mapping[str, str], path: str) -> bool | None:
    return _FLAGS.get(leaves.get(path, "").lower())


def _either(*flags: bool | None) -> bool | None:
    """Whether any of the known flags is set."""
    told = [flag for flag in flags if flag is not None]
    return any(told) if told else None


def _degrees(value: float | None) -> float | None:
    """A temperature that a GPU can have; ``None`` for other numbers, which are invalid and must not count as cool."""
    return value if value is not None and _ABSOLUTE_ZERO_C <= value <= _MOST_C else None


def _above_zero(limit: float | None) -> float | None:
    """A limit in degrees; ``None`` if there is none, in which case cards print 0."""
    return limit if limit is not None and limit > 0 else None


def _limit(leaves: Mapping[str, str], absolute: str, relative: str) -> float | None:
    """A temperature limit. Since Hopper the card states it as an offset in its margin (``T.Limit``), not in degrees.

    ``gpu_temp_tlimit`` is the chip's distance from its limit, and ``relative`` is the margin at which the card acts.
    Together with the temperature they give the limit in degrees.
    """
    stated = _above_zero(_float(leaves, f"temperature/{absolute}"))
    if stated is not None:
        return stated
    now, margin, acts_at = (_float(leaves, f"temperature/{n}") for n in ("gpu_temp", "gpu_temp_tlimit", relative))
    if now is None or margin is None or acts_at is None:
        return None
    return now + margin - acts_at


def _ecc(leaves: Leaves, period: str, severity: str) -> int | None:
    """Errors of all memories. Old schemas total ``single_bit`` and ``double_bit``; new ones count each kind of RAM."""
    prefix, errors = f"ecc_errors/{period}/", leaves.under("ecc_errors")
    bits = "double_bit" if severity == "uncorrectable" else "single_bit"
    total = leading_int(errors.get(f"{prefix}{bits}/total"))
    if total is not None:
        return total
    counts = [
        count
        for ram in ("sram", "dram")
        # A schema prints the sum or its parts (parity, SEC-DED). If it prints both, the sum includes the parts.
        for path in _sum_or_parts(errors, f"{prefix}{ram}_{severity}")
        if (count := leading_int(errors[path])) is not None
    ]
    return sum(counts) if counts else None


def _ecc_of(leaves: Leaves, period: str, ram: str) -> int | None:
    """Uncorrectable errors of one kind of memory. The old schema counts errors of DRAM as ``device_memory``."""
    prefix, errors = f"ecc_errors/{period}/", leaves.under("ecc_errors")
    total, dram = (leading_int(errors.get(f"{prefix}double_bit/{name}")) for name in ("total", "device_memory"))
    if total is not None:
        return dram if ram == "dram" else total - (dram or 0)
    paths = _sum_or_parts(errors, f"{prefix}{ram}_uncorrectable")
    counts = [count for path in paths if (count := leading_int(errors[path])) is not None]
    return sum(counts) if counts else None


def _sum_or_parts(leaves: Mapping[str, str], path: str) -> list[str]:
    return [path] if path in leaves else [leaf for leaf in leaves if leaf.startswith(f"{path}_")]


_COUNTED_REASONS = {
    "sw_power_cap": "sw_power_cap",
    "sync_boost": "sync_boost",
    "sw_therm_slowdown": "sw_thermal_slowdown",
    "hw_therm_slowdown": "hw_thermal_slowdown",
    "hw_power_brake": "hw_power_brake_slowdown",
}
"""The names of clock event reasons: as nvidia-smi counts them, and as it shows them if they are active."""


def _throttled(leaves: Mapping[str, str]) -> dict[str, int]:
    counts = {
        reason: leading_int(leaves.get(f"{_HELD_DOWN}/{_HELD_DOWN}_{counted}"))
        for counted, reason in _COUNTED_REASONS.items()
    }
    return {reason: count for reason, count in counts.items() if count is not None}


def _processes(leaves: Mapping[str, str]) -> tuple[GpuProcess, ...]:
    found = []
    for path, leaf in leaves.items():
        parent, _, name = path.rpartition("/")
        pid = leading_int(leaf) if name == "pid" and _PROCESS.match(parent) else None
        if pid is not None:
            name, memory = leaves.get(f"{parent}/process_name", ""), leaves.get(f"{parent}/used_memory")
            found.append(GpuProcess(pid, name, leading_float(memory)))
    return tuple(found)
