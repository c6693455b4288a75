"""The machine on which something is measured, in words."""

import os
import platform
from pathlib import Path

_CPU = Path("/proc/cpuinfo")


def this_machine(cpu: Path = _CPU) -> str:
    """Cores that this process may use, their model, system and Python: what a measurement has to name."""
    cores = len(os.sched_getaffinity(0))
    model = _model(cpu) or platform.machine()
    noun = "core" if cores == 1 else "cores"
    return f"{cores} {noun} of {model}, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def _model(cpu: Path) -> str:
    try:
        lines = cpu.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    named = (line.partition(":")[2] for line in lines if line.startswith("model name"))
    return " ".join(next(named, "").split())
