"""A picture in characters that scrolls both ways; a line is made when it is seen, so that its height costs nothing."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip


class PictureWidget(ScrollView, can_focus=False):
    """Shows a number of lines and columns; each line is requested by its number."""

    @dataclass
    class Clicked(Message):
        """A place of the picture was clicked, whatever part of it was in sight."""

        line: int
        column: int

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 - Textual's own word
        super().__init__(id=id)
        self._line: Callable[[int], Text] = lambda _line: Text()
        self._lines = 0

    def show(self, lines: int, columns: int, line: Callable[[int], Text]) -> None:
        """Show this; the scroll position stays as far as possible."""
        self._lines, self._line = lines, line
        self.virtual_size = Size(columns, lines)
        self.refresh()

    def bring(self, line: int, column: int, width: int = 1, height: int = 1) -> None:
        """Scroll until this part is in sight."""
        self.scroll_to_region(Region(column, line, width, height), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """One line of what is in sight."""
        left, top = self.scroll_offset
        width = self.size.width
        base = self.rich_style
        if not 0 <= top + y < self._lines:
            return Strip.blank(width, base)
        strip = Strip(self._line(top + y).render(self.app.console)).crop_extend(left, left + width, base)
        return strip.apply_style(base)

    def on_click(self, event: Click) -> None:
        """Report the clicked place."""
        event.stop()
        left, top = self.scroll_offset
        self.post_message(self.Clicked(event.y + top, event.x + left))
