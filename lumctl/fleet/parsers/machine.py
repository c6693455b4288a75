"""Parse a host's output about mounts, disks, clock, crash records, services, memory, processors and network cards."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from lumctl.fleet.host_readings import DISK_KINDS, Adapters, Capacity, Disks, DiskUse, FabricError, Mount, Service
from lumctl.fleet.parsers.fields import is_harmless, lines_of, whole_count, whole_pci

_MOUNT = re.compile(r"(?P<source>\S+) (?P<path>/\S*) (?P<kind>\S+) (?P<options>\S+) [0-9]+ [0-9]+")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_DISK = re.compile(
    r"\S.*?\s+(?P<kind>[a-z0-9.]+)\s+(?P<inodes>[0-9]{1,18}|-)\s+(?P<inodes_used>[0-9]{1,18}|-)\s+(?P<used>[0-9]{1,18})"
    r"\s+(?P<free>[0-9]{1,18})\s+(?P<path>/.*)"
)
_HEADER = re.compile(r"Filesystem\s+Type\s+Inodes\s+IUsed\s+Used\s+Avail\s+Mounted on", re.IGNORECASE)
_OTHERS = ("/boot", "/snap/", "/var/lib/kubelet/", "/var/lib/docker/", "/run/", "/media/")
"""Paths below which file systems are not read: they are full by design, or belong to a single container."""
_BROKEN = re.compile(r"df: (?P<path>/.*): (?P<said>Input/output error|Structure needs cleaning)")
# Reduced versions of date print N or %N in place of the fraction.
_CLOCK = re.compile(r"([0-9]{9,11})(?:\.([0-9]{1,9}))?(?:\.?%?N)?")
_CRASH = re.compile(r"\s*([0-9]{9,11})(?:\.[0-9]{1,10})?\s*")
_ADAPTER = re.compile(r"/sys/class/(net|infiniband)/([^/]+)/device/uevent[:\t]PCI_SLOT_NAME=(\S+)")
_PROPERTY = re.compile(r"(Id|LoadState|ActiveState|SubState|UnitFileState|NRestarts)=([\w.@-]*)", re.ASCII)
_MEMORY = re.compile(r"/proc/meminfo:MemTotal:\s+([0-9]{1,15}) kB")
_PROCESSORS = re.compile(r"/sys/devices/system/cpu/online:([0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?)*)")
_COMPLAINT = re.compile(r"(?:df|find|grep|sudo): .*")
_SHAPES: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "mounts": (_MOUNT,),
    "disks": (_HEADER, _DISK, _COMPLAINT),
    "crashes": (_CRASH, _COMPLAINT),
    "adapters": (_ADAPTER, _COMPLAINT),
    "services": (_PROPERTY,),
    "capacity": (_MEMORY, _PROCESSORS, _COMPLAINT),
}
"""The forms that the lines of each answer may have."""
_KIB_PER_GIB = 1024 * 1024


def parse_mounts(text: str) -> dict[str, Mount]:
    """``/proc/self/mounts`` by path."""
    found: dict[str, Mount] = {}
    for line in lines_of(text):
        if match := _MOUNT.fullmatch(line):
            options = frozenset(match["options"].split(","))
            # The kernel writes blanks in a path as octal numbers.
            path = _ESCAPED.sub(lambda digits: chr(int(digits[1], 8)), match["path"])
            found[path] = Mount(path, match["source"], match["kind"], _is_stopped(options))
    return found


def _is_stopped(options: frozenset[str]) -> bool:
    """Whether the kernel stopped writes after an error; a mount made read-only on purpose has no ``errors=`` option."""
    by_error = {"errors=remount-ro", "errors=panic"} & options
    return bool({"emergency_ro", "shutdown"} & options) or ("ro" in options and bool(by_error))


def parse_disks(text: str, taken_at: float) -> Disks | None:
    """``df --output=source,fstype,itotal,iused,used,avail,target`` in KiB; ``None`` if the text is not such a table."""
    lines = lines_of(text)
    if not any(_HEADER.match(line) for line in lines):
        return None
    uses = [use for line in lines if (use := _disk_use(line))]
    broken = {match["path"]: match["said"] for line in lines if (match := _BROKEN.fullmatch(line))}
    return Disks(taken_at, tuple(uses), {path: said for path, said in broken.items() if not path.startswith(_OTHERS)})


def _disk_use(line: str) -> DiskUse | None:
    found = _DISK.fullmatch(line)
    if found is None or found["kind"] not in DISK_KINDS or found["path"].startswith(_OTHERS):
        return None
    used, free = int(found["used"]), int(found["free"])
    inodes, inodes_used = (int(found[name]) if found[name] != "-" else 0 for name in ("inodes", "inodes_used"))
    return DiskUse(
        found["path"],
        # As df does: space that is reserved for root counts neither as used nor as free.
        used / (used + free) if used + free else None,
        inodes_used / inodes if inodes else None,
        free / _KIB_PER_GIB,
    )


def parse_clock(text: str) -> tuple[float, float] | None:
    """``date +%s.%N``: the time, and by how much it may be later: 1 s if the tool prints whole seconds, otherwise 0."""
    found = next((match for line in lines_of(text) if (match := _CLOCK.fullmatch(line.strip()))), None)
    if found is None:
        return None
    return (float(f"{found[1]}.{found[2]}"), 0.0) if found[2] else (float(found[1]), 1.0)


def parse_crashes(text: str) -> tuple[float, ...]:
    """The times of crash records, one per line. Each time counts once, because a record consists of several files."""
    times = {int(match[1]) for line in lines_of(text) if (match := _CRASH.fullmatch(line))}
    return tuple(float(time) for time in sorted(times))


def parse_adapters(text: str) -> Adapters | None:
    """``grep PCI_SLOT_NAME`` of devices' ``uevent``; ``None`` if the text names no device."""
    interfaces: dict[str, str] = {}
    rdma_devices: dict[str, str] = {}
    for line in lines_of(text):
        if (match := _ADAPTER.fullmatch(line)) and (pci := whole_pci(match[3])):
            (interfaces if match[1] == "net" else rdma_devices)[match[2]] = pci
    return Adapters(interfaces, rdma_devices) if interfaces or rdma_devices else None


def parse_services(text: str) -> dict[str, Service] | None:
    """``systemctl show`` of some units, by name; ``None`` if no unit is described completely."""
    found: dict[str, Service] = {}
    whole = False
    for block in re.split(r"\n\s*\n", text):
        told = {m[1]: m[2] for line in lines_of(block) if (m := _PROPERTY.fullmatch(line.strip()))}
        if not {"Id", "LoadState", "ActiveState", "SubState"} <= told.keys():
            continue
        whole = True
        if told["LoadState"] != "not-found":
            name = told["Id"].removesuffix(".service")
            enabled = told.get("UnitFileState", "").startswith("enabled")
            restarts = whole_count(told.get("NRestarts", ""))
            found[name] = Service(name, told["ActiveState"], told["SubState"], enabled, restarts)
    return found if whole else None


def parse_capacity(text: str, taken_at: float) -> Capacity | None:
    """``MemTotal`` of ``/proc/meminfo`` and the list of processors; ``None`` if neither is there."""
    memory_gib: float | None = None
    processors: int | None = None
    for line in lines_of(text):
        if match := _MEMORY.fullmatch(line):
            memory_gib = int(match[1]) / _KIB_PER_GIB
        elif match := _PROCESSORS.fullmatch(line):
            ranges = [(first, last or first) for first, _, last in (r.partition("-") for r in match[1].split(","))]
            processors = sum(int(last) - int(first) + 1 for first, last in ranges)
    return None if memory_gib is None and processors is None else Capacity(taken_at, memory_gib, processors)


def unread_line(kind: str, text: str) -> str | None:
    """The first line that does not have a form of this kind of answer; warnings do not count."""
    shapes = _SHAPES[kind]
    return next(
        (
            line
            for line in lines_of(text)
            if line.strip() and not any(shape.fullmatch(line) for shape in shapes) and not is_harmless(line)
        ),
        None,
    )


_WRITTEN = re.compile(r"([0-9]{1,11})(?:\.[0-9]{1,10})? ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2})")
_LINE = re.compile(
    r"\[([A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2})\] \[(?:ERROR|FATAL|CRITICAL)\] "
    r"(?:\[tid [0-9]{1,10}\] )?(\S.*)"
)
_ZONE_STEP_S = 900
"""Time zones differ by multiples of a quarter of an hour."""
_MOST, _MOST_CHARACTERS = 32, 400


def parse_fabric_log(text: str) -> tuple[FabricError, ...] | None:
    """The errors at the end of a log, the newest last; ``None`` if the first line is not the time of the last write.

    The first line states that time twice, as seconds since the epoch and as local time. The difference is the host's
    time zone.
    """
    first, *lines = lines_of(text) or [""]
    written = _WRITTEN.fullmatch(first)
    local_s = None if written is None else _seconds(written[2], "%Y-%m-%dT%H:%M")
    if written is None or local_s is None:
        return None
    zone_s = round((int(written[1]) - local_s) / _ZONE_STEP_S) * _ZONE_STEP_S
    found: list[FabricError] = []
    for line in lines:
        match = _LINE.fullmatch(line)
        at = _seconds(match[1], "%b %d %Y %H:%M:%S") if match is not None else None
        if match is not None and at is not None:
            found.append(FabricError(at + zone_s, match[2][:_MOST_CHARACTERS]))
    return tuple(found[-_MOST:])


def _seconds(text: str, form: str) -> float | None:
    """A local time in seconds since the epoch, as if it were UTC; ``None`` if the text is not a time."""
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
