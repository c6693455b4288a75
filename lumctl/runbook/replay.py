"""Replay: does a run's steps again through the change engine, on a private simulator or a rack, and compares them.

On a private simulator, a failed run is replayed up to the failure: the replay stops before the failed step and undoes
its steps, as the run did. On a rack and in a drill every step is tried.
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
    """A replay: identical, or its first difference. Intents have no recording to compare with.

    A ``rehearsal`` used a private simulator and store, which were removed, so its runs cannot be found by their ids.
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
        """The result as printed with ``-o json``."""
        return asdict(self) | {"runs": list(self.runs or (self.run,))}


def replay_on_simulator(
    runbook: Runbook, inventory: Inventory, *, progress: Progress, before_step: Gate
) -> ReplayResult:
    """Replay on a private simulator, which starts in the recorded start state and ends with the replay.

    Raises:
        UsageError: the runbook names something that this inventory does not have.
        RefusedError: the engine refuses the runbook: after edits it contains steps that are allowed on no rack.
    """
    require_known(runbook, inventory)
    _require_not_adopted(runbook)
    with staged(inventory) as stage:
        for remark in stage.sim.remarks():
            progress(remark)
        return replay_on_stage(runbook, stage, progress=progress, before_step=before_step)


def replay_on_stage(runbook: Runbook, stage: Stage, *, progress: Progress, before_step: Gate = at_once) -> ReplayResult:
    """Replay on an existing simulator, from the recorded start state.

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
    """Replay on a stage in the state before the run, with the same unreachable hosts as in the recording.

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
        RefusedError: the rack's state differs (the message names the first difference), or the runbook changes
            policies, which cannot be replayed on a rack.
    """
    require_known(runbook, context.inventory)
    _require_not_adopted(runbook)
    if any(recorded.step.data.get("act") == Act.POLICY for recorded in runbook.steps):
        raise RefusedError(
            f"{runbook.id} ({runbook.title}) only recorded what was changed: a replay on a rack would not change it",
            hint="edit `policies:` in the inventory, or see: lumctl autopilot --help",
        )
    difference = start_difference(runbook, context)
    if difference is not None:
        raise RefusedError(
            f"{runbook.id} starts from another state than the rack has now: {difference.what} is "
            f"{difference.replayed}, but {difference.recorded} was recorded",
            hint=f"to do the same from the present state: lumctl runbook export {runbook.id} --as-template --out FILE",
        )
    return replay_here(context, runbook, runbook.rack, progress, before_step, stopped_by=stopped_by)


def _require_not_adopted(runbook: Runbook) -> None:
    """Refuse the runbook of an adoption: its record is valid only for the light that it read.

    Raises:
        RefusedError: the runbook is the record of an adoption.
    """
    if any("doubted" in recorded.step.data for recorded in runbook.steps):
        raise RefusedError(
            f"{runbook.id} ({runbook.title}) only recorded what the light showed: there is nothing to repeat",
            hint="to record what it shows now: lumctl store adopt",
        )


def start_difference(runbook: Runbook, context: Context) -> Difference | None:
    """The first job that is not placed as before the run, or the first device with different states.

    A device with uncertain states is skipped; the engine refuses it with a reason.
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
    """Do a runbook's steps on a context and compare the result; the replay ends before the step ``stop``.

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
            error.message = error.message.replace(plan.id, runbook.id)  # no other process knows that plan
            raise
        # A stop before anything was touched names no run: it is the only new one in the store.
        failure, run = error, error.run if isinstance(error, RunError) else begun[0]
    state = store.runs.get(run).state
    difference = first_difference(compared(runbook, stop), store, run) or end_difference(context, runbook, read_back)
    if difference is None:
        difference = _other_end(runbook, state, failure)
    seconds = result.seconds if result else round(perf_counter() - begun_s, 4)
    rehearsal = read_back is not None
    return ReplayResult(runbook.id, on, run, state, difference is None, difference, seconds, rehearsal=rehearsal)


def _other_end(runbook: Runbook, state: str, failure: LumctlError | None) -> Difference | None:
    """The difference if the run ended in another state although all its steps were the same."""
    # A run that was undone later was done when it ended.
    recorded = "done" if runbook.outcome in TO_THE_END else runbook.outcome
    if recorded == state:
        return None
    return Difference("end", "outcome", recorded, f"{state}: {failure.message}" if failure else state)


def plan_again(context: Context, runbook: Runbook) -> Plan:
    """The plan that does the recorded steps again."""
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
