"""torchft's manager with time-outs tightened as far as it works, on the example's model and data.

Each rank is a replica group of one. `--kind cold` starts a process in the dead one's place as soon as it has ended;
`--kind spare` has one more from the start, which torchft counts as a spare (the sum is over a fixed number of ranks).
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from measured import Measured, free_port, killed_at_work, main

WORKER = Path(__file__).with_name("torchft_worker.py")
KINDS = ["cold", "spare"]
HEARTBEAT_MS, JOIN_MS, TICK_MS = 300, 100, 20


def measure(kind: str, ranks: int, killed: int, folder: Path) -> Measured:
    """Start a job, kill one rank, wait for the next step of those left and of all."""
    worlds = {ranks} if kind == "spare" else {ranks - 1, ranks}
    step_ms, found = killed_at_work(partial(_job, kind, ranks, folder), ranks, killed, worlds, folder)
    return Measured(f"torchft {kind}", ranks, killed, step_ms, found.get(ranks), found.get(ranks - 1))


@contextlib.contextmanager
def _job(kind: str, ranks: int, folder: Path, ear: str) -> Iterator[None]:
    ending = threading.Event()
    running: dict[int, subprocess.Popen[bytes]] = {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("wb") as log, _lighthouse(ranks if kind == "spare" else ranks - 1, log) as address:
        argv = [sys.executable, str(WORKER), ear, address, kind, str(ranks)]

        def fill(number: int) -> None:
            """Keep one place filled, as a launcher with restarts would, without its delay."""
            while not ending.is_set():
                process = running[number] = subprocess.Popen(
                    [*argv, str(number)], env=environment, stdout=log, stderr=log
                )
                if ending.is_set():
                    process.kill()
                process.wait()

        launchers = [threading.Thread(target=fill, args=[number]) for number in range(ranks + (kind == "spare"))]
        for launcher in launchers:
            launcher.start()
        try:
            yield
        finally:
            ending.set()
            for process in list(running.values()):
                process.kill()
            for launcher in launchers:
                launcher.join()


@contextlib.contextmanager
def _lighthouse(least: int, log: BinaryIO) -> Iterator[str]:
    """The server that all managers ask; its address."""
    port = free_port()
    argv = [str(Path(sys.executable).with_name("torchft_lighthouse")), "--bind", f"127.0.0.1:{port}"]
    argv += ["--min_replicas", str(least), "--join_timeout_ms", str(JOIN_MS), "--quorum_tick_ms", str(TICK_MS)]
    argv += ["--heartbeat_timeout_ms", str(HEARTBEAT_MS)]
    server = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main(measure, KINDS)
