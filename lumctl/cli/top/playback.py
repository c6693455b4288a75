"""Playback of a recorded run: a thread performs its steps on a stage, at the pace at which they were recorded."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from lumctl.errors import RefusedError
from lumctl.runbook.playback import SHORTENED_S, Wait, lost_then, unreachable_then, wait_of, waits
from lumctl.runbook.replay import replay_as_it_went

if TYPE_CHECKING:
    from lumctl.change.plan import Step
    from lumctl.context import Context, Observation
    from lumctl.health.transitions import Transition
    from lumctl.runbook.document import Runbook
    from lumctl.runbook.stage import Stage
    from lumctl.tui.widgets.playback import PlaybackLine

WELL_S = 4.0
"""How long the rack is shown in its state before the failure."""
SEEN_S = 0.5
"""A shorter wait is over before it could be read."""
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
        self._told: tuple[str, float | None, bool] = (f"the rack as it stood before {runbook.id} began", None, False)
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
        """What looks; nothing begins before the first look."""

        def look() -> "Observation":
            seen = observe()
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
        """Let fail what had failed, and wait for as long as it took until the run began."""
        lost = lost_then(self._runbook, self._stage.inventory)
        for accelerator in lost:
            self._stage.sim.inject(accelerator, "gpu-lost")
        for host in unreachable_then(self._runbook, self._stage.inventory):
            self._stage.sim.inject(host, "unreachable")
        if not lost:
            return
        falls = f"{', '.join(lost)} {'falls' if len(lost) == 1 else 'fall'} off the bus"
        if not self._noticed:
            self._pause(f"{falls}; how and when that was is not recorded; {self._runbook.id} begins", SHORTENED_S)
            return
        wait = wait_of(self._began_at - min(change.at for change in self._noticed), self._speed)
        found = "; ".join(f"{change.evidence or change.after}" for change in self._noticed)
        self._pause(f"{falls}; found then: {found}; {self._runbook.id} begins{_as_it_was(wait)}", wait.seconds)

    def _gate(self, step: "Step") -> None:
        wait = self._waits.get(step.id, Wait(0.0, 0.0))
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
