"""A base for screens that ask a question below their text and act after a typed yes."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual.containers import VerticalScroll
from textual.message import Message
from textual.scroll_view import ScrollView

from lumctl.process_exit import FinishingThread
from lumctl.tui.actions import ApplyView
from lumctl.tui.screens.requests import RefreshWanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.collector import one_line
from lumctl.tui.widgets.bars import AnswerLine
from lumctl.tui.widgets.prompt import Question

NO_YES = "The answer was not yes; nothing was done."


def typed_yes(text: str) -> tuple[bool, str]:
    """Whether a line begins with y or yes, and the comment after that word."""
    word, _, comment = text.strip().partition(" ")
    return word.lower() in {"y", "yes"}, comment.strip()


@dataclass
class Done(Message):
    """The order has ended, with success or not."""

    view: ApplyView


class AskingScreen(KeyedScreen[None]):
    """A screen with an ``AnswerLine`` and a ``Question`` below its text."""

    FAILED: ClassVar[str] = "not done"
    """The beginning of the message about a failed order."""

    def __init__(self, context: ScreenContext) -> None:
        super().__init__()
        self.context = context

    @abstractmethod
    def question(self) -> str:
        """The question with the consequences of a yes; empty if there is nothing to ask any longer."""

    @abstractmethod
    def order(self) -> tuple[str, Callable[[str], ApplyView]]:
        """A message to show in the meantime, and the blocking function, called with the text after the confirmation."""

    def done(self, view: ApplyView) -> None:
        """Update the screen after the order has ended; by default nothing changes."""

    def text(self) -> VerticalScroll | ScrollView:
        """The widget that has the focus while no question is open."""
        return self.query_one(VerticalScroll)

    def ask(self) -> None:
        """Open the question."""
        self.say("")
        self.query_one(Question).ask(self.question())

    def say(self, text: str) -> None:
        """Show a message to the operator; an empty text removes the message."""
        self.query_one(AnswerLine).say(text)

    def action_back(self) -> None:
        """Close an open question, else leave the screen."""
        if self.query_one(Question).opened:
            self._close()
        else:
            self.dismiss()

    def on_question_answered(self, event: Question.Answered) -> None:
        """Carry out the order after a typed yes; after any other text ask again, with a message."""
        event.stop()
        # Two quick enters post two answers: the first one closes the question.
        if not self.query_one(Question).opened:
            return
        agreed, comment = typed_yes(event.text)
        if not agreed:
            if asked := self.question():
                self.query_one(Question).ask(f"{NO_YES}  {asked}")
            return
        self._close()
        doing, order = self.order()
        self.say(doing)
        # A confirmed order is carried out even if the screen is closed meanwhile.
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
            view = ApplyView(f"{self.FAILED}: {self.context.sources.aimed(one_line(error))}", done=False, error=error)
        self.post_message(Done(view))
