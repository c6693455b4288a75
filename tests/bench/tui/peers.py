"""Other live dashboards at the same rate: htop and glances, with as many processes as there are accelerators."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from terminal import Terminal

STARTS_S = 10.0


def others(processes: int, seconds: float) -> Iterator[tuple[str, float, float]]:
    """Each that is installed: its name, its share of one core, and its memory in MiB."""
    glances = Path(sys.executable).with_name("glances")
    words = {
        "htop": ["htop", "--delay", "10"] if shutil.which("htop") else [],
        "glances": [str(glances), "--time", "1", "--disable-check-update"] if glances.exists() else [],
    }
    with asleep(processes):
        for name, command in words.items():
            if command:
                yield name, *_watched(name, command, seconds)
            else:
                print(f"{name} is not installed: left out")


def _watched(name: str, command: list[str], seconds: float) -> tuple[float, float]:
    terminal = Terminal(name, command)
    try:
        time.sleep(STARTS_S)
        cpu, began = terminal.cpu_s(), time.monotonic()
        time.sleep(seconds)
        return (terminal.cpu_s() - cpu) / (time.monotonic() - began), terminal.memory_mib()
    finally:
        terminal.close()


@contextmanager
def asleep(processes: int) -> Iterator[None]:
    """So many processes that do nothing."""
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(processes)]
    try:
        yield
    finally:
        for sleeper in sleepers:
            sleeper.kill()
        for sleeper in sleepers:
            sleeper.wait()
