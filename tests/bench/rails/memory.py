"""The memory of a coordinator over 100,000 changes of light, which it decides as in a job; the light itself is fake.

    PYTHONPATH=tests/contract python tests/bench/rails/memory.py

The ranks' requests, proved as theirs, the records of their steps and the confirmations of the device go through the
functions that the coordinator of a job calls; the agents, workers and light are those of its tests.
"""

import gc
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))

from fake_cluster import TOKEN, FakeCluster, at_work
from fake_light import GRADIENTS, PIPELINE

from lumctl.training.coordinator import phase_light
from lumctl.training.phase_traffic import Traffic
from lumctl.training.protocol import phase_mac

CHANGES = 100_000
MEASURED_AT = (10_000, 50_000, CHANGES)
RANKS = 4
"""Each of the two phases joins all four in pairs."""


class RequestedLight:
    """A job at work whose ranks ask for one phase after the other."""

    def __init__(self, folder: Path) -> None:
        self._cluster = at_work(FakeCluster(folder, ranks=RANKS, phases=True))
        self._cluster.light.held = True  # this class confirms the changes
        self._cluster.ask = lambda _host, _message: True
        self._state = self._cluster.state
        self._workers = [self._state.workers[self._state.group.members[rank]] for rank in range(RANKS)]
        self.changes = 0

    def change(self) -> None:
        """One change, from the requests of all ranks to the record of their step."""
        self.changes += 1
        number, phase = self.changes, (PIPELINE, GRADIENTS)[self.changes % 2]
        generation = self._state.group.generation
        for worker in self._workers:
            mac = phase_mac(TOKEN, worker.name, generation, number, phase)
            phase_light.wanted(self._state, worker, {"number": number, "phase": phase, "mac": mac})
        self._cluster.light.end_change()
        row = [PIPELINE, GRADIENTS, "on-demand", None]
        said = {"changes": 2, "wait_s": 0.01, "hidden_s": 0.0, "worst_s": 0.01, "boundaries": [row]}
        for worker in self._workers:
            worker.done = number
            phase_light.stepped(self._state, worker, {**said, "traffic": [Traffic(number, None)]})

    @property
    def confirmed(self) -> int:
        """How many changes the coordinator counts."""
        found: int = self._state.light.changes
        return found


def lines(changes: int = CHANGES) -> Iterator[str]:
    """The memory of this process after some changes, and the blocks that Python holds, as a line of text."""
    with tempfile.TemporaryDirectory() as made:
        light = RequestedLight(Path(made))
        found: list[str] = []
        while light.changes < changes:
            light.change()
            if light.changes in MEASURED_AT:
                gc.collect()
                blocks = sys.getallocatedblocks()
                found.append(f"{resident_kib():,} KiB and {blocks:,} blocks after {light.changes:,}")
    yield f"memory of a coordinator, {light.confirmed:,} changes confirmed: {', '.join(found)}"


def resident_kib() -> int:
    """The resident memory of this process."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))


if __name__ == "__main__":
    for line in lines():
        print(line)
