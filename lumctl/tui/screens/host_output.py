"""The screen of the output of a host's probes: its kernel log first, each with command, exit status and age."""

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from lumctl.printable import counted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.threads.readers import HostOutputReader, HostRead, ProbeAnswered
from lumctl.tui.views.host_output import about_lines, lines_of, names_line
from lumctl.tui.views.subject import WorkSubject
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar
from lumctl.tui.widgets.picture import PictureWidget
from lumctl.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from lumctl.fleet.bundle.host_answers import HostAnswer


class HostOutputScreen(KeyedScreen[None], keys="host-output"):
    """The probes run when the screen is opened, and again by key. For a log the end is shown first."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    """Nothing: the line of the filter, which is hidden, would take all keys."""

    def __init__(self, host: str, context: ScreenContext) -> None:
        super().__init__()
        self._host = host
        self.shared = context
        self._answers: list[HostAnswer] = []
        self._chosen = 0
        self._words = ""
        self._is_reading = False
        self._lines: list[str] = []
        self._reader = HostOutputReader(partial(context.sources.host_output, host), self.post_message)

    def compose(self) -> ComposeResult:
        """The names of the probes, the one that is shown, and its lines."""
        yield TopBar(f"output of {self._host}", self.shared.target)
        yield Static(id="probes")
        yield Static(id="about", markup=False)
        yield PictureWidget(id="output")
        yield AnswerLine()
        yield Prompt()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Ask the host."""
        self.action_read_again()
        self.set_interval(1.0, self._show_about)

    def on_unmount(self) -> None:
        """Ask no more."""
        self._reader.stop()

    def subject(self) -> WorkSubject:
        """The host."""
        return WorkSubject(self._host)

    def action_read_again(self) -> None:
        """Ask all probes again."""
        if not self._is_reading:
            self._is_reading = True
            self._answers.clear()
            self._say("")
            self._show()
            self._reader.start()

    def action_turn(self, by: int) -> None:
        """Show the next or the previous probe."""
        if self._answers:
            self._chosen = (self._chosen + by) % len(self._answers)
            self._show()
            self._begin()

    def action_scroll_output(self, down: int, across: int = 0) -> None:
        """Scroll the lines."""
        self._output.scroll_relative(x=across, y=down, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll by the height of the visible part."""
        self.action_scroll_output(pages * max(self._output.size.height - 1, 1))

    def action_end(self, last: bool) -> None:
        """Go to the first line or to the last."""
        (self._output.scroll_end if last else self._output.scroll_home)(animate=False)

    def action_filter(self) -> None:
        """Open the line for a filter."""
        self.query_one(Prompt).open("/", self._words)

    def action_back(self) -> None:
        """Close the line, else take the filter away, else go back."""
        prompt = self.query_one(Prompt)
        if prompt.opened:
            prompt.close()
        elif self._words:
            self._words = ""
            self._show()
        else:
            super().action_back()

    def on_prompt_filtered(self, event: Prompt.Filtered) -> None:
        """Show only lines with these words."""
        event.stop()
        self._words = event.words
        self._show()
        self._output.scroll_home(animate=False)

    def on_prompt_closed(self) -> None:
        """Return the keys to the screen."""
        self.set_focus(None)

    def on_probe_answered(self, event: ProbeAnswered) -> None:
        """Show it, or that it is there."""
        event.stop()
        self._answers.append(event.answer)
        self._show()
        # Only when the shown one arrives: a later one must not scroll the lines that are being read.
        if len(self._answers) == self._chosen + 1:
            self._begin()

    def on_host_read(self, event: HostRead) -> None:
        """No more answers follow; show the reason if some are missing."""
        event.stop()
        self._is_reading = False
        # Probes may be fewer than the last time.
        self._chosen = min(self._chosen, max(len(self._answers) - 1, 0))
        self._say(event.trouble)
        self._show()

    @property
    def _output(self) -> PictureWidget:
        return self.query_one(PictureWidget)

    def _say(self, text: str) -> None:
        self.query_one(AnswerLine).say(text)

    def _begin(self) -> None:
        """A log is read from its end, other output from its beginning."""
        is_log = self._answers[self._chosen].probe.name == "kernel"
        self.call_after_refresh(self.action_end, is_log)

    def _show(self) -> None:
        names = names_line(self._answers, self._chosen, self.shared.marks, reading=self._is_reading)
        self.query_one("#probes", Static).update(names)
        here = self._answers[self._chosen] if self._chosen < len(self._answers) else None
        self._lines = lines_of(here, self._words) if here is not None else []
        columns = max(map(len, self._lines), default=0)
        self._output.show(len(self._lines), columns, lambda number: Text(self._lines[number]))
        self._show_about()

    def _show_about(self) -> None:
        if self._chosen >= len(self._answers):
            self.query_one("#about", Static).update("reading the host" if self._is_reading else "")
            return
        about = "\n".join(about_lines(self._answers[self._chosen], self.shared.now()))
        words = f"\n{counted(len(self._lines), 'lines')} with {self._words!r} (esc: all)" if self._words else ""
        self.query_one("#about", Static).update(f"{about}{words}")
