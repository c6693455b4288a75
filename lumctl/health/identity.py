"""Whose reading is it: from what a host prints to the accelerators of the inventory, never by place in a list."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

from lumctl.fleet.readings import AcceleratorEvent, GpuReading, HostSnapshot, NvlinkReading, Snapshot, XidEvent
from lumctl.inventory.model import Accelerator, Inventory

E = TypeVar("E", XidEvent, AcceleratorEvent)

BOOT_SLACK_S = 60.0
"""By how much the time of a boot, which is computed from two clocks, may be off."""


def gpu_readings(inventory: Inventory, snapshot: Snapshot) -> dict[str, GpuReading]:
    """The reading of each accelerator that has one."""
    on: dict[str, list[Accelerator]] = defaultdict(list)
    for accelerator in inventory.accelerators.values():
        on[accelerator.host].append(accelerator)
    return {
        accelerator: reading
        for host, accelerators in on.items()
        if host in snapshot.hosts
        for accelerator, reading in match_gpus(accelerators, snapshot.hosts[host].gpus).items()
    }


def match_gpus(accelerators: Iterable[Accelerator], gpus: Iterable[GpuReading]) -> dict[str, GpuReading]:
    """Each accelerator's reading: by PCI address if the inventory states one, then by UUID, then by minor number.

    The position in nvidia-smi's list is no identity: when a GPU falls off the bus, the others move up.
    """
    found: dict[str, GpuReading] = {}
    gpus = tuple(gpus)
    for accelerator in accelerators:
        for gpu in gpus:
            if _is(accelerator, gpu):
                found[accelerator.id] = gpu
                break
    return found


def can_be_told_apart(accelerator: Accelerator, gpus: Iterable[GpuReading]) -> bool:
    """Whether an accelerator would be recognised if it were listed: else its absence proves nothing."""
    gpus = tuple(gpus)
    if (accelerator.pci is not None or accelerator.uuid is not None) and all(_tells_key(accelerator, g) for g in gpus):
        return True
    return all(gpu.minor is not None for gpu in gpus)


def _tells_key(accelerator: Accelerator, gpu: GpuReading) -> bool:
    """Whether a reading has the key by which the inventory knows an accelerator; exporters may lack an address."""
    if accelerator.pci is not None and _has_address(gpu):
        return True
    return accelerator.uuid is not None and gpu.uuid is not None


def addresses(
    accelerators: Iterable[Accelerator], matched: Mapping[str, GpuReading], seen: HostSnapshot
) -> dict[str, str]:
    """The PCI slot of each accelerator of a host, if known.

    It is that of its reading, otherwise the inventory's. If exactly one accelerator has neither, and exactly one
    address is named as lost or in an XID and belongs to no accelerator, they belong together.
    """
    accelerators = tuple(accelerators)
    found = {a.id: matched[a.id].pci if a.id in matched else a.pci for a in accelerators}
    known = {name: pci_slot(pci) for name, pci in found.items() if pci}
    nameless = [a.id for a in accelerators if a.id not in known]
    taken = {*known.values(), *(pci_slot(gpu.pci) for gpu in seen.gpus)}
    reported = (event.pci for event in seen.accelerator_events if event.pci is not None)
    named = [*seen.lost_gpus, *(event.pci for event in seen.xids), *reported]
    strays = {pci_slot(pci) for pci in named} - taken
    if len(nameless) == 1 and len(strays) == 1:
        known[nameless[0]] = strays.pop()
    return known


def xids_of(slot: str | None, xids: Iterable[XidEvent]) -> tuple[XidEvent, ...]:
    """The XIDs of one PCI slot."""
    return tuple(event for event in xids if slot is not None and pci_slot(event.pci) == slot)


def match_nvlinks(gpus: Mapping[str, GpuReading], seen: HostSnapshot) -> dict[str, tuple[NvlinkReading, ...]]:
    """The NVLinks of each accelerator: by the UUID of its GPU, otherwise by its position in nvidia-smi's list.

    The position counts only if both lists have the same length: when a GPU is lost, the others move up.
    """
    places = {gpu.pci: place for place, gpu in enumerate(seen.gpus)}
    lists_agree = len({link.index for link in seen.nvlinks}) == len(places)
    found: dict[str, tuple[NvlinkReading, ...]] = {}
    for accelerator, gpu in gpus.items():
        links = tuple(
            link
            for link in seen.nvlinks
            if (link.uuid == gpu.uuid if link.uuid and gpu.uuid else lists_agree and link.index == places[gpu.pci])
        )
        if links:
            found[accelerator] = links
    return found


def recent(xids: Iterable[E], *, now: float, max_age_s: float, booted_at: float | None = None) -> tuple[E, ...]:
    """The XIDs, or the events of a probe plug-in, that are not too old, and of this boot.

    One without a time counts: the log does not reach back for ever.
    """
    oldest = max(now - max_age_s, (booted_at or 0.0) - BOOT_SLACK_S)
    return tuple(event for event in xids if event.at is None or event.at >= oldest)


def pci_slot(pci: str) -> str:
    """A PCI address without its function: kernel log and nvidia-smi differ in printing it."""
    return pci.lower().split(".")[0]


def _has_address(gpu: GpuReading) -> bool:
    """Whether its source prints a PCI address: a UUID in its place has no colon."""
    return ":" in gpu.pci


def _is(accelerator: Accelerator, gpu: GpuReading) -> bool:
    if accelerator.pci is not None and _has_address(gpu):
        return pci_slot(accelerator.pci) == pci_slot(gpu.pci)
    if accelerator.uuid is not None:
        return accelerator.uuid == gpu.uuid
    return gpu.minor is not None and accelerator.index == gpu.minor
