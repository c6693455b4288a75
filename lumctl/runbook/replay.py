"""Replay: the same steps through the change engine again, on a private simulator or on a rack, compared one by one.

On a private simulator a run that failed is replayed up to the failure: it stops before the failed step, and the steps
are undone, as they were then. On a rack and in a drill every step is tried.
"""

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from lumctl.change.engine import Gate, Progress, RunResult, apply, at_once
from lumctl.change.guard import Arm
from lumctl.change.guard import arm as arm_guard
from lumctl.change.plan import Plan, programmed
from lumctl.context import Context
from lumctl.errors import LumctlError, RefusedError, RunError
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import placed_words
from lumctl.runbook.actions import seed_acts
from lumctl.runbook.comparison import Difference, cells_difference, end_difference, first_difference
from lumctl.runbook.difference_text import placed_apart
from lumctl.runbook.document import RecordedStep, Runbook
from lumctl.runbook.inventory_check import require_known
from lumctl.runbook.playback import TO_THE_END, compared, dark_then, played, stopped_at, unreachable_then
from lumctl.runbook.stage import Stage, cells_of, no_guard, seed, staged
from lumctl.store import Act


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """A replay: identical, or where it first differed. Of intents there is nothing to compare with.

    A ``rehearsal`` had a simulator and a store of its own, which are gone: nothing kept its runs, whatever their ids.
    """

    runbook: str
    on: str
    run: str
    outcome: str
    identical: bool | None
    first_difference: Difference | None
    seconds: float
    runs: tuple[str, ...] = ()
    rehearsal: bool = False

    def to_document(self) -> dict[str, Any]:
        """As printed with ``-o json``."""
        return asdict(self) | {"runs": list(self.runs or (self.run,))}


def replay_on_simulator(
    runbook: Runbook, inventory: Inventory, *, progress: Progress, before_step: Gate
) -> ReplayResult:
    """Replay on a simulator of its own, started in the recorded start state and gone afterwards.

    Raises:
        UsageError: the runbook names something that this inventory does not have.
        RefusedError: the engine refuses it: it was edited into what no rack would be let do.
    """
    require_known(runbook, inventory)
    _require_not_adopted(runbook)
    with staged(inventory) as stage:
        for remark in stage.sim.remarks():
            progress(remark)
        return replay_on_stage(runbook, stage, progress=progress, before_step=before_step)


def replay_on_stage(runbook: Runbook, stage: Stage, *, progress: Progress, before_step: Gate = at_once) -> ReplayResult:
    """Replay on a simulator that is there already, from the recorded start state.

    Raises: as :func:`replay_on_simulator`.
    """
    require_known(runbook, stage.inventory)
    _require_not_adopted(runbook)
    with stage.play() as context:
        steps = tuple(recorded.step for recorded in runbook.steps)
        seed(context, runbook.rack, runbook.start, steps, dark=dark_then(runbook, stage.inventory))
        seed_acts(context, runbook.steps)
        return replay_as_it_went(runbook, stage, context, progress=progress, before_step=before_step)


def replay_as_it_went(
    runbook: Runbook, stage: Stage, context: Context, *, progress: Progress, before_step: Gate = at_once
) -> ReplayResult:
    """Replay on a stage in the state before the run, with the hosts unreachable that were so then.

    Raises: as :func:`replay_on_simulator`.
    """
    for host in unreachable_then(runbook, stage.inventory):
        stage.sim.inject(host, "unreachable")
    stop = stopped_at(runbook)
    gate = played(stop, before_step, progress) if stop else before_step
    return replay_here(
        context, runbook, "sim", progress, gate, read_back=f"unix:{stage.sim.control}", arm=no_guard, stop=stop
    )


def replay_on_rack(
    runbook: Runbook, context: Context, *, progress: Progress, before_step: Gate, stopped_by: str | None = None
) -> ReplayResult:
    """Replay on a rack (or on its running simulator), if it is in the state before the run.

    ``stopped_by`` is who confirmed that jobs without a hook are stopped.

    Raises:
        UsageError: the runbook names something that this inventory does not have.
        RefusedError: the rack's state differs; the message names the first difference. Or the runbook changes policies,
            which are changed elsewhere.
    """
    require_known(runbook, context.inventory)
    _require_not_adopted(runbook)
    if any(recorded.step.data.get("act") == Act.POLICY for recorded in runbook.steps):
        raise RefusedError(
            f"{runbook.id} ({runbook.title}) only wrote down what was changed: a replay on a rack would not change it",
            hint="edit `policies:` in the inventory, or see: lumctl autopilot --help",
        )
    difference = start_difference(runbook, context)
    if difference is not None:
        raise RefusedError(
            f"{runbook.id} does not start where the rack stands: {difference.what} is {difference.replayed}, "
            f"recorded was {difference.recorded}",
            hint=f"to do the same from where it stands: lumctl runbook export {runbook.id} --as-template",
        )
    return replay_here(context, runbook, runbook.rack, progress, before_step, stopped_by=stopped_by)


def _require_not_adopted(runbook: Runbook) -> None:
    """What an adoption wrote down is true of the light that it read, and of no other.

    Raises:
        RefusedError: it is one.
    """
    if any("doubted" in recorded.step.data for recorded in runbook.steps):
        raise RefusedError(
            f"{runbook.id} ({runbook.title}) only wrote down what the light showed: there is nothing to do again",
            hint="to record what it shows now: lumctl store adopt",
        )


def start_difference(runbook: Runbook, context: Context) -> Difference | None:
    """The first job that runs elsewhere than before the run, or device whose states differ.

    A device with uncertain states is left to the engine, which refuses it with a reason.
    """
    standing = context.assignment()
    for job, ranks in runbook.start.assignment.items():
        if standing.get(job, ()) != ranks:
            return Difference("start", f"where {placed_words(job)}", *placed_apart(job, ranks, standing.get(job, ())))
    for device, recorded in cells_of(runbook.start, context.inventory).items():
        held = context.known_cells(device)
        if held and held != recorded:
            return cells_difference("start", device, recorded, held)
    return None


def replay_here(  # noqa: PLR0913 - how it is done, and where
    context: Context,
    runbook: Runbook,
    on: str,
    progress: Progress,
    before_step: Gate,
    *,
    read_back: str | None = None,
    arm: Arm = arm_guard,
    stop: RecordedStep | None = None,
    stopped_by: str | None = None,
) -> ReplayResult:
    """Do a runbook's steps on a context and compare the result; ``stop`` is the step before which it ends.

    ``read_back`` reads the real states of the meshes on the simulator of a rehearsal; ``None`` on a rack.
    """
    store = context.store(runbook.rack)
    result: RunResult | None = None
    failure: LumctlError | None = None
    known = {run.id for run in store.runs.all()}
    plan, begun_s = plan_again(context, runbook), perf_counter()
    try:
        result = apply(context, plan, progress=progress, before_step=before_step, stopped_by=stopped_by, arm=arm)
        run = result.run
    except LumctlError as error:
        begun = [each.id for each in store.runs.all() if each.id not in known]
        if not isinstance(error, RunError) and (stop is None or not begun):
            error.message = error.message.replace(plan.id, runbook.id)  # that plan is known to no other process
            raise
        failure, run = error, error.run if isinstance(error, RunError) else begun[0]
    state = store.runs.get(run).state
    difference = first_difference(compared(runbook, stop), store, run) or end_difference(context, runbook, read_back)
    if difference is None:
        difference = _other_end(runbook, state, failure)
    seconds = result.seconds if result else round(perf_counter() - begun_s, 4)
    rehearsal = read_back is not None
    return ReplayResult(runbook.id, on, run, state, difference is None, difference, seconds, rehearsal=rehearsal)


def _other_end(runbook: Runbook, state: str, failure: LumctlError | None) -> Difference | None:
    """The run came to another end, though every step that it did was the same."""
    recorded = "done" if runbook.outcome in TO_THE_END else runbook.outcome
    if recorded == state:
        return None
    return Difference("end", "outcome", recorded, f"{state}: {failure.message}" if failure else state)


def plan_again(context: Context, runbook: Runbook) -> Plan:
    """The plan by which the recorded steps are done again."""
    return Plan(
        kind="replay",
        title=f"replay of {runbook.id} ({runbook.title})",
        rack=runbook.rack,
        target=context.target,
        created_at=context.now(),
        inventory_digest=context.inventory.digest,
        start=runbook.start,
        replacements=runbook.replacements,
        add=runbook.add,
        remove=runbook.remove,
        keep=runbook.keep,
        changes=programmed(recorded.step for recorded in runbook.steps),
        steps=tuple(recorded.step for recorded in runbook.steps),
    ).sealed()
