"""The screen of a run: its steps from the journal, even while it is in progress, and its light."""

import threading
from dataclasses import dataclass
from functools import partial

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from lumctl.store.records import OPEN
from lumctl.tui.screens.plan import PlanScreen
from lumctl.tui.screens.requests import Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.views.light import light_text, powers_of
from lumctl.tui.views.runs import RunView, no_way_back, run_text
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar

READ_EVERY_S = 1.0


@dataclass
class RunRead(Message):
    """The run was read."""

    view: RunView


@dataclass
class RunNotRead(Message):
    """The run could not be read; ``text`` is the reason in one line."""

    text: str


class RunScreen(KeyedScreen[None], keys="run"):
    """Reads the run again each second until it has ended."""

    def __init__(self, key: str, context: ScreenContext) -> None:
        super().__init__()
        self._key = key
        self.shared = context
        self._view: RunView | None = None
        self._powers: dict[str, float | None] = {}
        """Power (dBm) at the receivers when this screen was opened, for a run in progress that recorded none."""
        self._is_reading = False

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        yield TopBar(self._key.rpartition("/")[2], self.shared.target)
        with VerticalScroll():
            yield Static("reading the journal", id="run", markup=False)
            yield Static(id="light", markup=False)
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Read the run now, and again while it is in progress."""
        self.query_one(VerticalScroll).focus()
        self._read()
        self.set_interval(READ_EVERY_S, self._turn)

    def on_screen_resume(self) -> None:
        """Read the run again after another screen: it may have been undone there."""
        self._read()

    def action_undo(self) -> None:
        """Plan to undo the run, or report why not."""
        acts, view = self.shared.acts, self._view
        if view is None:
            return
        if reason := acts.forbidden or no_way_back(view):
            self.query_one(AnswerLine).say(reason)
            return
        self.query_one(AnswerLine).say("")
        title = f"undo of {view.run.id}"
        self.app.push_screen(PlanScreen(title, partial(acts.undo, self._key), self.shared))

    def action_runbook(self) -> None:
        """Open the run's runbook, or report why there is none."""
        if self._view is None:
            return
        if self._view.run.ended_at is None:
            self.query_one(AnswerLine).say("its runbook is written when it has ended")
            return
        self.query_one(AnswerLine).say("")
        self.post_message(Wanted("runbook", self._key))

    def on_run_read(self, event: RunRead) -> None:
        """Show the run."""
        event.stop()
        self._is_reading = False
        # Only with the first view: later powers are those of a change half made.
        if self._view is None and event.view.live:
            self._powers = powers_of(self.shared.seen(), event.view.receivers)
        self._view = event.view
        self._show()

    def on_run_not_read(self, event: RunNotRead) -> None:
        """Show the reason; the earlier content stays."""
        event.stop()
        self._is_reading = False
        if self._view is None:
            self.query_one("#run", Static).update(event.text)
        else:
            self.query_one(AnswerLine).say(event.text)

    def _turn(self) -> None:
        if self._view is None or self._view.live:
            self._read()
        self._show()

    def _show(self) -> None:
        if (view := self._view) is None:
            return
        marks, now, before = self.shared.marks, self.shared.now(), {**self._powers, **view.before}
        seen = self.shared.seen()
        stopped_jobs = seen.stopped_jobs if seen is not None else ()
        self.query_one("#run", Static).update(run_text(view, marks, now, self.shared.sources.aimed, stopped_jobs))
        # The proofs of a run that was rolled back or undone are of circuits that no longer exist.
        proved = view.proved if view.run.state == "done" else {}
        # Nor do its receivers tell anything of it: they hear again what they heard before.
        receivers = view.receivers if view.run.state in {"done", *OPEN} else ()
        light = light_text(receivers, before, seen, marks, now, settled_at=view.run.ended_at, proved=proved)
        self.query_one("#light", Static).update(light)
        # Pressed all the same, the keys show why there is nothing to undo, or no runbook yet.
        absent = {"undo": no_way_back(view) is not None, "runbook": view.run.ended_at is None}
        self.query_one(KeyBar).rename({action: "" for action, is_absent in absent.items() if is_absent})

    def _read(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            threading.Thread(target=self._read_in_thread, name="lumctl-run", daemon=True).start()

    def _read_in_thread(self) -> None:
        try:
            self.post_message(RunRead(self.shared.sources.run(self._key)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(RunNotRead(self.shared.sources.aimed(one_line(error))))
