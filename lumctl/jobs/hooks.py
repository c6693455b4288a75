"""The hooks of jobs: which jobs have one, the input of a hook, and the meaning of its answers.

The environment of a hook has ``LUMCTL_JOB``, ``LUMCTL_ACT`` (pause, resume or status), ``LUMCTL_RACK``,
``LUMCTL_TARGET``, ``LUMCTL_RUN``, ``LUMCTL_FAILED`` and ``LUMCTL_SPARES`` (names separated by commas), and
``LUMCTL_RANKS``: the present placement of the job as JSON.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TypeVar, Unpack

from lumctl.containment import contained
from lumctl.context import Context
from lumctl.errors import LumctlError, RefusedError
from lumctl.files import make_private
from lumctl.inventory.job_entries import COMMAND
from lumctl.inventory.job_run import JobHook
from lumctl.inventory.model import Inventory, Job
from lumctl.jobs import hook_runner
from lumctl.jobs.control import (
    NOBODY,
    PAUSE,
    PAUSED,
    QUIET,
    RESUME,
    RUNNING,
    STATES,
    Facts,
    HookFailedError,
    HookRefusedError,
    JobContext,
    More,
    Rank,
    ScheduledJob,
    SchedulerView,
    culprit,
    load,
    programs_of,
)
from lumctl.programs import Ended, end_program, run_program

__all__ = [
    "NOBODY",
    "PAUSE",
    "PAUSED",
    "QUIET",
    "RESUME",
    "RUNNING",
    "Facts",
    "HookFailedError",
    "HookRefusedError",
    "Hooks",
]

END_S = 5.0
"""Grace period in which a hook ends after its time limit."""
_AGAIN = "nothing was changed, and the job is as it was: once it can be paused, run the same command again"
ON_SIM = "hooks are not run on a simulator, to leave the real job alone (on_sim: true, if there is none)"
T = TypeVar("T")


class Hooks:
    """The control of one job, of any kind.

    ``only_asks`` says that its programs only read: they then take no lock, so they neither wait for another hook of
    the job nor delay one.
    """

    def __init__(self, context: Context, job: str, facts: Facts = NOBODY, *, only_asks: bool = False) -> None:
        self._context, self._job, self._facts, self._only_asks = context, job, facts, only_asks
        known = context.inventory.controlled.get(job)
        if known is None or known.hook is None:
            raise RefusedError(
                f"job {job} has no hook in {context.inventory.path}",
                hint="pause and resume it by hand, or add its hook",
            )
        self._rack = known.rack
        self._running: subprocess.Popen[bytes] | None = None
        self._culprit = culprit(known.hook.kind)
        self._within_s = known.hook.timeout_s + END_S
        control, job_context = load(known.hook.kind), self._job_context(known, known.hook)
        self._control = self._contained("opening", lambda: control(job_context))

    def status(self) -> str | None:
        """The state of the job: running, paused or stopped; ``None`` if no hook reports it.

        Raises:
            HookFailedError: the hook did not report a state.
        """
        try:
            # A plug-in may raise any domain error, also one that means "nothing was changed"; callers handle
            # HookFailedError.
            state = self._contained("status", self._control.status)
        except HookFailedError:
            raise
        except LumctlError as error:
            message = f"the state of job {self._job} is unknown: {error.message}"
            raise HookFailedError(message, hint=error.hint) from error
        if state is not None and state not in STATES:
            raise HookFailedError(
                f"{self._culprit}: status of job {self._job} returned {state!r}, which is not a state"
            )
        return state

    def scheduled(self, host: str | None = None) -> tuple[ScheduledJob, ...] | None:
        """The scheduler's view of the job, or of all jobs on a host; ``None`` if this kind of control has no such view.

        Raises:
            LumctlError: the scheduler does not report them.
        """
        control = self._control
        if not isinstance(control, SchedulerView):
            return None
        try:
            told = self._contained("scheduled", lambda: control.scheduled(host))
            return tuple(
                # A plug-in may leave fields out or add others.
                ScheduledJob(**{each.name: str(job.get(each.name, "")) for each in fields(ScheduledJob)})
                for job in told
            )
        except (TypeError, AttributeError):
            raise HookFailedError(f"{self._culprit}: scheduled of job {self._job} did not return jobs") from None

    def pause(self) -> dict[str, str]:
        """Pause the job, unless it is paused or stopped; return its earlier state and the hook's output.

        Raises:
            HookRefusedError: the job runs as before.
            HookFailedError: the job's state is unknown.
        """
        return self._acted("pause", lambda: self._control.pause(self._facts, self._placement()), _AGAIN)

    def resume(self) -> dict[str, str]:
        """Resume the job at its present placement, unless it runs already.

        Raises:
            HookRefusedError: the job does not run.
            HookFailedError: the job's state is unknown.
        """
        return self._acted("resume", lambda: self._control.resume(self._facts, self._placement()), None)

    def _contained(self, name: str, call: Callable[[], T]) -> T:
        if self._culprit.is_ours:  # called in this thread, so that Ctrl-C ends its wait
            return call()
        try:
            return contained(self._culprit, f"{name} of job {self._job}", call, self._within_s)
        except BaseException:
            if self._running is not None:  # the call is late, or Ctrl-C was pressed: end its program
                end_program(self._running)
            raise

    def _acted(self, name: str, act: Callable[[], dict[str, str]], hint: str | None) -> dict[str, str]:
        """Run an act and return its evidence; errors of the kind become hook errors, which the engine handles."""
        try:
            said = self._contained(name, act)
        except HookFailedError:
            raise
        except RefusedError as error:
            raise HookRefusedError(error.message, hint=error.hint or hint) from error
        except LumctlError as error:
            raise HookFailedError(error.message, hint=error.hint) from error
        # The evidence goes into the journal, which keeps text.
        if not isinstance(said, dict) or not all(isinstance(each, str) for pair in said.items() for each in pair):
            raise HookFailedError(f"{self._culprit}: {name} of job {self._job} did not return texts by name")
        return said

    def _job_context(self, job: Job, hook: JobHook) -> JobContext:
        accelerators = self._context.inventory.accelerators
        return JobContext(
            job=job.name,
            target=self._context.target,
            timeout_s=hook.timeout_s,
            settings=hook.for_control,
            inventory=self._context.inventory.path.absolute(),
            placement=self._placement,
            host_of=lambda accelerator: accelerators[accelerator].host,
            address_of=self._address,
            run=self._call,
            now=time.monotonic,
            wait=threading.Event().wait,
        )

    def _call(
        self,
        argv: Sequence[str],
        *,
        act: str,
        timeout_s: float,
        **more: Unpack[More],
    ) -> Ended:
        command = list(argv) if self._only_asks else [*self._locking(), *argv]
        try:
            return run_program(command, timeout_s=timeout_s, variables=self._variables(act), begun=self._began, **more)
        finally:
            # It has ended, and its PID may be another process's by now: a later error must not end that.
            self._running = None

    def _locking(self) -> list[str]:
        """The command that runs another one while no other hook of the job runs."""
        # The lock is in the store's folder: hooks of other commands and of the daemon on this machine respect it too.
        files = self._context.store(self._rack).files
        make_private(files)
        # The runner needs the standard library only: -I and -S keep the operator's Python settings and packages away.
        return [
            sys.executable,
            "-I",
            "-S",
            hook_runner.__file__,
            str(os.getpid()),
            str(files / f"hook-{self._job}.lock"),
        ]

    def _began(self, process: subprocess.Popen[bytes]) -> None:
        self._running = process

    def _address(self, host: str) -> str:
        return self._context.fleet.address(host)

    def _placement(self) -> list[Rank]:
        placed = placement_of(self._context, self._job)
        accelerators = self._context.inventory.accelerators
        return [
            Rank(rank, name, accelerators[name].host, accelerators[name].index)
            for rank, name in enumerate(placed)
            if name in accelerators
        ]

    def _variables(self, act: str) -> dict[str, str]:
        ranks = [{key: asdict(rank)[key] for key in ("rank", "accelerator", "host")} for rank in self._placement()]
        return {
            "LUMCTL_JOB": self._job,
            "LUMCTL_ACT": act,
            "LUMCTL_RACK": self._rack,
            "LUMCTL_TARGET": self._context.target,
            "LUMCTL_RUN": self._facts.run,
            "LUMCTL_FAILED": ",".join(self._facts.failed),
            "LUMCTL_SPARES": ",".join(self._facts.spares),
            "LUMCTL_RANKS": json.dumps(ranks),
        }


def placement_of(context: Context, job: str) -> tuple[str, ...]:
    """The accelerators of a job's ranks now; of a filler job those that the inventory gives it."""
    if job in context.inventory.fillers:
        return context.inventory.fillers[job].ranks
    # Not sound: a paused job must be resumed even if the placement of another job no longer fits the inventory.
    return context.assignment(sound=False)[job]


def hooked(inventory: Inventory, job: str) -> bool:
    """Whether a job has a hook."""
    known = inventory.controlled.get(job)
    return known is not None and known.hook is not None


def passed_over(context: Context, job: str) -> str | None:
    """Why a job's hook is not run on this target; ``None`` if it is run."""
    known = context.inventory.controlled.get(job)
    if context.target != "sim" or (known is not None and known.hook is not None and known.hook.on_sim):
        return None
    return ON_SIM


def never_on_sim(inventory: Inventory) -> Inventory:
    """A copy of an inventory whose hooks do not run on a simulator: for a drill or a replay on its own simulator."""
    jobs, fillers = (
        {name: replace(job, hook=replace(job.hook, on_sim=False)) if job.hook else job for name, job in each.items()}
        for each in (inventory.jobs, inventory.fillers)
    )
    return replace(inventory, jobs=jobs, fillers=fillers)


def without_hook(inventory: Inventory, jobs: Iterable[str]) -> tuple[str, ...]:
    """Warnings for jobs that only an operator can pause."""
    return tuple(
        f"job {job} has no hook: pause or stop it before you apply this, and resume it afterwards"
        for job in jobs
        if not hooked(inventory, job) and not _needs_no_pause(inventory, job)
    )


def jobs_to_resume(inventory: Inventory, warnings: Iterable[str], jobs: Iterable[str]) -> list[str]:
    """Those of some jobs that an operator must stop before a plan and resume after it, by the warnings of the plan."""
    warned = set(warnings)
    return [job for job in jobs if warned.intersection(without_hook(inventory, [job]))]


def by_hand(inventory: Inventory, target: str, jobs: Iterable[str]) -> tuple[str, ...]:
    """Jobs that only an operator can stop before their light paths change; none on a simulator, where no job runs."""
    if target == "sim":
        return ()
    known = [job for job in jobs if job in inventory.jobs]
    return tuple(job for job in known if not hooked(inventory, job) and not _needs_no_pause(inventory, job))


def _needs_no_pause(inventory: Inventory, job: str) -> bool:
    return job in inventory.jobs and inventory.jobs[job].needs_no_pause


def may_take_s(inventory: Inventory, job: str) -> float:
    """How long the hook of a job may take for one act, including the status queries before and after."""
    known = inventory.controlled.get(job)
    hook = None if known is None else known.hook
    return 0.0 if hook is None else 3 * (hook.timeout_s + END_S)


def require_hooks(context: Context, jobs: Iterable[str]) -> None:
    """Check that the programs of the jobs' hooks are installed.

    Raises:
        RefusedError: a program is not.
    """
    for job in jobs:
        known = context.inventory.controlled.get(job)
        if known is None or known.hook is None or passed_over(context, job):
            continue
        hook = known.hook
        programs = programs_of(hook)
        for act, argv in programs.items():
            if shutil.which(argv[0]) is None:
                why = "is not executable" if Path(argv[0]).exists() else "is not here"
                what = f"the {act} hook of job {job}" if hook.kind == COMMAND else f"the {hook.kind} hook of job {job}"
                raise RefusedError(
                    f"{what} cannot be run: {argv[0]} {why}",
                    hint="nothing was changed; see `hook` of this job in the inventory",
                )
