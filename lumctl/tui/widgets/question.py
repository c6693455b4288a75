"""A question to which a person types a line; hidden until it is asked."""

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static


class Question(Vertical):
    """What follows from the answer in words, and the line for it."""

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
        """Whether it is to be seen."""
        return self.has_class("-open")

    def ask(self, text: str) -> None:
        """Ask; what was typed so far stays."""
        self.query_one("#asked", Static).update(text)
        self.add_class("-open")
        self.query_one("#reply", Input).focus()

    def close(self) -> None:
        """Hide it, and forget what was typed."""
        self.query_one("#reply", Input).value = ""
        self.remove_class("-open")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Hand the line on."""
        event.stop()
        self.post_message(self.Answered(event.value.strip()))
