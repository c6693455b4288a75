"""The screens of a runbook: read it, replay it on a simulator of its own, and compare it with another."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from lumctl.process_exit import FinishingThread
from lumctl.tui.screens.requests import Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.threads.replay import ReplayView, Stepper
from lumctl.tui.views.comparison import ComparisonView, comparison_text
from lumctl.tui.views.runbook_text import Replay, replay_text, runbook_text
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar

COMPARISON = "comparison"
"""The kind of the screen that compares two runbooks; its key is both keys, separated by a space."""


@dataclass
class RunbookRead(Message):
    """The runbook was read."""

    document: Mapping[str, Any]


@dataclass
class ReadFailed(Message):
    """The runbook could not be read; ``text`` is the reason in one line."""

    text: str


@dataclass
class Reached(Message):
    """The replay has reached a step."""

    step: str


@dataclass
class Said(Message):
    """A line about what the replay has done."""

    line: str


@dataclass
class Replayed(Message):
    """The replay has ended."""

    view: ReplayView


class RunbookScreen(KeyedScreen[None], keys="runbook"):
    """Reads and replays in threads, because both block; the threads only post messages to this screen."""

    def __init__(self, key: str, context: ScreenContext) -> None:
        super().__init__()
        self._key = key
        self.context = context
        self._document: Mapping[str, Any] | None = None
        self._stepper: Stepper | None = None
        self.replay: Replay | None = None

    def compose(self) -> ComposeResult:
        """Create the runbook, and below it the progress of a replay and the possible actions."""
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
        """Stop a replay that is in progress."""
        if self._stepper is not None:
            self._stepper.stop()

    def action_back(self) -> None:
        """Stop a replay that is in progress, else leave the screen."""
        if self.replay is None or self.replay.ended is not None or self.replay.stopping:
            self.dismiss()
        elif self._stepper is not None:
            self.replay.stopping = True
            self._stepper.stop()
            self._show()

    def action_replay(self) -> None:
        """Replay the runbook on a simulator of its own, step by step."""
        if self._document is None:
            self._say("the runbook has not been read yet")
        elif self.replay is not None and self.replay.ended is None:
            self._say("it is being replayed; n: next step, g: to the end, esc: stop")
        else:
            self._say("")
            self.replay = Replay()
            self._stepper = Stepper(lambda step: self.post_message(Reached(step)))
            # This thread also stops the simulator, even if the screen is closed meanwhile.
            FinishingThread(target=self._run, args=(self._stepper,), name="lumctl-replay").start()
            self._show()

    def action_next_step(self) -> None:
        """Do the next step of the replay, if it is waiting."""
        if self._may_go_on() and self.replay is not None and self.replay.waits and self._stepper is not None:
            self.replay.waits = False
            self._stepper.go_on()
            self._show()

    def action_to_the_end(self) -> None:
        """Do all remaining steps without waiting."""
        if self._may_go_on() and self.replay is not None and self._stepper is not None:
            self.replay.waits = False
            self._stepper.to_the_end()
            self._show()

    def action_compare(self) -> None:
        """Mark this runbook for a comparison, or compare it with the marked one."""
        marked = self.context.comparing
        if marked.key is None or marked.key == self._key:
            marked.key = None if marked.key == self._key else self._key
            self._say("marked; go to another runbook and press c there" if marked.key else "no longer marked")
        else:
            first, marked.key = marked.key, None
            self.post_message(Wanted(COMPARISON, f"{first} {self._key}"))

    def on_runbook_read(self, event: RunbookRead) -> None:
        """Show the runbook."""
        event.stop()
        self._document = event.document
        self._show()

    def on_read_failed(self, event: ReadFailed) -> None:
        """Report why the runbook could not be read."""
        event.stop()
        self.query_one("#runbook", Static).update("")
        self._say(f"not read: {event.text}")

    def on_reached(self, event: Reached) -> None:
        """Show the step that the replay has reached."""
        event.stop()
        if self.replay is not None and self._stepper is not None:
            self.replay.begun.append(event.step)
            # The operator may have pressed g before this message came: then nothing waits.
            self.replay.waits = not self._stepper.running_on
            self._show()

    def on_said(self, event: Said) -> None:
        """Add a line of the replay."""
        event.stop()
        if self.replay is not None:
            self.replay.said.append(event.line)
            self._show()

    def on_replayed(self, event: Replayed) -> None:
        """Show how the replay ended, and where it differs."""
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
        """The progress of the replay, and the keys that work now."""
        if replay.ended is not None:
            return "s: replay it again   esc: back"
        if replay.stopping:
            return "stopping: the changes on the simulator are undone (esc: leave, it ends by itself)"
        if not replay.begun:
            return "a private simulator starts and is brought to the start state of the recording (esc: stop)"
        if replay.waits:
            return f"waits before step {replay.begun[-1]}: n or space does it, g continues to the end, esc stops"
        return f"replaying step {replay.begun[-1]} on the simulator (esc: stop)"

    def _read(self) -> None:
        try:
            self.post_message(RunbookRead(self.context.sources.runbook(self._key)))
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            self.post_message(ReadFailed(self.context.sources.aimed(one_line(error))))

    def _run(self, stepper: Stepper) -> None:
        try:
            view = self.context.acts.replay(self._key, self._progress_in_thread, stepper.gate)
        except Exception as error:  # noqa: BLE001 - as above
            view = ReplayView(f"not replayed: {self.context.sources.aimed(one_line(error))}", None)
        self.post_message(Replayed(view))

    def _progress_in_thread(self, line: str) -> None:
        self.post_message(Said(line))


@dataclass
class Compared(Message):
    """The comparison of two runbooks; if it failed, ``trouble`` is the reason."""

    view: ComparisonView | None
    trouble: str = ""


class ComparisonScreen(KeyedScreen[None], keys="comparison"):
    """Compares two runbooks, once: they do not change."""

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
            self.post_message(Compared(None, self.context.sources.aimed(one_line(error))))
