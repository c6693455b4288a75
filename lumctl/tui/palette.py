"""The command palette: the actions of the open screen, the names to go to, and the themes."""

from collections.abc import Callable, Iterator
from functools import partial

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider, SearchIcon

from lumctl.tui.keys import CHANGES
from lumctl.tui.look.themes import THEMES
from lumctl.tui.screens.main import MainScreen

_Command = tuple[str, str, Callable[[], object]]
"""A command's text, its help, and its function."""
_ONLY_A_KEY = ("app.command_palette", "back", "move(", "turn(", "choose(", "scroll")
"""Prefixes of actions that are useful only as keys; the palette leaves them out."""


class Palette(CommandPalette):
    """Textual's own palette, with a search icon that every terminal can show."""

    def __init__(self) -> None:
        super().__init__([ActionProvider], placeholder="an action or a name", id="--command-palette")

    def on_mount(self) -> None:
        """Set the search icon."""
        self.query_one(SearchIcon).icon = ">"


class ActionProvider(Provider):
    """Provides the actions of the open screen's keys, names to go to, and the themes."""

    async def discover(self) -> Hits:
        """The actions, for the list before anything is typed."""
        for name, told, does in self._actions():
            yield DiscoveryHit(name, does, help=told)

    async def search(self, query: str) -> Hits:
        """The matching actions, then names, then themes."""
        matcher = self.matcher(query)
        for name, told, does in (*self._actions(), *self._names(), *self._themes()):
            # A match in the name comes before one in the help.
            score = max(matcher.match(name), 0.9 * matcher.match(told))
            if score > 0:
                yield Hit(score, matcher.highlight(name), does, help=told)

    def _actions(self) -> Iterator[_Command]:
        forbidden = CHANGES if self.app.has_class("-read-only") else frozenset()
        seen = set(forbidden)
        for _, binding in self.screen._bindings:  # noqa: SLF001 - Textual has no public way to a screen's own bindings
            # Only keys with a help of their own have a tooltip: not a second key, and none of Textual's.
            if binding.tooltip and binding.action not in seen and not binding.action.startswith(_ONLY_A_KEY):
                seen.add(binding.action)
                named = binding.action if binding.action.startswith("app.") else f"screen.{binding.action}"
                key = f"Key: {binding.key_display or binding.key}."
                told = key if binding.description == binding.tooltip else f"{binding.tooltip} {key}"
                yield binding.description, told, partial(self.app.run_action, named)

    def _names(self) -> Iterator[_Command]:
        if isinstance(self.screen, MainScreen):
            for name in self.screen.names():
                yield name, f"Go to {name}.", partial(self.screen.go_to, name)

    def _themes(self) -> Iterator[_Command]:
        for name in THEMES:
            yield (
                f"theme {name}",
                f"Show everything in the theme {name}.",
                partial(self.app.run_action, f"app.show_in('{name}')"),
            )
