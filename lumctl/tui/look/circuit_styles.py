"""The appearance of circuits and of a mesh's marks in each theme, by the names of a drawing's styles."""

from collections.abc import Mapping

from rich.style import Style
from textual.theme import Theme

from lumctl.fabric.drawing import terminal_style

COUNT = 16
"""The number of distinct circuit styles; further circuits reuse them and differ by their letter."""

_ON_LIGHT = ("#0059a8", "#8a4b00", "#00664b", "#86104f", "#00597a", "#841a00", "#1b242c", "#665300")
_OF_SIXTEEN = ("cyan", "yellow", "green", "magenta", "blue", "red", "bright_cyan", "default")


def circuit_styles(theme: Theme) -> dict[str, Style]:
    """The styles of ``COUNT`` circuits, plain and chosen, and of the marks, by the keys that a drawing uses."""
    named = {key: _style(key, theme) for number in range(COUNT) for key in (f"circuit:{number}", f"chosen:{number}")}
    return {**named, **_marks(theme.variables)}


def _style(key: str, theme: Theme) -> Style:
    # The drawing's own colours for terminals are bright, and so readable on a dark background only.
    palette = _OF_SIXTEEN if theme.ansi else () if theme.dark else _ON_LIGHT
    found = Style.parse(terminal_style(key))
    if not palette:
        return found
    return found + Style(color=palette[int(key.partition(":")[2]) % len(palette)])


def _marks(variables: Mapping[str, str]) -> dict[str, Style]:
    def mark(name: str, *, reverse: bool = True) -> Style:
        # Textual's ``ansi_red`` is Rich's ``red``.
        return Style(color=variables[name].removeprefix("ansi_"), bold=True, reverse=reverse)

    return {
        "quiet": Style(color=variables["quiet"].removeprefix("ansi_")),
        "shared": Style(bold=True),
        "port": Style(),
        "stuck": mark("state-degraded"),
        "damaged": mark("state-failed"),
        "blocked": mark("state-failed"),
        "changed": mark("state-ok"),
        "removed": mark("state-failed", reverse=False),
    }


def style_name(key: str) -> str:
    """Rich's name for the style of a drawing's key."""
    kind, _, number = key.partition(":")
    return f"{kind}:{int(number) % COUNT}" if number else key
