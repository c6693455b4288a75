"""The screen of a runbook: it is read, replayed on a simulator of its own, and marked to be compared with another."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from lumctl.process_exit import FinishingThread
from lumctl.tui.screens.main import Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.threads.replay import ReplayView, Stepper
from lumctl.tui.views.comparison import ComparisonView, comparison_text
from lumctl.tui.views.runbook_text import Replay, replay_text, runbook_text
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar

COMPARISON = "comparison"
"""The kind of the screen that shows two runbooks beside each other; its key is both keys with a space between."""


@dataclass
class RunbookRead(Message):
    """The runbook was read."""

    document: Mapping[str, Any]


@dataclass
class ReadFailed(Message):
    """It failed; ``text`` is the reason in one line."""

    text: str


@dataclass
class Reached(Message):
    """The replay has reached a step."""

    step: str


@dataclass
class Said(Message):
    """The replay has done something."""

    line: str


@dataclass
class Replayed(Message):
    """The replay has ended."""

    view: ReplayView


class RunbookScreen(KeyedScreen[None], keys="runbook"):
    """Reading and replaying block, so each runs in a thread that does nothing but post messages to this screen."""

    def __init__(self, key: str, context: ScreenContext) -> None:
        super().__init__()
        self._key = key
        self.context = context
        self._document: Mapping[str, Any] | None = None
        self._stepper: Stepper | None = None
        self.replay: Replay | None = None

    def compose(self) -> ComposeResult:
        """The runbook, and below it the progress of a replay and the possible actions."""
        yield TopBar(f"runbook {self._key.rpartition('/')[2]}", self.context.target)
        with VerticalScroll():
            yield Static("reading the runbook", id="runbook")
        yield Static(id="standing", markup=False)
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one(VerticalScroll).focus()
        threading.Thread(target=self._read, name="lumctl-runbook", daemon=True).start()

    def on_unmount(self) -> None:
        """However the screen is left: a replay under way ends."""
        if self._stepper is not None:
            self._stepper.stop()

    def action_back(self) -> None:
        """Stop the replay that is under way; else leave."""
        if self.replay is None or self.replay.ended is not None or self.replay.stopping:
            self.dismiss()
        elif self._stepper is not None:
            self.replay.stopping = True
            self._stepper.stop()
            self._show()

    def action_replay(self) -> None:
        """Replay it on a simulator of its own, a step at a time."""
        if self._document is None:
            self._say("the runbook was not read yet")
        elif self.replay is not None and self.replay.ended is None:
            self._say("it is being replayed; n: next step, g: to the end, esc: stop")
        else:
            self._say("")
            self.replay = Replay()
            self._stepper = Stepper(lambda step: self.post_message(Reached(step)))
            # Its simulator is taken down by this thread, however the screen is left.
            FinishingThread(target=self._run, args=(self._stepper,), name="lumctl-replay").start()
            self._show()

    def action_next_step(self) -> None:
        """Do the step that waits."""
        if self._may_go_on() and self.replay is not None and self.replay.waits and self._stepper is not None:
            self.replay.waits = False
            self._stepper.go_on()
            self._show()

    def action_to_the_end(self) -> None:
        """Do all steps that are left."""
        if self._may_go_on() and self.replay is not None and self._stepper is not None:
            self.replay.waits = False
            self._stepper.to_the_end()
            self._show()

    def action_compare(self) -> None:
        """Mark this runbook, or show it beside the one that is marked."""
        marked = self.context.comparing
        if marked.key is None or marked.key == self._key:
            marked.key = None if marked.key == self._key else self._key
            self._say("marked; go to another runbook and press c there" if marked.key else "no longer marked")
        else:
            first, marked.key = marked.key, None
            self.post_message(Wanted(COMPARISON, f"{first} {self._key}"))

    def on_runbook_read(self, event: RunbookRead) -> None:
        """Show it."""
        event.stop()
        self._document = event.document
        self._show()

    def on_read_failed(self, event: ReadFailed) -> None:
        """Report why there is nothing to read."""
        event.stop()
        self.query_one("#runbook", Static).update("")
        self._say(f"not read: {event.text}")

    def on_reached(self, event: Reached) -> None:
        """Show at which step the replay is."""
        event.stop()
        if self.replay is not None and self._stepper is not None:
            self.replay.begun.append(event.step)
            self.replay.waits = not self._stepper.running_on
            self._show()

    def on_said(self, event: Said) -> None:
        """Keep a line of the replay."""
        event.stop()
        if self.replay is not None:
            self.replay.said.append(event.line)
            self._show()

    def on_replayed(self, event: Replayed) -> None:
        """Show how it ended, and where it differs."""
        event.stop()
        if self.replay is not None:
            self.replay.ended = event.view
            self._show()
            self.query_one(VerticalScroll).scroll_end(animate=False)

    def _may_go_on(self) -> bool:
        if self.replay is None:
            self._say("nothing is being replayed; s: replay it on the simulator")
        return self.replay is not None and self.replay.ended is None and not self.replay.stopping

    def _say(self, text: str) -> None:
        self.query_one(AnswerLine).say(text)

    def _show(self) -> None:
        if self._document is None:
            return
        if self.replay is None:
            text, standing = runbook_text(self._document), ""
        else:
            text, standing = replay_text(self._document, self.replay, self.context.marks), self._standing(self.replay)
        self.query_one("#runbook", Static).update(text)
        self.query_one("#standing", Static).update(standing)

    def _standing(self, replay: Replay) -> str:
        """The progress of the replay, and the keys that do something now."""
        if replay.ended is not None:
            return "s: replay it again   esc: back"
        if replay.stopping:
            return "stopping: what was done on the simulator is undone (esc: leave, it ends by itself)"
        if not replay.begun:
            return "a simulator of its own comes up and is brought to where the recording began (esc: stop)"
        if replay.waits:
            return f"waits before step {replay.begun[-1]}: n or space does it, g continues to the end, esc stops"
        return f"replaying step {replay.begun[-1]} on the simulator (esc: stop)"

    def _read(self) -> None:
        try:
            self.post_message(RunbookRead(self.context.sources.runbook(self._key)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(ReadFailed(one_line(error)))

    def _run(self, stepper: Stepper) -> None:
        try:
            view = self.context.acts.replay(self._key, self._progress_in_thread, stepper.gate)
        except Exception as error:  # noqa: BLE001 - as above
            view = ReplayView(f"not replayed: {one_line(error)}", None)
        self.post_message(Replayed(view))

    def _progress_in_thread(self, line: str) -> None:
        self.post_message(Said(line))


@dataclass
class Compared(Message):
    """Both were read: how they differ, or why that is not known."""

    view: ComparisonView | None
    trouble: str = ""


class ComparisonScreen(KeyedScreen[None], keys="comparison"):
    """Both runbooks are read in a thread; nothing of this is changed by time."""

    def __init__(self, a: str, b: str, context: ScreenContext) -> None:
        super().__init__()
        self._a, self._b = a, b
        self.context = context

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        one, other = (key.rpartition("/")[2] for key in (self._a, self._b))
        yield TopBar(f"{one} beside {other}", self.context.target)
        with VerticalScroll():
            yield Static("reading both runbooks", id="comparison")
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one(VerticalScroll).focus()
        threading.Thread(target=self._read, name="lumctl-compare", daemon=True).start()

    def on_compared(self, event: Compared) -> None:
        """Show the differences."""
        event.stop()
        shown = comparison_text(event.view, self.context.marks) if event.view is not None else ""
        self.query_one("#comparison", Static).update(shown)
        if event.trouble:
            self.query_one(AnswerLine).say(f"not compared: {event.trouble}")

    def _read(self) -> None:
        try:
            self.post_message(Compared(self.context.sources.compare(self._a, self._b)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(Compared(None, one_line(error)))
