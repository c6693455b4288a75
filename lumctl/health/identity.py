"""Assign printed and announced identities of hosts to the accelerators and lanes of the inventory."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from lumctl.devices.types import Neighbour
from lumctl.fleet.readings import AcceleratorEvent, GpuReading, HostSnapshot, NvlinkReading, Snapshot, XidEvent
from lumctl.inventory.model import Accelerator, Inventory

E = TypeVar("E", XidEvent, AcceleratorEvent)

BOOT_SLACK_S = 60.0
"""The possible error of a boot time, which is computed from two clocks."""


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

    The position in nvidia-smi's list does not identify a GPU: when one falls off the bus, the others move up.
    """
    gpus = tuple(gpus)
    # Reversed, so that of two GPUs at one address the first counts.
    by_slot = {pci_slot(gpu.pci): gpu for gpu in reversed(gpus) if _has_address(gpu)}
    found: dict[str, GpuReading] = {}
    for accelerator in accelerators:
        gpu = by_slot.get(pci_slot(accelerator.pci)) if accelerator.pci is not None else None
        gpu = gpu or next((gpu for gpu in gpus if _is(accelerator, gpu)), None)
        if gpu is not None:
            found[accelerator.id] = gpu
    return found


def can_be_told_apart(accelerator: Accelerator, gpus: Iterable[GpuReading]) -> bool:
    """Whether an accelerator would be recognised in a list of GPUs; if not, its absence proves nothing."""
    return all(_has_key_of(accelerator, gpu) for gpu in gpus)


def _has_key_of(accelerator: Accelerator, gpu: GpuReading) -> bool:
    """Whether a reading has the key by which :func:`_is` compares it; not every source prints every key."""
    if accelerator.pci is not None and _has_address(gpu):
        return True
    return (gpu.minor if accelerator.uuid is None else gpu.uuid) is not None


def addresses(
    accelerators: Iterable[Accelerator],
    matched: Mapping[str, GpuReading],
    seen: HostSnapshot,
    earlier: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The PCI slot of each accelerator of a host, if known.

    The slot comes from the accelerator's reading, otherwise from the inventory, otherwise from ``earlier``: where it
    was listed before in this boot. If exactly one accelerator has none of them, and the host names exactly one
    unassigned address (of a lost GPU, an XID or another event), it gets that address.
    """
    accelerators = tuple(accelerators)
    found = {a.id: matched[a.id].pci if a.id in matched else a.pci for a in accelerators}
    known = {name: pci_slot(pci) for name, pci in found.items() if pci}
    taken = {*known.values(), *(pci_slot(gpu.pci) for gpu in seen.gpus)}
    known |= {name: slot for name, slot in earlier.items() if name in found and name not in known and slot not in taken}
    taken.update(known.values())
    nameless = [a.id for a in accelerators if a.id not in known]
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
    """The XIDs, or the events of a probe plug-in, that are of this boot and not too old.

    An event without a time counts: the log holds only recent lines.
    """
    oldest = max(now - max_age_s, (booted_at or 0.0) - BOOT_SLACK_S)
    return tuple(event for event in xids if event.at is None or event.at >= oldest)


@lru_cache(maxsize=8192)
def pci_slot(pci: str) -> str:
    """A PCI address without its function, which the kernel log and nvidia-smi print differently."""
    return pci.lower().split(".")[0]


def _has_address(gpu: GpuReading) -> bool:
    """Whether the source of a reading prints a PCI address; some print a UUID instead, which has no colon."""
    return ":" in gpu.pci


def _is(accelerator: Accelerator, gpu: GpuReading) -> bool:
    # Address and UUID alone decide: another GPU at the same position is not the missing one.
    if accelerator.pci is not None and _has_address(gpu):
        return pci_slot(accelerator.pci) == pci_slot(gpu.pci)
    if accelerator.uuid is not None:
        return accelerator.uuid == gpu.uuid
    return gpu.minor is not None and accelerator.index == gpu.minor


class TransmitterNames:
    """The lanes of an inventory by the names that their hosts announce: short or fully qualified."""

    def __init__(self, inventory: Inventory) -> None:
        self._hosts = {_short(host) for host in inventory.hosts}
        self._lanes: dict[tuple[str, str], str] = {}
        for transponder in inventory.transponders.values():
            self._lanes.setdefault((_short(transponder.host), transponder.interface), transponder.id)

    def transponder(self, neighbour: Neighbour) -> str | None:
        """The transponder behind a neighbour's host and interface; ``None`` if the inventory knows no such lane."""
        return self._lanes.get((_short(neighbour.system), neighbour.port))

    def knows_host(self, neighbour: Neighbour) -> bool:
        """Whether a neighbour is a host of the inventory, even if its port is unknown."""
        return _short(neighbour.system) in self._hosts


def heard_transponder(inventory: Inventory, neighbour: Neighbour) -> str | None:
    """The transponder behind one neighbour; for many neighbours, create one :class:`TransmitterNames`."""
    return TransmitterNames(inventory).transponder(neighbour)


def _short(name: str) -> str:
    return name.partition(".")[0].lower()
