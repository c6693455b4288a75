"""A job that really runs on a simulated rack, to have something fail in it and see how it comes back.

The rack, its store and the job's folder are private and gone afterwards. The processes, their sockets and their deaths
are real; accelerators, hosts and light are the simulator's.
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
from lumctl.errors import RefusedError, UnreachableError, UsageError
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.sim.launch import SimProcess, launch
from lumctl.store import Store, store_at
from lumctl.swap import commission
from lumctl.training.agent.folder import LOCK, Folder, claimed
from lumctl.training.coordinator import job_end
from lumctl.training.coordinator.coordinator import Coordinator
from lumctl.training.coordinator.state import JobPhase
from lumctl.training.coordinator.workers import JobWorker
from lumctl.training.job_folder import job_folder
from lumctl.training.job_run import open_coordinator, with_this_python
from lumctl.training.timeline import Timeline, timeline_of

BEHIND = ("nice", "-n", "10")
"""The ranks of all hosts share this machine's cores with processes that have their own on a rack.

Those come first.
"""
STARTS_WITHIN_S, RECOVERS_WITHIN_S = 180.0, 120.0
_log = logging.getLogger(__name__)


@dataclass
class Drill:
    """A job at work. :meth:`wait` waits for something to become so."""

    job: str
    inventory: Inventory
    sim: SimProcess
    context: Context
    store: Store
    coordinator: Coordinator
    _changed: threading.Condition

    def wait(self, so: Callable[[], bool], what: str, within_s: float) -> None:
        """Wait until something is so; asked after each piece of work of the coordinator.

        Raises:
            UnreachableError: it did not become so, or the job has ended before.
        """
        deadline = time.monotonic() + within_s
        with self._changed:
            while not so():
                left = deadline - time.monotonic()
                over = self.coordinator.state.phase.over
                if left <= 0 or over or not self._changed.wait(left):
                    why = f": {self.coordinator.state.why_ended}" if over else f" within {within_s:g} s"
                    raise UnreachableError(f"{what}: that did not come{why}")

    @property
    def done(self) -> int:
        """How many steps the rank has done that has done fewest."""
        return min((worker.done for worker in self.coordinator.state.living_members()), default=0)

    def _all_ready(self) -> bool:
        """The job does steps, and a process waits wherever one should."""
        state = self.coordinator.state
        if state.phase is not JobPhase.RUNNING or state.recovery is not None or not self.done:
            return False
        beside = state.placement if state.run.standby else ()
        waiting = {w.accelerator for w in state.workers if w.usable and not state.is_member(w)}
        return {*state.effects.ready_on(), *beside} <= waiting

    def settle(self, steps: int = 3) -> None:
        """Wait until all processes are ready that should be, and some steps have followed."""
        self.wait(self._all_ready, "steps, and a process on every spare", STARTS_WITHIN_S)
        target = self.done + steps
        self.wait(lambda: self.done >= target, "more steps", RECOVERS_WITHIN_S)

    def strike(self, ranks: Sequence[int], *, lost: bool, how: signal.Signals = signal.SIGKILL) -> Timeline:
        """Let ranks fail and wait for the next step; return the timeline since the kill.

        ``lost``: their accelerators fall off the bus just before it.

        Raises:
            UnreachableError: one of them has no process, or the next step did not come.
        """
        state, before = self.coordinator.state, len(self.coordinator.state.recoveries)
        victims = [state.workers[state.group.members[rank]] for rank in ranks]
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
    """A simulated rack on which a job is started; ``arguments`` follow those of its command.

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
            coordinator.post(job_end.stop, "the drill is over")
            thread.join(RECOVERS_WITHIN_S)


def _pid(victim: JobWorker) -> int:
    if victim.pid is None or not victim.alive:
        raise UnreachableError(f"worker {victim.name} has no process that could be killed", hint="try again")
    return victim.pid


def _remove(folder: Path) -> None:
    """Remove the folder of a job whose agents have ended; one that has not is still at work in it."""
    with ExitStack() as locks:
        try:
            for lock in folder.glob(f"*/{LOCK}"):
                locks.callback(os.close, claimed(Folder(lock.parent)))
        except RefusedError as error:
            _log.warning("%s is left: %s", folder, error.message)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def require_torch() -> None:
    """Require PyTorch.

    Raises:
        UsageError: it is not installed.
    """
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UsageError("this runs real training, and PyTorch is not installed", hint="pip install 'lumctl[torch]'")


def _copied(inventory: Inventory, folder: Path, job: str, arguments: Sequence[str], *, standby: bool) -> Inventory:
    """The inventory under a path of its own, so that nothing of another run of the same job is met."""
    run = inventory.jobs[job].run_settings()
    path = folder / inventory.path.name
    for beside in inventory.path.parent.glob("*.yaml"):
        (folder / beside.name).write_bytes(beside.read_bytes())
    own = load_inventory(path)
    command = (*BEHIND, *with_this_python(run.command), *arguments)
    changed = replace(own.jobs[job], run=replace(run, command=command, standby=standby))
    return replace(own, jobs={**own.jobs, job: changed})
