"""A rack on whose mesh two jobs have circuits, and engines that change one of them and end in the midst of it."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from racks import GUARD_ENDS_WITHIN_S, Rack, rack_of

from lumctl.change import Plan, apply, to_document
from lumctl.devices.types import PucState
from lumctl.fabric import FabricStates, LightPath
from lumctl.inventory.model import DevicePort
from lumctl.store import StoredRun
from lumctl.swap import plan_rollback

WORKER = Path(__file__).parents[1] / "system" / "survival" / "worker.py"
GUEST_HOSTS = """\
  - name: g[0-1]
    accelerators:
      - id: "{host}-gpu0"
        model: NVIDIA RTX 6000 Ada Generation
        memory_gib: 48
        pci: 0000:41:00.0
"""
GUEST_LANES = """\
  - {id: "g[0-1]-gpu0-a", accelerator: "g[0-1]-gpu0", interface: enp65s0f0, device: mesh, tx: [54, 3], rx: [44, 29]}
  - {id: "g[0-1]-gpu0-b", accelerator: "g[0-1]-gpu0", interface: enp65s0f1, device: mesh, tx: [26, 53], rx: [15, 32]}
"""
GUEST_JOB = """\
  - name: guest
    ranks: g[0-1]-gpu0
    links:
      - kind: ring
"""


def shared(text: str) -> str:
    """The prototype with a larger mesh, on which another job runs as well."""
    return (
        text.replace("columns: 7, rows: 3", "columns: 9, rows: 5")
        .replace("  - name: s3\n", GUEST_HOSTS + "  - name: s3\n")
        .replace("\njobs:\n", f"{GUEST_LANES}\njobs:\n{GUEST_JOB}")
    )


@dataclass(frozen=True)
class Seen:
    """A rack as its devices show it, past the store; and who runs where, which only the store knows."""

    cells: Mapping[str, Mapping[int, PucState]]
    lit: Mapping[str, bool]
    assignment: Mapping[str, tuple[str, ...]]

    def differences(self, other: "Seen") -> dict[str, tuple[Any, Any]]:
        """What differs from another look, by its name: as it is here, as it is there."""
        ours, theirs = self._flat(), other._flat()
        return {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}

    def _flat(self) -> dict[str, Any]:
        cells = {f"{device}/{puc}": state for device, held in self.cells.items() for puc, state in held.items()}
        return {**cells, **self.lit, **self.assignment}


@dataclass(frozen=True)
class Ended:
    """An engine's end: its exit status (minus the number of a signal), its words, and the run, if one had begun."""

    status: int
    said: str
    run: StoredRun | None


@dataclass
class CrashRack:
    """A rack, and the process from which its engines are forked."""

    rack: Rack
    worker: subprocess.Popen[bytes]
    plan: Plan = field(init=False)
    before: Seen = field(init=False)
    after: Seen = field(init=False)
    engine: int = field(init=False)
    """The process of the last engine."""

    def __post_init__(self) -> None:
        """A GPU dies; what its swap makes of the rack is seen once, and undone."""
        self.plan, self.before = self.rack.lost(), self.seen()
        self.rack.store.runs.save_plan(to_document(self.plan))
        run = apply(self.rack.context, self.plan).run
        self.after = self.seen()
        assert self.after != self.before
        assert self.kept(self.after.cells) == self.kept(self.before.cells) != {}
        self.take_back(self.rack.store.runs.get(run))

    # -- the rack ------------------------------------------------------------------------------------------------

    def seen(self) -> Seen:
        return Seen(self.rack.cells(), self.rack.transmitters(), self.rack.context.assignment())

    def kept(self, cells: Mapping[str, Mapping[int, PucState]]) -> dict[DevicePort, LightPath]:
        """The path of the light of each circuit that the swap has nothing to do with, by the port it enters."""
        states = FabricStates(self.rack.inventory, cells)
        entered = [DevicePort(c.ends[0]["device"], int(c.ends[0]["port"])) for c in self.plan.keep]
        return {place: states.follow(place) for place in entered}

    def newest(self) -> StoredRun | None:
        return max(self.rack.store.runs.all(), key=lambda run: run.fence, default=None)

    def take_back(self, run: StoredRun, *, later_s: float = 0.0) -> StoredRun:
        """Take a run back as an operator does, so much later."""
        with self.rack.another_context(now=lambda: time.time() + later_s) as later:
            return later.store(run.rack).runs.get(apply(later, plan_rollback(later, run)).run)

    def ready(self, work: str) -> Plan:
        """Bring the rack to where a swap, or the rollback of one, begins; gives its plan, kept in the store."""
        shows = self.seen()
        assert shows in (self.before, self.after)
        if work == "swap" and shows == self.after:
            self.take_back(self.standing())
        if work == "rollback" and shows == self.before:
            apply(self.rack.context, self.plan)
        plan = self.plan if work == "swap" else plan_rollback(self.rack.context, self.standing())
        self.rack.store.runs.save_plan(to_document(plan))
        return plan

    def standing(self) -> StoredRun:
        """The swap that is in force."""
        return max(
            (r for r in self.rack.store.runs.all() if r.kind == "swap" and r.state == "done"), key=lambda r: r.fence
        )

    # -- engines -------------------------------------------------------------------------------------------------

    def start(self, plan: Plan, **how: Any) -> int:
        """Start an engine; see worker.py for ``how``. Returns its process id when it is about to begin."""
        self.rack.guard_file.unlink(missing_ok=True)
        order = {
            "inventory": str(self.rack.inventory.path),
            "folder": str(self.rack.folder),
            "place": self.rack.place,
            "plan": plan.id,
            **how,
        }
        self._tell(order)
        self.engine = int(self.hear()["engine"])
        return self.engine

    def hear(self) -> dict[str, Any]:
        """The next word of the engine or of who forked it."""
        return dict(json.loads(self.worker.stdout.readline()))

    def end(self, *, fence: int | None = None) -> Ended:
        """The end of the engine; ``fence`` is that of the newest run before it."""
        status = int(self.hear()["status"])
        newest = self.newest()
        return Ended(status, self.said(), None if newest is None or newest.fence == fence else newest)

    def said(self) -> str:
        """What the last engine said."""
        return (self.rack.folder / "said").read_text()

    def run(self, plan: Plan, **how: Any) -> Ended:
        """Run an engine to its end."""
        newest = self.newest()
        self.start(plan, **how)
        return self.end(fence=newest.fence if newest else None)

    def run_alone(self, plan: Plan, happens: Callable[[], object], *, at: int, **how: Any) -> tuple[int, str]:
        """Run an engine to its end, its exit status and words; ``happens`` at a moment, and may give a ``clock``."""
        self.start(plan, at=at, do="ask", **how)
        word = self.hear()
        assert word == {"asks": True}, f"it ended before moment {at}: {self.said()}"
        answer = happens()
        self._tell(answer if isinstance(answer, dict) else {})
        return int(self.hear()["status"]), self.said()

    def moments(self, work: str) -> list[str]:
        """The moments of a run, in their order, as one that nothing happens to passes them."""
        assert self.run(self.ready(work)).status == 0
        return (self.rack.folder / "moments").read_text().splitlines()

    def guard(self) -> int:
        """The process that guards the run of the last engine."""
        return self.rack.guard

    def guards(self) -> list[int]:
        """The processes that a dead engine has left behind: the guard of its run, where it had one."""
        return [
            int(pid) for pid in Path(f"/proc/{self.worker.pid}/task/{self.worker.pid}/children").read_text().split()
        ]

    def end_guards(self) -> None:
        """End what a dead engine has left behind, before it can do anything: as when the machine loses its power."""
        for pid in self.guards():
            os.kill(pid, signal.SIGKILL)
        self.await_guards()

    def await_guards(self) -> bool:
        """Wait until what a dead engine has left behind has ended; whether there was anything."""
        left = self.guards()
        for pid in left:
            with suppress(ProcessLookupError):
                ended = os.pidfd_open(pid)
                try:
                    assert select.select([ended], [], [], GUARD_ENDS_WITHIN_S)[0], "the guard is still there"
                finally:
                    os.close(ended)
        return bool(left)

    def _tell(self, words: Mapping[str, Any]) -> None:
        self.worker.stdin.write(json.dumps(words).encode() + b"\n")
        self.worker.stdin.flush()


@contextmanager
def crash_rack_of(folder: Path, *, place: str | None = None) -> Iterator[CrashRack]:
    """A crash rack with a rack of its own."""
    with _crash_rack(folder, rack_of("prototype", folder, edited=shared, place=place)) as made:
        yield made


@contextmanager
def crash_rack_across(folder: Path) -> Iterator[CrashRack]:
    """A crash rack whose job lies on two meshes, and whose lost accelerator is replaced by one at the other mesh."""
    racks = rack_of("two-meshes", folder, driver="smartlight", loses=("train", "h1-gpu0"))
    with _crash_rack(folder, racks) as made:
        assert len({change.device for change in made.plan.changes}) > 1
        yield made


@contextmanager
def _crash_rack(folder: Path, racks: Iterator[Rack]) -> Iterator[CrashRack]:
    for rack in racks:
        errors = folder / "stderr"
        with (
            errors.open("wb") as stderr,
            subprocess.Popen(
                [sys.executable, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
            ) as worker,
        ):
            yield CrashRack(rack, worker)
            worker.stdin.close()
        assert not errors.read_text()
