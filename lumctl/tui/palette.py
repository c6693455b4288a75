"""The command palette: the actions of the open screen, from the registry of keys, and every name to open."""

from collections.abc import Callable, Iterator
from functools import partial

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider, SearchIcon

from lumctl.tui.keys import CHANGES
from lumctl.tui.look.themes import THEMES
from lumctl.tui.screens.main import MainScreen

_Command = tuple[str, str, Callable[[], object]]
"""The text to search and show, its help, and its action."""
_ONLY_A_KEY = ("app.command_palette", "back", "move(", "turn(", "choose(", "scroll")
"""How the actions begin that make sense as a key only."""


class Palette(CommandPalette):
    """Textual's own, with a mark that every terminal can show."""

    def __init__(self) -> None:
        super().__init__([ActionProvider], placeholder="an action or a name", id="--command-palette")

    def on_mount(self) -> None:
        """Set the mark."""
        self.query_one(SearchIcon).icon = ">"


class ActionProvider(Provider):
    """What the keys of the open screen do, names to go to, and the themes."""

    async def discover(self) -> Hits:
        """Before anything is typed: the actions."""
        for name, told, does in self._actions():
            yield DiscoveryHit(name, does, help=told)

    async def search(self, query: str) -> Hits:
        """What matches; what is rarely meant comes last."""
        matcher = self.matcher(query)
        for name, told, does in (*self._actions(), *self._names(), *self._themes()):
            score = max(matcher.match(name), 0.9 * matcher.match(told))
            if score > 0:
                yield Hit(score, matcher.highlight(name), does, help=told)

    def _actions(self) -> Iterator[_Command]:
        forbidden = CHANGES if self.app.has_class("-read-only") else frozenset()
        seen = set(forbidden)
        for _, binding in self.screen._bindings:  # noqa: SLF001 - Textual has no public way to a screen's own bindings
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
