"""Colours of circuits and marks.

The eight colours of Okabe and Ito can be distinguished by colour-blind readers. From the ninth circuit on they repeat
with another pattern: dashed on paper, underlined in a terminal. The circuit's letter always identifies it without
colour.
"""

from collections.abc import Mapping

ON_PAPER = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000", "#f0e442")
DASHES: tuple[tuple[float, ...], ...] = ((), (0.14, 0.18), (0.01, 0.14), (0.17, 0.15, 0.01, 0.15))
"""Lengths of dash and gap in edge lengths. Round ends make each dash longer, and each gap shorter, by the width."""

_IN_TERMINAL = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#3d8fd6", "")

MARKS: Mapping[str, str] = {
    "": "",
    "quiet": "#8d99a6",
    "shared": "",
    "port": "",
    "heading": "bold",
    "stuck": "bold reverse #f0e442",
    "damaged": "bold reverse #ff7f2a",
    "blocked": "bold reverse #ff7f2a",
    "changed": "bold reverse #56b4e9",
    "removed": "bold #ff7f2a",
}


def line_colour(number: int) -> str:
    """The colour of a circuit on paper."""
    return ON_PAPER[number % len(ON_PAPER)]


def dashes(number: int) -> tuple[float, ...]:
    """The pattern of a circuit's line on paper; empty for a solid one."""
    return DASHES[number // len(ON_PAPER) % len(DASHES)]


def tint(colour: str) -> str:
    """A pale tint of a colour, for the space between dashes."""
    return mixed(colour, "#ffffff", 0.68)


def outline(colour: str) -> str:
    """The edge colour for a colour that is too light for white paper; empty for others."""
    return mixed(colour, "#000000", 0.45) if _brightness(colour) > 200 else ""  # noqa: PLR2004 - only yellow is


def ink_on(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    return "#000000" if _brightness(colour) > 140 else "#ffffff"  # noqa: PLR2004 - mid grey


def terminal_style(style: str) -> str:
    """The Rich style for a style key: ``circuit:3`` -> ``bold #f0e442``; ``chosen:3`` is reversed."""
    kind, _, digits = style.partition(":")
    if not digits:
        return MARKS[style]
    number = int(digits)
    again = number // len(_IN_TERMINAL) % 2
    words = (
        "bold reverse" if kind == "chosen" else "bold",
        "underline" if again else "",
        _IN_TERMINAL[number % len(_IN_TERMINAL)],
    )
    return " ".join(word for word in words if word)


def mixed(colour: str, other: str, share: float) -> str:
    """A colour with a share of another in it."""
    parts = (round(a + (b - a) * share) for a, b in zip(_rgb(colour), _rgb(other), strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def _brightness(colour: str) -> float:
    """The perceived brightness of a colour, from 0 to 255."""
    red, green, blue = _rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
