"""The themes: the styles of ``marks`` on dark, light and plain sixteen-colour terminals.

A style is named in words that both Textual and Rich resolve when they draw (``$state-ok``), so a named style follows
the theme. In every theme a state's colour has a contrast of at least 4.5 to 1 on each background (WCAG 2, AA), and no
two states look alike to readers without red or green vision; ok is blue, and failed is orange, or dark red on light.
``classic`` has green, yellow and red, as other programs do.
"""

import os
from collections.abc import Mapping

from rich.style import Style
from rich.theme import Theme as RichTheme
from textual.theme import Theme

from lumctl.errors import UsageError
from lumctl.inventory.problems import nearest
from lumctl.tui.look.circuit_styles import circuit_styles

DEFAULT = "dark"
SIXTEEN = "ansi"

THEMES: Mapping[str, Theme] = {
    "dark": Theme(
        name="lumctl-dark",
        primary="#56b4e9",
        secondary="#0072b2",
        accent="#e69f00",
        warning="#f0e442",
        error="#ff7f2a",
        success="#56b4e9",
        foreground="#dde4ec",
        background="#101418",
        surface="#161c22",
        panel="#1f2831",
        dark=True,
        variables={
            "state-ok": "#56b4e9",
            "state-degraded": "#f0e442",
            "state-failed": "#ff7f2a",
            "state-unknown": "#e780a0",
            "state-disabled": "#b0bfd0",
            "stale": "#f0e442",
            "quiet": "#8d99a6",
            "heat-0": "#12181e",
            "heat-1": "#131f2a",
            "heat-2": "#142735",
            "heat-3": "#153041",
            "heat-4": "#163a50",
            "on-heat": "#dde4ec",
            "heading": "#cfd8e3",
            "on-target": "#101418",
            "target-rack": "#e69f00",
            "target-sim": "#56b4e9",
            "block-cursor-background": "#16344d",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-text-style": "bold",
            "block-hover-background": "#1f2831",
            "input-selection-background": "#0072b2 60%",
        },
    ),
    "classic": Theme(
        name="lumctl-classic",
        primary="#5fd080",
        secondary="#1c7a3d",
        accent="#f2c832",
        warning="#f2c832",
        error="#ff6159",
        success="#5fd080",
        foreground="#dde4ec",
        background="#101418",
        surface="#161c22",
        panel="#1f2831",
        dark=True,
        variables={
            "state-ok": "#5fd080",
            "state-degraded": "#f2c832",
            "state-failed": "#ff6159",
            "state-unknown": "#c9a2f5",
            "state-disabled": "#b0bfd0",
            "stale": "#f2c832",
            "quiet": "#8d99a6",
            "heat-0": "#121813",
            "heat-1": "#132018",
            "heat-2": "#14291e",
            "heat-3": "#153325",
            "heat-4": "#173e2c",
            "on-heat": "#dde4ec",
            "heading": "#cfd8e3",
            "on-target": "#101418",
            "target-rack": "#e69f00",
            "target-sim": "#5fd080",
            "block-cursor-background": "#18301f",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-text-style": "bold",
            "block-hover-background": "#1f2831",
            "input-selection-background": "#1c7a3d 60%",
        },
    ),
    "light": Theme(
        name="lumctl-light",
        primary="#0059a8",
        secondary="#9cc8ea",
        accent="#8a4b00",
        warning="#7b6400",
        error="#841a00",
        success="#0059a8",
        foreground="#1b242c",
        background="#fcfdfe",
        surface="#f0f3f6",
        panel="#e4e9ee",
        dark=False,
        variables={
            "state-ok": "#0059a8",
            "state-degraded": "#7b6400",
            "state-failed": "#841a00",
            "state-unknown": "#86104f",
            "state-disabled": "#3f6370",
            "stale": "#7b6400",
            "quiet": "#4c5863",
            "heat-0": "#f3f6f9",
            "heat-1": "#edf3f9",
            "heat-2": "#e0ebf5",
            "heat-3": "#d2e3f1",
            "heat-4": "#c2daed",
            "on-heat": "#1b242c",
            "heading": "#26323d",
            "on-target": "#ffffff",
            "target-rack": "#8a4b00",
            "target-sim": "#0059a8",
            "block-cursor-background": "#dcecf8",
            "block-cursor-foreground": "#000000",
            "block-cursor-text-style": "bold",
            "block-hover-background": "#e4e9ee",
            "input-selection-background": "#9cc8ea",
        },
    ),
    "contrast": Theme(
        name="lumctl-contrast",
        primary="#4aa8ff",
        secondary="#4aa8ff",
        accent="#ffd060",
        warning="#fff26a",
        error="#ff8a30",
        success="#4aa8ff",
        foreground="#ffffff",
        background="#000000",
        surface="#0c0c0c",
        panel="#1c1c1c",
        dark=True,
        text_alpha=1.0,
        variables={
            "state-ok": "#4aa8ff",
            "state-degraded": "#fff26a",
            "state-failed": "#ff8a30",
            "state-unknown": "#ff9fb8",
            "state-disabled": "#dfe8f0",
            "stale": "#fff26a",
            "quiet": "#d0d6dc",
            "heat-0": "#0a0a0a",
            "heat-1": "#081521",
            "heat-2": "#081e33",
            "heat-3": "#092945",
            "heat-4": "#0a3558",
            "on-heat": "#ffffff",
            "heading": "#ffffff",
            "on-target": "#000000",
            "target-rack": "#ffb000",
            "target-sim": "#4aa8ff",
            "block-cursor-background": "#002f55",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-text-style": "bold",
            "block-hover-background": "#1c1c1c",
            "input-selection-background": "#004a86",
        },
    ),
    # The terminal's own sixteen colours, whatever they are.
    SIXTEEN: Theme(
        name="lumctl-ansi",
        ansi=True,
        primary="ansi_blue",
        secondary="ansi_cyan",
        accent="ansi_default",
        warning="ansi_default",
        error="ansi_red",
        success="ansi_cyan",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        variables={
            "state-ok": "ansi_cyan",
            "state-degraded": "ansi_yellow",
            "state-failed": "ansi_bright_red",
            "state-unknown": "ansi_magenta",
            "state-disabled": "ansi_default",
            "stale": "ansi_yellow",
            "quiet": "ansi_default",
            "heat-0": "ansi_default",
            "heat-1": "ansi_default",
            "heat-2": "ansi_cyan",
            "heat-3": "ansi_cyan",
            "heat-4": "ansi_bright_cyan",
            "heading": "ansi_default",
            "on-target": "ansi_black",
            "target-rack": "ansi_yellow",
            "target-sim": "ansi_cyan",
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "border-blurred": "ansi_black",
            "block-cursor-background": "ansi_default",
            "block-cursor-foreground": "ansi_default",
            "block-cursor-text-style": "bold reverse",
            "block-hover-background": "ansi_default",
            "input-cursor-background": "ansi_white",
            "input-cursor-foreground": "ansi_black",
            "input-cursor-text-style": "none",
            "input-selection-background": "ansi_blue",
            "input-selection-foreground": "ansi_white",
            "screen-selection-background": "ansi_blue",
            "screen-selection-foreground": "ansi_white",
        },
    ),
}


def theme_name(named: str | None, environ: Mapping[str, str] = os.environ, remembered: object = None) -> str:
    """The theme to use: ``named``, else ``$LUMCTL_THEME``, else ``remembered``, the last one chosen by key.

    A terminal with sixteen colours gets the theme for those, unless a theme was named.

    Raises:
        UsageError: there is no theme with that name.
    """
    name = named or environ.get("LUMCTL_THEME")
    if not name:
        if has_sixteen_colours(environ):
            return SIXTEEN
        return remembered if isinstance(remembered, str) and remembered in THEMES else DEFAULT
    if name not in THEMES:
        near = nearest(name, THEMES)
        raise UsageError(f"no theme {name!r}", hint=f"did you mean {near}?" if near else f"one of: {', '.join(THEMES)}")
    return name


def next_theme(name: str) -> str:
    """The name of the theme that follows this one."""
    names = list(THEMES)
    return names[(names.index(name) + 1) % len(names)]


def has_sixteen_colours(environ: Mapping[str, str]) -> bool:
    """Whether the terminal offers no more than sixteen colours."""
    if environ.get("COLORTERM", "").lower() in {"truecolor", "24bit"} or environ.get("TEXTUAL_COLOR_SYSTEM"):
        return False
    kind = environ.get("TERM", "")
    # xterm-kitty has all colours, though its name does not say so.
    return not kind.endswith(("256color", "direct")) and "kitty" not in kind


def rich_theme(theme: Theme) -> RichTheme:
    """The named styles of a theme for Rich, which draws the tables; each also in bold."""
    colours = {f"${name}": colour.removeprefix("ansi_") for name, colour in theme.variables.items() if _is_named(name)}
    styles = {name: Style(color=colour) for name, colour in colours.items()}
    # Rich looks up the whole text of a style: it would not take ``bold $quiet`` apart to find ``$quiet``.
    bold = {f"bold {name}": style + Style(bold=True) for name, style in styles.items()}
    states = ("failed", "degraded")
    fills = {f"fill {each}": styles[f"$state-{each}"] + Style(reverse=True, bold=True) for each in states}
    if not theme.ansi:
        # Heat is a background, so that the number on it stays readable; none of sixteen colours is faint enough for it.
        heats = [name for name in colours if name.startswith("$heat-")]
        styles |= {name: Style(color=colours["$on-heat"], bgcolor=colours[name]) for name in heats}
        on = Style(color=theme.background, bold=True)
        fills = {f"fill {each}": on + Style(bgcolor=colours[f"$state-{each}"]) for each in states}
    targets = {
        f"bold $on-target on ${name}": Style(color=colours["$on-target"], bgcolor=colours[f"${name}"], bold=True)
        for name in ("target-rack", "target-sim")
    }
    return RichTheme({**styles, **bold, **fills, **targets, **circuit_styles(theme)})


_NAMED = frozenset({"stale", "quiet", "heading", "on-target", "on-heat"})


def _is_named(variable: str) -> bool:
    return variable.startswith(("state-", "target-", "heat-")) or variable in _NAMED
