"""What is wrong with one GPU: each rule looks at one :class:`GpuCase` and yields findings; none raises."""

import re
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
RECOVERY_ACTIONS = ("none", "reset", "reboot", "drain p2p", "drain and reset")
"""Cases of the rule gpu.recovery-action by the code that the driver writes into XID 154."""
_NEW_RECOVERY_ACTION = re.compile(r"\bto 0x([0-9a-f]{1,4})\b", re.IGNORECASE)


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
        if action == "ignore" or (action == "read-recovery-action" and _recovery_action(case) is not None):
            continue
        meaning = book.xid_meanings.get(number, "not in the catalogue" if action == "unknown" else "")
        events = [event for event in case.xids if event.xid == number]
        evidence = f"{meaning} (XID {number})" if meaning else f"XID {number}"
        if len(events) > 1:
            evidence += f", {len(events)} times"
        since = min((event.at for event in events if event.at is not None), default=case.read_at)
        yield found(case.id, "gpu.xid", action, evidence, since=since)


def _recovery_action(case: GpuCase) -> str | None:
    """What the GPU asks for: by nvidia-smi, which speaks of now, else by the last XID 154 of which that can be read."""
    if case.reading is not None and case.reading.recovery_action is not None:
        return case.reading.recovery_action
    announced = [event.text for event in case.xids if rulebook().xid_actions.get(event.xid) == "read-recovery-action"]
    code = _NEW_RECOVERY_ACTION.search(announced[-1]) if announced else None
    number = int(code[1], 16) if code else len(RECOVERY_ACTIONS)
    return RECOVERY_ACTIONS[number] if number < len(RECOVERY_ACTIONS) else None


def recovery_action(case: GpuCase) -> Iterator[Finding]:
    """What the GPU itself asks for, in the words of its driver's version."""
    word = _recovery_action(case) or "none"
    action = word.strip().lower()
    if action != "none":
        known = has_case("gpu.recovery-action", action)
        evidence = f"asks for: {word}" if known else f"asks for {word!r}, which is not in the catalogue"
        yield found(case.id, "gpu.recovery-action", action if known else "unknown", evidence, since=case.read_at)
    elif (reading := case.reading) is None:
        return
    elif reading.reset_required or reading.says_reset:
        evidence = f"{reading.says_reset or 'nvidia-smi'} says that the GPU requires a reset"
        yield found(case.id, "gpu.recovery-action", "reset", evidence, since=case.read_at)
    elif reading.drain_and_reset_recommended:
        evidence = "nvidia-smi recommends to drain and reset it"
        yield found(case.id, "gpu.recovery-action", "drain and reset", evidence, since=case.read_at)


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
    """A GPU that is listed without the values to judge it by: errors and an unknown format must not pass for health.

    Every GPU tells its temperature, and one without ECC its memory at least.
    """
    reading = case.reading
    if reading is None or case.absence is not None:
        return
    memory = reading.memory_used_mib is None and reading.ecc_volatile_uncorrectable is None
    missing = [what for what, none in (("temperature", reading.temperature_c is None), ("memory", memory)) if none]
    if reading.unread:
        (path, leaf), *more = reading.unread.items()
        evidence = f"{path} reads {leaf!r}" + (f", and {len(more)} more alike" if more else "")
        yield found(case.id, "gpu.silent", "errors", evidence, since=case.read_at)
    elif missing and not reading.says_reset:
        evidence = f"nvidia-smi lists it without {' and '.join(missing)}"
        yield found(case.id, "gpu.silent", "no-values", evidence, since=case.read_at)


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
    """Pages of memory taken out of use, on cards from before row remapping; both kinds share the places for them."""
    reading = case.reading
    if reading is None:
        return
    retired = (reading.retired_single_bit or 0) + (reading.retired_double_bit or 0)
    if retired >= verdict("gpu.retired-pages", "exhausted").limit:
        yield found(case.id, "gpu.retired-pages", "exhausted", f"{retired} pages retired", since=case.read_at)
    if reading.retirement_pending:
        evidence = "a page to retire waits for a reset"
        yield found(case.id, "gpu.retired-pages", "pending", evidence, since=case.read_at)


def ecc(case: GpuCase) -> Iterator[Finding]:
    """Memory errors that could not be corrected: since the driver was loaded, and too many of SRAM in a card's life."""
    errors = (case.reading.ecc_volatile_uncorrectable if case.reading else None) or 0
    if errors >= verdict("gpu.ecc", "uncorrectable").limit:
        plural = "s" if errors > 1 else ""
        evidence = f"{errors} uncorrectable ECC error{plural} since the driver was loaded"
        yield found(case.id, "gpu.ecc", "uncorrectable", evidence, since=case.read_at)
    if case.reading and case.reading.sram_threshold_exceeded:
        evidence = "uncorrectable SRAM errors are beyond the card's own threshold"
        yield found(case.id, "gpu.ecc", "sram-threshold", evidence, since=case.read_at)


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
