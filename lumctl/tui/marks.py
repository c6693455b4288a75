"""How things look: a state is glyph, word and colour, and no meaning rests on colour alone.

The colours are those of Okabe and Ito, which stay apart for colour-blind eyes: blue is well, orange is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from textual.theme import Theme

from lumctl.health.states import State

STATE_STYLES: Mapping[State, str] = {
    State.OK: "#56b4e9",
    State.DEGRADED: "#f0e442",
    State.FAILED: "bold #ff7f2a",
    State.UNKNOWN: "#cc79a7",
    State.DISABLED: "#8d99a6",
}
STALE_STYLE = "#f0e442"
QUIET_STYLE = "#8d99a6"
HEADING_STYLE = "bold #cfd8e3"
TARGET_STYLES: Mapping[str, str] = {"rack": "bold #101418 on #e69f00", "sim": "bold #101418 on #56b4e9"}

THEME = Theme(
    name="lumctl",
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
        "block-cursor-background": "#2f4a60",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "bold",
        "block-hover-background": "#1f2831",
        "input-selection-background": "#0072b2 60%",
    },
)


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one terminal: a glyph for each state's word, and whether anything beyond ASCII may be printed."""

    glyphs: Mapping[str, str]
    ascii_only: bool = False

    def state(self, state: State) -> str:
        """A state as glyph and word."""
        return f"{self.glyphs.get(state, ' ')} {state}"

    def arrow(self, *, duplex: bool) -> str:
        """The mark between the two ends of a circuit."""
        if self.ascii_only:
            return "<->" if duplex else "->"
        return "↔" if duplex else "→"


def duration(seconds: float) -> str:
    """A length of time in its largest fitting unit: ``42 s``, ``7 min``, ``5 h``, ``3 d``."""
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def age(read_at: float | None, now: float) -> str:
    """How old a reading is; ``never`` where there is none."""
    return "never" if read_at is None else duration(now - read_at)


def power(dbm: float | None, unit: str = "") -> str:
    """An optical power in dBm; no light at all is ``dark``, no reading ``-``."""
    if dbm is None:
        return "-"
    return "dark" if dbm == float("-inf") else f"{dbm:.1f}{unit}"
