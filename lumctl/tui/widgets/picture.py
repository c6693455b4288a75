"""A picture in characters that scrolls both ways; only visible lines are made, so that a high picture costs no more."""

from collections.abc import Callable

from rich.text import Text
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class PictureWidget(ScrollView, can_focus=False):
    """Shows a number of lines and columns; each line is requested by its number."""

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 - Textual's own word
        super().__init__(id=id)
        self._line: Callable[[int], Text] = lambda _line: Text()
        self._lines = 0
        self._brought: Region | None = None

    def on_mount(self) -> None:
        """Scroll to the last shown part again if a scroll bar appears or disappears, which changes the space."""
        self.watch(self, "show_horizontal_scrollbar", self._bring_again, init=False)
        self.watch(self, "show_vertical_scrollbar", self._bring_again, init=False)

    def show(self, lines: int, columns: int, line: Callable[[int], Text]) -> None:
        """Show a picture of this size, with ``line`` making each line; keep the scroll position if possible."""
        self._lines, self._line = lines, line
        self.virtual_size = Size(columns, lines)
        self.refresh()

    def bring(self, line: int, column: int, width: int = 1, height: int = 1) -> None:
        """Scroll until this whole part is visible."""
        self._brought = Region(column, line, width, height)
        self.scroll_to_region(self._brought, animate=False, force=True)

    def _bring_again(self) -> None:
        self.call_after_refresh(self._scroll_to_brought)

    def _scroll_to_brought(self) -> None:
        if self._brought is not None:
            self.scroll_to_region(self._brought, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """One visible line."""
        left, top = self.scroll_offset
        width = self.size.width
        base = self.rich_style
        if not 0 <= top + y < self._lines:
            return Strip.blank(width, base)
        strip = Strip(self._line(top + y).render(self.app.console)).crop_extend(left, left + width, base)
        return strip.apply_style(base)
