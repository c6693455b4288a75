"""What a simulated host prints of itself: mounts, disk and services, all without faults."""

from collections.abc import Sequence

MOUNTS_FILE = "/proc/self/mounts"
_MOUNTS = """\
/dev/nvme0n1p2 / ext4 rw,relatime,errors=remount-ro 0 0
proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0
/dev/loop0 /snap/core20/2318 squashfs ro,nodev,relatime,errors=continue,threads=single 0 0
"""
DISKS = """\
Filesystem     Type   Inodes  IUsed      Used     Avail Mounted on
/dev/nvme0n1p2 ext4 61054976 717083 351646600 571226252 /
"""


CAPACITY_FILES = ("/proc/meminfo", "/sys/devices/system/cpu/online")
CAPACITY = "/proc/meminfo:MemTotal:       2113411308 kB\n/sys/devices/system/cpu/online:0-223\n"


def services(units: Sequence[str]) -> str:
    """``systemctl show`` of some units, all of which run."""
    about = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nNRestarts=0\n"
    return "\n".join(f"Id={unit}\n{about}" for unit in units)


def mounts(named: Sequence[str]) -> str:
    """``/proc/self/mounts`` with what the inventory names."""
    others = (path.replace("\\", "\\134").replace(" ", "\\040") for path in named if path != "/")
    return _MOUNTS + "".join(f"files:{path} {path} nfs4 rw,relatime,vers=4.2 0 0\n" for path in others)
