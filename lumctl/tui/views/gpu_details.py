"""The readings of one GPU in groups: heat and clocks, use, links, condition; unreported readings are unknown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lumctl.fleet.readings import ALL_NVLINKS, GpuReading, HostSnapshot, NvlinkReading, ProbeStatus
from lumctl.health.identity import match_gpus, match_nvlinks
from lumctl.health.observation import Observation
from lumctl.inventory.model import NVIDIA_SMI, Accelerator
from lumctl.tui.look.marks import duration
from lumctl.tui.views.readings import Reading, readings_of
from lumctl.tui.views.sections import Fact, Section

_HEAT = ("temperature", "memory temperature", "power", "SM clock", "memory clock")
_USE = ("utilisation", "memory utilisation", "memory used")
_NVLINK, _PCIE = ("NVLink sends", "NVLink receives"), ("PCIe sends", "PCIe receives")
_REASONS: Mapping[str, str] = {
    "gpu_idle": "nothing runs on it",
    "applications_clocks_setting": "a lower clock is set for applications",
    "sw_power_cap": "at its power limit",
    "hw_slowdown": "its hardware slows down",
    "hw_thermal_slowdown": "too hot, according to its hardware",
    "sw_thermal_slowdown": "too hot, according to its driver",
    "hw_power_brake_slowdown": "the power supply requests a lower clock",
    "sync_boost": "limited to the clock of the slowest GPU of its group",
    "display_clocks_setting": "limited to the clock of a display",
}
"""Why a GPU runs below its highest clock, by the short names of nvidia-smi."""


def gpu_sections(observation: Observation, accelerator: Accelerator) -> Iterator[Section]:
    """All that is read of the GPU of an accelerator."""
    host = observation.snapshot.hosts.get(accelerator.host)
    gpu = match_gpus((accelerator,), host.gpus).get(accelerator.id) if host is not None else None
    if host is None or gpu is None:
        yield Section("readings", (("GPU", "no reading"),))
        return
    readings = {reading.name: reading for reading in readings_of(observation, accelerator.id)}
    stale_after_s = observation.inventory.thresholds.stale_after_s
    links = match_nvlinks({accelerator.id: gpu}, host).get(accelerator.id, ())

    def section(heading: str, names: Sequence[str], facts: Sequence[Fact], why: str) -> Section:
        found = tuple(readings[name] for name in names if name in readings)
        missing = tuple((name, f"unknown: {why}") for name in names if name not in readings)
        return Section(heading, (*missing, *facts), found, stale_after_s)

    unreported = f"{gpu.source} does not report it"
    yield section("heat, power and clocks, and the last 15 minutes", _HEAT, tuple(_clocks(gpu)), unreported)
    use = section("use", _USE, () if gpu.processes else (("processes", "none reported"),), unreported)
    yield replace(use, processes=gpu.processes, memory_mib=gpu.memory_total_mib)
    if _may_have_nvlink(host, links) or any(name in readings for name in _NVLINK):
        about = (("NVLink", _nvlink_words(links, readings.get(_NVLINK[0]))),)
        rates = section("NVLink", _NVLINK, about, "a rate needs two readings of the link counters")
        # This probe runs more rarely than others, so its readings are older when the next ones come.
        yield replace(rates, stale_after_s=stale_after_s + observation.inventory.probes["nvlink"].every_s)
    yield section("PCI Express", _PCIE, (("PCIe link", _pcie_words(gpu)),), unreported)
    yield Section("condition", tuple(_condition(gpu)))


def _clocks(gpu: GpuReading) -> Iterator[Fact]:
    reasons = (_REASONS.get(reason, reason.replace("_", " ")) for reason in sorted(gpu.throttle_reasons))
    yield "clocks held down", "; ".join(reasons) or "no reason reported"
    held = [
        f"{duration(us / 1e6)}: {_REASONS.get(reason, reason.replace('_', ' '))}"
        for reason, us in sorted(gpu.throttled_us.items(), key=lambda item: -item[1])
        if us > 0
    ]
    if held:
        yield "held down so far", "; ".join(held)


def _may_have_nvlink(host: HostSnapshot, links: Sequence[NvlinkReading]) -> bool:
    """Whether the GPU has links, or no reading shows that it has none."""
    outcome = host.probes.get("nvlink")
    # A GPU without NVLink must not get a section of unknowns, but a probe that failed must not hide the links.
    if links or outcome is None:
        return bool(links)
    return outcome.status not in {ProbeStatus.OK, ProbeStatus.ABSENT, ProbeStatus.NOT_ASKED}


def _nvlink_words(links: Sequence[NvlinkReading], rate: Reading | None) -> str:
    single = [link for link in links if link.link >= 0]
    if any(link.link == ALL_NVLINKS for link in links):
        said = "no link is active"
    elif single:
        said = f"{sum(link.active is True for link in single)} of {len(single)} links active"
    else:
        said = "the state of its links is unknown"
    return f"{said}; rates are means of {duration(rate.over_s)}" if rate is not None and rate.over_s else said


def _pcie_words(gpu: GpuReading) -> str:
    def part(now: int | None, most: int | None) -> str:
        return f"{'unknown' if now is None else now}{f' of {most}' if most is not None else ''}"

    said = f"generation {part(gpu.pcie_generation, gpu.pcie_generation_max)}"
    said += f", {part(gpu.pcie_width, gpu.pcie_width_max)} lanes"
    # NVML counts the bytes of only 20 ms for a reading: a pause or a burst of traffic decides it.
    is_sampled = gpu.source == NVIDIA_SMI and gpu.pcie_tx_kb_s is not None
    return f"{said}; rates of 20 ms" if is_sampled else said


def _condition(gpu: GpuReading) -> Iterator[Fact]:
    counts = (
        ("uncorrectable", gpu.ecc_volatile_uncorrectable),
        ("correctable", gpu.ecc_volatile_correctable),
        ("uncorrectable in its lifetime", gpu.ecc_aggregate_uncorrectable),
    )
    told = ", ".join(f"{count} {kind}" for kind, count in counts if count is not None)
    yield "memory errors", told or ("not counted: ECC is off" if gpu.ecc_enabled is False else "unknown")
    if gpu.remap_failed is not None:
        yield "row remap", "failed" if gpu.remap_failed else "well"
    if gpu.recovery_action is not None:
        yield "recovery action", gpu.recovery_action
    yield "read from", gpu.source
