"""The dashboard as an application: it owns the data and the collector, and connects the screens.

Threads read, plan and apply, and only post messages. Only message handlers, which run in the application's own thread,
touch widgets.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.text import Text
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import Static

from lumctl.printable import counted, printable
from lumctl.process_exit import FinishingThread
from lumctl.tui.actions import Acts, only_shown
from lumctl.tui.look.marks import STALE_STYLE, Marks, duration
from lumctl.tui.look.themes import DEFAULT, THEMES, next_theme, rich_theme
from lumctl.tui.palette import Palette
from lumctl.tui.preferences import Preferences
from lumctl.tui.screens.help import HelpScreen, LeavingScreen
from lumctl.tui.screens.main import MainScreen
from lumctl.tui.screens.plan import ApplyEnded, PlanScreen
from lumctl.tui.screens.registry import screen_of
from lumctl.tui.screens.requests import SPARES_KIND, PlanWanted, RefreshWanted, Wanted, WorkWanted
from lumctl.tui.screens.row_actions import ActEnded, ActWanted, DrainWanted, RowAct
from lumctl.tui.screens.work import IntoTheWork
from lumctl.tui.sources import ScreenContext, Sources
from lumctl.tui.terminal import TerminalDriver, hung_up
from lumctl.tui.threads.apply import Applying
from lumctl.tui.threads.collector import Collector, Observed, ObserveFailed, one_line
from lumctl.tui.views.detail_text import LINE_S
from lumctl.tui.views.history import History, joined, nothing_kept
from lumctl.tui.views.incidents import NewIncidents, named, replaced_now
from lumctl.tui.views.records import DaemonWatch, RecordedLook
from lumctl.tui.views.spares import checked_obstacle
from lumctl.tui.views.swap_choice import fails_with, job_of, placed_at, why_no_swap
from lumctl.tui.widgets.bars import AnswerLine
from lumctl.tui.widgets.playback import Playback, PlaybackLine, show_on


class Escaped(LineFilter):
    """Shows control and format characters as escapes, without making the line wider."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        """The line, without characters that could control the terminal."""
        return [each if each.control or each.text.isprintable() else _escaped(each) for each in segments]


def _escaped(segment: Segment) -> Segment:
    safe = printable(segment.text)
    if safe == segment.text:
        return segment
    return Segment(set_cell_size(safe, cell_len(segment.text)), segment.style)


ESCAPED = Escaped()


class Dashboard(App[None]):
    """The application ``lumctl top``. Reading and actions are callables that it receives."""

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
        preferences: Preferences | None = None,
        bell: bool | None = None,
    ) -> None:
        # In a web page, textual-serve names its own driver there.
        driver = None if "TEXTUAL_DRIVER" in os.environ else TerminalDriver
        # With NO_COLOR no colour at all is sent; by default Textual would still send shades of grey.
        super().__init__(driver_class=driver, ansi_color=True if "NO_COLOR" in os.environ else None)
        for each in THEMES.values():
            self.register_theme(each)
        self.show_in(theme)
        self._chosen_theme = theme
        self.seen: RecordedLook | None = None
        self._daemon = DaemonWatch()
        # Before anything keeps ``acts``: in read-only mode every change is then refused, wherever it is called from.
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
        self._preferences = preferences or Preferences()
        self._rings = self._preferences.bell if bell is None else bell
        self._incidents = NewIncidents()
        self._main = MainScreen(title, target, marks, now, self._preferences, self._remembered)
        self._collector = Collector(sources.look, interval_s, self.post_message)
        self._work = IntoTheWork(self, self._shared, self._collector, self._answer)
        self.set_class(marks.ascii_only, "-ascii")
        self.set_class(bool(acts.forbidden), "-read-only")

    def show_in(self, theme: str) -> None:
        """Draw everything in a theme, one of ``THEMES``."""
        chosen = THEMES[theme]
        self.console.push_theme(rich_theme(chosen))
        self.theme = chosen.name
        for screen in self.screen_stack if self.is_running else ():
            for text in screen.query(Static):
                text.update(text.content)  # its styles were resolved with the old theme

    def action_show_in(self, theme: str) -> None:
        """Draw everything in a theme, and remember it."""
        self.show_in(theme)
        self._chosen_theme = theme
        self._preferences.remember_theme(theme)

    def action_next_theme(self) -> None:
        """Draw everything in the next theme, and remember it."""
        self.action_show_in(next_theme(self._chosen_theme))
        self._answer(f"theme {self._chosen_theme}")

    def action_turn_bell(self) -> None:
        """Ring the bell for a new incident, or no longer, and remember it."""
        self._rings = not self._rings
        trouble = self._preferences.remember_bell(rings=self._rings)
        self._answer(trouble or f"the bell {'rings for a new incident' if self._rings else 'is off'}")

    def aimed(self, text: str) -> str:
        """The text, with inventory and target in its commands."""
        return self._shared.sources.aimed(text)

    def _answer(self, text: str) -> None:
        for line in self.screen.query(AnswerLine):
            line.say(text)

    def action_suspend_process(self) -> None:
        """Suspend to the shell, but not while a plan is being applied: the apply would be suspended as well."""
        if self.applying.under_way:
            self.notify("a plan is being applied and would be interrupted: wait until it has ended")
        else:
            super().action_suspend_process()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """The filters that every line passes before it is sent to the terminal."""
        return (*super().get_line_filters(), ESCAPED)

    def get_default_screen(self) -> Screen[None]:
        """The main screen is always at the bottom."""
        return self._main

    def on_load(self) -> None:
        """Make :meth:`stop` work before the terminal is taken over."""
        self._loop_to_leave = asyncio.get_running_loop()

    def stop(self) -> None:
        """Quit at once; for signal handlers. An apply in progress continues, and ``applying`` reports its end."""
        if self._stopped:
            return
        self._stopped = True
        # With an apply under way this is no interruption: its outcome decides the exit code.
        self.interrupted = not self.applying.under_way
        if self._loop_to_leave is not None:
            with suppress(RuntimeError):  # the loop is closed already
                self._loop_to_leave.call_soon_threadsafe(self.exit)

    def on_ready(self) -> None:
        """Start reading, now that all widgets exist."""
        self.app_resume_signal.subscribe(self, lambda _app: self.refresh())  # the shell has overwritten it
        self._collector.start()
        self.set_interval(1.0, self._tick)
        # A signal may have come before ``on_load``, when there was no event loop to leave.
        if self._stopped:
            self.exit()

    def on_unmount(self) -> None:
        """Stop the collector."""
        self._collector.stop()

    def on_reading_began(self) -> None:
        """Note when the reading began, to show that it is in progress if it takes long."""
        self._reading_since = self._shared.now()

    def on_observed(self, event: Observed) -> None:
        """Show the new observation."""
        died = self._daemon.trouble(event.seen.records, self._shared.now())
        self.seen = replace(event.seen, forbidden=self._shared.acts.forbidden, daemon_trouble=died)
        trouble = event.seen.records.trouble
        self._end_reading(trouble=f"could not read a store: {trouble}" if trouble else None)
        self._main.show(self.seen)
        # Asked even if the bell is off: turned on later, it must not ring for what began meanwhile.
        if self._incidents.begun(self.seen.observation) and self._rings:
            self.bell()
        self._tick()

    def on_observe_failed(self, event: ObserveFailed) -> None:
        """Show the error; the earlier data remain, with their age."""
        self._end_reading(trouble=self.aimed(f"could not read the rack: {event.text}"))
        self._tick()

    def on_refresh_wanted(self, event: RefreshWanted) -> None:
        """Start a reading now."""
        event.stop()
        self._asked_to_read = True
        self._collector.refresh()
        self._tick()

    def on_wanted(self, event: Wanted) -> None:
        """Open the requested screen."""
        event.stop()
        if (screen := screen_of(event.kind, event.key, self._shared)) is not None:
            self.push_screen(screen)
            # Later, because the new screen has no top bar yet.
            self.call_later(self._show_played)

    def action_spares(self) -> None:
        """Open the screen of the spares and the ranks that each can replace; from any screen."""
        self.post_message(Wanted(SPARES_KIND, ""))

    def on_work_wanted(self, event: WorkWanted) -> None:
        """Keys that open tools for the selected component."""
        event.stop()
        self._work.begin(event)

    def on_plan_wanted(self, event: PlanWanted) -> None:
        """Open the screen of a swap, or report why there is nothing to swap."""
        event.stop()
        if self.seen is None:
            return
        accelerator, acts = event.accelerator, self._shared.acts
        others = event.others or fails_with(self.seen, accelerator)
        failed = (accelerator, *others)
        if reason := (
            acts.forbidden
            or replaced_now(self.seen, failed)
            or why_no_swap(self.seen.observation, accelerator)
            or checked_obstacle(self.seen, failed)
        ):
            self.screen.query_one(AnswerLine).say(reason)
        else:
            plan = partial(acts.plan, job_of(self.seen.observation, failed), *failed)
            self.push_screen(PlanScreen(f"swap of {named(failed)}", plan, self._shared, event.left_out))

    def on_drain_wanted(self, event: DrainWanted) -> None:
        """Open the screen of a plan that moves every rank of some components to spares."""
        event.stop()
        if self.seen is None:
            return
        acts, accelerators = self._shared.acts, placed_at(self.seen.observation, event.components)
        if acts.forbidden:
            self._main.say(acts.forbidden)
        elif not accelerators:
            self._main.say(f"no rank runs on {named(event.components)}: there is nothing to drain")
        else:
            plan = partial(acts.drain, job_of(self.seen.observation, accelerators), *accelerators)
            idle = (each for each in event.components if not placed_at(self.seen.observation, (each,)))
            left_out = tuple(f"{each} was marked but is not drained: no rank runs on it" for each in idle)
            self.push_screen(PlanScreen(f"drain of {named(event.components)}", plan, self._shared, left_out))

    def on_act_wanted(self, event: ActWanted) -> None:
        """Acknowledge components, or open maintenance windows, in a thread: it reads the rack and writes the store."""
        event.stop()
        acts = self._shared.acts
        act = (
            partial(acts.acknowledge, event.components, event.comment)
            if event.act is RowAct.ACKNOWLEDGE
            else partial(acts.maintain, event.components, event.for_s, event.comment)
        )
        # Confirmed, so it is recorded even if the operator quits at once.
        FinishingThread(target=self._act_in_thread, args=(act,), name="lumctl-rows").start()

    def on_act_ended(self, event: ActEnded) -> None:
        """Show the result of the action, and read again if it was done."""
        event.stop()
        self._main.show_result(event.line, done=event.done)
        if event.done:
            self._collector.refresh()

    def _act_in_thread(self, act: Callable[[], str]) -> None:
        try:
            self.post_message(ActEnded(act(), done=True))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(ActEnded(f"nothing was done: {one_line(error)}", done=False))

    def on_apply_ended(self, event: ApplyEnded) -> None:
        """Read the rack after the change; quit if the operator requested that."""
        event.stop()
        self._collector.refresh()
        if self._leave_when_applied:
            self.exit()
        elif isinstance(self.screen, LeavingScreen):
            self.screen.dismiss(False)  # noqa: FBT003 - the answer to its question, which no longer applies

    def _remembered(self, component: str) -> History:
        """The readings of a component from this dashboard's own memory, without the store."""
        return joined(nothing_kept, self._shared.sources.ring, component, LINE_S)

    def action_command_palette(self) -> None:
        """Open the command palette."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def action_help(self) -> None:
        """Open the help."""
        shared = self._shared
        self.push_screen(HelpScreen(self.screen_stack, shared.target, shared.marks, shared.acts.forbidden))

    async def action_quit(self) -> None:
        """Quit; while a plan is being applied, first ask whether to quit when that has ended."""
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
        if isinstance(self._driver, TerminalDriver) and hung_up(self._driver.fileno):
            signal.raise_signal(signal.SIGHUP)  # handled like the terminal's own signal
            return
        self._main.tick(self._freshness(), self.trouble)
        self._show_played()

    def _show_played(self) -> None:
        """Show the progress of the playback on every screen; read again when it has moved on."""
        if self._playback is None:
            return
        before, self._played = self._played, self._playback.standing()
        if before is None or self._played.text != before.text:
            self._collector.refresh()
        show_on(self.screen_stack, self._played)

    def _freshness(self) -> Text:
        """The age of the data, and whether a reading is in progress or fails."""
        now = self._shared.now()
        if self.seen is None:
            return Text("not read yet ")
        observation = self.seen.observation
        hosts, answers = len(observation.inventory.hosts), observation.snapshot.hosts.values()
        answered = sum(host.reachable for host in answers)
        said = [f"{answered} of {counted(hosts, 'hosts')} answer"] if answered < hosts else []
        if self.trouble:
            said.insert(0, "failing")
        # A reading that was asked for is shown at once, any other only if it takes long: the word would flicker.
        elif self._asked_to_read or (self._reading_since is not None and now - self._reading_since >= 1.0):
            said.insert(0, "reading")
        elif not said:
            said = ["live"]
        old = now - observation.at
        # Between two readings the data grow as old as the interval; that alone is not stale.
        stale = old > observation.inventory.thresholds.stale_after_s + self._interval_s
        reader = {True: " by the daemon", False: " by top", None: ""}[self.seen.records.watched]
        verb = "read" if answered else "asked"
        text = f"{', '.join(said)}, {verb}{reader} {duration(old)} ago, every {self._interval_s:g} s "
        return Text(text, style=STALE_STYLE if stale or self.trouble or answered < hosts else "")
