"""``lumctl top --replay``: a recorded run shown in the dashboard, on a simulator with stores of its own."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from lumctl.cli.invocation import Invocation
from lumctl.errors import ExitCode, RefusedError, UsageError
from lumctl.runbook.playback import SHORTENED_S, Wait, lost_then, unreachable_then, wait_of, waits
from lumctl.runbook.replay import replay_as_it_went

if TYPE_CHECKING:
    from lumctl.change.plan import Step
    from lumctl.change.plan_parts import Start
    from lumctl.cli.top.records import Recorder
    from lumctl.context import Context, Observation
    from lumctl.health.transitions import Transition
    from lumctl.runbook.document import Runbook
    from lumctl.runbook.stage import Stage
    from lumctl.store import StoredRun
    from lumctl.tui.sources import Sources
    from lumctl.tui.views.records import Records
    from lumctl.tui.widgets.playback import PlaybackLine

WELL_S = 4.0
"""How long the rack is shown in its state before the failure."""
SEEN_S = 0.5
"""Shortest wait that is shown: a shorter one would end before it can be read."""
ENDS_WITHIN_S = 5.0
"""How long an undo may take after the user leaves in the middle; then the simulator is ended anyway."""


class Play:
    """Plays a run while its block is open; ``say`` gets each line of progress, from any thread."""

    def __init__(
        self,
        runbook: "Runbook",
        stage: "Stage",
        context: "Context",
        *,
        speed: float,
        began_at: float,
        noticed: "tuple[Transition, ...]" = (),
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._runbook = runbook
        self._stage = stage
        self._context = context
        self._speed = speed
        self._began_at = began_at
        self._noticed = noticed
        self.say = say
        self.identical: bool | None = None
        self._waits = waits(runbook.document, speed)
        self._opened = 0.0
        self._looked, self._stopped = threading.Event(), threading.Event()
        self._told: tuple[str, float | None, bool] = (f"the rack as it was before {runbook.id} began", None, False)
        self._thread = threading.Thread(target=self._run, name="lumctl-play", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._looked.set()
        self._thread.join(ENDS_WITHIN_S)
        if self._thread.is_alive():  # It may wait for light: without a simulator not for long.
            self._stage.sim.stop()
            self._thread.join(ENDS_WITHIN_S)

    def seeing(self, observe: "Callable[[], Observation]") -> "Callable[[], Observation]":
        """The observer; nothing begins before its first observation."""

        def look() -> "Observation":
            seen = observe()
            # The thread may still wait for the first look.
            self._looked.set()
            return seen

        return look

    def standing(self) -> "PlaybackLine":
        """The present state."""
        from lumctl.tui.widgets.playback import PlaybackLine

        text, until, grave = self._told
        left = None if until is None else max(0, round(until - time.monotonic()))
        return PlaybackLine(text, left, grave)

    def _run(self) -> None:
        from lumctl.tui.threads.collector import one_line

        try:
            self._looked.wait()
            self._pause(self._told[0], WELL_S)
            self._strike()
            self._opened = time.monotonic()
            result = replay_as_it_went(
                self._runbook, self._stage, self._context, progress=lambda _line: None, before_step=self._gate
            )
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            if not self._stopped.is_set():
                self.identical = False
                self._tell(f"{self._runbook.id} cannot be played: {one_line(error)}", grave=True)
            return
        if not self._stopped.is_set():
            from lumctl.cli.top.runbooks import replay_view

            # A swap that was undone afterwards was done when it ended, and its replay as well.
            view = replay_view(replace(self._runbook, outcome=result.outcome), result)
            self.identical = view.identical
            apart = f"; recorded: {view.recorded}; replayed: {view.replayed}" if view.step else ""
            self._tell(f"{self._runbook.id} has ended; {view.outcome}{apart}", grave=bool(view.step))

    def _strike(self) -> None:
        """Make the replaced accelerators fail, and wait as long as it took until the run began."""
        lost = lost_then(self._runbook, self._stage.inventory)
        for accelerator in lost:
            self._stage.sim.inject(accelerator, "gpu-lost")
        for host in unreachable_then(self._runbook, self._stage.inventory):
            self._stage.sim.inject(host, "unreachable")
        if not lost:
            return
        falls = f"{', '.join(lost)} {'falls' if len(lost) == 1 else 'fall'} off the bus"
        if not self._noticed:
            self._pause(f"{falls}; how and when it failed was not recorded; {self._runbook.id} begins", SHORTENED_S)
            return
        wait = wait_of(self._began_at - min(change.at for change in self._noticed), self._speed)
        found = "; ".join(f"{change.evidence or change.after}" for change in self._noticed)
        self._pause(
            f"{falls}; findings at that time: {found}; {self._runbook.id} begins{_as_it_was(wait)}", wait.seconds
        )

    def _gate(self, step: "Step") -> None:
        wait = self._waits.get(step.id, Wait(0.0, 0.0))
        # Recorded waits count from the start of the step before, so the time that its replay took is taken off.
        left = self._opened + wait.seconds - time.monotonic()
        self._pause(f"next is step {self._count(step)}{_as_it_was(wait)}", left)
        self._opened = time.monotonic()
        self._tell(f"step {self._count(step)}")

    def _count(self, step: "Step") -> str:
        ids = [recorded.step.id for recorded in self._runbook.steps]
        return f"{ids.index(step.id) + 1} of {len(ids)}: {step.title}"

    def _pause(self, text: str, seconds: float) -> None:
        if seconds >= SEEN_S:
            self._tell(text, until=time.monotonic() + seconds)
        if self._stopped.wait(max(0.0, seconds)):
            raise RefusedError("somebody has left")

    def _tell(self, text: str, *, until: float | None = None, grave: bool = False) -> None:
        self._told = (text, until, grave)
        self.say(text)


def _as_it_was(wait: Wait) -> str:
    from lumctl.tui.look.marks import duration

    return f" after {duration(wait.recorded)}, shortened" if wait.shortened else ""


TARGET = "replay"
"""The target of the dashboard, as shown on every screen."""
SEED = "seed"
"""The kind of the runs that bring the simulator to the start of the recorded run: they are not shown."""


def played(cx: Invocation, name: str, speed: float, *, interval_s: float, theme: str | None) -> int:
    """Play a run of the target's stores; ``theme`` is ``None`` in text mode.

    Raises:
        UsageError: there is no such run, it has no steps, or it names components that the inventory does not have.
        UnreachableError: no simulator starts.
    """
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
        cx.out.narrate(f"note: {runbook.id} was recorded with a different version of the inventory")
    cx.out.narrate("a private simulator starts and is brought to the state in which the run began")
    with staged(cx.inventory) as stage, stage.play() as context:
        _stand(context, runbook, starts)
        play = Play(runbook, stage, context, speed=speed, began_at=run.started_at, noticed=noticed)
        with stage.context() as eyes, _recorder(stage) as records, play:
            code = _show(cx, play, _sources(stage, eyes, records, play), title, run.id, interval_s, theme)
    cx.out.narrate(play.standing().text if play.identical is not None else f"closed before {run.id} had ended")
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
        raise UsageError(f"{run.id} ({run.title}) has no steps to play", hint="lumctl swap list")
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
    """The stores that the dashboard reads: only those private to the replay."""
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

    acts = Acts(nothing, nothing, f"this is a replay of {run}, which only shows past steps")
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
