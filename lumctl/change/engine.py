"""The engine: lease, intent before act, outcome after, proof of light, and undo in reverse when anything fails.

Every intent is on disk before its step acts. Killed at any point, the journal therefore names every step that may
have acted: a revert guard takes them back from there, and where that is gone too, ``swap resume RUN`` goes on with
them or ``swap abort RUN`` takes them back.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from lumctl.change import preconditions
from lumctl.change.approval import require_approved
from lumctl.change.guard import Arm
from lumctl.change.guard import arm as arm_guard
from lumctl.change.guarded import Cover, guarded
from lumctl.change.heartbeat import LEASE_TERM_S, kept_alive
from lumctl.change.interrupts import stopping_undoes, undisturbed
from lumctl.change.light import Proof
from lumctl.change.origin import origin
from lumctl.change.outcomes import Did
from lumctl.change.plan import Plan, Step, stages
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
    preconditions.require_none_cut(site, plan)  # a lease taken in vain would keep its guard from its work
    lease = store.acquire(plan.rack, who, term_s=LEASE_TERM_S, now=site.now())
    try:
        with kept_alive(store, lease, site.now), stopping_undoes():
            # Under the lease: what holds now holds until the first step.
            preconditions.require(site, plan)
            require_approved(site, plan, who)
            say, silent_s = unfailing(progress), revert_after_s + 2 * site.inventory.thresholds.light_deadline_s
            with guarded(site, plan, lease, silent_s, arm=arm, progress=say) as cover:
                return execute(Run.begun(site, plan, store, lease, who, cover), cover, say, before_step, plan.steps)
    finally:
        with suppress(StoreError):  # it ends by itself
            store.release(lease)


def execute(run: Run, cover: Cover, progress: Progress, before_step: Gate, steps: Sequence[Step]) -> RunResult:
    """Do the steps of a run that are to be done, and end it.

    Raises: as :func:`apply`.
    """
    started = perf_counter()
    phases: list[Phase] = []
    gated = before_step is not at_once

    def tell(ended: list[Did]) -> None:
        """Each of these is on disk."""
        for did in ended:
            phases.append(Phase(did.step.do.value, did.step.title, round(did.seconds, 4)))
            progress(f"{did.step.id}. {did.step.title}: {did.remark or f'{did.seconds:.2f} s'}")

    try:
        ended: list[Did] = []
        # Who is asked before each step is asked about that step alone.
        for stage in ((step,) for step in steps) if gated else stages(steps):
            if gated:
                run.ledger.settle()
                tell(ended)
                ended = []
                cover.asked()
                before_step(stage[0])
            run.intend(stage)
            tell(ended)
            ended = run.act(stage)
    except BaseException as failure:
        with undisturbed():
            raise _stopped(run, failure, progress, cover) from failure
    with undisturbed():
        _close(run, cover, perf_counter() - started)
    tell(ended)
    return RunResult(run.id, run.plan, "done", tuple(phases), run.proofs(), round(perf_counter() - started, 4))


def _close(run: Run, cover: Cover, seconds: float) -> None:
    """Every step is done: nothing is undone any more, whatever happens to the last entries."""
    try:
        _end_as_done(run, seconds)
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
    if idle := run.not_resumed:
        told = "; ".join(f"job {job} was not resumed: {why}" for job, why in idle.items())
        raise HalfDoneError(
            f"{run.id}: all light is where it should be and stays there, but {told}",
            run=run.id,
            hint=f"when it can be resumed, or was by hand: lumctl swap resume {run.id}",
        )


def _end_as_done(run: Run, seconds: float) -> None:
    """A transaction may have been lost on the way to its database, or only the word that it was made."""
    try:
        run.close(seconds)
    except StoreError as error:
        try:
            state = run.ledger.state
        except StoreError:
            raise error from None
        if state == "running":
            run.close(seconds)


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
        hint = f"look at it: lumctl swap show {run.id}; then: lumctl swap resume {run.id} or swap abort {run.id}"
    return HalfDoneError(
        f"{run.id} failed ({reason}) and is left half done: {'; '.join(troubles)}", run=run.id, hint=hint
    )


def _guards_end(run: Run, cover: Cover) -> str | None:
    """In which state the run's guard has left it; ``None`` if no guard has shut this engine out."""
    if cover.guard is None or not run.ledger.overtaken:
        return None
    cover.guard.finish()
    run.ledger.doubt()  # it may have acted after the guard did
    with suppress(StoreError):
        return run.ledger.state
    return "running"


def _overtaken(run: Run, state: str) -> RunError:
    """What an engine has to say that was silent for so long that its guard has taken the run over."""
    said = f"{run.id} stood still for so long that its revert guard took it over: it is {state}"
    if not run.ledger.adrift and state == "rolled-back":
        return RolledBackError(said, run=run.id)
    hint = f"look at it: lumctl swap show {run.id}"
    if run.ledger.adrift:
        named = " and ".join(repr(step.title) for step in run.ledger.adrift[:2])
        more = f" and {len(run.ledger.adrift) - 2} more" if len(run.ledger.adrift) > 2 else ""  # noqa: PLR2004
        said += f"; and what stood still was {named}{more}: it may have acted after that"
        hint += "; where a device is not certain now: lumctl fabric apply"
    return HalfDoneError(said, run=run.id, hint=hint)


def _reason(failure: BaseException) -> str:
    if isinstance(failure, LumctlError):
        return failure.message
    if isinstance(failure, KeyboardInterrupt):
        return "it was interrupted"
    return f"unexpected {type(failure).__name__}: {failure}"


def unfailing(progress: Progress) -> Progress:
    """Whoever listens may be gone (``| head``): that is no reason to stop, and no reason not to undo."""

    def say(line: str) -> None:
        with suppress(Exception):
            progress(line)

    return say
