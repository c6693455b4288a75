"""What is wrong with one GPU: each rule looks at one :class:`GpuCase` and yields findings; none raises."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lumctl.fleet.readings import GpuReading, XidEvent
from lumctl.health.rulebook import found, has_case, rulebook, verdict
from lumctl.health.states import Finding
from lumctl.inventory.model import Thresholds

HARDWARE_THROTTLING = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
"""Reasons that point at power or cooling; idle clocks and a power cap are ordinary life."""


class Absence(StrEnum):
    """How an accelerator is missing from what nvidia-smi says."""

    NAMED_LOST = "named-lost"
    NOT_LISTED = "not-listed"
    NOT_TOLD_APART = "not-told-apart"
    LIST_ABORTED = "list-aborted"


@dataclass(frozen=True, slots=True)
class GpuCase:
    """One accelerator with everything that one collection says of it.

    ``reading`` is its own and fresh, or ``None``; ``stale`` says how old it is where it is not fresh. ``xids`` are
    those of its PCI address that are not too old.
    """

    id: str
    reading: GpuReading | None
    stale: str | None
    absence: Absence | None
    xids: tuple[XidEvent, ...]
    thresholds: Thresholds
    read_at: float


def xids(case: GpuCase) -> Iterator[Finding]:
    """XIDs of the kernel log, one finding for each number."""
    book = rulebook()
    for number in dict.fromkeys(event.xid for event in case.xids):
        action = book.xid_actions.get(number, "unknown")
        if action == "ignore" or (action == "read-recovery-action" and _recovery_is_told(case)):
            continue
        meaning = book.xid_meanings.get(number, "not in the catalogue" if action == "unknown" else "")
        events = [event for event in case.xids if event.xid == number]
        evidence = f"{meaning} (XID {number})" if meaning else f"XID {number}"
        if len(events) > 1:
            evidence += f", {len(events)} times"
        since = min((event.at for event in events if event.at is not None), default=case.read_at)
        yield found(case.id, "gpu.xid", action, evidence, since=since)


def _recovery_is_told(case: GpuCase) -> bool:
    """Whether nvidia-smi itself says what the GPU asks for now, which is newer than a line of the log."""
    return case.reading is not None and case.reading.recovery_action is not None


def recovery_action(case: GpuCase) -> Iterator[Finding]:
    """What the GPU itself asks for."""
    if case.reading is None or case.reading.recovery_action is None:
        return
    word = case.reading.recovery_action
    action = word.strip().lower()
    if action == "none":
        return
    known = has_case("gpu.recovery-action", action)
    evidence = f"asks for: {word}" if known else f"asks for {word!r}, which is not in the catalogue"
    yield found(case.id, "gpu.recovery-action", action if known else "unknown", evidence, since=case.read_at)


def absent(case: GpuCase) -> Iterator[Finding]:
    """The driver no longer has the GPU, or nobody can tell which of its GPUs this is."""
    match case.absence:
        case Absence.NAMED_LOST:
            yield found(case.id, "gpu.lost", "named", "nvidia-smi names it as lost", since=case.read_at)
        case Absence.NOT_LISTED:
            yield found(case.id, "gpu.lost", "not-listed", "nvidia-smi does not list it", since=case.read_at)
        case Absence.NOT_TOLD_APART:
            evidence = "nvidia-smi prints no minor number, and the inventory has neither pci nor uuid"
            yield found(case.id, "gpu.not-read", "no-key", evidence, since=case.read_at)
        case Absence.LIST_ABORTED:
            evidence = "nvidia-smi stopped at a lost GPU of this host and lists no other"
            yield found(case.id, "gpu.not-read", "list-aborted", evidence, since=case.read_at)


def stale(case: GpuCase) -> Iterator[Finding]:
    """A reading too old to say anything about now."""
    if case.stale is not None:
        yield found(case.id, "gpu.stale", "reading", case.stale, since=case.read_at)


def silent(case: GpuCase) -> Iterator[Finding]:
    """A GPU that is listed, without a single value to judge it by: an unknown format must not pass for health."""
    reading = case.reading
    if reading is None:
        return
    judged = (
        reading.recovery_action,
        reading.temperature_c,
        reading.utilization_percent,
        reading.memory_used_mib,
        reading.power_w,
        reading.ecc_volatile_uncorrectable,
        reading.remap_failed,
        reading.retired_double_bit,
    )
    if all(value is None for value in judged):
        yield found(case.id, "gpu.silent", "no-values", "nvidia-smi lists it without values", since=case.read_at)


def row_remap(case: GpuCase) -> Iterator[Finding]:
    """Rows of memory that were, are to be, or could not be replaced by spare ones."""
    reading = case.reading
    if reading is None:
        return
    if reading.remap_failed:
        yield found(case.id, "gpu.row-remap", "failed", "a row remap failed", since=case.read_at)
    remapped = reading.remap_uncorrectable or 0
    if remapped >= verdict("gpu.row-remap", "exhausted").limit:
        yield found(case.id, "gpu.row-remap", "exhausted", f"{remapped} rows remapped", since=case.read_at)
    if reading.remap_pending:
        yield found(case.id, "gpu.row-remap", "pending", "a row remap waits for a reset", since=case.read_at)


def retired_pages(case: GpuCase) -> Iterator[Finding]:
    """Pages of memory taken out of use, on cards from before row remapping."""
    retired = (case.reading.retired_double_bit if case.reading else None) or 0
    if retired >= verdict("gpu.retired-pages", "exhausted").limit:
        evidence = f"{retired} pages retired for double-bit errors"
        yield found(case.id, "gpu.retired-pages", "exhausted", evidence, since=case.read_at)


def ecc(case: GpuCase) -> Iterator[Finding]:
    """Memory errors since the driver was loaded that could not be corrected."""
    errors = (case.reading.ecc_volatile_uncorrectable if case.reading else None) or 0
    if errors >= verdict("gpu.ecc", "uncorrectable").limit:
        plural = "s" if errors > 1 else ""
        evidence = f"{errors} uncorrectable ECC error{plural} since the driver was loaded"
        yield found(case.id, "gpu.ecc", "uncorrectable", evidence, since=case.read_at)


def temperature(case: GpuCase) -> Iterator[Finding]:
    """Core and memory temperature; the card's own threshold wins over the inventory's."""
    reading, thresholds = case.reading, case.thresholds
    if reading is None:
        return
    for part, value, own, general in (
        ("core", reading.temperature_c, reading.temperature_slowdown_c, thresholds.gpu_temperature_c),
        ("memory", reading.memory_temperature_c, reading.memory_temperature_max_c, thresholds.memory_temperature_c),
    ):
        limit = general if own is None else own
        if value is not None and value >= limit:
            whose = "the inventory's limit" if own is None else "the card's own limit"
            evidence = f"{part} at {value:g} C, {whose} is {limit:g} C"
            yield found(case.id, "gpu.temperature", part, evidence, since=case.read_at)


def throttled(case: GpuCase) -> Iterator[Finding]:
    """Clocks held down by power or cooling: a note only, for one sample never degrades."""
    reasons = sorted((case.reading.throttle_reasons if case.reading else frozenset()) & HARDWARE_THROTTLING)
    if reasons:
        evidence = f"clocks held down: {', '.join(reasons)}"
        yield found(case.id, "gpu.throttled", "noted", evidence, since=case.read_at)


RULES = (xids, recovery_action, absent, stale, silent, row_remap, retired_pages, ecc, temperature, throttled)
"""In this order findings of equal weight are shown: what the kernel says of a GPU tells more than its absence."""
