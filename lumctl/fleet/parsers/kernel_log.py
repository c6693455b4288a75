"""XIDs, the NVIDIA driver's error reports, out of a kernel log in any of the forms that ``dmesg`` prints."""

import re
from datetime import UTC, datetime

from lumctl.fleet.parsers.pci import find_pci
from lumctl.fleet.readings import XidEvent

# The PCI address may lack its function, may carry a MIG instance (` GPU-I:05`), and stood alone in old drivers.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<where>[^)]{1,60})\): (?P<xid>[0-9]{1,10})(?![0-9])(?:,\s*(?P<text>.*))?")
# The driver says this beside XID 79, or in its place where the GPU is gone before an XID can be written.
_FALLEN = re.compile(r"NVRM: (?P<text>.*\bfallen off the bus\b.*)")
_FALLEN_XID = 79
_ISO = re.compile(r"(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}\S*)", re.ASCII)
_CALENDAR = re.compile(
    r"\[\s*(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\w{3})\s+(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})\]", re.ASCII
)
_SINCE_BOOT = re.compile(r"\[\s*(\d{1,12}\.\d{1,9})\]", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse_kernel_log(text: str, *, booted_at: float | None = None) -> tuple[XidEvent, ...]:
    """Every XID line, in the order of the log. A GPU that fell off the bus without one is given its XID 79.

    A time without a zone (``dmesg -T``) is taken as UTC. A time since boot needs ``booted_at``, else it is ``None``.
    """
    events, fallen = list[XidEvent](), list[XidEvent]()
    for line in text.splitlines():
        if found := _XID.search(line):
            if pci := find_pci(found["where"]):
                at = _time(line[: found.start()], booted_at)
                events.append(XidEvent(at, pci, int(found["xid"]), (found["text"] or "").strip()))
        elif (found := _FALLEN.search(line)) and (pci := find_pci(found["text"])):
            fallen.append(XidEvent(_time(line[: found.start()], booted_at), pci, _FALLEN_XID, found["text"].strip()))
    told = {event.pci for event in events if event.xid == _FALLEN_XID}
    return (*events, *(event for event in fallen if event.pci not in told))


def _time(prefix: str, booted_at: float | None) -> float | None:
    try:
        if found := _ISO.search(prefix):
            return _utc_unless_said(datetime.fromisoformat(found[1])).timestamp()
        if found := _CALENDAR.search(prefix):
            month, day, hour, minute, second, year = found.groups()
            when = datetime(int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second), 0, UTC)
            return when.timestamp()
    except (ValueError, OverflowError):
        return None
    since_boot = _SINCE_BOOT.search(prefix)
    return booted_at + float(since_boot[1]) if since_boot and booted_at is not None else None


def _utc_unless_said(when: datetime) -> datetime:
    return when if when.tzinfo else when.replace(tzinfo=UTC)
