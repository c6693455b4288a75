"""A drill: would a runbook work today? It runs on a simulator in the rack's present state.

On that simulator the accelerators that the runbook replaces have failed. The rack itself is read and never written: its
placement and device states come from its stores, its failed accelerators from a new observation.
"""

from collections.abc import Iterable
from dataclasses import replace

from lumctl.change.engine import Gate, Progress
from lumctl.change.plan import Do, Start, Step
from lumctl.change.settings import settable
from lumctl.context import Context
from lumctl.errors import LumctlError, RefusedError
from lumctl.health.states import State
from lumctl.inventory.wiring import order_of
from lumctl.runbook.comparison import Difference
from lumctl.runbook.document import Runbook
from lumctl.runbook.execution import Performance, perform_on_stage
from lumctl.runbook.intents import Intends
from lumctl.runbook.inventory_check import require_known
from lumctl.runbook.replay import ReplayResult, replay_here, start_difference
from lumctl.runbook.stage import Stage, no_guard, seed, staged
from lumctl.runbook.yaml_text import AnyRunbook

ON = "drill"
"""The target of a drill in its result."""


def drill(runbook: AnyRunbook, context: Context, *, progress: Progress, before_step: Gate) -> ReplayResult:
    """Do a runbook on a simulator in the rack's present state; every accelerator that it replaces has failed there.

    Raises:
        UsageError: the runbook names something that this inventory does not have.
        RefusedError: a step of intents cannot be planned in the rack's state, or failed.
    """
    if isinstance(runbook, Runbook):
        require_known(runbook, context.inventory)
    ill = _ill_now(context, progress)
    settings = tuple(_shown_now(context, _settings_of(runbook)))
    with staged(context.inventory) as stage, stage.play() as simulated:
        for remark in stage.sim.remarks():
            progress(remark)
        _stand_as(context, simulated, settings)
        for accelerator in ill:
            stage.sim.inject(accelerator, "gpu-lost")
        if not isinstance(runbook, Runbook):
            how = Performance(progress, before_step)
            done = perform_on_stage(runbook, stage, simulated, how)
            return replace(done, on=ON)
        return _recorded(runbook, stage, simulated, progress, before_step)


def _recorded(
    runbook: Runbook, stage: Stage, simulated: Context, progress: Progress, before_step: Gate
) -> ReplayResult:
    """Replay recorded steps; if the rack has changed since the recording, that is the first difference."""
    moved = start_difference(runbook, simulated)
    if moved is None:
        for replacement in runbook.replacements:
            stage.sim.inject(replacement.failed, "gpu-lost")
        read_back = f"unix:{stage.sim.control}"
        try:
            return replay_here(simulated, runbook, ON, progress, before_step, read_back=read_back, arm=no_guard)
        except RefusedError as error:
            why = error.message.partition(" is stale: ")[2] or error.message
            moved = Difference("start", "the rack in its present state", "healthy enough for these steps", why)
    return ReplayResult(runbook.id, ON, "", "refused", False, moved, 0.0, rehearsal=True)  # noqa: FBT003


def _ill_now(context: Context, progress: Progress) -> tuple[str, ...]:
    """The accelerators that a new observation finds failed; unread ones count as ok, with a message."""
    try:
        report = context.observe().report
    except LumctlError as error:
        progress(f"the rack cannot be read ({error.message}): the drill assumes that every accelerator is healthy")
        return ()
    unread = [name for name, health in report.accelerators.items() if health.state is State.UNKNOWN]
    if unread:
        progress(f"not read now, and assumed to be healthy: {', '.join(unread)}")
    ill = tuple(name for name, health in report.accelerators.items() if health.state is State.FAILED)
    if ill:
        progress(f"failed now, and therefore also in the drill: {', '.join(ill)}")
    return ill


def _stand_as(context: Context, simulated: Context, settings: tuple[Step, ...]) -> None:
    """Bring each simulated rack to the state of the real one, as its store records it."""
    inventory, placed = context.inventory, context.assignment()
    for rack in inventory.racks:
        jobs = {job.name: placed[job.name] for job in inventory.jobs.values() if job.rack == rack}
        own = [order_of(each.id) for each in inventory.accelerators.values() if each.rack == rack]
        jobs |= {name: placed[name] for name in own if name in placed}
        here = [device.id for device in inventory.devices.values() if device.rack == rack and device.kind.carries_light]
        cells = {device: held for device in here if (held := context.known_cells(device))}
        mine = tuple(step for step in settings if step.data["rack"] == rack)
        seed(simulated, rack, Start.of(jobs, cells), mine)
        # Planning there must refuse the same spares: those in maintenance.
        for window in context.store(rack).health.windows(now=context.now()):
            simulated.store(rack).health.add_window(window)


def _settings_of(runbook: AnyRunbook) -> list[tuple[str, str]]:
    """Components and settings that a runbook sets."""
    if isinstance(runbook, Runbook):
        sets = (recorded.step.data for recorded in runbook.steps if recorded.step.do is Do.SET)
        return [(str(data["component"]), str(data["setting"])) for data in sets]
    return [
        (str(intent.data["component"]), str(name))
        for intent in runbook.intents
        if intent.do is Intends.DEVICE_SET
        for name in intent.data["settings"]
    ]


def _shown_now(context: Context, pairs: Iterable[tuple[str, str]]) -> Iterable[Step]:
    """The present value of each setting on the rack, as steps for :func:`seed`; settings of cells are omitted."""
    for component, name in dict.fromkeys(pairs):
        try:
            meant = settable(context.inventory, context.devices, component, name)
            before = meant.read()
        except LumctlError:
            continue
        data = {"component": component, "setting": name, "before": before, "after": before}
        yield Step(component, Do.SET, component, {**data, "rack": meant.component.rack})
