"""The engine: lease, intent before act, outcome after, proof of light, and undo in reverse when anything fails.

Every intent is on disk before its step acts. Killed at any point, the journal therefore names every step that may
have acted, and ``swap rollback RUN`` takes them back from there.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from lumctl.change import preconditions
from lumctl.change.heartbeat import LEASE_TERM_S, kept_alive
from lumctl.change.interrupts import stopping_undoes, undisturbed
from lumctl.change.light import Proof
from lumctl.change.origin import origin
from lumctl.change.plan import Plan, Step
from lumctl.change.run import Run
from lumctl.errors import HalfDoneError, LumctlError, RolledBackError
from lumctl.site import Site
from lumctl.store import StoreError

Progress = Callable[[str], None]
Gate = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class Phase:
    """A step as it went: what it did (``check``, ``program``, ...), its title, and how long it took."""

    name: str
    title: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run that was done: its id, the time of each step, and the light that was proved."""

    run: str
    plan: Plan
    outcome: str
    phases: tuple[Phase, ...]
    verified: tuple[Proof, ...]
    seconds: float


def _silent(_line: str) -> None:
    return None


def at_once(_step: Step) -> None:
    """A gate that is always open."""


def apply(
    site: Site, plan: Plan, *, progress: Progress = _silent, before_step: Gate = at_once, who: str | None = None
) -> RunResult:
    """Apply a plan. ``before_step`` is called before each step and may raise to stop the run, which is then undone.

    Raises:
        RefusedError: a precondition does not hold; nothing was done.
        RolledBackError: a step failed; all that was done is undone.
        HalfDoneError: a step failed and so did its undo; the journal says what stands.
    """
    store = site.store(plan.rack)
    who = who or origin()
    lease = store.acquire(plan.rack, who, term_s=LEASE_TERM_S, now=site.now())
    try:
        with kept_alive(store, lease, site.now), stopping_undoes():
            # Under the lease: what holds now holds until the first step.
            preconditions.require(site, plan)
            return _execute(Run(site, plan, store, lease, who), _unfailing(progress), before_step)
    finally:
        with suppress(StoreError):  # it ends by itself
            store.release(lease)


def _execute(run: Run, progress: Progress, before_step: Gate) -> RunResult:
    started = perf_counter()
    phases: list[Phase] = []
    try:
        for step in run.plan.steps:
            before_step(step)
            begun = perf_counter()
            remark = run.perform(step)
            phases.append(Phase(step.do.value, step.title, round(perf_counter() - begun, 4)))
            progress(f"{step.id}. {step.title}: {remark or f'{phases[-1].seconds:.2f} s'}")
    except BaseException as failure:
        with undisturbed():
            raise _taken_back(run, failure, progress) from failure
    with undisturbed():
        _close(run, perf_counter() - started)
    return RunResult(run.id, run.plan, "done", tuple(phases), run.proofs(), round(perf_counter() - started, 4))


def _close(run: Run, seconds: float) -> None:
    """Every step is done and journalled: nothing is undone any more, whatever happens to the last entry."""
    try:
        run.end("done", {"seconds": round(seconds, 4)}, undid=run.plan.undoes)
    except LumctlError as error:
        raise HalfDoneError(
            f"every step of {run.id} is done, but it could not be closed: {error.message}",
            run=run.id,
            hint=f"look at it: lumctl swap show {run.id}",
        ) from error


def _taken_back(run: Run, failure: BaseException, progress: Progress) -> LumctlError:
    """Undo a run that failed, and say as an error how that went."""
    reason = _reason(failure)
    if not run.touched and isinstance(failure, LumctlError):
        with suppress(LumctlError):
            run.end("refused", {"failed": reason})
        return failure
    progress(f"failed: {reason}; undoing")
    troubles = run.undo()
    if not troubles:
        try:
            run.end("rolled-back", {"failed": reason})
        except LumctlError as error:
            troubles = [error.message]
        else:
            return RolledBackError(f"{run.id} failed and was rolled back: {reason}", run=run.id)
    with suppress(LumctlError):
        run.end("half-done", {"failed": reason, "undo_failed": troubles})
    if run.wrote_whole:
        hint = "mend what is dark; the cells stay as programmed. Where their state is not certain: lumctl fabric apply"
    else:
        hint = f"look at it: lumctl runbook show {run.id}; then: lumctl swap rollback {run.id}"
    return HalfDoneError(
        f"{run.id} failed ({reason}) and is left half done: {'; '.join(troubles)}", run=run.id, hint=hint
    )


def _reason(failure: BaseException) -> str:
    if isinstance(failure, LumctlError):
        return failure.message
    if isinstance(failure, KeyboardInterrupt):
        return "it was interrupted"
    return f"unexpected {type(failure).__name__}: {failure}"


def _unfailing(progress: Progress) -> Progress:
    """Whoever listens may be gone (``| head``): that is no reason to stop, and no reason not to undo."""

    def say(line: str) -> None:
        with suppress(Exception):
            progress(line)

    return say
