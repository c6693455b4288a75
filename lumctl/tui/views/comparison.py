"""The comparison of two runbooks: their differences, and how long each run took."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text

from lumctl.health.states import State
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks

FEW = 20
"""If there are more differences than this, counts by kind and device come first."""
MOST = 400
"""At most this many differences are listed."""


@dataclass(slots=True)
class Comparing:
    """The key of the runbook that is marked for a comparison; ``None`` if none is marked."""

    key: str | None = None


class Differing(NamedTuple):
    """One difference: its part, its subject, and the text on either side (``None``: missing there)."""

    part: str
    what: str
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The differences of two runbooks.

    ``counts`` has a line with the number of differences for each kind and device. ``took`` has the names of durations
    with the seconds of both runs; ``None`` if unknown.
    """

    a: str
    b: str
    found: tuple[Differing, ...]
    took: tuple[tuple[str, float | None, float | None], ...] = ()
    counts: tuple[str, ...] = ()


def comparison_text(view: ComparisonView, marks: Marks) -> Text:
    """The differences by part; ``-`` is the first runbook, ``+`` the second."""
    text = Text()
    text.append(f"- {view.a}\n+ {view.b}\n", style=HEADING_STYLE)
    for name, one, other in view.took:
        text.append(f"  {name}: {_seconds(one)} and {_seconds(other)}\n", style=QUIET_STYLE)
    if not view.found:
        text.append(f"\n{marks.glyphs.get(State.OK, '')} they are the same\n", style=STATE_STYLES[State.OK])
    if len(view.found) > FEW:
        text.append(f"\n{len(view.found)} differences\n", style=HEADING_STYLE)
        text.append("".join(f"  {count}\n" for count in view.counts))
    _each(text, view.found[:MOST])
    if len(view.found) > MOST:
        text.append(f"\n{len(view.found) - MOST} more; all of them: lumctl runbook diff -o wide\n", style=QUIET_STYLE)
    return text


def _each(text: Text, found: Sequence[Differing]) -> None:
    for part in dict.fromkeys(each.part for each in found):
        text.append(f"\n{part}\n", style=HEADING_STYLE)
        for each in (each for each in found if each.part == part):
            text.append(f"    {each.what}\n")
            if each.a is not None:
                text.append(f"  - {each.a}\n", style=STATE_STYLES[State.FAILED])
            if each.b is not None:
                text.append(f"  + {each.b}\n", style=STATE_STYLES[State.OK])


def _seconds(value: float | None) -> str:
    return "not known" if value is None else f"{value:.2f} s"
