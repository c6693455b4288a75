"""A screen that asks below its text, and acts on a typed yes."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual.containers import VerticalScroll
from textual.message import Message
from textual.scroll_view import ScrollView

from lumctl.process_exit import FinishingThread
from lumctl.tui.actions import ApplyView
from lumctl.tui.screens.main import RefreshWanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.widgets.bars import AnswerLine
from lumctl.tui.widgets.prompt import Question

NO_YES = "That was not a yes; nothing was done."


def typed_yes(text: str) -> tuple[bool, str]:
    """Whether a line begins with y or yes, and the comment behind it."""
    word, _, comment = text.strip().partition(" ")
    return word.lower() in {"y", "yes"}, comment.strip()


@dataclass
class Done(Message):
    """What was asked about was done, or was not."""

    view: ApplyView


class AskingScreen(KeyedScreen[None]):
    """It has an ``Answer`` and a ``Question`` below its text."""

    FAILED: ClassVar[str] = "not done"
    """The message of a failed order."""

    def __init__(self, context: ScreenContext) -> None:
        super().__init__()
        self.context = context

    @abstractmethod
    def question(self) -> str:
        """The present question with the consequences of a yes; empty if there is nothing to ask any more."""

    @abstractmethod
    def order(self) -> tuple[str, Callable[[str], ApplyView]]:
        """The message while it is done, and the function that does it; it blocks, and gets the text after the yes."""

    def done(self, view: ApplyView) -> None:
        """Further lines after it was done, or was not."""

    def text(self) -> VerticalScroll | ScrollView:
        """What has the keys while nothing is asked."""
        return self.query_one(VerticalScroll)

    def ask(self) -> None:
        """Ask for a yes."""
        self.say("")
        self.query_one(Question).ask(self.question())

    def say(self, text: str) -> None:
        """Answer the operator; an empty text takes the answer away."""
        self.query_one(AnswerLine).say(text)

    def action_back(self) -> None:
        """Close the question, else leave."""
        if self.query_one(Question).opened:
            self._close()
        else:
            self.dismiss()

    def on_question_answered(self, event: Question.Answered) -> None:
        """Do it after a typed yes; anything else does nothing, with a message."""
        event.stop()
        agreed, comment = typed_yes(event.text)
        if not agreed:
            if asked := self.question():
                self.query_one(Question).ask(f"{NO_YES}  {asked}")
            return
        self._close()
        doing, order = self.order()
        self.say(doing)
        # An order that was given is carried out, even if the screen is closed meanwhile.
        FinishingThread(target=self._carry_out, args=(order, comment), name="lumctl-order").start()

    def on_done(self, event: Done) -> None:
        """Show the result, and read again."""
        event.stop()
        self.say("\n".join((event.view.outcome, *event.view.lines)))
        self.done(event.view)
        self.post_message(RefreshWanted())

    def _close(self) -> None:
        self.query_one(Question).close()
        self.text().focus()

    def _carry_out(self, order: Callable[[str], ApplyView], comment: str) -> None:
        try:
            view = order(comment)
        except Exception as error:  # noqa: BLE001 - whatever went wrong is a line on the screen, never a traceback
            view = ApplyView(f"{self.FAILED}: {one_line(error)}", done=False, error=error)
        self.post_message(Done(view))
