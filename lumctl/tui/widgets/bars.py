"""The lines around a table: title, target, age of the data and tabs above, the keys below."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, runtime_checkable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from lumctl.tui.keys import CHANGES, Action
from lumctl.tui.look.marks import STALE_STYLE, TARGET_STYLES, Marks, age
from lumctl.tui.look.truncation import cut_lines
from lumctl.tui.panes.rows import Cell

_HEADLINES = 2
"""The most lines of the headline, as in the style sheet."""


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
        # Its size is fixed: without ``layout=False`` Textual would lay out the whole screen each second.
        self.query_one("#freshness", Static).update(text, layout=False)

    def say_age(self, read_at: float, now: float, stale_after_s: float) -> None:
        """Show on the right how long ago the racks were read, marked if that is too long."""
        stale = now - read_at > stale_after_s
        self.say(Text(f"read {age(read_at, now)} ago ", style=STALE_STYLE if stale else ""))


class Headline(Static):
    """The headline, in at most two lines; the rest is cut, and a sign shows it."""

    def __init__(self, marks: Marks) -> None:
        super().__init__(id="headline", markup=False)
        self._marks = marks
        self._text = self._shown = Text()

    def say(self, text: Text) -> None:
        """Replace the text; the same text again changes nothing, because an update lays out the whole screen."""
        if text != self._text:
            self._text = text
            self._fit()

    def on_resize(self) -> None:
        """Cut the text for the new width."""
        self._fit()

    def _fit(self) -> None:
        width = self.size.width
        text = cut_lines(self._text, width, _HEADLINES, self._marks, self.app.console) if width else self._text
        if text != self._shown:
            self._shown = text
            self.update(text)


@runtime_checkable
class Aiming(Protocol):
    """An application that completes the commands in a text with the inventory and the target that it was given."""

    def aimed(self, text: str) -> str:
        """The completed text."""


class AnswerLine(Static):
    """A line with an answer to the operator; hidden while empty."""

    def __init__(self) -> None:
        super().__init__(markup=False)

    def say(self, text: str) -> None:
        """Show a text, whose commands the dashboard completes; an empty text hides the line."""
        self.update(self.app.aimed(text) if isinstance(self.app, Aiming) else text)
        self.set_class(bool(text), "-open")


class KeyBar(Static):
    """The keys of a screen; those with a key of their own can also be clicked. Forbidden actions are not shown."""

    # A key has its own colour here, not that of a link.
    auto_links = False

    def __init__(self, actions: Sequence[Action]) -> None:
        super().__init__()
        self._actions = actions
        self._labels: Mapping[str, str] = {}
        self._first = ""

    def rename(self, labels: Mapping[str, str], first: str = "") -> None:
        """Change the labels of some keys, by action; they replace the changes of the last call.

        A key with an empty label is not shown. The key of the action ``first`` is shown before all others.
        """
        if (labels, first) != (self._labels, self._first):
            self._labels, self._first = labels, first
            self._fit()

    def on_mount(self) -> None:
        """Show the keys of allowed actions."""
        self._fit()

    def on_resize(self) -> None:
        """Show the keys that fit into the new width."""
        self._fit()

    def _fit(self) -> None:
        forbidden = CHANGES if self.app.has_class("-read-only") else frozenset()
        named = [replace(each, label=self._labels.get(each.action, each.label)) for each in self._actions]
        offered = [action for action in named if action.label and action.action not in forbidden]
        if self._first:
            offered.sort(key=lambda action: action.action != self._first)
        shown = foot_of(offered, self.size.width)
        self.update(Content(_BETWEEN_KEYS).join([_key(action) for action in shown]), layout=False)


_BETWEEN_KEYS = "  "
_HELP = "app.help"
_ALWAYS = frozenset({_HELP, "app.quit"})
_MORE_IN_HELP = "all keys"
"""The label of the help key if the line has no room for others."""


def foot_of(actions: Sequence[Action], width: int) -> list[Action]:
    """The keys that fit into ``width`` characters: always help and quit, and the first ones of the others."""
    shown = list(actions)
    while len(_BETWEEN_KEYS.join(f"{each.shown} {each.label}" for each in shown)) > width:
        last = next((each for each in reversed(shown) if each.action not in _ALWAYS), None)
        if last is None:
            break
        shown.remove(last)
        shown = [replace(each, label=_MORE_IN_HELP) if each.action == _HELP else each for each in shown]
    return shown


def _key(action: Action) -> Content:
    name = action.action if action.action.startswith("app.") else f"screen.{action.action}"
    text = Content.assemble((action.shown, "bold $accent"), " ", action.label)
    if not action.keys:
        return text
    return _clickable(text, name if name.endswith(")") else f"{name}()")


class Tab(NamedTuple):
    """A pane in the line of tabs: its id, its title, the title for a narrow terminal, and the number at fault."""

    pane: str
    title: str
    short: str
    trouble: Cell


class Tabs(Static):
    """The panes as tabs; each can be clicked."""

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self._tabs: Sequence[Tab] = ()
        self._current = ""

    def show(self, tabs: Sequence[Tab], current: str) -> None:
        """Show these tabs."""
        if (tabs, current) != (self._tabs, self._current):
            self._tabs, self._current = tabs, current
            self._fit()

    def on_resize(self) -> None:
        """Fit the tabs to the new width."""
        self._fit()

    def _fit(self) -> None:
        if self._tabs and self.size.width:
            self.update(tabs_line(self._tabs, self._current, self.size.width), layout=False)


def tabs_line(tabs: Sequence[Tab], current: str, width: int) -> Content:
    """The panes as tabs in ``width`` characters.

    If the titles do not fit, the current pane keeps its title, and the others have their short names; if these do not
    fit either, some have only their digit. Panes with faults have names first, then the others from the left.
    """
    names = {tab.pane: tab.title for tab in tabs}
    if (line := _tabs(tabs, names, current, gap=" ")).cell_length <= width:
        return line
    names = {tab.pane: tab.title if tab.pane == current else "" for tab in tabs}
    line = _tabs(tabs, names, current)
    by_need = sorted(tabs, key=lambda tab: not tab.trouble.text)
    for pane, name in [*((tab.pane, tab.short) for tab in by_need), *((tab.pane, tab.title) for tab in by_need)]:
        if pane != current:
            wider = _tabs(tabs, {**names, pane: name}, current)
            if wider.cell_length <= width:
                names[pane], line = name, wider
    return line


def _tabs(tabs: Sequence[Tab], names: Mapping[str, str], current: str, gap: str = "") -> Content:
    """The tabs with these names, each followed by a ``gap``."""
    return Content("").join(
        _clickable(
            Content.assemble(
                (
                    f" {number % 10} {names[tab.pane]}".rstrip() + gap * (not tab.trouble.text),
                    "bold reverse" if tab.pane == current else "",
                ),
                (
                    f" {tab.trouble.text}{gap}" if tab.trouble.text else "",
                    f"bold {tab.trouble.style}{_reverse(tab.pane == current)}",
                ),
            ),
            f"screen.show_pane('{tab.pane}')",
        )
        for number, tab in enumerate(tabs, start=1)
    )


def _reverse(current: bool) -> str:
    return " reverse" if current else ""


def _clickable(text: Content, action: str) -> Content:
    return text.stylize(Style.from_meta({"@click": action}))
