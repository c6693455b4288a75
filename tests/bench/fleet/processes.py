"""What a process and all that descend from it have used: CPU time and memory, as the kernel counts them (Linux)."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CPU_CLOCK_OF_PROCESS = 2


@dataclass(frozen=True, slots=True)
class Memory:
    """``rss``: what is resident, shared pages counted in each process; ``pss``: shared pages divided. Bytes."""

    rss: int
    pss: int


def descendants(*roots: int) -> list[int]:
    """The processes ``roots`` and everything below them that is alive."""
    found, ahead = [], list(roots)
    while ahead:
        pid = ahead.pop()
        found.append(pid)
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - hot
                with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123 - hot
                    ahead.extend(map(int, file.read().split()))
        except OSError:
            continue
    return found


def cpu_s(*roots: int) -> float:
    """CPU seconds, user and system, of processes, of what descends from them, and of their children that have ended."""
    return sum(map(_cpu_s, descendants(*roots)))


def memory(*roots: int) -> Memory:
    """What processes and their descendants hold now."""
    pids = descendants(*roots)
    return Memory(rss=sum(map(_rss, pids)), pss=sum(map(_pss, pids)))


def rss(*roots: int) -> int:
    """Resident bytes; far cheaper to ask for than :func:`memory`."""
    return sum(map(_rss, descendants(*roots)))


def _cpu_s(pid: int) -> float:
    try:
        # The clock of a process counts nanoseconds, all threads, also those that have ended; /proc counts hundredths.
        own = time.clock_gettime((~pid << 3) | _CPU_CLOCK_OF_PROCESS)
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - hot
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return own + (int(fields[13]) + int(fields[14])) * _TICK_S


def _rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
