"""What a measured job tells: each step that each of its processes has done, and when."""

import contextlib
import itertools
import json
import os
import signal
import socket
import statistics
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """One step, done by one process."""

    rank: int
    world: int
    """Ranks that took part in it."""
    step: int
    pid: int
    at: float
    """Seconds since the epoch."""


class Voice:
    """A trainer's side."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def done(self, *, rank: int, world: int, step: int) -> None:
        told = Step(rank, world, step, os.getpid(), time.time())
        with contextlib.suppress(OSError):  # nobody listens any more
            self._socket.sendto(json.dumps(asdict(told)).encode(), self._path)


class Ear:
    """The measurer's side: hears of steps as they are done."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "ear")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind(self.path)
        self.heard: list[Step] = []

    def hear(self, until: float) -> Step | None:
        """The next step; None once `until` (of time.monotonic) has come."""
        self._socket.settimeout(max(0.001, until - time.monotonic()))
        try:
            step = Step(**json.loads(self._socket.recv(4096)))
        except TimeoutError:
            return None
        self.heard.append(step)
        return step

    def flowing(self, world: int, *, steps: int, within_s: float) -> None:
        """Wait until all ranks together have done so many steps."""
        whole, until = defaultdict(set), time.monotonic() + within_s
        while sum(len(ranks) == world for ranks in whole.values()) < steps:
            step = self.hear(until)
            if step is None:
                raise TimeoutError(f"{world} ranks did not do {steps} steps within {within_s:g} s")
            if step.world == world:
                whole[step.step].add(step.rank)

    def first_after(self, t0: float, worlds: set[int], *, within_s: float) -> dict[int, float]:
        """Seconds from t0 to the first step that a whole group of each size has done, if it has."""
        done: dict[int, float] = {}
        ranks = defaultdict(set)
        until = time.monotonic() + within_s
        while worlds - done.keys():
            step = self.hear(until)
            if step is None:
                break
            if step.at > t0 and step.world not in done:
                ranks[step.world, step.step].add(step.rank)
                if len(ranks[step.world, step.step]) == step.world:
                    done[step.world] = step.at - t0
        return done

    def kill(self, rank: int) -> float:
        """Kill the process that has this rank; when."""
        pid = next(step.pid for step in reversed(self.heard) if step.rank == rank)
        t0 = time.time()
        os.kill(pid, signal.SIGKILL)
        return t0

    def step_ms(self) -> float:
        """Median time of a step, so far."""
        first = self.heard[0].rank
        times = [step.at for step in self.heard if step.rank == first]
        return 1000 * statistics.median(b - a for a, b in itertools.pairwise(times))

    def close(self) -> None:
        """End all who ever told us something and still live."""
        self._socket.close()
        for pid in {step.pid for step in self.heard}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
