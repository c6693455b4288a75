"""The screen of the torus: slices layer by layer; new slices are planned here, and slices are released."""

from collections.abc import Callable, Sequence
from functools import partial

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll

from lumctl.tui.actions import PlanView
from lumctl.tui.screens.pictures import PictureScreen
from lumctl.tui.screens.plan import PlanScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.torus import torus_lines
from lumctl.tui.widgets.bars import KeyBar
from lumctl.tui.widgets.prompt import Question

_NEW = "a new slice: type its shape and its name, such as 4x4x2 tenant-a; nothing changes before you confirm the plan"
_RELEASE = "release a slice: type its name; nothing changes before you confirm the plan"


class TorusScreen(PictureScreen, keys="torus"):
    """Shows each torus, and asks for a slice to plan or to release."""

    def __init__(self, context: ScreenContext) -> None:
        super().__init__("torus", context)
        self._answer: Callable[[str], str] = self._place

    def lines(self, seen: RecordedLook, width: int) -> Sequence[Text]:
        """The layers, a line for each slice, and the fullest fibres."""
        return tuple(torus_lines(seen.observation, self.shared.marks, width))

    def compose(self) -> ComposeResult:
        """The picture, and the question above the keys."""
        for part in super().compose():
            if isinstance(part, KeyBar):
                yield Question()
            yield part

    def action_place(self) -> None:
        """Ask for the shape and the name of a new slice."""
        self._ask(_NEW, self._place)

    def action_release(self) -> None:
        """Ask for the slice to release."""
        self._ask(_RELEASE, self._release)

    def action_back(self) -> None:
        """Close the open question; else leave."""
        question = self.query_one(Question)
        if question.opened:
            self._close()
        else:
            self.dismiss()

    def on_question_answered(self, event: Question.Answered) -> None:
        """Open the screen of the plan, or say what is missing."""
        event.stop()
        if missing := self._answer(event.text):
            self.say(missing)
        else:
            self._close()

    def _ask(self, text: str, answer: Callable[[str], str]) -> None:
        if self.shared.acts.forbidden:
            self.say(self.shared.acts.forbidden)
            return
        self._answer = answer
        self.query_one(Question).ask(text)

    def _close(self) -> None:
        self.say("")
        self.query_one(Question).close()
        self.query_one(VerticalScroll).focus()

    def _place(self, text: str) -> str:
        words = text.split()
        if len(words) != 2:  # noqa: PLR2004 - shape and name
            return "type a shape and a name, such as: 4x4x2 tenant-a"
        self._plan(f"slice {words[1]}", partial(self.shared.acts.place_slice, *words))
        return ""

    def _release(self, text: str) -> str:
        if not text:
            return "type the name of a slice"
        self._plan(f"release of {text}", partial(self.shared.acts.release_slice, text))
        return ""

    def _plan(self, title: str, plan: Callable[[], PlanView]) -> None:
        self.app.push_screen(PlanScreen(title, plan, self.shared))
