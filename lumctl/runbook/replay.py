"""Replay: the same steps through the change engine again, on a private simulator or on a rack, compared one by one.

On a simulator of its own a run that did not come to its end is played as it went: it stops before the step that failed,
and what it did is undone, as it was then. On a rack and in a drill every step is tried.
"""

from dataclasses import asdict, dataclass
from typing import Any

from lumctl.change.engine import Gate, Progress, RunResult, apply, at_once
from lumctl.change.guard import Arm
from lumctl.change.guard import arm as arm_guard
from lumctl.change.plan import Do, Plan, Step, programmed, stages
from lumctl.errors import LumctlError, RefusedError, RunError
from lumctl.inventory.model import Inventory
from lumctl.runbook.actions import seed_acts
from lumctl.runbook.comparing import Difference, end_difference, first_difference
from lumctl.runbook.document import RecordedStep, Runbook
from lumctl.runbook.known import require_known
from lumctl.runbook.stage import Stage, no_guard, seed, staged
from lumctl.site import Site

TO_THE_END = frozenset({"done", "undone"})
"""The outcomes of runs whose every step was done."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """A replay: identical, or where it first differed. Of intents there is nothing to compare with."""

    runbook: str
    on: str
    run: str
    outcome: str
    identical: bool | None
    first_difference: Difference | None
    seconds: float
    runs: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """As printed with ``-o json``."""
        return asdict(self) | {"runs": list(self.runs or (self.run,))}


class PlayedStopError(RefusedError):
    """A step that failed when it was recorded: the replay stops there as well."""


def replay_on_simulator(
    runbook: Runbook, inventory: Inventory, *, progress: Progress, before_step: Gate
) -> ReplayResult:
    """Replay on a simulator of its own, started in the recorded start state and gone afterwards.

    Raises:
        UsageError: the runbook names something that this inventory does not have.
        RefusedError: the engine refuses it: it was edited into what no rack would be let do.
    """
    require_known(runbook, inventory)
    with staged(inventory) as stage:
        return replay_on_stage(runbook, stage, progress=progress, before_step=before_step)


def replay_on_stage(runbook: Runbook, stage: Stage, *, progress: Progress, before_step: Gate = at_once) -> ReplayResult:
    """Replay on a simulator that is there already, from the recorded start state.

    Raises: as :func:`replay_on_simulator`.
    """
    require_known(runbook, stage.inventory)
    with stage.play() as site:
        steps = tuple(recorded.step for recorded in runbook.steps)
        seed(site, runbook.rack, runbook.start, steps, dark=_dark_then(runbook, stage.inventory))
        seed_acts(site, runbook.steps)
        for host in _unreachable_then(runbook, stage.inventory):
            stage.sim.inject(host, "unreachable")
        stop = _stopped_at(runbook)
        gate = _played(stop, before_step, progress) if stop else before_step
        return replay_here(
            site, runbook, "sim", progress, gate, read_back=f"unix:{stage.sim.control}", arm=no_guard, stop=stop
        )


def replay_on_rack(runbook: Runbook, site: Site, *, progress: Progress, before_step: Gate) -> ReplayResult:
    """Replay on a rack (or on the running simulator that stands for it), if it is where the recording started.

    Raises:
        UsageError: the runbook names something that this inventory does not have.
        RefusedError: the rack does not stand where the recording started; the message names the first difference.
    """
    require_known(runbook, site.inventory)
    difference = start_difference(runbook, site)
    if difference is not None:
        raise RefusedError(
            f"{runbook.id} does not start where the rack stands: {difference.what} is {difference.replayed}, "
            f"recorded was {difference.recorded}",
            hint=f"to do the same from where it stands: lumctl runbook export {runbook.id} --as-template",
        )
    return replay_here(site, runbook, runbook.rack, progress, before_step)


def start_difference(runbook: Runbook, site: Site) -> Difference | None:
    """The first job that does not run where it did when the recording started."""
    standing = site.assignment()
    for job, ranks in runbook.start.assignment.items():
        if standing.get(job, ()) != ranks:
            return Difference("start", f"where {job} runs", ", ".join(ranks), ", ".join(standing.get(job, ())))
    return None


def replay_here(
    site: Site,
    runbook: Runbook,
    on: str,
    progress: Progress,
    before_step: Gate,
    *,
    read_back: str | None = None,
    arm: Arm = arm_guard,
    stop: RecordedStep | None = None,
) -> ReplayResult:
    """Do a runbook's steps on a site and compare what comes of it; ``stop`` is the step before which it ends."""
    store = site.store(runbook.rack)
    result: RunResult | None = None
    failure: LumctlError | None = None
    known = {run.id for run in store.runs()}
    try:
        result = apply(site, _plan(site, runbook), progress=progress, before_step=before_step, arm=arm)
        run = result.run
    except LumctlError as error:
        begun = [each.id for each in store.runs() if each.id not in known]
        if not isinstance(error, RunError) and (stop is None or not begun):
            raise
        failure, run = error, error.run if isinstance(error, RunError) else begun[0]
    state = store.run(run).state
    difference = first_difference(_compared(runbook, stop), store, run) or end_difference(site, runbook, read_back)
    if difference is None:
        difference = _other_end(runbook, state, failure)
    seconds = result.seconds if result else 0.0
    return ReplayResult(runbook.id, on, run, state, difference is None, difference, seconds)


def _other_end(runbook: Runbook, state: str, failure: LumctlError | None) -> Difference | None:
    """The run came to another end, though every step that it did was the same."""
    recorded = "done" if runbook.outcome in TO_THE_END else runbook.outcome
    if recorded == state:
        return None
    return Difference("end", "outcome", recorded, f"{state}: {failure.message}" if failure else state)


def _stopped_at(runbook: Runbook) -> RecordedStep | None:
    """The step that a run which did not come to its end did not get past."""
    if runbook.outcome in TO_THE_END:
        return None
    for recorded in runbook.steps:
        if recorded.step.required and (recorded.outcome is None or "failed" in recorded.outcome):
            return recorded
    return None


def _played(stop: RecordedStep, before_step: Gate, progress: Progress) -> Gate:
    def gate(step: Step) -> None:
        if step.id == stop.step.id:
            why = (stop.outcome or {}).get("failed", "it was not reached")
            progress(f"{step.id}. {step.title}: when this was recorded, {why}; so this replay ends here")
            raise PlayedStopError(f"step {step.id} did not succeed when this was recorded: {why}")
        before_step(step)

    return gate


def _compared(runbook: Runbook, stop: RecordedStep | None) -> tuple[RecordedStep, ...]:
    """The steps that a replay reaches: those of the stages before the one in which it ends."""
    if stop is None:
        return runbook.steps
    reached: list[RecordedStep] = []
    by_id = {recorded.step.id: recorded for recorded in runbook.steps}
    for stage in stages(recorded.step for recorded in runbook.steps):
        if stop.step in stage:
            break
        reached += [by_id[step.id] for step in stage]
    return tuple(reached)


def _dark_then(runbook: Runbook, inventory: Inventory) -> tuple[str, ...]:
    """The transmitters that did not send when the run began, as far as it found out."""
    seen: dict[str, bool] = {}
    for recorded in runbook.steps:
        outcome = recorded.outcome or {}
        found = dict(outcome.get("transmitting") or {})
        if recorded.step.do is Do.TRANSMIT and isinstance(outcome.get("was"), bool):
            found[recorded.step.data["transponder"]] = outcome["was"]
        for lane, sends in found.items():
            seen.setdefault(lane, bool(sends))
    return tuple(lane for lane, sends in seen.items() if not sends and lane in inventory.transponders)


def _unreachable_then(runbook: Runbook, inventory: Inventory) -> tuple[str, ...]:
    """The hosts that could not be asked to darken a transmitter when this was recorded."""
    hosts = [
        inventory.transponders[recorded.step.data["transponder"]].host
        for recorded in runbook.steps
        if recorded.step.do is Do.TRANSMIT and not recorded.step.required and "failed" in (recorded.outcome or {})
    ]
    return tuple(dict.fromkeys(hosts))


def _plan(site: Site, runbook: Runbook) -> Plan:
    return Plan(
        kind="replay",
        title=f"replay of {runbook.id} ({runbook.title})",
        rack=runbook.rack,
        target=site.target,
        created_at=site.now(),
        inventory_digest=site.inventory.digest,
        start=runbook.start,
        replacements=runbook.replacements,
        add=runbook.add,
        remove=runbook.remove,
        keep=runbook.keep,
        changes=programmed(recorded.step for recorded in runbook.steps),
        steps=tuple(recorded.step for recorded in runbook.steps),
    ).sealed()
