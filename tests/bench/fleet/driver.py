"""The harness's end of a contender's process: orders, time, CPU, and whether every byte came back."""

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import processes
from rack import Rack
from roster import Entry

HERE = Path(__file__).parent
_START_S = 240.0
_ORDER_S = 120.0
_AFTERMATH_S = 0.01
"""What a contender's other threads still do when its answer is complete belongs to the tick as well."""


class ContenderError(Exception):
    """A contender failed, or gave a wrong answer."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One order carried out: wall and client CPU, in seconds."""

    wall_s: float
    cpu_s: float


class Child:
    """A process that reads orders and writes replies, one a line; what it says otherwise goes to a log."""

    def __init__(self, name: str, command: list[str], rack: Rack, cwd: Path = HERE) -> None:
        self.name = name
        self._log = rack.folder / f"{name}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=cwd,
                env=rack.environment(),
                text=True,
                bufsize=1,
            )

    def reply(self, limit_s: float) -> str:
        """The next line that it says."""
        readable, _, _ = select.select([self._out], [], [], limit_s)
        line = self._out.readline().strip() if readable else ""
        if line and not line.startswith("error "):
            return line
        why = line.removeprefix("error ") or (f"no reply in {limit_s:g} s" if not readable else "it ended")
        raise ContenderError(f"{self.name}: {why}{self._last_words()}")

    def order(self, text: str, limit_s: float = _ORDER_S) -> str:
        """Have it do something."""
        self.send(text)
        return self.reply(limit_s)

    def send(self, text: str) -> None:
        """Give an order without waiting for its reply."""
        try:
            self._in.write(f"{text}\n")
        except OSError:
            raise ContenderError(f"{self.name}: it ended{self._last_words()}") from None

    def close(self) -> None:
        """End it, politely first."""
        with contextlib.suppress(OSError):
            self._in.close()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._out.close()

    @property
    def _in(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def _out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return "".join(f"\n    {line}" for line in lines[-12:])


class Contender(Child):
    """A contender that runs; ready for its first tick when made. ``kept`` is the process that holds its connections."""

    def __init__(
        self,
        entry: Entry,
        rack: Rack,
        python: str,
        *,
        program: str = "",
        kept: int | None = None,
        name: str | None = None,
        settings: Mapping[str, object] | None = None,
        cores: set[int] | None = None,
    ) -> None:
        name = name or entry.name
        self.entry = entry
        self._rack = rack
        told = rack.settings() | {"variant": entry.variant, "program": program} | dict(settings or {})
        self._hosts = set(told["hosts"])  # type: ignore[call-overload]
        path = rack.folder / f"{name}.json"
        path.write_text(json.dumps(told))
        super().__init__(name, [python, str(HERE / entry.script), str(path)], rack)
        if cores:
            # Before it has threads: they inherit this.
            os.sched_setaffinity(self.process.pid, cores)
        self._roots = (self.process.pid, *([kept] if kept else []))
        try:
            self.reply(_START_S)
        except ContenderError:
            self.close()
            raise

    def tick(self, order: str = "tick") -> Tick:
        """One tick, timed from here."""
        cpu_s = processes.cpu_s(*self._roots)
        started = time.perf_counter()
        self.order(order)
        wall_s = time.perf_counter() - started
        time.sleep(_AFTERMATH_S)
        return Tick(wall_s, processes.cpu_s(*self._roots) - cpu_s)

    def answers(self) -> dict[str, tuple[str, float | None]]:
        """What the last tick brought: by host, the digest of the answer and seconds after the tick began."""
        path = self._rack.folder / f"{self.name}.answers"
        self.order(f"answers {path}")
        rows = (line.split("\t") for line in path.read_text().splitlines())
        return {host: (digest, None if seconds == "-" else float(seconds)) for host, digest, seconds in rows}

    def check(self, digest: str, hosts: set[str] | None = None) -> None:
        """Every host's answer, every byte of it, is what lies on the hosts now.

        Raises:
            ContenderError: it is not.
        """
        wanted = self._hosts if hosts is None else hosts
        found = {host: seen for host, (seen, _) in self.answers().items()}
        silent, wrong = wanted - set(found), [host for host in wanted & set(found) if found[host] != digest]
        if silent or wrong:
            raise ContenderError(
                f"{self.name}: of {len(wanted)} hosts {len(silent)} gave no answer and {len(wrong)} a wrong "
                f"one, such as {min(silent or wrong)}{self._last_words()}"
            )

    def memory(self) -> processes.Memory:
        """What it holds now, with the connections kept for it."""
        return processes.memory(*self._roots)

    def peak_rss(self, order: str = "tick") -> int:
        """The most that is resident while it ticks; the looking disturbs, so this tick is not timed."""
        most = processes.rss(*self._roots)
        self.send(order)
        while not select.select([self._out], [], [], 0.02)[0]:
            most = max(most, processes.rss(*self._roots))
        self.reply(_ORDER_S)
        return most

    def idle_cpu_s(self) -> float:
        """CPU seconds so far."""
        return processes.cpu_s(*self._roots)


class Kept(Child):
    """The held connections of ssh for the tools that start it."""

    def __init__(self, rack: Rack) -> None:
        command = [
            sys.executable,
            str(HERE / "kept.py"),
            str(rack.folder / "ssh_config_kept"),
            str(rack.folder / "kept"),
        ]
        super().__init__("kept", [*command, *rack.hosts], rack)
        try:
            self.reply(_START_S)
        except ContenderError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
