"""What is wrong with one GPU: each rule looks at one :class:`GpuCase` and yields findings; none raises."""

from collections.abc import Iterator

from lumctl.health.rulebook import found, verdict
from lumctl.health.rules import counters, fabric, load, nvlink, probe, settings, xid
from lumctl.health.rules.cases import Absence, GpuCase
from lumctl.health.rules.counters import counted, span
from lumctl.health.states import Finding

__all__ = ["RULES", "Absence", "GpuCase"]


def absent(case: GpuCase) -> Iterator[Finding]:
    """The driver no longer has the GPU, or it cannot be identified among the driver's GPUs."""
    match case.absence:
        case Absence.NAMED_LOST:
            yield found(case.id, "gpu.lost", "named", f"{case.probe} names it as lost", since=case.read_at)
        case Absence.NOT_LISTED:
            yield found(case.id, "gpu.lost", "not-listed", f"{case.source} does not list it", since=case.read_at)
        case Absence.NOT_TOLD_APART:
            evidence = f"{case.source} prints no minor number, and the inventory has neither pci nor uuid"
            if case.source != case.probe:
                evidence = f"{case.source} prints neither the pci nor the uuid by which the inventory knows it"
            yield found(case.id, "gpu.not-read", "no-key", evidence, since=case.read_at)
        case Absence.LIST_ABORTED:
            evidence = f"{case.probe} stopped at a lost GPU of this host and lists no other"
            yield found(case.id, "gpu.not-read", "list-aborted", evidence, since=case.read_at)


def unsteady(case: GpuCase) -> Iterator[Finding]:
    """A GPU that is lost and comes back without a reboot, or fails and recovers, again and again."""
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
    """A GPU that is listed without the values to judge it by: errors and an unknown format must not count as ok.

    Every GPU reports its temperature, and one without ECC at least its memory.
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
        evidence = f"{reading.source} lists it without {' and '.join(missing)}"
        yield found(case.id, "gpu.silent", "no-values", evidence, since=case.read_at)


def row_remap(case: GpuCase) -> Iterator[Finding]:
    """Rows of memory that were replaced by spare rows, wait for that, or could not be replaced."""
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
    """Banks of memory without a spare row: the next error there cannot be repaired."""
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
    """The memory of the board that holds its serial number, its settings, and its record of errors."""
    if case.reading is not None and case.reading.inforom_corrupted:
        yield found(
            case.id, "gpu.inforom", "corrupted", "nvidia-smi says that its infoROM is corrupted", since=case.read_at
        )


def retired_pages(case: GpuCase) -> Iterator[Finding]:
    """Pages of memory taken out of use, on cards from before row remapping; both kinds share the places for them."""
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
    """Memory errors that could not be corrected: since the driver was loaded, and too many of SRAM in a card's life."""
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
    """Memory errors from before the driver was loaded. DRAM is repaired after them: a spare row, or a page retired."""
    reading = case.reading
    if reading is None or (reading.ecc_aggregate_uncorrectable or 0) <= (reading.ecc_volatile_uncorrectable or 0):
        return
    sram, dram = reading.sram_aggregate_uncorrectable or 0, reading.dram_aggregate_uncorrectable or 0
    if sram >= verdict("gpu.ecc", "lifetime-sram").limit:
        evidence = f"{sram} uncorrectable SRAM error{'s' if sram > 1 else ''} in the life of the card"
        yield found(case.id, "gpu.ecc", "lifetime-sram", evidence, since=case.read_at)
    if dram >= verdict("gpu.ecc", "lifetime-dram").limit:
        repaired = (reading.remap_uncorrectable or 0) + (reading.retired_double_bit or 0)
        name = "lifetime-repaired" if repaired else "lifetime-dram"
        evidence = f"{dram} uncorrectable DRAM error{'s' if dram > 1 else ''} in the life of the card"
        evidence += f", {repaired} rows or pages repaired" if repaired else ", and no row or page repaired for it"
        yield found(case.id, "gpu.ecc", name, evidence, since=case.read_at)


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


def sources(case: GpuCase) -> Iterator[Finding]:
    """A GPU that one source lists and another, which lists its neighbours, does not."""
    reading = case.reading
    if reading is not None and reading.unlisted_by is not None:
        evidence = f"{reading.unlisted_by} does not list it, {reading.source} does"
        yield found(case.id, "gpu.sources", "not-listed", evidence, since=case.read_at)


def reported(case: GpuCase) -> Iterator[Finding]:
    """What another program that watches the host reports of this GPU."""
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
"""The order of findings with equal weight: the kernel's report about a GPU is more specific than its absence."""
