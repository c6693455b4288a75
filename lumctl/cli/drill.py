"""Run a real job on a simulated rack, make parts of it fail, and measure its recovery.

The rack, its store and the job's folder are private and are removed at the end. The processes, their sockets and their
deaths are real; accelerators, hosts and light are simulated.
"""

import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lumctl.context import Context
from lumctl.context.job_files import job_folder
from lumctl.errors import RefusedError, UnreachableError, UsageError
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.sim.launch import SimProcess, launch
from lumctl.store import Store, store_at
from lumctl.swap import commission
from lumctl.training.agent.folder import LOCK, Folder, claimed
from lumctl.training.coordinator import job_end
from lumctl.training.coordinator.coordinator import Coordinator
from lumctl.training.coordinator.state import JobStage
from lumctl.training.coordinator.workers import JobWorker
from lumctl.training.job_run import open_coordinator, with_this_python
from lumctl.training.timeline import Timeline, timeline_of

BEHIND = ("nice", "-n", "10")
"""Prefix of the ranks' commands: they yield to other processes of the drill.

Here all ranks share this machine's cores with processes that would have their own cores on a real rack.
"""
STARTS_WITHIN_S, RECOVERS_WITHIN_S = 180.0, 120.0
_log = logging.getLogger(__name__)


@dataclass
class Drill:
    """A running job. :meth:`wait` waits for a condition."""

    job: str
    inventory: Inventory
    sim: SimProcess
    context: Context
    store: Store
    coordinator: Coordinator
    _changed: threading.Condition

    def wait(self, so: Callable[[], bool], what: str, within_s: float) -> None:
        """Wait until ``so()`` is true; it is called after each event that the coordinator handles.

        ``what`` names the condition in the error.

        Raises:
            UnreachableError: the condition was not met within ``within_s``, or the job ended first.
        """
        deadline = time.monotonic() + within_s
        with self._changed:
            while not so():
                left = deadline - time.monotonic()
                over = self.coordinator.state.phase.over
                if left <= 0 or over or not self._changed.wait(left):
                    why = f": {self.coordinator.state.why_ended}" if over else f" within {within_s:g} s"
                    raise UnreachableError(f"{what}: this did not happen{why}")

    @property
    def done(self) -> int:
        """The number of steps that all ranks have done: the minimum over the ranks."""
        return min((worker.done for worker in self.coordinator.state.living_members()), default=0)

    def _all_ready(self) -> bool:
        """Whether the job does steps and a standby process waits in each place that should have one."""
        state = self.coordinator.state
        if state.phase is not JobStage.RUNNING or state.recovery is not None or not self.done:
            return False
        beside = state.placement if state.run.standby else ()
        waiting = {w.accelerator for w in state.workers if w.usable and not state.is_member(w)}
        return {*state.effects.ready_on(), *beside} <= waiting

    def settle(self, steps: int = 3) -> None:
        """Wait until all standby processes are ready and each rank has done ``steps`` further steps."""
        self.wait(self._all_ready, "training steps, and a process on every spare", STARTS_WITHIN_S)
        target = self.done + steps
        self.wait(lambda: self.done >= target, "more steps", RECOVERS_WITHIN_S)

    def strike(self, ranks: Sequence[int], *, lost: bool, how: signal.Signals = signal.SIGKILL) -> Timeline:
        """Make ranks fail and wait for the next step; return the timeline from the kill.

        ``how`` is the signal that kills them. ``lost``: their accelerators fall off the bus just before the kill.

        Raises:
            UnreachableError: one of the ranks has no process, or the job did not do its next step in time.
        """
        state, before = self.coordinator.state, len(self.coordinator.state.recoveries)
        victims = [state.workers[state.group.members[rank]] for rank in ranks]
        # First: nothing may be lost if one of them has no process that can be killed.
        pids = [_pid(victim) for victim in victims]
        if lost:
            for victim in victims:
                self.sim.inject(victim.accelerator, "gpu-lost")
        struck_at = time.time()
        for pid in pids:
            os.kill(pid, how)
        self.wait(lambda: len(state.recoveries) > before, "the next step", RECOVERS_WITHIN_S)
        return timeline_of(state.recoveries[-1].document(), job=self.job, killed_at=struck_at)


@contextmanager
def drilling(
    inventory: Inventory,
    job: str,
    *,
    arguments: Sequence[str] = (),
    say: Callable[[str], None] = lambda _line: None,
    standby: bool = True,
    lane_mbps: float | None = None,
) -> Iterator[Drill]:
    """Start a job on a simulated rack for the block; ``arguments`` are appended to the job's command.

    Raises:
        UsageError: the job has no ``run`` settings, or PyTorch is missing.
    """
    require_torch()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="lumctl-drill-")))
        own = _copied(inventory, scratch, job, arguments, standby=standby)
        sim = stack.enter_context(launch(own, folder=scratch / "sim", tied=True, lane_mbps=lane_mbps))
        for remark in sim.remarks():
            say(remark)

        def open_context() -> Context:
            return Context(
                own, "sim", endpoints=sim.endpoints(), store=lambda rack: store_at(str(scratch / "store"), rack=rack)
            )

        context = stack.enter_context(open_context())
        commission(context, failed=lambda device, why: say(f"{device} is not programmed: {why}"))
        # Before the coordinator is opened, so that it runs after the coordinator has closed.
        stack.callback(_remove, job_folder(own.path, context.target, job))
        coordinator = stack.enter_context(open_coordinator(open_context, job, "the drill", say))
        changed = threading.Condition()

        def notify() -> None:
            with changed:
                changed.notify_all()

        coordinator.after_turn = notify
        thread = threading.Thread(target=coordinator.run, name="lumctl-drill", daemon=True)
        thread.start()
        try:
            yield Drill(job, own, sim, context, context.store(own.jobs[job].rack), coordinator, changed)
        finally:
            coordinator.post(job_end.stop, "the drill has ended")
            thread.join(RECOVERS_WITHIN_S)


def _pid(victim: JobWorker) -> int:
    if victim.pid is None or not victim.alive:
        raise UnreachableError(f"worker {victim.name} has no process that could be killed", hint="try again")
    return victim.pid


def _remove(folder: Path) -> None:
    """Remove a job's folder unless one of its agents still runs and uses it."""
    with ExitStack() as locks:
        try:
            for lock in folder.glob(f"*/{LOCK}"):
                locks.callback(os.close, claimed(Folder(lock.parent)))
        except RefusedError as error:
            _log.warning("%s remains: %s", folder, error.message)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def require_torch() -> None:
    """Check that PyTorch is installed.

    Raises:
        UsageError: PyTorch is not installed.
    """
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UsageError("this runs real training, but PyTorch is not installed", hint="pip install 'lumctl[torch]'")


def _copied(inventory: Inventory, folder: Path, job: str, arguments: Sequence[str], *, standby: bool) -> Inventory:
    """A copy of the inventory at a path of its own, so that other runs of the same job do not interfere."""
    run = inventory.jobs[job].run_settings()
    path = folder / inventory.path.name
    # The inventory may name files beside it, such as meshes.
    for beside in inventory.path.parent.glob("*.yaml"):
        (folder / beside.name).write_bytes(beside.read_bytes())
    own = load_inventory(path)
    command = (*BEHIND, *with_this_python(run.command), *arguments)
    changed = replace(own.jobs[job], run=replace(run, command=command, standby=standby))
    return replace(own, jobs={**own.jobs, job: changed})
