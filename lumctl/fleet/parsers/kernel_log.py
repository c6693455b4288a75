"""Parse a kernel log: NVIDIA's error reports (XIDs and SXids), and lines about the network and the host itself.

The log may be in any of the forms that ``dmesg`` prints, and may come whole or in parts.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from lumctl.fleet.host_readings import HostEvent
from lumctl.fleet.parsers.fields import find_pci, lines_of
from lumctl.fleet.parsers.host_log import HOST_PATTERN, host_event
from lumctl.fleet.parsers.nic_log import NIC_PATTERN, nic_event
from lumctl.fleet.readings import NicEvent, SxidEvent, XidEvent

KERNEL_PATTERN = rf"NVRM: .*(Xid|The NVIDIA GPU |fallen off the bus)|SXid|{NIC_PATTERN}|{HOST_PATTERN}|^[^<[0-9 ]"
"""Selects lines on the host (``grep -E``). The last branch keeps lines not from the kernel, such as sudo's refusal."""

# The PCI address may lack its function, may have a MIG instance (` GPU-I:05`), and was alone in old drivers.
_WHERE = r"\((?:PCI:)?(?P<where>[^)]{1,60})\): (?P<number>[0-9]{1,10})(?![0-9])(?:,\s*(?P<text>.*))?"
_XID = re.compile(rf"NVRM: Xid {_WHERE}")
_SXID = re.compile(rf"SXid {_WHERE}")
_SWITCH_LINK = re.compile(r"(?P<weight>Fatal|Non-fatal)\b(?:, Link (?P<link>[0-9]{1,4})\b)?", re.IGNORECASE)
_MORE_OF_AN_SXID = re.compile(r"(?:Severity|Data) ?[0-9{]")
_REPORT = re.compile(r"NVRM: Xid|SXid|\bS?Xid \(")
# The driver logs this beside XID 79, or instead of it if the GPU is gone before an XID can be written.
_FALLEN = re.compile(r"NVRM: (?P<text>.*\bfallen off the bus\b.*)")
# The driver logs this about a GPU that is gone when the driver is loaded: two or three lines, the address in the first.
_NAMED_ABOVE = re.compile(r"NVRM: The NVIDIA GPU (?P<where>\S{1,60})")
_FALLEN_XID = 79
_ISO = re.compile(r"(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}\S*)", re.ASCII)
_CALENDAR = re.compile(
    r"\[\s*(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\w{3})\s+(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})\]", re.ASCII
)
_SINCE_BOOT = re.compile(r"\[\s*(\d{1,12}\.\d{1,9})\]", re.ASCII)
_HEAD = 64
"""How far into a line its time may begin."""
LONGEST_LINE = 2048
"""Longer lines are cut. The kernel's own have less than 1,024 bytes; others would fill findings and notifications."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class KernelEvents:
    """The events of a kernel log, in order.

    ``fallen`` are GPUs that fell off the bus; the driver logs this beside an XID or instead of one. ``lines`` counts
    lines in the form of a kernel log. ``unread`` is the first line that names an XID, an SXid or a GPU that fell off
    the bus but cannot be parsed.
    """

    xids: tuple[XidEvent, ...] = ()
    sxids: tuple[SxidEvent, ...] = ()
    nics: tuple[NicEvent, ...] = ()
    fallen: tuple[XidEvent, ...] = ()
    host: tuple[HostEvent, ...] = ()
    lines: int = 0
    unread: str | None = None

    @property
    def all_xids(self) -> tuple[XidEvent, ...]:
        """The XIDs, and an XID 79 for each GPU that fell off the bus without an XID 79 in the log."""
        told = {event.pci for event in self.xids if event.xid == _FALLEN_XID}
        return (*self.xids, *(event for event in self.fallen if event.pci not in told))


def parse_kernel_log(text: str, *, booted_at: float | None = None) -> KernelEvents:
    """Every event of a kernel log.

    A time without a zone (``dmesg -T``) counts as UTC. A time since boot is ``None`` unless ``booted_at`` is given.
    """
    xids, fallen = list[XidEvent](), list[XidEvent]()
    sxids, nics, host = list[SxidEvent](), list[NicEvent](), list[HostEvent]()
    lines, unread = 0, None
    named_above: XidEvent | None = None
    # Serial consoles write carriage returns within a line; such a return must not hide the message after it.
    for whole in lines_of(text.replace("\r", "\n")):
        line = whole[:LONGEST_LINE]
        stamp, at = line_time(line, booted_at)
        lines += bool(stamp)
        if (named := _NAMED_ABOVE.search(line)) and (pci := find_pci(named["where"])):
            named_above = XidEvent(at, pci, _FALLEN_XID, "", stamp)
        if event := _event(line, at, stamp, named_above):
            # A line with an event is of a kernel log, also without a time.
            lines += not stamp
            match event:
                case XidEvent(xid=number) if number == _FALLEN_XID and not _XID.search(line):
                    fallen.append(event)
                case XidEvent():
                    xids.append(event)
                case SxidEvent():
                    sxids.append(event)
                case NicEvent():
                    nics.append(event)
                case HostEvent():
                    host.append(event)
        elif unread is None and _is_report(line):
            unread = line.strip()
    return KernelEvents(tuple(xids), tuple(sxids), tuple(nics), tuple(fallen), tuple(host), lines, unread)


def _event(
    line: str, at: float | None, stamp: str, named_above: XidEvent | None
) -> XidEvent | SxidEvent | NicEvent | HostEvent | None:
    """The event of a line. ``named_above`` is an event of the GPU that an earlier line named, with that line's time."""
    if found := _XID.search(line):
        pci = find_pci(found["where"])
        return XidEvent(at, pci, int(found["number"]), (found["text"] or "").strip(), stamp) if pci else None
    if found := _SXID.search(line):
        pci, text = find_pci(found["where"]), (found["text"] or "").strip()
        if pci is None or _MORE_OF_AN_SXID.match(text):
            return None
        said = _SWITCH_LINK.match(text)
        fatal = said["weight"].lower() == "fatal" if said else None
        link = int(said["link"]) if said and said["link"] else None
        return SxidEvent(at, pci, int(found["number"]), text, stamp, fatal, link)
    if found := _FALLEN.search(line):
        pci, text = find_pci(found["text"]), found["text"].strip()
        if pci is None:
            # dmesg prints further lines of one message without a time.
            return replace(named_above, text=text) if named_above is not None else None
        return XidEvent(at, pci, _FALLEN_XID, text, stamp)
    return nic_event(line, at, stamp) or host_event(line, at, stamp)


def _is_report(line: str) -> bool:
    """Whether a line reports an event of its own. Lines that follow an SXid and hold its error registers do not."""
    found = _SXID.search(line)
    more = found is not None and _MORE_OF_AN_SXID.match(found["text"] or "") is not None
    return not more and (_REPORT.search(line) is not None or _FALLEN.search(line) is not None)


def line_time(line: str, booted_at: float | None) -> tuple[str, float | None]:
    """The time of a line: as text (empty if it has none), and in seconds since the epoch."""
    prefix = line[:_HEAD]
    try:
        if found := _ISO.search(prefix):
            return found[1], _utc_unless_said(datetime.fromisoformat(found[1].rstrip(":"))).timestamp()
        if found := _CALENDAR.search(prefix):
            return found[0], calendar_time(found)
    except (ValueError, OverflowError):
        return "", None
    since_boot = _SINCE_BOOT.search(prefix)
    if since_boot is None:
        return "", None
    return since_boot[1], None if booted_at is None else booted_at + float(since_boot[1])


def calendar_time(found: re.Match[str]) -> float:
    """The time of a match with the groups month (as a word), day, hour, minute, second and year; it counts as UTC.

    Raises:
        ValueError, OverflowError: there is no such time.
    """
    month, day, hour, minute, second, year = found.groups()
    # Not strptime, whose names of months depend on the locale.
    at = _MONTHS.index(month) + 1
    return datetime(int(year), at, int(day), int(hour), int(minute), int(second), 0, UTC).timestamp()


def _utc_unless_said(when: datetime) -> datetime:
    return when if when.tzinfo else when.replace(tzinfo=UTC)


_MOST = 512
"""How many events are kept. If there are more, each kind is cut to its newest :data:`_MOST_ALIKE` events."""
_MOST_ALIKE = 32
"""How many events of the same kind and component are kept if there are too many events."""


class _Identified(Protocol):
    @property
    def stamp(self) -> str: ...

    @property
    def identity(self) -> tuple[str, ...]: ...


E = TypeVar("E", bound=_Identified)


def extended(before: KernelEvents, text: str, *, booted_at: float | None) -> KernelEvents:
    """The events of a log so far, with the events of new complete lines added."""
    after = parse_kernel_log(text, booted_at=booted_at)
    return replace(
        before,
        xids=kept(before.xids, after.xids, lambda event: (event.pci, event.xid)),
        sxids=kept(before.sxids, after.sxids, lambda event: (event.pci, event.sxid)),
        nics=kept(before.nics, after.nics, lambda event: (event.interface, event.pci, event.kind)),
        fallen=kept(before.fallen, after.fallen, lambda event: event.pci),
        host=kept(before.host, after.host, lambda event: (event.kind, event.device)),
        lines=before.lines + after.lines,
        unread=after.unread or before.unread,
    )


def kept(before: tuple[E, ...], after: Iterable[E], sort: Callable[[E], Hashable]) -> tuple[E, ...]:
    """Old and new events without duplicates, in order. If there are too many, only the newest of each kind are kept."""
    known = {event.identity for event in before}
    found = list(before)
    for event in after:
        # Without a time, two equal lines may be two events.
        if not event.stamp or event.identity not in known:
            known.add(event.identity)
            found.append(event)
    if len(found) <= _MOST:
        return tuple(found)
    seen: Counter[Hashable] = Counter()
    newest: list[E] = []
    for event in reversed(found):
        seen[sort(event)] += 1
        if seen[sort(event)] <= _MOST_ALIKE:
            newest.append(event)
    return tuple(reversed(newest[:_MOST]))
