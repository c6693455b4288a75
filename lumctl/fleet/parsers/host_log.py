"""Kernel log lines about the host itself: memory, processors, disks, and GPUs that do not start.

The expressions must work in both ``grep -E`` and Python, because the host selects the lines with them. No expression
matches corrected errors or lines that every boot prints.
"""

import re
from collections.abc import Collection
from dataclasses import replace

from lumctl.fleet.host_readings import HostEvent, HostEventKind
from lumctl.fleet.parsers.fields import find_pci
from lumctl.fleet.readings import GpuReading

_BLOCK_DEVICE = r"(sd|nvme|vd|xvd|md|dm-)"
"""The names of disks. Other block devices (card readers without a card, image files) print the same errors normally."""
_NOT_READY = r"Device not ready; aborting (reset|initiali[sz]ation)"
_SIGNS = (
    (HostEventKind.PANIC, r"Kernel panic - not syncing"),
    (HostEventKind.MEMORY, r"EDAC [^ ]+: ([0-9]+ )?UE "),
    (HostEventKind.MEMORY, r"Uncorrected hardware memory error|Memory failure: 0x|hardware memory corruption"),
    (HostEventKind.MEMORY, r"Hardware Error\]: +error_type: [0-9]+, multi-bit ECC"),
    (HostEventKind.MACHINE_CHECK, r"Hardware Error\]: +Error [0-9]+, type: (fatal|recoverable)"),
    (HostEventKind.MACHINE_CHECK, r"Hardware Error\]: CPU [0-9]+: Machine Check"),
    (HostEventKind.MACHINE_CHECK, r"Hardware Error\]: (event severity: (fatal|recoverable)|Uncorrected|System Fatal)"),
    (HostEventKind.FILESYSTEM, r"Remounting filesystem read-only|Aborting journal on device |BTRFS .*forced readonly"),
    (HostEventKind.FILESYSTEM, r"XFS \([^)]+\): .*([Ss]hutting down|has been shut ?down)"),
    (HostEventKind.DISK, r"md/raid[^ ]* Disk failure on |no available path - failing I/O|I/O Error \(sct 0x2 "),
    (HostEventKind.DISK, rf"(I/O|critical (medium|target|nexus)) error(, dev| on dev| on device) {_BLOCK_DEVICE}"),
    (
        HostEventKind.DISK,
        r"EXT4-fs error \(|I/O error while writing superblock|XFS \([^)]+\): [Mm]etadata (corrupt|I/O)",
    ),
    (HostEventKind.FILE_SERVER, r"nfs: server [^ ]+ not responding|Lustre: .*Connection to [^ ]+ .*was lost"),
    (HostEventKind.FILE_SERVER_BACK, r"nfs: server [^ ]+ OK|Lustre: .*Connection restored to "),
    (HostEventKind.FILE_LIMIT, r"VFS: file-max limit [0-9]+ reached"),
    (HostEventKind.HUNG_TASK, r"task .{1,64}:[0-9]+ blocked .*for more than [0-9]+ seconds"),
    (HostEventKind.LOCKUP, r"soft lockup - CPU#|hard LOCKUP|rcu.*(self-detected stall|detected stalls)"),
    (HostEventKind.OUT_OF_MEMORY, r"Out of memory(: Kill| and no killable)"),
    (HostEventKind.MEMORY_LIMIT, r"Memory cgroup out of memory: Kill"),
    (HostEventKind.JOB_KILLED, r"oom-kill:.*task_memcg=[^,]*/job_[0-9]"),
    (
        HostEventKind.NVME_LOST,
        rf"nvme nvme[0-9]+: (Removing after probe failure|Disabling device after reset|{_NOT_READY})",
    ),
    (HostEventKind.NVME_RESET, r"nvme nvme[0-9]+: .*(reset controller|resetting controller|controller is down)"),
    (HostEventKind.GPU_START, r"NVRM: .*(RmInitAdapter failed!|rm_init_adapter failed)"),
)
"""The expression of each kind, in the order of matching."""

HOST_PATTERN = "|".join(sign for _, sign in _SIGNS)
"""The expression that selects the lines of this module on the host."""

_KINDS = tuple((kind, re.compile(sign)) for kind, sign in _SIGNS)
_ANY = re.compile(HOST_PATTERN)
_STATUS = re.compile(r"Machine Check(?P<exception> Exception)?: [0-9a-f]+ Bank [0-9]+: (?P<status>[0-9a-f]{1,16})\b")
_UNCORRECTED_BIT = 61
"""The bit of a bank's status (IA32_MCi_STATUS, and AMD's MCA_STATUS) for an uncorrected error."""
_TASK = re.compile(r"\btask .{1,64}:([0-9]+) blocked|Kill(?:ed)? process ([0-9]+)|\bpid=([0-9]+)")
_DISK = re.compile(r"\bnvme (nvme[0-9]+):")
_ERROR_OF = re.compile(
    r"error(?:, dev| on dev| on device) ([a-z0-9-]+)|Disk failure on ([a-z0-9-]+)|\b(nvme[0-9]+n[0-9p]+): "
)
_SERVER = re.compile(r"nfs: server (\S+) |Connection (?:restored )?to (\S+)")
_FILESYSTEM = re.compile(r"(?:EXT[234]-fs|EXT4-fs error|XFS|BTRFS[^(]*) \((?:device )?([^) ]+)[^)]*\)")
_PREFIX = re.compile(
    r"^(?:<[0-9]+>)?(?:.{1,80}? kernel: )?(?:\d{4}-\d\d-\d\dT\S+ )?(?:\[[^\]]{1,39}\d\]\s*)?", re.ASCII
)


def host_event(line: str, at: float | None, stamp: str) -> HostEvent | None:
    """The event of a line of a kernel log; ``None`` for every other line."""
    # One expression rejects most lines; the kinds are tried one after the other only for the rest.
    if _ANY.search(line) is None:
        return None
    kind, found = next((kind, found) for kind, sign in _KINDS if (found := sign.search(line)))
    if kind is HostEventKind.MACHINE_CHECK and _was_corrected(line):
        return None
    text = _PREFIX.sub("", line, count=1).strip()
    return HostEvent(at, kind, text, _device(kind, line, found.start()), stamp)


def _was_corrected(line: str) -> bool:
    """Whether a processor reports a corrected error: only the status differs from that of an uncorrected one."""
    bank = _STATUS.search(line)
    return bank is not None and not bank["exception"] and not int(bank["status"], 16) >> _UNCORRECTED_BIT & 1


def _device(kind: HostEventKind, line: str, begins: int) -> str | None:
    match kind:
        case HostEventKind.GPU_START:
            return find_pci(line[begins:])
        case HostEventKind.NVME_RESET | HostEventKind.NVME_LOST:
            found = _DISK.search(line)
        case HostEventKind.FILESYSTEM:
            found = _FILESYSTEM.search(line)
        case HostEventKind.DISK:
            found = _ERROR_OF.search(line) or _FILESYSTEM.search(line)
        case HostEventKind.FILE_SERVER | HostEventKind.FILE_SERVER_BACK:
            found = _SERVER.search(line)
        case _:
            found = _TASK.search(line)
    return next((group for group in found.groups() if group), None) if found else None


def of_jobs(events: tuple[HostEvent, ...], gpus: Collection[GpuReading]) -> tuple[HostEvent, ...]:
    """The same events; a process killed at a memory limit becomes ``JOB_KILLED`` if a GPU's last reading lists it."""
    users = {str(process.pid) for gpu in gpus for process in gpu.processes}
    return tuple(
        replace(event, kind=HostEventKind.JOB_KILLED)
        if event.kind is HostEventKind.MEMORY_LIMIT and event.device in users
        else event
        for event in events
    )
