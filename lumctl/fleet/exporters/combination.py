"""Combine the readings of shell and exporters of one host into one snapshot.

If both have the same reading and the shell's is recent, the shell's counts; exporters add what the shell lacks. If they
disagree about a fault of a GPU, the worse reading counts. A GPU that nvidia-smi does not list is lost. A GPU that an
exporter should list but does not is reported.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Protocol, TypeVar

from lumctl.fleet.host_readings import Disks, Mounts
from lumctl.fleet.parsers.fields import whole_pci
from lumctl.fleet.readings import GpuReading, HostSnapshot, ProbeOutcome, ProbeStatus, XidEvent
from lumctl.inventory.exporters import EXPORTER_KINDS

SHELL = "shell"
"""The name under which a failed SSH session is listed among the probes of a host that its exporters describe."""
_MOST_APART_S = 30.0
"""If two readings of a GPU are farther apart than this, they are not combined: only the newer one counts."""
_HIGHER_IS_WORSE = frozenset(
    {
        "temperature_c", "memory_temperature_c", "ecc_volatile_uncorrectable", "ecc_aggregate_uncorrectable",
        "sram_aggregate_uncorrectable", "dram_aggregate_uncorrectable", "remap_uncorrectable", "retired_single_bit",
        "retired_double_bit", "banks_without_spare_rows", "remap_pending", "remap_failed", "retirement_pending",
        "sram_threshold_exceeded", "unrepairable_memory", "channel_repair_pending", "tpc_repair_pending",
        "reset_required", "drain_and_reset_recommended",
    }
)  # fmt: skip
_LOWER_IS_WORSE = frozenset({"pcie_width", "ecc_enabled", "persistence_enabled"})
_NOT_COMPARED = frozenset({"taken_at", "pci", "source", "unlisted_by", "raw", "unread", "throttle_reasons"})
_NO_ACTION = "none"


class _Reading(Protocol):
    @property
    def taken_at(self) -> float: ...


R = TypeVar("R", bound=_Reading)
K = TypeVar("K", bound=Hashable)


def combined(shell: HostSnapshot, pages: HostSnapshot) -> HostSnapshot:
    """Both snapshots in one. If only one side answers, the other's failure is among the probes."""
    own = {name: outcome for name, outcome in pages.probes.items() if name in EXPORTER_KINDS}
    if not shell.reachable and not pages.reachable:
        return shell
    if not shell.reachable:
        answered = {name: o for name, o in pages.probes.items() if o.status is not ProbeStatus.NOT_ASKED}
        failed = ProbeOutcome(SHELL, ProbeStatus.FAILED, pages.taken_at, 0.0, shell.error or "no SSH session")
        return replace(pages, probes={**answered, SHELL: failed}, boot_id=shell.boot_id)
    if not pages.reachable:
        return replace(shell, probes={**shell.probes, **own})
    return replace(
        shell,
        probes={**shell.probes, **own, **_missing(shell.probes, pages.probes)},
        gpus=_gpus(shell, pages),
        nvlinks=shell.nvlinks or pages.nvlinks,
        xids=(*shell.xids, *_other_xids(shell.xids, pages.xids)),
        interfaces=_newer(shell.interfaces, pages.interfaces),
        infiniband=tuple(_newer(_by_port(shell.infiniband), _by_port(pages.infiniband)).values()),
        # A counter comes from one source only, because two sources may count from different moments.
        counters={**pages.counters, **shell.counters},
        mounts=_mounts(shell.mounts, pages.mounts),
        disks=_disks(shell.disks, pages.disks),
        clock=_newest(shell.clock, pages.clock),
        host_events=(*shell.host_events, *pages.host_events),
        reports=(*shell.reports, *pages.reports),
        booted_at=shell.booted_at if shell.booted_at is not None else pages.booted_at,
    )


def _missing(shell: Mapping[str, ProbeOutcome], pages: Mapping[str, ProbeOutcome]) -> dict[str, ProbeOutcome]:
    """The pages' outcomes of probes that the shell did not run, or for which the host has no tool."""
    return {
        name: outcome
        for name, outcome in pages.items()
        if outcome.status is ProbeStatus.OK and (name not in shell or shell[name].status is ProbeStatus.ABSENT)
    }


def _gpus(shell: HostSnapshot, pages: HostSnapshot) -> tuple[GpuReading, ...]:
    others = {gpu.pci: gpu for gpu in pages.gpus}
    page_lists = "gpu" in pages.probes and pages.probes["gpu"].status is ProbeStatus.OK
    found: list[GpuReading] = []
    for gpu in shell.gpus:
        other = next((o for o in others.values() if _is_same(gpu, o)), None)
        if other is not None:
            del others[other.pci]
            found.append(_merged(gpu, other))
        else:
            found.append(replace(gpu, unlisted_by=pages.gpus[0].source) if page_lists and pages.gpus else gpu)
    shell_lists = "gpu" in shell.probes and shell.probes["gpu"].status is ProbeStatus.OK
    # An exporter may still remember a GPU that nvidia-smi no longer lists.
    return (*found, *(() if shell_lists else others.values()))


def _is_same(gpu: GpuReading, other: GpuReading) -> bool:
    if whole_pci(gpu.pci) and whole_pci(other.pci):
        # Without the function, which some sources leave out.
        return gpu.pci.partition(".")[0] == other.pci.partition(".")[0]
    return gpu.uuid is not None and other.uuid is not None and gpu.uuid.lower() == other.uuid.lower()


def _merged(gpu: GpuReading, other: GpuReading) -> GpuReading:
    if abs(gpu.taken_at - other.taken_at) > _MOST_APART_S:
        newer = max(gpu, other, key=lambda reading: reading.taken_at)
        # The inventory may identify the GPU by an address or UUID that only the shell prints.
        return replace(newer, pci=gpu.pci, minor=gpu.minor, uuid=gpu.uuid or other.uuid)
    values: dict[str, Any] = {}
    for name in (each.name for each in fields(GpuReading) if each.name not in _NOT_COMPARED):
        mine, theirs = getattr(gpu, name), getattr(other, name)
        if mine is None or theirs is None:
            values[name] = theirs if mine is None else mine
        elif name in _HIGHER_IS_WORSE:
            values[name] = max(mine, theirs)
        elif name in _LOWER_IS_WORSE:
            values[name] = min(mine, theirs)
        # Where one source asks for nothing, what the other asks for counts.
        elif name == "recovery_action" and mine.strip().lower() == _NO_ACTION:
            values[name] = theirs
    return replace(
        gpu,
        **values,
        # The older time: the values must not look newer than the oldest of them.
        taken_at=min(gpu.taken_at, other.taken_at),
        throttle_reasons=gpu.throttle_reasons | other.throttle_reasons,
        source=f"{gpu.source} and {other.source}",
    )


def _mounts(mine: Mounts | None, theirs: Mounts | None) -> Mounts | None:
    """The shell's mounts, because an exporter leaves some out. A mount is stopped if either side reports it so."""
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    stopped = {path for path, mount in theirs.by_path.items() if mount.stopped}
    return replace(mine, by_path={p: replace(m, stopped=m.stopped or p in stopped) for p, m in mine.by_path.items()})


def _disks(mine: Disks | None, theirs: Disks | None) -> Disks | None:
    newest = _newest(mine, theirs)
    if newest is None or mine is None or theirs is None:
        return newest
    return replace(newest, unreadable={**theirs.unreadable, **mine.unreadable})


def _other_xids(known: Iterable[XidEvent], others: Iterable[XidEvent]) -> Iterable[XidEvent]:
    """The exporters' XIDs that the kernel log lacks. Its own lines are preferred: they have more detail, and a time."""
    told = {(event.pci.partition(".")[0], event.xid) for event in known}
    return (event for event in others if (event.pci.partition(".")[0], event.xid) not in told)


def _by_port(ports: Iterable[Any]) -> dict[tuple[str, int], Any]:
    return {(port.device, port.port): port for port in ports}


def _newer(mine: Mapping[K, R], theirs: Mapping[K, R]) -> dict[K, R]:
    """Both mappings in one, with the newer reading of each quantity; the shell's if both are equally new."""
    return {**theirs, **{key: max(value, theirs.get(key, value), key=_taken_at) for key, value in mine.items()}}


def _newest(mine: R | None, theirs: R | None) -> R | None:
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    return max(mine, theirs, key=_taken_at)


def _taken_at(reading: _Reading) -> float:
    return reading.taken_at
