"""The machine and the day of a figure."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def described() -> str:
    """One line: when, on what processor, how many cores, which Python."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = models[0].partition(":")[2].strip() if models else platform.machine()
    cores = len(os.sched_getaffinity(0))
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}  {model}, {cores} cores, Python {platform.python_version()}"
