"""A dashboard in a terminal of its own that nobody else sees: tmux, its keys and its screen, and what it costs."""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

TICKS_A_S = os.sysconf("SC_CLK_TCK")
WITHIN_S = 60.0


class Terminal:
    """One program in tmux. ``cpu_s`` is that of its process and its threads, ``memory_mib`` what it holds resident."""

    def __init__(self, name: str, words: list[str], *, columns: int = 160, lines: int = 50) -> None:
        self._tmux = ["tmux", "-L", f"lumctl-bench-{os.getpid()}-{name}", "-f", "/dev/null"]
        size = ["-x", str(columns), "-y", str(lines)]
        # tmux would else show 8 colours only, and what stands out could not be told from what does not.
        self._run("new-session", "-d", *size, f"exec env COLORTERM=truecolor {shlex.join(words)}")
        self.pid = int(self._run("list-panes", "-F", "#{pane_pid}"))

    def close(self) -> None:
        """End the program and its terminal."""
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)

    def press(self, *keys: str) -> None:
        """Type keys, by tmux's names."""
        self._run("send-keys", *keys)

    def screen(self, *, colours: bool = False) -> str:
        """What stands on it, with its colours or without."""
        return self._run("capture-pane", "-p", *(["-e"] if colours else []))

    def until(self, so: Callable[[str], object], *, colours: bool = False) -> float:
        """Look until it is so; when it was (seconds of the monotonic clock)."""
        ends = time.monotonic() + WITHIN_S
        while not so(self.screen(colours=colours)):
            assert time.monotonic() < ends, self.screen()
        return time.monotonic()

    def cpu_s(self) -> float:
        """CPU time that the program has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_S

    def memory_mib(self) -> float:
        """Memory that it holds."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], check=True, capture_output=True, text=True)
        return done.stdout
