"""A simulated rack with its store, on which swaps are planned, applied, cut and undone."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from lumctl.change import Plan, apply, to_document
from lumctl.context import Context
from lumctl.devices.endpoints import Endpoints
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.fabric import mesh_of, trace
from lumctl.fleet.fleet import Fleet
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.inventory.probe_times import PROBE_TIMES
from lumctl.sim.launch import SimProcess, launch
from lumctl.sim.meshes.driver import SimMesh
from lumctl.store import Store, StoredRun, store_at
from lumctl.swap import commission, plan_fabric, plan_rollback, plan_swap

ENGINE = Path(__file__).parents[1] / "system" / "swap" / "engine.py"
GUARD_ENDS_WITHIN_S = 30.0
CONNECT_S = 30.0
"""On a busy machine, sixteen hosts in one process take long to answer; nothing here tests how soon they must."""
PATIENT = "probes: {" + ", ".join(f"{kind}: {{deadline_s: 15}}" for kind in PROBE_TIMES) + "}\n"


@dataclass
class Rack:
    """A simulated rack with its store."""

    inventory: Inventory
    sim: SimProcess
    context: Context
    store: Store
    folder: Path
    place: str
    """The folder or database URL of the store."""
    job: str = "finetune"
    fails: str = "s1-gpu0"
    """The accelerator of the job that is lost."""

    def cells(self) -> dict[str, dict[int, PucState]]:
        """What every mesh really holds."""
        return {
            device: SimMesh(DriverContext(device=device, address=f"unix:{self.sim.control}")).read_states()
            for device in self.inventory.devices
        }

    def ok_circuits(self, job: str) -> list[bool]:
        report = self.context.observe().report
        return [c.state is State.OK for c in report.circuits.values() if c.owner == job]

    def spoil(self, plan: Plan) -> None:
        """Let a cell that the plan writes stay as it stands: one without which a new circuit ends at another port.

        Not every cell is: light may find to the same port by a way that nobody planned.
        """
        before = self.cells()["mesh"]
        after = {**before, **{change.puc: PucState(change.after) for change in plan.changes}}
        mesh = mesh_of(self.inventory.devices["mesh"])
        cell = next(
            change
            for change in plan.changes
            for circuit in plan.add
            if trace(mesh, {**after, change.puc: before[change.puc]}, circuit.ends[0]["port"]).exit
            != circuit.ends[1]["port"]
        )
        self.sim.inject(f"mesh/puc/{cell.puc}", "stuck-cross" if cell.after == "=" else "stuck-bar")

    def clear(self) -> None:
        self.sim.clear()

    def another_context(self, endpoints: Endpoints | None = None, **settings: Callable[[], float]) -> Context:
        return Context(
            self.inventory,
            "sim",
            endpoints=endpoints or self.sim.endpoints(),
            store=lambda rack: store_at(self.place, files=self.folder / "store", rack=rack),
            **settings,
        )

    def lost(self) -> Plan:
        """An accelerator of the job is lost and a plan to replace it is made."""
        self.sim.inject(self.fails, "gpu-lost")
        return plan_swap(self.context, self.job, [self.fails])

    def engine(self, plan: Plan, **how: object) -> subprocess.Popen[str]:
        """Apply a plan in a process of its own, which prints a line after each step; see engine.py for ``how``."""
        self.store.runs.save_plan(to_document(plan))
        self.guard_file.unlink(missing_ok=True)
        order = {"inventory": str(self.inventory.path), "folder": str(self.folder), "plan": plan.id, **how}
        return subprocess.Popen(
            [sys.executable, ENGINE, json.dumps(order)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    @property
    def guard_file(self) -> Path:
        return self.folder / "guard.pid"

    @property
    def guard(self) -> int:
        """The process that guards the run of the last engine."""
        return int(self.guard_file.read_text())

    def await_guard(self) -> None:
        """Wait until the guard of the last engine has ended."""
        with suppress(ProcessLookupError):
            ended = os.pidfd_open(self.guard)
            try:
                assert select.select([ended], [], [], GUARD_ENDS_WITHIN_S)[0], "the guard is still there"
            finally:
                os.close(ended)

    @staticmethod
    def await_stop(engine: subprocess.Popen[str]) -> None:
        """Wait until an engine stands still."""
        assert os.waitid(os.P_PID, engine.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED

    def reprogram(self) -> None:
        """Program the mesh again: what it holds is not certain."""
        apply(self.context, plan_fabric(self.context, "prototype"))

    def transmitters(self) -> dict[str, bool]:
        """Which transmitters are on."""
        return {name: self.context.devices.transponder(name).transmitting() for name in self.inventory.transponders}

    def kill_engine(self, plan: Plan, when: Callable[[subprocess.Popen[str]], object], **how: object) -> StoredRun:
        """Apply a plan in a process of its own and kill that at the given moment, and its guard with it."""
        with self.engine(plan, **how) as engine:
            try:
                when(engine)
                os.kill(self.guard, signal.SIGKILL)
            finally:
                engine.kill()
        run = self.store.runs.all()[0]
        assert run.state == "running"
        return run

    def take_back(self, run: StoredRun, before: dict[str, dict[int, PucState]]) -> None:
        """The lease of a dead engine holds for its term; then its run can be undone whole."""
        with self.another_context() as context, pytest.raises(RefusedError, match="its lease ends in"):
            apply(context, plan_rollback(context, run))
        with self.another_context(now=lambda: time.time() + 60) as later:
            apply(later, plan_rollback(later, self.store.runs.get(run.id)))
        assert self.cells() == before
        assert self.store.runs.get(run.id).state == "undone"
        assert self.context.known_states("mesh") == before["mesh"]
        assert self.context.assignment()["finetune"] == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
        assert self.store.first_break() is None

    def crossed(self) -> int:
        """A cell in cross that a circuit runs through."""
        from lumctl.fabric import mesh, trace

        held = self.cells()["mesh"]
        return next(puc for puc, state in trace(mesh(7, 3), held, 20).passes if state is PucState.CROSS)


def rack_of(
    name: str,
    folder: Path,
    *,
    driver: str = "smartlight",
    place: str | None = None,
    edited: Callable[[str], str] = str,
    loses: tuple[str, str] = ("finetune", "s1-gpu0"),
    light_deadline_s: float = 1.0,
    **settings: float,
) -> Iterator[Rack]:
    """A commissioned rack of an example inventory, ``edited``; its store is at ``place``, or in the folder.

    ``loses`` names the job and the accelerator that :meth:`Rack.lost` is about.
    """
    path, kept = folder / f"{name}.yaml", place or str(folder / "store")
    text = edited(example(name).read_text()).replace("driver: smartlight\n", f"driver: {driver}\n")
    patient = "" if "\nprobes:" in text else PATIENT
    path.write_text(text + f"\nthresholds: {{light_deadline_s: {light_deadline_s}}}\n{patient}")
    inventory = load_inventory(path)
    store = store_at(kept, files=folder / "store")
    with (
        launch(inventory, folder=folder / "sim", tied=True, **settings) as sim,
        Context(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as context,
    ):
        context.fleet = Fleet(inventory, sim.endpoints(), connect_timeout_s=CONNECT_S)
        commission(context)
        yield Rack(inventory, sim, context, store, folder, kept, *loses)
