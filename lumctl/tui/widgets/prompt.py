"""The lines in which an operator types: a filter, the name of a place to go to, or an answer to a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static


class Prompt(Horizontal):
    """The line for a filter or a name, hidden until ``/`` or ``:`` opens it; it posts the typed text as messages."""

    @dataclass
    class Filtered(Message):
        """The words of the filter so far."""

        words: str

    @dataclass
    class GoneTo(Message):
        """A name was entered."""

        name: str

    @dataclass
    class Closed(Message):
        """The line is hidden again."""

    def __init__(self) -> None:
        super().__init__()
        self._mark = "/"

    def compose(self) -> ComposeResult:
        """The mark and the line itself."""
        yield Static("/", id="mark")
        line = Input(id="line", compact=True)
        line.cursor_blink = False
        yield line

    @property
    def opened(self) -> bool:
        """Whether it is visible."""
        return self.has_class("-open")

    def open(self, mark: str, text: str = "", names: Sequence[str] = ()) -> None:
        """Show the line; ``names`` are offered as completions."""
        self._mark = mark
        self.query_one("#mark", Static).update(mark)
        self.add_class("-open")
        self._line.suggester = SuggestFromList(names, case_sensitive=False) if names else None
        self._line.value = text
        self._line.cursor_position = len(text)
        self._line.focus()

    def close(self) -> None:
        """Hide the line."""
        self.remove_class("-open")
        self.post_message(self.Closed())

    def complete(self) -> None:
        """Take the completion that is offered."""
        self._line.action_cursor_right()

    @property
    def _line(self) -> Input:
        return self.query_one("#line", Input)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the words are typed."""
        event.stop()
        # Also posted when ``open`` sets the text; the name of a place to go to filters nothing.
        if self.opened and self._mark == "/":
            self.post_message(self.Filtered(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter, or open the name in the line."""
        event.stop()
        self.close()
        if self._mark == ":" and event.value.strip():
            self.post_message(self.GoneTo(event.value.strip()))


_STAY = Binding("tab,shift+tab", "stay", show=False)
"""There is no other field: by default, tab would take the focus away, and what is typed then would go nowhere."""


class YesLine(Input):
    """A line that leaves the letters of ``keys`` to the screen: no word to type here contains them."""

    BINDINGS: ClassVar[list[BindingType]] = [_STAY]

    def __init__(self, id: str, keys: str) -> None:  # noqa: A002 - Textual's own word
        super().__init__(id=id, compact=True)
        self.cursor_blink = False
        self._keys = keys

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Whether a key is text for this line."""
        return character not in set(self._keys) and super().check_consume_key(key, character)

    def action_stay(self) -> None:
        """Keep the focus."""


class Question(Vertical):
    """A question, which states what the answer does, and the line for the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [_STAY]

    @dataclass
    class Answered(Message):
        """A line was entered."""

        text: str

    def compose(self) -> ComposeResult:
        """The words above the line."""
        yield Static(id="asked", markup=False)
        line = Input(id="reply", compact=True)
        line.cursor_blink = False
        yield line

    @property
    def opened(self) -> bool:
        """Whether it is visible."""
        return self.has_class("-open")

    def ask(self, text: str) -> None:
        """Ask a question; text that was typed before stays."""
        self.query_one("#asked", Static).update(text)
        self.add_class("-open")
        self.query_one("#reply", Input).focus()

    def action_stay(self) -> None:
        """Keep the focus."""

    def close(self) -> None:
        """Hide the question, and delete the typed text."""
        self.query_one("#reply", Input).value = ""
        self.remove_class("-open")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Post the entered line."""
        event.stop()
        self.post_message(self.Answered(event.value.strip()))
