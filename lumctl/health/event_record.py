"""Error events of kernel logs (XIDs, SXids, and those of probe plug-ins), kept until something ends them.

A kernel log is a ring buffer: newer lines overwrite the line of a fault long before the fault is repaired. So events
are kept for each boot of a host. The rules' data state what ends an event: a reboot, a GPU reset, or age. An operator
can end events as well. An ended event does not return, although its line may still be in the log.

A GPU reset counts only with evidence. Three things are evidence:

- an XID 154 that says that a reset is no longer required;
- a recovery action in nvidia-smi that required a reset after the event and now requires nothing;
- a PCIe replay counter that decreased (nvidia-smi counts these since the last reset).

Counters that restart when the driver is loaded or initialises an idle GPU (throttling, volatile ECC) are no evidence,
nor are counters that an operator can clear (volatile ECC, NVLink errors). An event of a probe plug-in is ended by the
kernel line that the plug-in's rules name, and by a reboot.

An event names a PCI address. The slots of accelerators whose address the inventory does not state are kept as well:
when several are lost, nothing else shows which of them is at which address.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from lumctl.fleet.readings import (
    AcceleratorEvent,
    GpuReading,
    HostSnapshot,
    ProbeStatus,
    Snapshot,
    SxidEvent,
    XidEvent,
)
from lumctl.health.acknowledgements import EventClear
from lumctl.health.events import Event, HostEvents, Identity, VendorKinds, vendor_kinds
from lumctl.health.history import UNSTEADY
from lumctl.health.identity import BOOT_SLACK_S, addresses, match_gpus, pci_slot, recent
from lumctl.health.rulebook import verdict
from lumctl.health.rules.host import sxid_case
from lumctl.health.rules.xid import action_of, asks_for_reset, tells_of_reset
from lumctl.health.states import State, Verdict
from lumctl.inventory.model import NVIDIA_SMI, Inventory

_MOST_EVENTS, _MOST_ALIKE, _MOST_CHARACTERS = 256, 4, 400
"""Limits: events of one host; events of one number at one address (the first and the newest); characters of a line."""
_SAME_MOMENT_S = 1.0
"""Probes of one collection begin within this time of each other; a GPU reset takes longer."""
_SWITCH, _ACTION, _XID, _RESET, _VENDOR = "sxid", "action", "xid", "reset", "vendor"
"""What a mark ends at an address: SXids; XID 154; other XIDs; all events that a GPU reset ends; a plug-in's events."""
_KINDS_OF_RULES = {
    "gpu.xid": (_XID, _ACTION),
    "gpu.recovery-action": (_ACTION,),
    "host.xid-unmatched": (_XID, _ACTION),
    "host.nvswitch": (_SWITCH,),
    "host.gpu-event": (_VENDOR,),
    UNSTEADY: (),  # counted from observation to observation, not in the kernel log
}


def is_clearable(rule: str) -> bool:
    """Whether findings of a rule may come from kept events."""
    return rule in _KINDS_OF_RULES or _is_of_plugin(rule)


def _is_of_plugin(rule: str) -> bool:
    return rule.startswith("gpu.") and rule.count(".") > 1


def _line(event: XidEvent | SxidEvent) -> Verdict:
    if isinstance(event, SxidEvent):
        return verdict("host.nvswitch", sxid_case(event))
    return verdict("gpu.xid", action_of(event))


def _kind(event: Event) -> str:
    if isinstance(event, AcceleratorEvent):
        return f"{_VENDOR}:{event.kind}"
    if isinstance(event, SxidEvent):
        return _SWITCH
    return _ACTION if action_of(event) == "read-recovery-action" else _XID


@dataclass(frozen=True, slots=True)
class _Kept:
    """An event, and when the kernel log that first showed it was read."""

    event: Event
    seen_at: float

    @property
    def at(self) -> float:
        return self.seen_at if self.event.at is None else self.event.at


@dataclass
class _HostRecord:
    """The events of one boot of one host.

    ``booted_at`` keeps its first computed value, so that a line gets the same time at every observation. ``marks`` has
    the time of the last ended event of each kind at a PCI slot. ``asked`` has by PCI slot when a GPU last required a
    reset, and ``replays`` the last reading of its PCIe replay counter (UUID, value, time). ``slots`` are the PCI slots
    at which accelerators without an address in the inventory were last listed.
    """

    boot_id: str | None
    booted_at: float | None
    kept: dict[Identity, _Kept] = field(default_factory=dict)
    marks: dict[tuple[str, str], float] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    replays: dict[str, tuple[str, int, float]] = field(default_factory=dict)
    vendor: VendorKinds = field(default_factory=VendorKinds)
    slots: dict[str, str] = field(default_factory=dict)

    def is_of_boot(self, seen: HostSnapshot) -> bool:
        """Whether a host is still in the boot of this record: by boot id, otherwise by boot time; yes if unknown."""
        if seen.boot_id is not None and self.boot_id is not None:
            return seen.boot_id == self.boot_id
        if seen.booted_at is None or self.booted_at is None:
            return True
        return abs(seen.booted_at - self.booted_at) < BOOT_SLACK_S

    def take(self, seen: HostSnapshot, inventory: Inventory, now: float, clears: Collection[EventClear]) -> HostEvents:
        """Record what an observation read from the host, and return the events that count."""
        self.slots = _slots(inventory, seen, self.slots)
        if not seen.xids and not seen.sxids and not seen.accelerator_events and not self.kept:
            return HostEvents((), (), frozenset(), frozenset(), slots=self.slots)
        probe = inventory.hosts[seen.host].probe
        self.vendor = VendorKinds() if probe == NVIDIA_SMI else vendor_kinds(probe, seen.gpus)
        kernel = seen.probes.get("kernel")
        read_at = kernel.taken_at if kernel is not None else seen.taken_at
        before = set(self.kept)
        in_log = {_identity(event): event for event in self._in_log(seen)}
        for identity, event in in_log.items():
            if identity not in self.kept and self._is_fault(event):
                text = event.text[:_MOST_CHARACTERS]
                self.kept[identity] = _Kept(event if event.text == text else replace(event, text=text), read_at)
        self._resets(in_log.values(), seen.gpus)
        self._ended_by_lines(in_log.values(), read_at)
        self._clears(seen, inventory, clears)
        oldest = now - inventory.thresholds.xid_max_age_s
        # An exporter shows its last XID without a time, even when the XID is over. So the event is kept with the time
        # when it was first seen.
        self.kept = {
            i: kept
            for i, kept in self.kept.items()
            if (kept.event.at is None and i in in_log) or not self._is_over(kept.event, kept.at, oldest, now)
        }
        self._bound()
        complete = kernel is not None and kernel.status is ProbeStatus.OK
        absent = {i: kept.event for i, kept in self.kept.items() if i not in in_log}
        present = {
            i: event
            for i, event in in_log.items()
            if not self._is_over(event, self._time_of(event, i), oldest, now, in_log=True)
        }
        # What has left the log comes first, because it is older than what is in it.
        counting = {**dict(sorted(absent.items(), key=lambda item: item[1].at or 0.0)), **present}
        return HostEvents(
            tuple(event for event in counting.values() if isinstance(event, XidEvent)),
            tuple(event for event in counting.values() if isinstance(event, SxidEvent)),
            frozenset(event.identity for i, event in counting.items() if i in before),
            # Only a log that was read whole shows that a line has left it.
            frozenset(event.identity for event in absent.values()) if complete else frozenset(),
            tuple(event for event in counting.values() if isinstance(event, AcceleratorEvent)),
            self.slots,
        )

    def _time_of(self, event: Event, identity: Identity) -> float:
        """When an event of the log happened; without a time, when it was first seen; infinite if it is new."""
        if event.at is not None:
            return event.at
        # An exporter shows its last XID until the next one. If an operator has cleared it, it stays cleared meanwhile.
        return self.kept[identity].at if identity in self.kept else inf

    def _is_fault(self, event: Event) -> bool:
        """Whether an event is recorded: events that only give a note are not."""
        if isinstance(event, AcceleratorEvent):
            return event.kind in self.vendor.lasting
        return _line(event).state is not State.OK

    def _slot(self, event: Event) -> str:
        return self.vendor.slot(event) if isinstance(event, AcceleratorEvent) else pci_slot(event.pci)

    def _in_log(self, seen: HostSnapshot) -> Iterator[Event]:
        """The events of this boot, in the order of the log.

        Lines dated in seconds since the boot are shifted to the recorded boot time: they get the same time each time.
        """
        shift = 0.0 if self.booted_at is None or seen.booted_at is None else self.booted_at - seen.booted_at
        events: tuple[Event, ...] = (
            *recent(seen.xids, now=0.0, max_age_s=inf, booted_at=seen.booted_at),
            *seen.sxids,
            *recent(seen.accelerator_events, now=0.0, max_age_s=inf, booted_at=seen.booted_at),
        )
        for event in events:
            # A stamp that is a date has other characters, and does not move with the boot time.
            counts_from_boot = event.stamp.replace(".", "", 1).isdecimal()
            yield replace(event, at=event.at + shift) if event.at is not None and counts_from_boot and shift else event

    def _is_over(self, event: Event, at: float, oldest: float, now: float, *, in_log: bool = False) -> bool:
        slot = self._slot(event)
        if at <= self.marks.get((_kind(event), slot), -inf):
            return True
        if isinstance(event, AcceleratorEvent):
            if event.kind in self.vendor.lasting:
                # While both lines are in the log, the rules themselves see the line that ends the event.
                return not in_log and at <= self.marks.get((f"{_RESET}:{event.kind}", slot), -inf)
            return event.kind not in self.vendor.ends and at < oldest
        line = _line(event)
        if line.ends == "reset":
            return at <= self.marks.get((_RESET, slot), -inf)
        return line.ends == "age" and at < (now - line.window_s if line.window_s else oldest)

    # --- what ends events ---

    def _resets(self, in_log: Iterable[Event], gpus: Iterable[GpuReading]) -> None:
        """Mark the events that confirmed GPU resets have ended."""
        for event in in_log:
            if isinstance(event, XidEvent) and event.at is not None and tells_of_reset(event):
                self._mark(_RESET, pci_slot(event.pci), event.at)
        xids = [kept.event for kept in self.kept.values() if isinstance(kept.event, XidEvent)]
        waiting = {pci_slot(event.pci) for event in xids if _line(event).ends == "reset"}
        # Only where an event waits for a reset, so these are bounded as the events are.
        self.asked = {slot: at for slot, at in self.asked.items() if slot in waiting}
        self.replays = {slot: reading for slot, reading in self.replays.items() if slot in waiting}
        for gpu in gpus:
            if (slot := pci_slot(gpu.pci)) in waiting:
                self._asked(slot, gpu)
                self._replayed(slot, gpu)

    def _ended_by_lines(self, in_log: Iterable[Event], read_at: float) -> None:
        """Mark the events that are ended by log lines, according to the rules of the probe plug-in."""
        for event in in_log:
            if isinstance(event, AcceleratorEvent):
                for kind in self.vendor.ends.get(event.kind, ()):
                    at = read_at if event.at is None else event.at
                    self._mark(f"{_RESET}:{kind}", self.vendor.slot(event), at)

    def _asked(self, slot: str, gpu: GpuReading) -> None:
        asks, before = asks_for_reset(gpu), self.asked.get(slot)
        if asks:
            self.asked[slot] = gpu.taken_at
        elif asks is False and before is not None and gpu.taken_at > before:
            self._end_by_reset(slot, before)
            del self.asked[slot]
        elif asks is None and gpu.recovery_action is not None:
            # The GPU now requires something other than a reset; when that is over, it does not prove a reset.
            self.asked.pop(slot, None)

    def _replayed(self, slot: str, gpu: GpuReading) -> None:
        # Without persistence mode the driver initialises an idle GPU repeatedly, which restarts its counters.
        if gpu.uuid is None or gpu.pcie_replays is None or not gpu.persistence_enabled:
            self.replays.pop(slot, None)
            return
        before = self.replays.get(slot)
        if before is not None and before[0] == gpu.uuid and gpu.pcie_replays < before[1] and gpu.taken_at > before[2]:
            self._end_by_reset(slot, before[2])
        self.replays[slot] = (gpu.uuid, gpu.pcie_replays, gpu.taken_at)

    def _end_by_reset(self, slot: str, after: float) -> None:
        """Mark the events that a GPU reset at some time after ``after`` has ended: only those seen until ``after``."""
        for kept in self.kept.values():
            if self._slot(kept.event) == slot and kept.seen_at <= after + _SAME_MOMENT_S:
                self._mark(_RESET, slot, kept.at)

    def _clears(self, seen: HostSnapshot, inventory: Inventory, clears: Collection[EventClear]) -> None:
        """Mark the events that operators have ended: those that an observation had seen before the operator acted.

        The time in the log is not used, because it comes from the clock of the host.
        """
        if not clears or not self.kept:
            return
        accelerators = inventory.accelerators_of(seen.host)
        here = {seen.host, *(accelerator.id for accelerator in accelerators)}
        mine = [clear for clear in clears if clear.component in here]
        if not mine:
            return
        xids = tuple(kept.event for kept in self.kept.values() if isinstance(kept.event, XidEvent))
        slots = addresses(accelerators, match_gpus(accelerators, seen.gpus), replace(seen, xids=xids), self.slots)
        owners = {slot: accelerator for accelerator, slot in slots.items()}
        for kept in self.kept.values():
            kind, slot = _kind(kept.event), self._slot(kept.event)
            # An event at an address of no accelerator is the host's, as in rule host.xid-unmatched.
            owner = seen.host if kind == _SWITCH else owners.get(slot, seen.host)
            if isinstance(kept.event, AcceleratorEvent) and not slot and len(accelerators) == 1:
                owner = accelerators[0].id  # the rules assign a line that names no accelerator in the same way
            for clear in mine:
                covers = clear.rule is None or kind.partition(":")[0] in _kinds_of(clear.rule)
                if clear.component == owner and covers and kept.seen_at <= clear.at:
                    self._mark(kind, slot, kept.at)

    def _mark(self, kind: str, slot: str, at: float) -> None:
        self.marks[kind, slot] = max(at, self.marks.get((kind, slot), at))

    def _bound(self) -> None:
        """Keep the first and the newest events of each number at each address, up to the limits."""
        alike: dict[tuple[str, ...], list[Identity]] = {}
        for identity, kept in sorted(self.kept.items(), key=lambda item: item[1].at):
            # The slice is address and number; of a plug-in's event address and minor number, with its kind in `_kind`.
            alike.setdefault((_kind(kept.event), *identity[1:3]), []).append(identity)
        chosen = {i for same in alike.values() for i in (same[0], *same[1:][1 - _MOST_ALIKE :])}
        newest = sorted(chosen, key=lambda i: self.kept[i].at)[-_MOST_EVENTS:]
        self.kept = {identity: self.kept[identity] for identity in newest}
        self.marks = dict(sorted(self.marks.items(), key=lambda item: item[1])[-_MOST_EVENTS:])

    # --- as JSON values ---

    def document(self) -> dict[str, Any]:
        return {
            "boot": self.boot_id,
            "booted_at": self.booted_at,
            "events": [_written(kept) for kept in self.kept.values()],
            "over": [[*key, at] for key, at in self.marks.items()],
            "asked": self.asked,
            "replays": {slot: list(reading) for slot, reading in self.replays.items()},
            "slots": self.slots,
        }


class EventRecord:
    """The events of all hosts whose boot is known, and of hosts that are read by exporters."""

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        self._hosts = {str(host): _record_from(written) for host, written in (document or {}).items()}

    def take(
        self, inventory: Inventory, snapshot: Snapshot, clears: Collection[EventClear], now: float
    ) -> dict[str, HostEvents]:
        """Record what an observation read; return the events that count, by host.

        Hosts without errors are omitted, unless the slots of their accelerators are kept.
        """
        # A name that left the inventory may return for another machine.
        self._hosts = {host: record for host, record in self._hosts.items() if host in inventory.hosts}
        found: dict[str, HostEvents] = {}
        for host in inventory.hosts:
            seen = snapshot.hosts.get(host)
            if seen is None or not seen.reachable:
                continue
            record = self._hosts.get(host)
            if record is not None and not record.is_of_boot(seen):
                del self._hosts[host]
                record = None
            told = seen.xids or seen.sxids or seen.accelerator_events or _slots(inventory, seen, {})
            tells_boot = seen.boot_id is not None or not inventory.hosts[host].readings.uses_shell
            if record is None and told and tells_boot:
                record = self._hosts[host] = _HostRecord(seen.boot_id, seen.booted_at)
            if record is not None:
                found[host] = record.take(seen, inventory, now, clears)
        return found

    def document(self) -> dict[str, Any]:
        """As JSON values, limited for each host."""
        return {host: record.document() for host, record in self._hosts.items()}


def _slots(inventory: Inventory, seen: HostSnapshot, before: Mapping[str, str]) -> dict[str, str]:
    """The last known slots of the accelerators of a host whose address the inventory does not state."""
    without = [accelerator for accelerator in inventory.accelerators_of(seen.host) if accelerator.pci is None]
    if not without:
        return {}
    kept = {accelerator.id: before[accelerator.id] for accelerator in without if accelerator.id in before}
    if seen.boot_id is None and seen.booted_at is None:
        return kept  # a restart, which may renumber the addresses, would not be noticed
    return kept | {name: pci_slot(gpu.pci) for name, gpu in match_gpus(without, seen.gpus).items()}


def _kinds_of(rule: str) -> tuple[str, ...]:
    """The kinds of events that a rule covers."""
    return (_VENDOR,) if _is_of_plugin(rule) else _KINDS_OF_RULES.get(rule, ())


def _identity(event: Event) -> Identity:
    *names, text = event.identity
    return (*names, text[:_MOST_CHARACTERS])


def _written(kept: _Kept) -> list[Any]:
    event = kept.event
    more: list[Any]
    if isinstance(event, SxidEvent):
        more = [event.sxid, event.fatal, event.link]
    elif isinstance(event, XidEvent):
        more = [event.xid]
    else:
        more = [event.kind, event.minor]
    return [kept.seen_at, event.at, event.pci, event.text, event.stamp, *more]


def _kept_from(written: list[Any]) -> _Kept:
    seen_at, at, address, text, stamp, number, *more = written
    at, text, stamp = None if at is None else float(at), str(text), str(stamp)
    # A plug-in's kind of event is a text; XIDs and SXids are numbers.
    if isinstance(number, str):
        minor = None if more[0] is None else int(more[0])
        vendors = AcceleratorEvent(at, None if address is None else str(address), minor, number, text, stamp)
        return _Kept(vendors, float(seen_at))
    pci = str(address)
    if not more:
        return _Kept(XidEvent(at, pci, int(number), text, stamp), float(seen_at))
    fatal, link = more
    event = SxidEvent(at, pci, int(number), text, stamp, None if fatal is None else bool(fatal), link)
    return _Kept(event, float(seen_at))


def _record_from(written: Mapping[str, Any]) -> _HostRecord:
    """Read a value that :meth:`_HostRecord.document` wrote.

    Raises:
        TypeError, ValueError, KeyError, AttributeError: the value was not written by it.
    """
    kept = [_kept_from(entry) for entry in written["events"][:_MOST_EVENTS]]
    booted_at = written["booted_at"]
    return _HostRecord(
        None if written["boot"] is None else str(written["boot"]),
        None if booted_at is None else float(booted_at),
        {_identity(each.event): each for each in kept},
        {(str(kind), str(slot)): float(at) for kind, slot, at in written["over"][:_MOST_EVENTS]},
        {str(slot): float(at) for slot, at in written["asked"].items()},
        {str(slot): (str(uuid), int(value), float(at)) for slot, (uuid, value, at) in written["replays"].items()},
        slots={str(name): str(slot) for name, slot in written.get("slots", {}).items()},
    )
