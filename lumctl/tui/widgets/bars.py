"""The lines around a table: where we are and at what the screen is aimed above, the keys below."""

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from lumctl.tui.keys import CHANGES, Action
from lumctl.tui.look.marks import TARGET_STYLES
from lumctl.tui.panes.rows import Cell


class TopBar(Horizontal):
    """Title, target, and on the right the age of the data."""

    def __init__(self, title: str, target: str) -> None:
        super().__init__()
        self._title = title
        self._target = target

    def compose(self) -> ComposeResult:
        """Three texts in one line."""
        yield Static(Text(f" {self._title} ", style="bold"), id="title")
        yield Static(Text(f" TARGET {self._target} ", style=TARGET_STYLES.get(self._target, "reverse")), id="target")
        yield Static(" read-only ", id="read-only")
        yield Static(id="freshness")

    def say(self, text: Text) -> None:
        """Replace the text on the right."""
        self.query_one("#freshness", Static).update(text, layout=False)


class AnswerLine(Static):
    """One line to the operator; hidden while empty."""

    def __init__(self) -> None:
        super().__init__(markup=False)

    def say(self, text: str) -> None:
        """Show it; an empty text hides the line."""
        self.update(text)
        self.set_class(bool(text), "-open")


class KeyBar(Static):
    """The keys of a screen; those that are one key can also be clicked. What may not be done is not offered."""

    # A key has its own colour here, not that of a link.
    auto_links = False

    def __init__(self, actions: Sequence[Action]) -> None:
        super().__init__()
        self._shown = [action for action in actions if action.label]

    def on_mount(self) -> None:
        """Offer what may be done."""
        forbidden = CHANGES if self.app.has_class("-read-only") else frozenset()
        self.update(Content("  ").join([_key(action) for action in self._shown if action.action not in forbidden]))


def _key(action: Action) -> Content:
    name = action.action if action.action.startswith("app.") else f"screen.{action.action}"
    text = Content.assemble((action.shown, "bold $accent"), " ", action.label)
    if not action.keys:
        return text
    return _clickable(text, name if name.endswith(")") else f"{name}()")


class Tabs(Static):
    """The panes as tabs; each can be clicked."""

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self._tabs: Sequence[tuple[str, str, Cell]] = ()
        self._current = ""

    def show(self, tabs: Sequence[tuple[str, str, Cell]], current: str) -> None:
        """Show these: each an id, a title, and how many are not well."""
        if (tabs, current) != (self._tabs, self._current):
            self._tabs, self._current = tabs, current
            self._fit()

    def on_resize(self) -> None:
        """Cut them to the new width."""
        self._fit()

    def _fit(self) -> None:
        if self._tabs and self.size.width:
            self.update(tabs_line(self._tabs, self._current, self.size.width), layout=False)


def tabs_line(tabs: Sequence[tuple[str, str, Cell]], current: str, width: int) -> Content:
    """The panes as tabs, from (id, title, how many are not well), in so many characters.

    Where they do not fit, titles are cut alike, that of the current pane last.
    """
    for longest in (*range(max(len(title) for _, title, _ in tabs), 0, -1), 0):
        shown = [(pane, title if pane == current else title[:longest], trouble) for pane, title, trouble in tabs]
        line = _tabs(shown, current)
        if line.cell_length <= width:
            break
    return line


def _tabs(tabs: Sequence[tuple[str, str, Cell]], current: str) -> Content:
    return Content("").join(
        _clickable(
            Content.assemble(
                (
                    f" {number % 10} {title} " if title else f" {number % 10} ",
                    "bold reverse" if pane == current else "",
                ),
                (f"{trouble.text} " if trouble.text else "", f"bold {trouble.style}{_reverse(pane == current)}"),
            ),
            f"screen.show_pane('{pane}')",
        )
        for number, (pane, title, trouble) in enumerate(tabs, start=1)
    )


def _reverse(current: bool) -> str:
    return " reverse" if current else ""


def _clickable(text: Content, action: str) -> Content:
    return text.stylize(Style.from_meta({"@click": action}))
