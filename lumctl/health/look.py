"""One look at a rack: a collection beside the inventory, and what of it says something about now."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from lumctl.fleet.readings import GpuReading, HostSnapshot, ProbeStatus, Snapshot, XidEvent
from lumctl.health.matching import addresses, match_gpus, pci_slot, recent
from lumctl.inventory.model import Accelerator, Inventory, Thresholds, Transponder
from lumctl.inventory.wiring import Circuit


@dataclass(frozen=True)
class HostLook:
    """One host that was collected, with its readings handed to its accelerators.

    ``slots`` are the PCI slots of its accelerators as far as they are known; ``xids`` are the recent ones.
    """

    seen: HostSnapshot
    accelerators: tuple[Accelerator, ...]
    gpus: dict[str, GpuReading]
    slots: dict[str, str]
    xids: tuple[XidEvent, ...]

    def probe_ended_well(self, probe: str) -> bool:
        """Whether a probe brought its whole answer, so that an absence from it means something."""
        return probe in self.seen.probes and self.seen.probes[probe].status is ProbeStatus.OK

    @property
    def stray_xids(self) -> tuple[XidEvent, ...]:
        """XIDs whose PCI address belongs to no accelerator and no listed GPU."""
        owned = {*self.slots.values(), *(pci_slot(gpu.pci) for gpu in self.seen.gpus)}
        return tuple(event for event in self.xids if pci_slot(event.pci) not in owned)


@dataclass(frozen=True)
class Look:
    """A collection beside the inventory. ``disabled`` are the accelerators out of service."""

    inventory: Inventory
    snapshot: Snapshot
    circuits: tuple[Circuit, ...]
    disabled: Collection[str]
    now: float

    @property
    def limits(self) -> Thresholds:
        """The operator's thresholds."""
        return self.inventory.thresholds

    @cached_property
    def in_use(self) -> frozenset[str]:
        """The transponders at which a circuit ends."""
        return frozenset(end.transponder for circuit in self.circuits for end in (circuit.a, circuit.b))

    @cached_property
    def lanes(self) -> dict[str, list[Transponder]]:
        """The transponders of each host."""
        by_host: dict[str, list[Transponder]] = {name: [] for name in self.inventory.hosts}
        for transponder in self.inventory.transponders.values():
            by_host[transponder.host].append(transponder)
        return by_host

    @cached_property
    def collected(self) -> dict[str, HostLook]:
        """Every host of which the collection says anything, however old."""
        found: dict[str, HostLook] = {}
        for host in self.inventory.hosts:
            seen = self.snapshot.hosts.get(host)
            if seen is not None:
                accelerators = self.inventory.accelerators_of(host)
                gpus = match_gpus(accelerators, seen.gpus)
                xids = recent(seen.xids, now=self.now, max_age_s=self.limits.xid_max_age_s)
                found[host] = HostLook(seen, accelerators, gpus, addresses(accelerators, gpus, seen), xids)
        return found

    def readable(self, host: str) -> HostLook | None:
        """What was read of a host, if it was reached and that is not too long ago."""
        look = self.collected.get(host)
        return look if look and look.seen.reachable and not self.stale(look.seen.taken_at) else None

    def age(self, taken_at: float) -> float:
        """How old a reading is, in seconds."""
        return max(self.now - taken_at, 0.0)

    def stale(self, taken_at: float) -> bool:
        """Whether a reading is too old to say anything about now."""
        return self.age(taken_at) > self.limits.stale_after_s

    def stale_evidence(self, taken_at: float) -> str:
        """How old a reading is, in words."""
        return f"last read {self.age(taken_at):.0f} s ago (limit: {self.limits.stale_after_s:g} s)"
