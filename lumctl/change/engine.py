"""Apply a plan under a lease: journal each step before and after it, prove the light, undo in reverse on a failure.

Every intent is on disk before its step acts. If the process is killed at any point, the journal therefore names every
step that may have acted. A revert guard undoes them from the journal; if the guard is gone too, ``swap resume RUN``
continues the run or ``swap abort RUN`` undoes it.

A step acts in ``run.act``, by the action that ``step_actions.ACTIONS`` has for it; one that writes to a mesh or switch
calls :func:`lumctl.devices.transaction.write`, which calls the driver.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lumctl.change import preconditions
from lumctl.change.approval import require_approved
from lumctl.change.disturbance import require_stopped
from lumctl.change.guard import Arm
from lumctl.change.guard import arm as arm_guard
from lumctl.change.guard_scope import GuardScope, guarded
from lumctl.change.interrupts import (
    LEASE_TERM_S,
    hold_back_interrupts,
    kept_alive,
    let_interrupts_in,
    pass_over_interrupts,
    stopping_undoes,
    undisturbed,
)
from lumctl.change.light_proof import Proof
from lumctl.change.origin import origin
from lumctl.change.plan import Plan, Step, stages
from lumctl.change.run import RunInProgress
from lumctl.change.run_end import close, stopped
from lumctl.change.run_journal import StepResult, proofs_in, silent_in
from lumctl.change.step_actions import REVERT_AFTER_S
from lumctl.context import Context
from lumctl.store import StoreError

Progress = Callable[[str], None]
Gate = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class StepDuration:
    """What a step did (``check``, ``program``, ...), its title, and its duration."""

    name: str
    title: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run: its id, the duration of each step, the circuits proved, and those that could not be checked.

    ``seconds`` are those of :attr:`lumctl.store.StoredRun.seconds`.
    """

    run: str
    plan: Plan
    outcome: str
    stages: tuple[StepDuration, ...]
    verified: tuple[Proof, ...]
    seconds: float
    silent: tuple[str, ...] = ()
    """Kept circuits that could not be checked because one of their hosts does not answer."""


def _silent(_line: str) -> None:
    return None


def at_once(_step: Step) -> None:
    """Allow every step to begin."""


def wanted() -> None:
    """Allow every run to begin."""


def apply(  # noqa: PLR0913 - each controls how a run is reported, gated, stopped or guarded
    context: Context,
    plan: Plan,
    *,
    progress: Progress = _silent,
    before_step: Gate = at_once,
    who: str | None = None,
    stopped_by: str | None = None,
    revert_after_s: float = REVERT_AFTER_S,
    arm: Arm = arm_guard,
    require_wanted: Callable[[], None] = wanted,
) -> RunResult:
    """Apply a plan. ``before_step`` is called before each step; if it raises, the run stops and is undone.

    ``require_wanted`` is called once, between the record of the run and its first step; it may raise an error to refuse
    the run. A stop command first records the stop and then lists runs, so at least one side always sees the other.

    ``stopped_by`` is the operator who stated that all jobs without a hook are stopped if their light paths change.

    Devices without a revert timer are covered by a guard. The guard is a process that undoes the run if this process
    dies, or if it does nothing for ``revert_after_s`` plus twice the light deadline.

    Raises:
        RefusedError: a precondition does not hold, or no guard can be started; nothing was done.
        RolledBackError: a step failed; everything is undone.
        HalfDoneError: a step failed and so did its undo; the journal lists what is still in force.
    """
    store = context.store(plan.rack)
    who = who or origin()
    preconditions.require_none_cut(context, plan)  # our lease would keep an interrupted run's guard from undoing it
    lease = store.leases.acquire(plan.rack, who, term_s=LEASE_TERM_S, now=context.now())
    try:
        with kept_alive(store, lease, context.now), stopping_undoes():
            # The plan is checked under the lease, so that its preconditions still hold at the first step.
            context.act_under(lease)
            preconditions.require(context, plan)
            is_approved = require_approved(context, plan, who)
            said = require_stopped(context, plan, stopped_by)
            say, silent_s = unfailing(progress), revert_after_s + 2 * context.inventory.thresholds.light_deadline_s
            with guarded(context, plan, lease, silent_s, arm=arm, progress=say) as scope:
                hold_back_interrupts()
                scope.require_watched()
                if is_approved:
                    # Before the run: an approval allows one run, also if this process dies in the middle of it.
                    store.approvals.spend(plan.digest, why="applied", by=who, at=context.now())
                run = RunInProgress.begun(context, plan, store, lease, who, scope)
                run.journal.vouched(said)
                return execute(run, scope, say, before_step, plan.steps, require_wanted)
    finally:
        with suppress(StoreError):  # the lease expires by itself
            store.leases.release(lease)


def execute(
    run: RunInProgress,
    scope: GuardScope,
    progress: Progress,
    before_step: Gate,
    steps: Sequence[Step],
    require_wanted: Callable[[], None] = wanted,
) -> RunResult:
    """Do these steps of a run, then end the run.

    Raises: as :func:`apply`.
    """
    run.narrate(progress)
    durations: list[StepDuration] = []
    gated = before_step is not at_once

    def tell(ended: list[StepResult]) -> None:
        """Report steps whose outcomes are on disk."""
        for did in ended:
            durations.append(StepDuration(did.step.do.value, did.step.title, round(did.seconds, 4)))
            progress(f"{did.step.id}. {did.step.title}: {did.remark or f'{did.seconds:.2f} s'}")

    ended: list[StepResult] = []
    failure: BaseException | None = None
    try:
        try:
            let_interrupts_in()
            require_wanted()
            # An operator who confirms each step is asked about one step at a time.
            for stage in ((step,) for step in steps) if gated else stages(steps):
                if gated:
                    # The answer may take minutes; until then no outcome may exist only in this process.
                    run.journal.settle()
                    tell(ended)
                    ended = []
                    scope.asked()
                    before_step(stage[0])
                run.intend(stage)
                tell(ended)
                ended = run.act(stage)
        except BaseException as error:  # noqa: BLE001 - after any failure the run is ended below
            failure = error
        pass_over_interrupts()
    except KeyboardInterrupt as interrupt:  # it came just before interrupts were ignored; no second one is raised
        failure = interrupt
    with undisturbed():
        if failure is not None:
            raise stopped(run, failure, progress, scope) from failure
        close(run, scope)
    tell(ended)
    light, seconds = run.evidence(), run.journal.seconds
    return RunResult(run.id, run.plan, "done", tuple(durations), proofs_in(light), seconds, silent_in(light))


def unfailing(progress: Progress) -> Progress:
    """Ignore errors in reporting progress: a closed pipe (``| head``) must stop neither a run nor its undo."""

    def say(line: str) -> None:
        with suppress(Exception):
            progress(line)

    return say
