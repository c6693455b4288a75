"""Appearance of states: glyph, word and colour; no meaning rests on colour alone.

A style here is a name; ``themes`` defines it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lumctl.health.states import State

STATE_STYLES: Mapping[State, str] = {
    State.OK: "$state-ok",
    State.DEGRADED: "$state-degraded",
    State.FAILED: "bold $state-failed",
    State.UNKNOWN: "$state-unknown",
    State.DISABLED: "$state-disabled",
}
STALE_STYLE = "$stale"
QUIET_STYLE = "$quiet"
HEADING_STYLE = "bold $heading"
TARGET_STYLES: Mapping[str, str] = {
    "rack": "bold $on-target on $target-rack",
    "sim": "bold $on-target on $target-sim",
}


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
        # From two on: as "1 h", 119 minutes would look like half of it.
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def age(read_at: float | None, now: float) -> str:
    """The age of a reading; ``never`` if there is none."""
    return "never" if read_at is None else duration(now - read_at)


def power(dbm: float | None, unit: str = "") -> str:
    """An optical power in dBm; no light at all is ``dark``, no reading ``-``."""
    if dbm is None:
        return "-"
    return "dark" if dbm == float("-inf") else f"{dbm:z.1f}{unit}"


def clock(at: float, now: float) -> str:
    """The time of day to the second; on another day, the date and the time to the minute."""
    moment, today = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(now).astimezone()
    return f"{moment:%H:%M:%S}" if moment.date() == today.date() else f"{moment:%m-%d %H:%M}"
