"""Faults of one GPU: each rule checks one :class:`GpuCase` and yields findings; none raises an error."""

from collections.abc import Iterator

from lumctl.health.rulebook import found, verdict
from lumctl.health.rules import counters, fabric, load, nvlink, probe, settings, xid
from lumctl.health.rules.cases import Absence, GpuCase
from lumctl.health.rules.counters import counted, span
from lumctl.health.states import Finding


def absent(case: GpuCase) -> Iterator[Finding]:
    """The driver no longer has the GPU, or it cannot be identified among the driver's GPUs."""
    match case.absence:
        case Absence.NAMED_LOST:
            yield found(case.id, "gpu.lost", "named", f"{case.probe} lists it as lost", since=case.read_at)
        case Absence.NOT_LISTED:
            yield found(case.id, "gpu.lost", "not-listed", f"{case.source} does not list it", since=case.read_at)
        case Absence.NOT_TOLD_APART:
            evidence = f"{case.source} does not print the pci, uuid or minor number by which the inventory knows it"
            yield found(case.id, "gpu.not-read", "no-key", evidence, since=case.read_at)
        case Absence.LIST_ABORTED:
            evidence = f"{case.probe} stopped at a lost GPU of this host and lists no other"
            yield found(case.id, "gpu.not-read", "list-aborted", evidence, since=case.read_at)


def unsteady(case: GpuCase) -> Iterator[Finding]:
    """A GPU that is repeatedly lost and comes back without a reboot, or repeatedly fails and recovers."""
    if case.trend is None or not case.trend.tallies:
        return
    for name, words in (
        ("lost-again", "was lost and came back without a reboot"),
        ("failed-again", "failed and recovered"),
    ):
        line = verdict("gpu.unsteady", name)
        events = case.trend.events(line.counter, line.window_s, case.read_at).get("", 0)
        if line.reached_by(events):
            evidence = f"it {words} {events} times in the last {span(line.window_s)}"
            yield found(case.id, "gpu.unsteady", name, evidence, since=case.read_at)


def stale(case: GpuCase) -> Iterator[Finding]:
    """A reading too old to be current."""
    if case.stale is not None:
        yield found(case.id, "gpu.stale", "reading", case.stale, since=case.read_at)


def silent(case: GpuCase) -> Iterator[Finding]:
    """A GPU that is listed without the values needed to judge it: errors or an unknown format must not count as ok.

    The needed values are the temperature, and the ECC errors or, on a GPU without ECC, the used memory.
    """
    reading = case.reading
    if reading is None or case.absence is not None:
        return
    memory = reading.memory_used_mib is None and reading.ecc_volatile_uncorrectable is None
    missing = [what for what, none in (("temperature", reading.temperature_c is None), ("memory", memory)) if none]
    if reading.unread:
        (path, leaf), *more = reading.unread.items()
        evidence = f"{path} reads {leaf!r}" + (f", and {len(more)} more like it" if more else "")
        yield found(case.id, "gpu.silent", "errors", evidence, since=case.read_at)
    # A GPU that needs a reset prints that in place of its values, and gpu.recovery-action reports it.
    elif missing and not reading.says_reset:
        evidence = f"{reading.source} lists it without {' and '.join(missing)}"
        yield found(case.id, "gpu.silent", "no-values", evidence, since=case.read_at)


def row_remap(case: GpuCase) -> Iterator[Finding]:
    """Rows of memory that were replaced by spare rows, wait to be replaced, or could not be replaced."""
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


def spare_rows(case: GpuCase) -> Iterator[Finding]:
    """Banks of memory without a spare row: the next error in such a bank cannot be repaired."""
    banks = (case.reading.banks_without_spare_rows if case.reading else None) or 0
    if banks >= verdict("gpu.row-remap", "no-spare-rows").limit:
        evidence = f"{banks} bank{'s have' if banks > 1 else ' has'} no spare row left"
        yield found(case.id, "gpu.row-remap", "no-spare-rows", evidence, since=case.read_at)


def repairs(case: GpuCase) -> Iterator[Finding]:
    """Repairs of memory channels and processor clusters (TPC) that wait for a reset, and memory beyond repair."""
    reading = case.reading
    if reading is None:
        return
    for name, told, evidence in (
        ("unrepairable", reading.unrepairable_memory, "it has memory that cannot be repaired"),
        ("channel-pending", reading.channel_repair_pending, "the repair of a memory channel waits for a reset"),
        ("tpc-pending", reading.tpc_repair_pending, "the repair of a processor cluster (TPC) waits for a reset"),
    ):
        if told:
            yield found(case.id, "gpu.repair", name, evidence, since=case.read_at)


def inforom(case: GpuCase) -> Iterator[Finding]:
    """A corrupted infoROM: the memory of the board with its serial number, settings and record of errors."""
    if case.reading is not None and case.reading.inforom_corrupted:
        yield found(
            case.id, "gpu.inforom", "corrupted", "nvidia-smi reports that its infoROM is corrupted", since=case.read_at
        )


def retired_pages(case: GpuCase) -> Iterator[Finding]:
    """Retired pages of memory, on cards without row remapping; single-bit and double-bit errors share one limit."""
    reading = case.reading
    if reading is None:
        return
    retired = (reading.retired_single_bit or 0) + (reading.retired_double_bit or 0)
    if retired >= verdict("gpu.retired-pages", "exhausted").limit:
        yield found(case.id, "gpu.retired-pages", "exhausted", f"{retired} pages retired", since=case.read_at)
    line, double = verdict("gpu.retired-pages", "growing"), reading.retired_double_bit or 0
    lately = case.trend.events(line.counter, line.window_s, case.read_at).get("", 0) if case.trend else 0
    if double > line.limits["double_bit"] and line.reached_by(lately):
        evidence = f"{double} pages retired for double-bit errors, {lately} of them within a week"
        yield found(case.id, "gpu.retired-pages", "growing", evidence, since=case.read_at)
    if reading.retirement_pending:
        evidence = "a page to retire waits for a reset"
        yield found(case.id, "gpu.retired-pages", "pending", evidence, since=case.read_at)


def ecc(case: GpuCase) -> Iterator[Finding]:
    """Uncorrectable memory errors: since the driver was loaded, and of SRAM above the card's lifetime threshold."""
    errors = (case.reading.ecc_volatile_uncorrectable if case.reading else None) or 0
    if errors >= verdict("gpu.ecc", "uncorrectable").limit:
        plural = "s" if errors > 1 else ""
        evidence = f"{errors} uncorrectable ECC error{plural} since the driver was loaded"
        yield found(case.id, "gpu.ecc", "uncorrectable", evidence, since=case.read_at)
    if case.reading and case.reading.sram_threshold_exceeded:
        evidence = "uncorrectable SRAM errors are beyond the card's own threshold"
        yield found(case.id, "gpu.ecc", "sram-threshold", evidence, since=case.read_at)
    if case.reading is not None:
        yield from counted(case.id, "gpu.ecc", case.trend, now=case.read_at, read_at=case.read_at)


def ecc_lifetime(case: GpuCase) -> Iterator[Finding]:
    """Uncorrectable memory errors from before the driver was loaded.

    DRAM is repaired after such an error: a spare row replaces the row, or the page is retired.
    """
    reading = case.reading
    # If all errors are of this load of the driver, rule `ecc` has reported them.
    if reading is None or (reading.ecc_aggregate_uncorrectable or 0) <= (reading.ecc_volatile_uncorrectable or 0):
        return
    sram, dram = reading.sram_aggregate_uncorrectable or 0, reading.dram_aggregate_uncorrectable or 0
    if sram >= verdict("gpu.ecc", "lifetime-sram").limit:
        evidence = f"{sram} uncorrectable SRAM error{'s' if sram > 1 else ''} in the lifetime of the card"
        yield found(case.id, "gpu.ecc", "lifetime-sram", evidence, since=case.read_at)
    if dram >= verdict("gpu.ecc", "lifetime-dram").limit:
        repaired = (reading.remap_uncorrectable or 0) + (reading.retired_double_bit or 0)
        name = "lifetime-repaired" if repaired else "lifetime-dram"
        evidence = f"{dram} uncorrectable DRAM error{'s' if dram > 1 else ''} in the lifetime of the card"
        evidence += f", {repaired} rows or pages repaired" if repaired else ", and no row or page was repaired for it"
        yield found(case.id, "gpu.ecc", name, evidence, since=case.read_at)


def temperature(case: GpuCase) -> Iterator[Finding]:
    """Core and memory temperature; the card's own threshold overrides the inventory's."""
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


def sources(case: GpuCase) -> Iterator[Finding]:
    """A GPU that one source lists and another source, which lists its neighbours, does not."""
    reading = case.reading
    if reading is not None and reading.unlisted_by is not None:
        evidence = f"{reading.unlisted_by} does not list it, but {reading.source} does"
        yield found(case.id, "gpu.sources", "not-listed", evidence, since=case.read_at)


def reported(case: GpuCase) -> Iterator[Finding]:
    """Faults of this GPU that another program on the host reports."""
    yield from counters.reported(case.id, "gpu.reported", case.reports)


RULES = (
    *xid.RULES,
    *probe.RULES,
    absent,
    unsteady,
    stale,
    silent,
    row_remap,
    spare_rows,
    repairs,
    inforom,
    retired_pages,
    ecc,
    ecc_lifetime,
    temperature,
    *fabric.RULES,
    *nvlink.RULES,
    *load.RULES,
    *settings.RULES,
    sources,
    reported,
)
"""The order of findings with equal weight: a kernel message about a GPU is more specific than its absence."""
