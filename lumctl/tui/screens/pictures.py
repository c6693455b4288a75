"""Screens that show one picture in characters, redrawn each second; each has a view of its own."""

from abc import abstractmethod
from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from lumctl.tui.screens.requests import LOSSES_KIND, Wanted
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.sources import ScreenContext
from lumctl.tui.views.link_matrix import matrix_lines
from lumctl.tui.views.losses import loss_lines
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.spares import forecast_lines, spare_lines, waiting_lines, way_back_lines
from lumctl.tui.views.timeline import timeline_lines
from lumctl.tui.widgets.bars import AnswerLine, KeyBar, TopBar


class PictureScreen(KeyedScreen[None]):
    """Shows the lines of a view of the newest observation, between the bars."""

    def __init__(self, title: str, context: ScreenContext) -> None:
        super().__init__()
        self.shared = context
        self._title = title

    @abstractmethod
    def lines(self, seen: RecordedLook, width: int) -> Sequence[Text]:
        """The lines of the picture, at most ``width`` characters wide."""

    def compose(self) -> ComposeResult:
        """A scrolling text between the bars."""
        yield TopBar(self._title, self.shared.target)
        with VerticalScroll():
            yield Static(id="picture")
        yield AnswerLine()
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Draw now and each second."""
        self.query_one(VerticalScroll).focus()
        self.show()
        self.set_interval(1.0, self.show)

    def on_resize(self) -> None:
        """Draw in the new size."""
        self.call_after_refresh(self.show)

    def say(self, text: str) -> None:
        """Show a message to the operator in one line; an empty text removes the line."""
        self.query_one(AnswerLine).say(text)

    def show(self) -> None:
        """Draw the newest observation."""
        seen = self.shared.seen()
        if seen is None or not self.is_mounted:
            return
        width = self.size.width - 4  # minus the padding and the scroll bar
        self.query_one("#picture", Static).update(Text("\n").join(self.lines(seen, width)))
        stale_after_s = seen.observation.inventory.thresholds.stale_after_s
        self.query_one(TopBar).say_age(seen.observation.at, self.shared.now(), stale_after_s)


class SparesScreen(PictureScreen, keys="spares"):
    """Shows the jobs that wait for spares, the ranks on spares, and the spares with the ranks that each can replace."""

    def lines(self, seen: RecordedLook, width: int) -> Sequence[Text]:  # noqa: ARG002 - its lines wrap
        """A line for each group and for each of its spares."""
        spares = spare_lines(seen.observation, self.shared.marks, seen.aimed)
        return (*waiting_lines(seen), *way_back_lines(seen), *forecast_lines(seen), *spares)


class MatrixScreen(PictureScreen, keys="matrix"):
    """Shows which receiver hears which transmitter on a rail."""

    def __init__(self, device: str, context: ScreenContext) -> None:
        super().__init__(f"links of {device}", context)
        self._device = device

    def lines(self, seen: RecordedLook, width: int) -> Sequence[Text]:
        """The matrix, with a row for each receiver."""
        return tuple(matrix_lines(seen.observation, self._device, self.shared.marks, width))

    def action_losses(self) -> None:
        """Open the screen of the loss budgets of the same links."""
        self.post_message(Wanted(LOSSES_KIND, self._device))


class LossScreen(PictureScreen, keys="losses"):
    """Shows the remaining loss budgets of the circuits of ``device``, or of all circuits if that is empty."""

    def __init__(self, device: str, context: ScreenContext) -> None:
        super().__init__(f"loss budget of {device or 'all circuits'}", context)
        self._device = device

    def lines(self, seen: RecordedLook, width: int) -> Sequence[Text]:
        """The histogram, and the receivers with the least margin."""
        return tuple(loss_lines(seen.observation, self._device or None, self.shared.marks, width))


class TimelineScreen(PictureScreen, keys="timeline"):
    """Shows the events of an incident, from the fault to the next training step."""

    def __init__(self, key: str, context: ScreenContext) -> None:
        super().__init__(f"timeline of {key.partition(':')[2]}", context)
        self._key = key

    def lines(self, seen: RecordedLook, width: int) -> Sequence[Text]:  # noqa: ARG002 - its lines wrap
        """A line for each event."""
        return tuple(timeline_lines(seen, self._key, self.shared.marks))
