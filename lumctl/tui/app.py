"""The dashboard as an application: it owns the data and the collector, and connects the screens.

Threads read, plan and apply; they only post messages. Handlers, which run in the application's own thread, are the
only ones that touch widgets.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.text import Text
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import Static

from lumctl.health.observation import Observation
from lumctl.printable import counted, printable
from lumctl.tui.actions import Acts, only_shown
from lumctl.tui.look.marks import STALE_STYLE, Marks, duration
from lumctl.tui.look.themes import DEFAULT, THEMES, rich_theme
from lumctl.tui.palette import Palette
from lumctl.tui.screens.help import HelpScreen, LeavingScreen
from lumctl.tui.screens.main import MainScreen, PlanWanted, RefreshWanted, Wanted
from lumctl.tui.screens.plan import ApplyEnded, PlanScreen
from lumctl.tui.screens.registry import screen_of
from lumctl.tui.sources import ScreenContext, Sources
from lumctl.tui.threads.apply import Applying
from lumctl.tui.threads.collector import Collector, Observed, ObserveFailed
from lumctl.tui.widgets.bars import AnswerLine
from lumctl.tui.widgets.playback import Playback, PlaybackLine, show_on

if TYPE_CHECKING:
    from lumctl.tui.views.records import RecordedLook


class Escaped(LineFilter):
    """Shows control and format characters as their escapes, within the width that the text has without them."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        """The line, safe to print."""
        return [each if each.control or each.text.isprintable() else _escaped(each) for each in segments]


def _escaped(segment: Segment) -> Segment:
    safe = printable(segment.text)
    if safe == segment.text:
        return segment
    return Segment(set_cell_size(safe, cell_len(segment.text)), segment.style)


ESCAPED = Escaped()


class Dashboard(App[None]):
    """``lumctl top``. Everything it does not do itself is handed in as a callable."""

    CSS_PATH = "dashboard.tcss"
    TITLE = "lumctl"

    def __init__(  # noqa: PLR0913 - what it shows, and how
        self,
        sources: Sources,
        acts: Acts,
        *,
        racks: Iterable[str],
        target: str,
        marks: Marks,
        interval_s: float = 2.0,
        now: Callable[[], float] = time.time,
        theme: str = DEFAULT,
        playback: Playback | None = None,
    ) -> None:
        # Where colour is not wanted, none is sent: without this Textual would send shades of grey.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        for each in THEMES.values():
            self.register_theme(each)
        self.show_in(theme)
        self.seen: RecordedLook | None = None
        acts = only_shown(acts)
        self.applying = Applying(acts.apply)
        self.interrupted = False
        self._stopped = False
        self._loop_to_leave: asyncio.AbstractEventLoop | None = None
        self._shared = ScreenContext(target, marks, now, lambda: self.seen, sources, acts, self.applying)
        self._interval_s = interval_s
        self.trouble: str | None = None
        self._reading_since: float | None = None
        self._asked_to_read = False
        self._leave_when_applied = False
        self._playback = playback
        self._played: PlaybackLine | None = None
        title = f"lumctl {', '.join(racks)}" if playback is None else playback.title
        self._main = MainScreen(title, target, marks, now)
        self._collector = Collector(sources.look, interval_s, self.post_message)
        self.set_class(marks.ascii_only, "-ascii")
        self.set_class(bool(acts.forbidden), "-read-only")

    def show_in(self, theme: str) -> None:
        """Draw everything in a theme, one of ``THEMES``."""
        chosen = THEMES[theme]
        self.console.push_theme(rich_theme(chosen))
        self.theme = chosen.name
        for screen in self.screen_stack if self.is_running else ():
            for text in screen.query(Static):
                text.update(text.content)  # what it shows was looked up in the theme before

    def action_show_in(self, theme: str) -> None:
        """Draw everything in a theme."""
        self.show_in(theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What every line of every widget goes through before the terminal gets it."""
        return (*super().get_line_filters(), ESCAPED)

    def get_default_screen(self) -> Screen[None]:
        """The main screen is always at the bottom."""
        return self._main

    def on_load(self) -> None:
        """Be ready to be stopped before the terminal is taken."""
        self._loop_to_leave = asyncio.get_running_loop()

    def stop(self) -> None:
        """Leave at once; for a signal's handler. An apply in progress continues: ``applying`` reports its end."""
        if self._stopped:
            return
        self._stopped = True
        self.interrupted = not self.applying.under_way
        if self._loop_to_leave is not None:
            with suppress(RuntimeError):  # it was left already
                self._loop_to_leave.call_soon_threadsafe(self.exit)

    def on_ready(self) -> None:
        """Begin to read, once every widget that shows what is read is there."""
        self._collector.start()
        self.set_interval(1.0, self._tick)
        if self._stopped:
            self.exit()

    def on_unmount(self) -> None:
        """Stop reading."""
        self._collector.stop()

    def on_reading_began(self) -> None:
        """Remember the start, to report it if it takes long."""
        self._reading_since = self._shared.now()

    def on_observed(self, event: Observed) -> None:
        """Show what was read."""
        self.seen = replace(event.seen, forbidden=self._shared.acts.forbidden)
        trouble = event.seen.records.trouble
        self._end_reading(trouble=f"could not read a store: {trouble}" if trouble else None)
        self._main.show(self.seen)
        self._tick()

    def on_observe_failed(self, event: ObserveFailed) -> None:
        """Show the error; the old data stay, with their age."""
        self._end_reading(trouble=f"could not read the rack: {event.text}")
        self._tick()

    def on_refresh_wanted(self, event: RefreshWanted) -> None:
        """Read now."""
        event.stop()
        self._asked_to_read = True
        self._collector.refresh()
        self._tick()

    def on_wanted(self, event: Wanted) -> None:
        """Open the screen of something."""
        event.stop()
        if (screen := screen_of(event.kind, event.key, self._shared)) is not None:
            self.push_screen(screen)
            self.call_later(self._show_played)

    def on_plan_wanted(self, event: PlanWanted) -> None:
        """Open the screen of a swap, or report why there is nothing to swap."""
        event.stop()
        if self.seen is None:
            return
        accelerator, acts = event.accelerator, self._shared.acts
        if reason := acts.forbidden or why_no_swap(self.seen.observation, accelerator):
            self.screen.query_one(AnswerLine).say(reason)
        elif (place := self.seen.observation.place_of(accelerator)) is not None:
            plan = partial(acts.plan, place[0], accelerator)
            self.push_screen(PlanScreen(f"swap of {accelerator}", plan, self._shared))

    def on_apply_ended(self, event: ApplyEnded) -> None:
        """Read the rack after the change; leave if that was requested."""
        event.stop()
        self._collector.refresh()
        if self._leave_when_applied:
            self.exit()
        elif isinstance(self.screen, LeavingScreen):
            self.screen.dismiss(False)  # noqa: FBT003 - the answer to its question, which nobody need ask any more

    def action_command_palette(self) -> None:
        """Open the command palette."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def action_help(self) -> None:
        """Open the help."""
        shared = self._shared
        self.push_screen(HelpScreen(self.screen_stack, shared.target, shared.marks, shared.acts.forbidden))

    async def action_quit(self) -> None:
        """Quit; in the middle of an apply, ask whether to do so when it has ended."""
        if isinstance(self.screen, LeavingScreen):
            return
        if self.applying.under_way:
            self.push_screen(LeavingScreen(self._shared.target), self._leave)
        else:
            self.exit()

    def _leave(self, leave: bool | None) -> None:
        self._leave_when_applied = bool(leave)
        if leave and not self.applying.under_way:
            self.exit()

    def _end_reading(self, *, trouble: str | None) -> None:
        self._reading_since = None
        self._asked_to_read = False
        self.trouble = trouble

    def _tick(self) -> None:
        self._main.tick(self._freshness(), self.trouble)
        self._show_played()

    def _show_played(self) -> None:
        """Show the progress of the replay on every screen; its effects are read at once."""
        if self._playback is None:
            return
        before, self._played = self._played, self._playback.standing()
        if before is None or self._played.text != before.text:
            self._collector.refresh()
        show_on(self.screen_stack, self._played)

    def _freshness(self) -> Text:
        """How old the data are, and whether newer ones are under way."""
        now = self._shared.now()
        if self.seen is None:
            return Text("not read yet ")
        observation = self.seen.observation
        hosts, answers = len(observation.inventory.hosts), observation.snapshot.hosts.values()
        answered = sum(host.reachable for host in answers)
        said = [f"{answered} of {counted(hosts, 'hosts')} answered"] if answered < hosts else []
        if self.trouble:
            said.insert(0, "failing")
        elif self._asked_to_read or (self._reading_since is not None and now - self._reading_since >= 1.0):
            said.insert(0, "reading")
        elif not said:
            said = ["live"]
        old = now - observation.at
        stale = old > observation.inventory.thresholds.stale_after_s + self._interval_s
        text = (
            f"{', '.join(said)}, {'read' if answered else 'asked'} {duration(old)} ago, every {self._interval_s:g} s "
        )
        return Text(text, style=STALE_STYLE if stale or self.trouble or answered < hosts else "")


def why_no_swap(observation: Observation, component: str) -> str | None:
    """Why no swap is planned for a component from the dashboard; ``None`` where one can be."""
    if component not in observation.inventory.accelerators:
        return f"{component} is not an accelerator: only accelerators are swapped"
    if observation.place_of(component) is None:
        return f"{component} runs no job: there is nothing to swap"
    if observation.in_trouble(component):
        return None
    if (cause := observation.cause_elsewhere(component)) is not None:
        return f"{component} is not what fails: the cause is {cause.cause}; {cause.words}"
    return f"{component} and its links are ok: a swap is planned for an accelerator that is not"
