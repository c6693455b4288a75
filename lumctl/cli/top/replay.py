"""``lumctl top --replay``: a recorded run shown in the dashboard, on a simulator with stores of its own."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.errors import ExitCode, RefusedError, UsageError

if TYPE_CHECKING:
    from lumctl.change.plan_parts import Start
    from lumctl.cli.top.playback import Play
    from lumctl.cli.top.records import Recorder
    from lumctl.context import Context
    from lumctl.health.transitions import Transition
    from lumctl.runbook.document import Runbook
    from lumctl.runbook.stage import Stage
    from lumctl.store import StoredRun
    from lumctl.tui.sources import Sources
    from lumctl.tui.views.records import Records

TARGET = "replay"
"""The target of the dashboard, as shown on every screen."""
SEED = "seed"
"""The kind of the runs that bring the simulator to where the recorded one began: they are no part of the story."""


def played(cx: Invocation, name: str, speed: float, *, interval_s: float, theme: str | None) -> int:
    """Play a run of the target's stores; ``theme`` is ``None`` in text mode.

    Raises:
        UsageError: there is no such run, it has no steps, or it names what the inventory does not have.
        UnreachableError: no simulator starts.
    """
    from lumctl.cli.top.playback import Play
    from lumctl.context import Context
    from lumctl.runbook.inventory_check import require_known
    from lumctl.runbook.stage import staged

    with Context(cx.inventory, cx.target) as context:
        run, runbook, starts, noticed = _found(context, name)
    require_known(runbook, cx.inventory)
    when = datetime.fromtimestamp(run.started_at).astimezone()
    title = f"REPLAY of {run.id}, recorded {when:%Y-%m-%d %H:%M:%S}, at {speed:g}x"
    cx.out.narrate(title)
    if runbook.inventory_digest != cx.inventory.digest:
        cx.out.narrate(f"note: {runbook.id} was recorded with another text of the inventory")
    cx.out.narrate("a simulator of its own comes up and is brought to where the run began")
    with staged(cx.inventory) as stage, stage.play() as context:
        _stand(context, runbook, starts)
        play = Play(runbook, stage, context, speed=speed, began_at=run.started_at, noticed=noticed)
        with stage.context() as eyes, _recorder(stage) as records, play:
            code = _show(cx, play, _sources(stage, eyes, records, play), title, run.id, interval_s, theme)
    cx.out.narrate(play.standing().text if play.identical is not None else f"left before {run.id} had ended")
    return ExitCode.REFUSED if code == ExitCode.DONE and play.identical is False else code


def _found(context: "Context", name: str) -> "tuple[StoredRun, Runbook, dict[str, Start], tuple[Transition, ...]]":
    from lumctl.runbook.document import make, parse
    from lumctl.runbook.files import find_run
    from lumctl.runbook.playback import lost_then
    from lumctl.runbook.run_states import stood
    from lumctl.runbook.yaml_text import plain

    run = find_run(context, name)
    store = context.store(run.rack)
    runbook = parse(plain(make(run, store, context.inventory)), run.id)
    if not runbook.steps:
        raise UsageError(f"{run.id} ({run.title}) has no steps: there is nothing to play", hint="lumctl swap list")
    noticed = []
    for accelerator in lost_then(runbook, context.inventory):
        changes = [each for each in store.health.transitions(accelerator) if each.at <= run.started_at]
        if changes and changes[-1].rules:
            noticed.append(changes[-1])
    return run, runbook, stood(context, run), tuple(noticed)


def _stand(context: "Context", runbook: "Runbook", starts: "dict[str, Start]") -> None:
    """Bring a fresh simulator to the state of all racks before the run."""
    from lumctl.runbook.actions import seed_acts
    from lumctl.runbook.playback import dark_then
    from lumctl.runbook.stage import seed

    context.assignment()  # a store for each rack, also for one without runs
    for rack, start in starts.items():
        if rack == runbook.rack:
            steps = tuple(recorded.step for recorded in runbook.steps)
            seed(context, rack, start, steps, dark=dark_then(runbook, context.inventory))
        else:
            seed(context, rack, start)
    seed_acts(context, runbook.steps)


def _recorder(stage: "Stage") -> "Recorder":
    from lumctl.cli.top.records import Recorder

    # The jobs do not run here; a coordinator that answered would be that of the real ones.
    jobs = {name: replace(job, run=None) for name, job in stage.inventory.jobs.items()}
    return Recorder(replace(stage.inventory, jobs=jobs), "sim", opened=stage.store)


def _sources(stage: "Stage", eyes: "Context", records: "Recorder", play: "Play") -> "Sources":
    """What the dashboard reads with: only what is private to the replay."""
    from lumctl.cli.top import meshes, runbooks, runs
    from lumctl.tui.sources import Sources

    def here(read: Callable[..., Any], *asked: str) -> Any:
        with stage.context() as context:
            return read(context, *asked)

    return Sources(
        play.seeing(eyes.observe),
        lambda: _without_seeds(records()),
        run=partial(runs.run_in, stage.store),
        mesh=partial(here, meshes.mesh_in),
        runbook=partial(here, runbooks.runbook_in),
        compare=partial(here, runbooks.compared_in),
        explain=lambda *_: (),
    )


def _without_seeds(records: "Records") -> "Records":
    seeds = {run.id for run in records.runs if run.kind == SEED}
    return replace(
        records,
        runs=tuple(run for run in records.runs if run.id not in seeds),
        log=tuple(line for line in records.log if line.run not in seeds),
    )


def _show(
    cx: Invocation, play: "Play", sources: "Sources", title: str, run: str, interval_s: float, theme: str | None
) -> int:
    from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
    from lumctl.cli.top.plain import plain_session
    from lumctl.cli.top.shutdown import run_to_its_end
    from lumctl.tui.actions import Acts
    from lumctl.tui.app import Dashboard
    from lumctl.tui.look.marks import Marks
    from lumctl.tui.widgets.playback import Playback

    def nothing(*_: object) -> Any:
        raise RefusedError("a replay changes nothing")

    acts = Acts(nothing, nothing, f"this is a replay of {run}, which only shows what was done")
    if theme is None:
        session = plain_session(cx, sources, acts, interval_s, f"{TARGET} of {run}")
        play.say = lambda line: session.tell([line])
        return run_to_its_end(cx, session)
    marks = Marks(ASCII_GLYPHS if cx.out.ascii_only else GLYPHS, ascii_only=cx.out.ascii_only)
    dashboard = Dashboard(
        sources,
        acts,
        racks=cx.inventory.racks,
        target=TARGET,
        marks=marks,
        interval_s=interval_s,
        theme=theme,
        playback=Playback(title, play.standing),
    )
    return run_to_its_end(cx, dashboard)
