"""The kernel log of one simulated host: the lines of its boot, and the lines that faults of its GPUs cause."""

import random
import uuid
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

from lumctl.sim.world.faults import FaultKind

_KEPT_LINES = 4096
_BOOT = (
    (0.0, "Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1"),
    (7.318204, "nvidia: loading out-of-tree module taints kernel."),
    (7.790611, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.124.06  Release Build"),
)
_LINES: dict[FaultKind, tuple[str, ...]] = {
    FaultKind.GPU_LOST: (
        "NVRM: Xid (PCI:{bus}): 79, pid={pid}, name=python3, GPU has fallen off the bus.",
        "NVRM: GPU {bus}.0: GPU has fallen off the bus.",
    ),
    FaultKind.ECC: (
        "NVRM: Xid (PCI:{bus}): 48, pid={pid}, name=python3, DBE (double bit error) ECC Error",
        "NVRM: Xid (PCI:{bus}): 63, pid={pid}, name=python3, Row Remapper: row pending, reset gpu to activate.",
    ),
    FaultKind.ROW_REMAP_FAILED: (
        "NVRM: Xid (PCI:{bus}): 64, pid={pid}, name=python3, Row Remapper: Error writing to infoROM, row not remapped",
    ),
}
_RESET = "NVRM: Xid (PCI:{bus}): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
_AMD_RESET = "amdgpu {bus}.0: amdgpu: GPU reset(1) succeeded!"
_AMD_BOOT = (
    _BOOT[0],
    (6.902114, "[drm] amdgpu kernel modesetting enabled."),
    (7.214980, "amdgpu: Virtual CRAT table created for CPU"),
)
_AMD_LINES: dict[FaultKind, tuple[str, ...]] = {
    FaultKind.GPU_LOST: ("amdgpu {bus}.0: amdgpu: device lost from bus!",),
    FaultKind.ECC: (
        "amdgpu {bus}.0: amdgpu: socket: 0, die: 0, 1 new uncorrectable hardware errors detected in umc block",
    ),
    FaultKind.ROW_REMAP_FAILED: ("amdgpu {bus}.0: amdgpu: Saved bad pages exceed bad_page_threshold",),
}
AMD_SMI = "amd-smi"
"""The probe of hosts with AMD's driver; every other simulated host has NVIDIA's."""


class KernelLog:
    """A ring buffer of lines, like the kernel's own. ``probe`` selects the driver that writes into it."""

    def __init__(self, booted_at: float, probe: str) -> None:
        self._booted_at = booted_at
        self._fault_lines = _AMD_LINES if probe == AMD_SMI else _LINES
        self._reset_line = _AMD_RESET if probe == AMD_SMI else _RESET
        boot = _AMD_BOOT if probe == AMD_SMI else _BOOT
        self._lines: deque[tuple[float, str]] = deque(
            ((booted_at + after_s, line) for after_s, line in boot), maxlen=_KEPT_LINES
        )

    def tell(self, fault: FaultKind, pci: str, pid: int, at: float) -> None:
        """Write the lines that this fault of the GPU at ``pci`` causes, if any."""
        for line in self._fault_lines.get(fault, ()):
            # NVIDIA's driver leaves out the function at the end of a PCI address; lines that have it add it again.
            self._lines.append((at, line.format(bus=pci[:-2], pid=pid)))

    def tell_reset(self, fault: FaultKind, pci: str, at: float) -> None:
        """Write the line of a reset that cleared this fault of the GPU at ``pci``, if the fault caused any lines."""
        if fault in self._fault_lines:
            self._lines.append((at, self._reset_line.format(bus=pci[:-2])))

    def text(self, *, iso: bool) -> str:
        """All lines as ``dmesg`` prints them, in seconds since the boot, or with ``--time-format iso``."""
        if iso:
            return "".join(f"{_iso(at)} {line}\n" for at, line in self._lines)
        return "".join(f"[{at - self._booted_at:12.6f}] {line}\n" for at, line in self._lines)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace(".", ",")


_DAY_S = 86_400.0
_YOUNGEST_DAYS, _OLDEST_DAYS = 2.0, 40.0


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot. ``at`` is in epoch seconds."""

    id: str
    at: float


def boot_of(host: str, *, seed: int, started_at: float) -> Boot:
    """The boot of a host, days before its simulator was started at ``started_at``.

    Each start of the simulator gives another boot, because counters and logs start again with the simulator.
    """
    # Not cryptography: the boot must be the same each time for one seed.
    chance = random.Random(f"{seed}/{host}/boot/{started_at}")  # noqa: S311
    at = started_at - chance.uniform(_YOUNGEST_DAYS, _OLDEST_DAYS) * _DAY_S
    return Boot(str(uuid.UUID(int=chance.getrandbits(128), version=4)), at)


def boot_at(host: str, *, seed: int, at: float) -> Boot:
    """A boot of a host during a simulation, at ``at``."""
    chance = random.Random(f"{seed}/{host}/boot at/{at}")  # noqa: S311 - as above
    return Boot(str(uuid.UUID(int=chance.getrandbits(128), version=4)), at)
