"""The heat map as a widget: one accelerator is chosen by the arrow keys or a click; only changed lines are drawn."""

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from lumctl.health.states import State
from lumctl.tui.views.heat_layout import ACCELERATOR, HeatLayout
from lumctl.tui.views.heat_map import Heat, Piece

_CHOSEN, _MARKED = Style(bold=True, reverse=True), Style(bold=True, underline=True)


class HeatPicture(ScrollView, can_focus=True):
    """Shows a heat map in a layout."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "choose(0, -1)", show=False),
        Binding("down", "choose(0, 1)", show=False),
        Binding("left", "choose(-1, 0)", show=False),
        Binding("right", "choose(1, 0)", show=False),
        Binding("pageup", "choose(0, -8)", show=False),
        Binding("pagedown", "choose(0, 8)", show=False),
        Binding("home", "choose(0, -9999)", show=False),
        Binding("end", "choose(0, 9999)", show=False),
        Binding("enter", "open", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Another accelerator was chosen."""

        accelerator: str

    class Scrolled(Message):
        """Other lines are visible: the picture was scrolled, or has another height."""

    @dataclass
    class Opened(Message):
        """Enter on the chosen accelerator, or a click on it."""

        accelerator: str

    def __init__(self) -> None:
        super().__init__(id="heat")
        self.layout_of_cells = HeatLayout()
        self._heat: Heat | None = None
        self._chosen: str | None = None
        self._drawn: dict[int, list[Piece]] = {}
        """The lines that were visible since the last observation, each drawn when it is first needed."""
        self._styles: dict[str, Style] = {}
        self._is_measured = False
        """Whether the picture has the height of its layout: before, it is not known which lines are visible."""

    def show(self, heat: Heat, layout: HeatLayout, chosen: str | None) -> None:
        """Show a heat map; only visible lines that changed are drawn again."""
        moved = layout is not self.layout_of_cells
        self._heat, self.layout_of_cells, self._chosen = heat, layout, chosen
        before, self._drawn = self._drawn, {}
        # In another layout, a line's number names other accelerators: what was drawn cannot be compared.
        if moved:
            self.virtual_size = Size(layout.columns, len(layout.lines))
            self._is_measured = False
            self.call_after_refresh(self._measure)
            self.refresh()
            return
        top = self.scroll_offset.y
        in_sight = range(top, min(top + self.size.height, len(layout.lines)))
        changed = [line - top for line in in_sight if before.get(line) != self._line(line)]
        if changed:
            self.refresh(*(Region(0, line, self.size.width, 1) for line in changed))

    @property
    def states(self) -> frozenset[State]:
        """The states of the accelerators in the picture."""
        return frozenset() if self._heat is None else frozenset(self._heat.states.values())

    @property
    def out_of_sight(self) -> str:
        """The number of accelerators with a fault that are out of sight, and where; empty if none is known to be."""
        if self._heat is None or not self._is_measured or len(self.layout_of_cells.lines) <= self.size.height:
            return ""
        return self._heat.out_of_sight(self.layout_of_cells, self.scroll_offset.y, self.size.height)

    def _measure(self) -> None:
        self._is_measured = True
        self.post_message(self.Scrolled())

    def on_resize(self) -> None:
        """Report that other lines are visible."""
        self.post_message(self.Scrolled())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scroll, and report that other lines are visible."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Scrolled())

    def bring(self, accelerator: str) -> None:
        """Scroll until an accelerator is visible, with its host's name if that is near enough."""
        if (spot := self.layout_of_cells.spots.get(accelerator)) is not None:
            line, column = spot
            left = 0 if column + self.layout_of_cells.cell <= self.size.width else column
            self.scroll_to_region(Region(left, line, self.layout_of_cells.cell, 1), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """One visible line."""
        left, top = self.scroll_offset
        width, base = self.size.width, self.rich_style
        if not 0 <= top + y < len(self.layout_of_cells.lines):
            return Strip.blank(width, base)
        segments = [Segment(piece.text, self._style(piece.style)) for piece in self._line(top + y)]
        return Strip(segments).crop_extend(left, left + width, base).apply_style(base)

    def notify_style_update(self) -> None:
        """Forget the colours of the previous theme."""
        self._styles.clear()
        super().notify_style_update()

    def action_choose(self, across: int, down: int) -> None:
        """Choose the accelerator next to this one, above or below."""
        if self._chosen is not None:
            chosen = self.layout_of_cells.beside(self._chosen, across, down)
            if chosen != self._chosen:
                self.post_message(self.Chosen(chosen))

    def action_open(self) -> None:
        """Report a request to open the chosen accelerator."""
        if self._chosen is not None:
            self.post_message(self.Opened(self._chosen))

    def on_click(self, event: Click) -> None:
        """Choose the clicked accelerator; a click on the chosen one opens it."""
        event.stop()
        left, top = self.scroll_offset
        part = self.layout_of_cells.at(event.y + top, event.x + left)
        if part is not None and part.kind == ACCELERATOR:
            same = part.name == self._chosen
            self.post_message(self.Opened(part.name) if same else self.Chosen(part.name))

    def _line(self, number: int) -> list[Piece]:
        drawn = self._drawn.get(number)
        if drawn is None:
            drawn = [] if self._heat is None else self._heat.line(self.layout_of_cells, number, self._chosen)
            self._drawn[number] = drawn
        return drawn

    def _style(self, name: str) -> Style:
        known = self._styles.get(name)
        if known is None:
            kind, _, rest = name.partition(" ")
            if kind in {"chosen", "joined"}:
                # A filled cell is not reversed: it would look as if it were ok. Without colour, no cell is filled.
                filled = rest.startswith("fill") and not self.app.no_color
                known = self._style(rest) + (_CHOSEN if kind == "chosen" and not filled else _MARKED)
            else:
                known = self.app.console.get_style(name or "none")
            self._styles[name] = known
        return known
