"""The screen on which a user chooses the columns of a table."""

from collections.abc import Callable, Collection

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from lumctl.tui.look.marks import QUIET_STYLE
from lumctl.tui.panes.rows import Pane
from lumctl.tui.screens.shortcuts import KeyedScreen
from lumctl.tui.widgets.bars import KeyBar, TopBar


class ColumnsScreen(KeyedScreen[None], keys="columns"):
    """Lists the columns that may be hidden, with a mark at those shown; calls ``hide`` at each change."""

    def __init__(
        self, pane: Pane, hidden: Collection[str], target: str, hide: Callable[[Collection[str]], None]
    ) -> None:
        super().__init__()
        self._pane = pane
        self._hidden = set(hidden)
        self._target = target
        self._hide = hide
        self._chosen = 0

    def compose(self) -> ComposeResult:
        """The list between the bars."""
        yield TopBar(f"columns of the {self._pane.noun}", self._target)
        with VerticalScroll():
            yield Static(id="columns", markup=False)
        yield KeyBar(self.KEYS.actions)

    def on_mount(self) -> None:
        """Draw the list."""
        self._show()

    def action_choose(self, by: int) -> None:
        """Move the cursor to another column."""
        self._chosen = max(0, min(self._chosen + by, len(self._pane.optional_columns) - 1))
        self._show()

    def action_turn(self) -> None:
        """Show the chosen column, or hide it."""
        if columns := self._pane.optional_columns:
            self._hidden ^= {columns[self._chosen].key}
            self._change()

    def action_all(self) -> None:
        """Show all columns."""
        self._hidden.clear()
        self._change()

    def _change(self) -> None:
        self._hide(frozenset(self._hidden))
        self._show()

    def _show(self) -> None:
        text = Text()
        for at, column in enumerate(self._pane.optional_columns):
            shown = " " if column.key in self._hidden else "x"
            line = f" {'>' if at == self._chosen else ' '} [{shown}] {column.heading or column.key}"
            text.append(f"{line}\n", style="bold" if at == self._chosen else QUIET_STYLE)
        self.query_one("#columns", Static).update(text)
