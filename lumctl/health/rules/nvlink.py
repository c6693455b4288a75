"""NVLinks of one GPU: counted errors, and links that are no longer active."""

from collections.abc import Iterator

from lumctl.fleet.readings import ALL_NVLINKS, NVLINK_TOTAL, NvlinkReading
from lumctl.health.rulebook import found, verdict
from lumctl.health.rules.cases import GpuCase
from lumctl.health.rules.counters import counted
from lumctl.health.states import Finding

_NAMED = 3
"""How many counters a note lists: a GPU has up to 18 links."""


def part_of(link: NvlinkReading) -> str:
    """The name of one link in a GPU's trend."""
    return "all NVLinks" if link.link in {ALL_NVLINKS, NVLINK_TOTAL} else f"NVLink {link.link}"


_PACKET_ERRORS = (
    "malformed packet errors",
    "buffer overrun errors",
    "rx errors",
    "rx remote errors",
    "rx general errors",
    "local link integrity errors",
)
"""The NVLink 5 counters of damaged or lost packets, by nvidia-smi's names in lower case."""


def packet_errors(link: NvlinkReading) -> int | None:
    """The sum of NVLink 5's packet error counters, which replace replays and CRC errors; ``None`` without any."""
    counts = [link.errors[name] for name in _PACKET_ERRORS if name in link.errors]
    return sum(counts) if counts else None


def errors(case: GpuCase) -> Iterator[Finding]:
    """Replays, recoveries and CRC errors."""
    if case.nvlinks:
        # The counters are read less often than the GPU itself, so the time of their own reading counts.
        read_at = max((link.errors_at for link in case.nvlinks if link.errors_at is not None), default=case.read_at)
        yield from counted(case.id, "gpu.nvlink", case.trend, now=read_at, read_at=read_at)


def counted_before(case: GpuCase) -> Iterator[Finding]:
    """All replays and recoveries since the driver was loaded: only a note, because new ones have their own cases."""
    counts = [
        f"{part_of(link)}: {count} {what}"
        for link in case.nvlinks
        for what, count in (("replays", link.replay_errors), ("recoveries", link.recovery_errors))
        if count
    ]
    if counts:
        evidence = f"{', '.join(counts[:_NAMED])} since the driver was loaded"
        if len(counts) > _NAMED:
            evidence += f", and {len(counts) - _NAMED} more like it"
        yield found(case.id, "gpu.nvlink", "counted-before", evidence, since=case.read_at)


def bit_errors(case: GpuCase) -> Iterator[Finding]:
    """The effective bit error rate, which NVLink 5 states instead of replays."""
    line = verdict("gpu.nvlink", "bit-errors")
    bad = [link for link in case.nvlinks if link.effective_ber is not None and link.effective_ber > line.limit]
    if bad:
        link = max(bad, key=lambda link: link.effective_ber or 0.0)
        evidence = f"{part_of(link)}: effective bit error rate {link.effective_ber:.1e} (limit: {line.limit:.0e})"
        yield found(case.id, "gpu.nvlink", "bit-errors", evidence, since=link.errors_at or case.read_at)


def inactive(case: GpuCase) -> Iterator[Finding]:
    """Links that are not active: all of them, or links that were active before.

    Links that were never active are not a fault: how many links a card uses is unknown. A GPU that was partitioned into
    instances (MIG) in the meantime uses no link.
    """
    worked = case.trend.worked if case.trend is not None and not is_mig(case) else set()
    gone = [part_of(link) for link in case.nvlinks if link.active is False and part_of(link) in worked]
    if none_is_active(case):
        yield found(case.id, "gpu.nvlink", "all-inactive", "none of its NVLinks is active", since=case.read_at)
    elif gone:
        evidence = f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} no longer active"
        yield found(case.id, "gpu.nvlink", "inactive", evidence, since=case.read_at)


def none_is_active(case: GpuCase) -> bool:
    """Whether a GPU has no active link, although links worked before or its board connects it to other GPUs."""
    if not case.nvlinks or any(link.active is not False for link in case.nvlinks) or is_mig(case):
        return False
    # A PCIe card without a bridge never has an active link, and that is no fault.
    return bool(case.trend is not None and case.trend.worked) or _is_joined(case)


def is_mig(case: GpuCase) -> bool:
    """Whether a GPU is partitioned into instances, which use no NVLink."""
    return case.reading is not None and case.reading.mig_enabled


def _is_joined(case: GpuCase) -> bool:
    """Whether a board connects a GPU to others of its host; a PCIe card without a bridge has no active link."""
    reading = case.reading
    if reading is None or not case.beside:
        return False
    return reading.fabric.get("state", "").lower() not in {"", "not supported"} or "SXM" in (reading.product or "")


RULES = (errors, counted_before, bit_errors, inactive)
