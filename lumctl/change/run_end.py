"""The end of a run: done, rolled back, half done, or taken over by another process; an error if it failed."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lumctl.change.guard_scope import GuardScope
from lumctl.change.run import RunInProgress
from lumctl.errors import HalfDoneError, LumctlError, RefusedError, RolledBackError, RunError
from lumctl.store import LeaseLostError, StoreError, ways_to_finish


def close(run: RunInProgress, scope: GuardScope) -> None:
    """Close a run whose every step is done. From here nothing is undone, even if the last entries cannot be written."""
    try:
        _end_as_done(run)
    except LumctlError as error:
        if (state := _guards_end(run, scope)) is not None:
            if state == "done":
                return  # closed by the guard, which is correct
            raise _overtaken(run, state) from error
        if isinstance(error, StoreError):
            run.journal.leave()
        raise HalfDoneError(
            f"every step of {run.id} is done, but the run could not be closed: {error.message}",
            run=run.id,
            hint=_first(
                error, f"once the store is writable again: lumctl swap resume {run.id} --target {run.plan.target}"
            ),
        ) from error
    if idle := run.not_resumed:
        reasons = "; ".join(f"job {job} was not resumed: {why}" for job, why in idle.items())
        raise HalfDoneError(
            f"{run.id}: all light paths are as planned and stay so, but {reasons}",
            run=run.id,
            hint=(
                f"once the job can be resumed, or was resumed by hand: lumctl swap resume {run.id} --target "
                f"{run.plan.target}"
            ),
        )


def _end_as_done(run: RunInProgress) -> None:
    """Write the end; if that fails and the run is still open, write it again.

    The state is read before the second attempt: perhaps the write succeeded and only the database's answer was lost.
    """
    try:
        run.close()
    except StoreError as error:
        try:
            state = run.journal.state
        except StoreError:
            raise error from None
        if state == "running":
            run.close()


def stopped(
    run: RunInProgress, failure: BaseException, progress: Callable[[str], None], scope: GuardScope
) -> LumctlError:
    """End a failed run; return the error that describes the result."""
    if isinstance(failure, LeaseLostError) and (state := _guards_end(run, scope)) is not None:
        return _overtaken(run, state)
    if isinstance(failure, LumctlError) and not run.touched:
        _end(run, "refused", {"failed": failure.message})
        if isinstance(failure, RefusedError):
            failure.hint = failure.hint or run.again()
        return failure
    progress(f"failed: {_reason(failure)}; undoing")
    error = rolled_back(run, _reason(failure))
    state = _guards_end(run, scope)
    return error if state is None else _overtaken(run, state)


def rolled_back(run: RunInProgress, reason: str) -> RunError:
    """Undo a run and end it; return the error that describes the result."""
    troubles = run.undo()
    if not troubles:
        try:
            pucs = list(run.stuck or run.suspects)
            run.end(run.undone_as, {"failed": reason, **({"pucs": pucs} if pucs else {})})
        except LumctlError as error:
            troubles = [error.message]
        else:
            return RolledBackError(f"{run.id} failed and was rolled back: {reason}", run=run.id, hint=_after_undo(run))
    unwritten = _end(run, "half-done", {"failed": reason, "undo_failed": troubles})
    target = run.plan.target
    if run.wrote_whole:
        hint = (
            f"the cells stay as programmed; repair the dark paths, then: lumctl swap resume {run.id} --target {target}"
        )
    else:
        hint = f"see what is left: lumctl swap show {run.id} --target {target}; then: {ways_to_finish(run.id, target)}"
    return HalfDoneError(
        f"{run.id} failed ({reason}) and is left half done: {'; '.join(troubles)}",
        run=run.id,
        hint=_first(unwritten, hint),
    )


def _end(run: RunInProgress, state: str, data: Mapping[str, Any]) -> LumctlError | None:
    """Close a run, or leave it half done if the store cannot be written; return why it could not be closed."""
    try:
        run.end(state, data)
    except LumctlError as error:
        if isinstance(error, StoreError):
            run.journal.leave()
        return error
    return None


def _first(error: LumctlError | None, hint: str) -> str:
    """The hint, after the advice that makes the store writable again."""
    return f"{error.remedy}; {hint}" if isinstance(error, StoreError) and error.remedy else hint


def _after_undo(run: RunInProgress) -> str | None:
    """What to do after a run that was rolled back: find what failed, and plan again."""
    again, look = run.again(), f"lumctl status --target {run.plan.target}"
    if again is None:
        return None
    if not run.stuck:
        lost = f"; if it shows nothing, {one_of(run.suspects)} may be stuck" if run.suspects else ""
        around = ", and it gives a plan around it" if lost and run.plan.replacements else ""
        return f"see what is faulty: {look}; repair it, then {again}{lost}{around}"
    # After the undo it is in the recorded state, so that no reading shows that it is stuck.
    what, device = f"{', '.join(run.stuck)} did not take the written state", run.stuck[0].partition("/")[0]
    damaged = ", ".join(puc.rpartition("/")[2] for puc in run.stuck if puc.startswith(f"{device}/"))
    lasting = f"add `damaged: [{damaged}]` to {device} in the inventory"
    if run.plan.replacements:
        return f"{what}: see the plan around it: {look}; if the fault lasts, {lasting}"
    return f"{what}: repair it, or {lasting}; then {again}"


def one_of(pucs: Sequence[str]) -> str:
    """The PUCs of which one may be stuck, in words."""
    return f"one of the PUCs {', '.join(pucs)}" if pucs[1:] else pucs[0]


def _guards_end(run: RunInProgress, scope: GuardScope) -> str | None:
    """The state of a run that a guard or an operator has taken over; ``None`` if neither has."""
    if not run.journal.overtaken:
        return None
    if scope.guard is not None and run.journal.taken_over_by is None:
        scope.guard.finish()
    run.journal.doubt()  # a step of this engine may have acted after the guard
    with suppress(StoreError):
        return run.journal.state
    return "running"


def _overtaken(run: RunInProgress, state: str) -> RunError:
    """The error of an engine that was silent for so long that its guard or an operator took over the run."""
    by_hand = run.journal.taken_over_by
    whom = (
        "its revert guard took over the run"
        if by_hand is None
        else f"{by_hand[0]} took over the run with swap {by_hand[1]}"
    )
    said = f"{run.id} wrote nothing to the journal for so long that {whom}: it is {state}"
    if not run.journal.adrift and state == "rolled-back":
        return RolledBackError(said, run=run.id, hint=run.again())
    hint = f"see what it did: lumctl swap show {run.id} --target {run.plan.target}"
    if run.journal.adrift:
        named = " and ".join(repr(step.title) for step in run.journal.adrift[:2])
        more = f" and {len(run.journal.adrift) - 2} more" if len(run.journal.adrift) > 2 else ""  # noqa: PLR2004
        said += f"; the silent step {named}{more} may have changed something after that"
        apply = f"lumctl fabric apply --rack {run.plan.rack} --target {run.plan.target}"
        hint += f"; then program the uncertain devices: {apply}"
    return HalfDoneError(said, run=run.id, hint=hint)


def _reason(failure: BaseException) -> str:
    if isinstance(failure, LumctlError):
        return failure.message
    if isinstance(failure, KeyboardInterrupt):
        return "it was interrupted"
    return f"unexpected {type(failure).__name__}: {failure}"
