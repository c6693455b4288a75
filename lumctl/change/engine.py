"""The engine: lease, intent before act, outcome after, proof of light, and undo in reverse when anything fails.

Every intent is on disk before its step acts. Killed at any point, the journal therefore names every step that may
have acted: a revert guard takes them back from there, and where that is gone too, ``swap rollback RUN`` does.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from lumctl.change import preconditions
from lumctl.change.guard import Arm
from lumctl.change.guard import arm as arm_guard
from lumctl.change.guarded import Cover, guarded
from lumctl.change.heartbeat import LEASE_TERM_S, kept_alive
from lumctl.change.interrupts import stopping_undoes, undisturbed
from lumctl.change.light import Proof
from lumctl.change.origin import origin
from lumctl.change.plan import Plan, Step
from lumctl.change.run import Run
from lumctl.change.steps import REVERT_AFTER_S
from lumctl.errors import HalfDoneError, LumctlError, RolledBackError, RunError
from lumctl.site import Site
from lumctl.store import LeaseLostError, StoreError

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
    site: Site,
    plan: Plan,
    *,
    progress: Progress = _silent,
    before_step: Gate = at_once,
    who: str | None = None,
    revert_after_s: float = REVERT_AFTER_S,
    arm: Arm = arm_guard,
) -> RunResult:
    """Apply a plan. ``before_step`` is called before each step and may raise to stop the run, which is then undone.

    What has no revert timer of its own is covered by a guard, a process that takes the run back if this one dies, or
    does nothing for ``revert_after_s`` beyond twice the light's deadline.

    Raises:
        RefusedError: a precondition does not hold, or no guard can be started; nothing was done.
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
            say, silent_s = _unfailing(progress), revert_after_s + 2 * site.inventory.thresholds.light_deadline_s
            with guarded(site, plan, lease, silent_s, arm=arm, progress=say) as cover:
                return _execute(Run.begun(site, plan, store, lease, who, cover), cover, say, before_step)
    finally:
        with suppress(StoreError):  # it ends by itself
            store.release(lease)


def _execute(run: Run, cover: Cover, progress: Progress, before_step: Gate) -> RunResult:
    started = perf_counter()
    phases: list[Phase] = []
    try:
        for step in run.plan.steps:
            if before_step is not at_once:
                cover.asked()
            before_step(step)
            begun = perf_counter()
            remark = run.perform(step)
            phases.append(Phase(step.do.value, step.title, round(perf_counter() - begun, 4)))
            progress(f"{step.id}. {step.title}: {remark or f'{phases[-1].seconds:.2f} s'}")
    except BaseException as failure:
        with undisturbed():
            raise _stopped(run, failure, progress, cover) from failure
    with undisturbed():
        _close(run, cover, perf_counter() - started)
    return RunResult(run.id, run.plan, "done", tuple(phases), run.proofs(), round(perf_counter() - started, 4))


def _close(run: Run, cover: Cover, seconds: float) -> None:
    """Every step is done and journalled: nothing is undone any more, whatever happens to the last entry."""
    try:
        run.end("done", {"seconds": round(seconds, 4)}, undid=run.plan.undoes)
    except LumctlError as error:
        if (state := _guards_end(run, cover)) is not None:
            if state == "done":
                return  # by the guard, as it should be
            raise _overtaken(run, state) from error
        raise HalfDoneError(
            f"every step of {run.id} is done, but it could not be closed: {error.message}",
            run=run.id,
            hint=f"look at it: lumctl swap show {run.id}",
        ) from error


def _stopped(run: Run, failure: BaseException, progress: Progress, cover: Cover) -> LumctlError:
    """End a run that failed, and say as an error how that went."""
    if isinstance(failure, LeaseLostError) and (state := _guards_end(run, cover)) is not None:
        return _overtaken(run, state)
    if isinstance(failure, LumctlError) and not run.touched:
        with suppress(LumctlError):
            run.end("refused", {"failed": failure.message})
        return failure
    progress(f"failed: {_reason(failure)}; undoing")
    error = taken_back(run, _reason(failure))
    state = _guards_end(run, cover)
    return error if state is None else _overtaken(run, state)


def taken_back(run: Run, reason: str) -> RunError:
    """Undo a run, end it, and say as an error how that went."""
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
        hint = f"look at it: lumctl runbook show {run.id}; then: lumctl swap rollback {run.plan.undoes or run.id}"
    return HalfDoneError(
        f"{run.id} failed ({reason}) and is left half done: {'; '.join(troubles)}", run=run.id, hint=hint
    )


def _guards_end(run: Run, cover: Cover) -> str | None:
    """In which state the run's guard has left it; ``None`` if no guard has shut this engine out."""
    if cover.guard is None or not run.overtaken:
        return None
    cover.guard.finish()
    run.doubt()  # it may have acted after the guard did
    with suppress(StoreError):
        return run.state
    return "running"


def _overtaken(run: Run, state: str) -> RunError:
    """What an engine has to say that was silent for so long that its guard has taken the run over."""
    said = f"{run.id} stood still for so long that its revert guard took it over: it is {state}"
    if run.adrift is None and state == "rolled-back":
        return RolledBackError(said, run=run.id)
    hint = f"look at it: lumctl swap show {run.id}"
    if run.adrift is not None:
        said += f"; and what stood still was {run.adrift.title!r}: it may have acted after that"
        hint += "; where a device is not certain now: lumctl fabric apply"
    return HalfDoneError(said, run=run.id, hint=hint)


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
