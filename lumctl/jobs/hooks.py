"""The hooks of jobs: which there are, what they are told, and what their answers mean.

A hook is told by variables of its environment: ``LUMCTL_JOB``, ``LUMCTL_ACT`` (pause, resume or status),
``LUMCTL_RACK``, ``LUMCTL_TARGET``, ``LUMCTL_RUN``, ``LUMCTL_FAILED`` and ``LUMCTL_SPARES`` (names with commas between
them), and ``LUMCTL_RANKS``: where the job is placed at this moment, as JSON.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lumctl.errors import RefusedError, UnreachableError
from lumctl.inventory.model import Inventory, JobHook
from lumctl.jobs import leash
from lumctl.programs import Ended, run_program
from lumctl.site import Site

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
QUIET = frozenset({PAUSED, STOPPED})
"""States of a job in which its light may move."""
PAUSE, RESUME, STATUS = "pause", "resume", "status"
END_S = 5.0
"""What a hook may take to end, when its time is over."""
SAID_LINES = 5
_AGAIN = "nothing was moved, and the job is as it was: once it can be paused, give the same command again"
BY_SIGNAL = range(129, 193)
"""Exit codes that tell of a hook, or of what it ran, that a signal has ended: it did not say no."""
ON_SIM = "hooks are not run on a simulator: it must not touch the real job (on_sim: true, if it is none)"


class HookRefusedError(RefusedError):
    """A hook said no: the job is as it was."""


class HookFailedError(UnreachableError):
    """A hook did not come to its end, or did not tell: what the job does is not certain."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a hook is told of the run that calls it."""

    run: str = ""
    failed: Sequence[str] = ()
    spares: Sequence[str] = ()


NOBODY = Facts()


class Hooks:
    """The hook of one job, ready to be called."""

    def __init__(self, site: Site, job: str, facts: Facts = NOBODY) -> None:
        self._site, self._job, self._facts = site, job, facts
        known = site.inventory.jobs.get(job)
        if known is None or known.hook is None:
            raise RefusedError(
                f"job {job} has no hook in {site.inventory.path}", hint="pause and resume it by hand, or name its hook"
            )
        self._hook: JobHook = known.hook
        self._rack = known.rack

    def status(self) -> str | None:
        """What the job does: running, paused or stopped; ``None`` where no hook tells.

        Raises:
            HookFailedError: it did not tell.
        """
        if self._hook.status is None:
            return None
        ended = self._call(STATUS, self._hook.status)
        word = (ended.said.split() or [""])[0].lower()
        if ended.late or ended.code or word not in {RUNNING, *QUIET}:
            said = f"its first word is {word[:40]!r}" if word and not ended.code else _how(ended, self._hook.timeout_s)
            raise HookFailedError(
                f"what job {self._job} does is not known: its status hook did not tell ({said})",
                hint="its first word must be running, paused or stopped, and its exit code 0",
            )
        return word

    def pause(self) -> dict[str, str]:
        """Have the job pause, unless it is quiet already; gives what it did before, and what the hook said.

        Raises:
            HookRefusedError: it goes on as before.
            HookFailedError: nobody knows.
        """
        try:
            was = self.status()
        except HookFailedError as error:  # it was only asked
            raise HookRefusedError(error.message, hint=error.hint) from error
        if was in QUIET:
            return {"was": str(was), "is": str(was)}
        ended = self._call(PAUSE, self._hook.pause)
        self._require(ended, PAUSE)
        now = self.status()
        if now == RUNNING:
            raise HookFailedError(f"the pause hook of job {self._job} ended well, and the job is running all the same")
        return {"was": was or RUNNING, "is": now or PAUSED, **_said(ended)}

    def resume(self) -> dict[str, str]:
        """Have the job go on where it is placed now, unless it runs already.

        Raises:
            HookRefusedError: it does not.
            HookFailedError: nobody knows.
        """
        was = self.status()
        if was == RUNNING:
            return {"was": was, "is": was}
        ended = self._call(RESUME, self._hook.resume)
        self._require(ended, RESUME)
        return {"was": was or PAUSED, "is": RUNNING, **_said(ended)}

    def require_quiet(self) -> None:
        """Require that the job is paused or stopped, where a hook can tell.

        Raises:
            RefusedError: it is running.
        """
        if self.status() == RUNNING:
            raise RefusedError(f"job {self._job} is running: it must be paused or stopped before light moves")

    def _require(self, ended: Ended, act: str) -> None:
        if ended.late or ended.code < 0 or ended.code in BY_SIGNAL:
            by_signal = "" if ended.late else "was ended by a signal: "
            raise HookFailedError(f"the {act} hook of job {self._job} {by_signal}{_how(ended, self._hook.timeout_s)}")
        if ended.code:
            raise HookRefusedError(
                f"the {act} hook of job {self._job} said no: {_how(ended, self._hook.timeout_s)}",
                hint=_AGAIN if act == PAUSE else None,
            )

    def _call(self, act: str, argv: Sequence[str]) -> Ended:
        files = self._site.store(self._rack).files
        files.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), str(files / f"hook-{self._job}.lock")]
        return run_program([*held, *argv], timeout_s=self._hook.timeout_s, variables=self._variables(act))

    def _variables(self, act: str) -> Mapping[str, str]:
        placed = self._site.assignment(sound=False)[self._job]
        accelerators = self._site.inventory.accelerators
        ranks = [
            {"rank": rank, "accelerator": name, "host": accelerators[name].host}
            for rank, name in enumerate(placed)
            if name in accelerators
        ]
        return {
            "LUMCTL_JOB": self._job,
            "LUMCTL_ACT": act,
            "LUMCTL_RACK": self._rack,
            "LUMCTL_TARGET": self._site.target,
            "LUMCTL_RUN": self._facts.run,
            "LUMCTL_FAILED": ",".join(self._facts.failed),
            "LUMCTL_SPARES": ",".join(self._facts.spares),
            "LUMCTL_RANKS": json.dumps(ranks),
        }


def hooked(inventory: Inventory, job: str) -> bool:
    """Whether a job has a hook."""
    return job in inventory.jobs and inventory.jobs[job].hook is not None


def passed_over(site: Site, job: str) -> str | None:
    """Why a job's hook is not run on this target; ``None`` if it is run."""
    known = site.inventory.jobs.get(job)
    if site.target != "sim" or (known is not None and known.hook is not None and known.hook.on_sim):
        return None
    return ON_SIM


def never_on_sim(inventory: Inventory) -> Inventory:
    """An inventory whose hooks are run on no simulator: for a drill or a replay on one of its own."""
    jobs = {
        name: replace(job, hook=replace(job.hook, on_sim=False)) if job.hook else job
        for name, job in inventory.jobs.items()
    }
    return replace(inventory, jobs=jobs)


def without_hook(inventory: Inventory, jobs: Iterable[str]) -> tuple[str, ...]:
    """Warnings for jobs that nobody but a person can pause."""
    return tuple(
        f"job {job} has no hook: pause or stop it before you apply this, and resume it afterwards"
        for job in jobs
        if not hooked(inventory, job) and not _needs_no_pause(inventory, job)
    )


def by_hand(inventory: Inventory, target: str, jobs: Iterable[str]) -> tuple[str, ...]:
    """The jobs that only a person can stop before their light moves; on a simulator no job runs."""
    if target == "sim":
        return ()
    known = [job for job in jobs if job in inventory.jobs]
    return tuple(job for job in known if not hooked(inventory, job) and not _needs_no_pause(inventory, job))


def _needs_no_pause(inventory: Inventory, job: str) -> bool:
    return job in inventory.jobs and inventory.jobs[job].needs_no_pause


def may_take_s(inventory: Inventory, job: str) -> float:
    """How long the hook of a job may take for one act, with what it says of its state before and after."""
    hook = inventory.jobs[job].hook if job in inventory.jobs else None
    return 0.0 if hook is None else 3 * (hook.timeout_s + END_S)


def require_hooks(site: Site, jobs: Iterable[str]) -> None:
    """Require of jobs that the programs of their hooks are there.

    Raises:
        RefusedError: one is not.
    """
    for job in jobs:
        known = site.inventory.jobs.get(job)
        if known is None or known.hook is None or passed_over(site, job):
            continue
        hook = known.hook
        for act, argv in ((PAUSE, hook.pause), (RESUME, hook.resume), (STATUS, hook.status)):
            if argv and shutil.which(argv[0]) is None:
                why = "may not be run" if Path(argv[0]).exists() else "is not here"
                raise RefusedError(
                    f"the {act} hook of job {job} cannot be run: {argv[0]} {why}",
                    hint="nothing was touched; see `hook` of this job in the inventory",
                )


def _how(ended: Ended, timeout_s: float) -> str:
    how = f"did not end within {timeout_s:g} s and was ended" if ended.late else f"exit code {ended.code}"
    return how + (f": {_plain(ended.last_line)}" if ended.last_line else "")


def _said(ended: Ended) -> dict[str, str]:
    lines = [_plain(line) for line in ended.said.splitlines() if line.strip()]
    return {"said": "\n".join(lines[-SAID_LINES:])} if lines else {}


def _plain(line: str) -> str:
    """A line of somebody else's program, without what would move a terminal's cursor."""
    return "".join(sign for sign in line.strip()[:500] if sign.isprintable())
