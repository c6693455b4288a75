"""Two runbooks beside each other: what they do not have in common, and how long each took."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text

from lumctl.health.states import State
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks

FEW = 20
"""More differences than this are counted by kind and device first."""
MOST = 400
"""So many are shown one by one."""


@dataclass(slots=True)
class Comparing:
    """The runbook that is marked to be compared with the next one; ``None`` while none is."""

    key: str | None = None


class Differing(NamedTuple):
    """One difference: in which part, of what, and how it is on either side (``None``: not there)."""

    part: str
    what: str
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The differences of two runbooks, and ``counts``: how many of each kind there are on each device, a line each.

    ``took`` are names with the seconds of either, ``None`` where not known.
    """

    a: str
    b: str
    found: tuple[Differing, ...]
    took: tuple[tuple[str, float | None, float | None], ...] = ()
    counts: tuple[str, ...] = ()


def comparison_text(view: ComparisonView, marks: Marks) -> Text:
    """Every difference, part by part: ``-`` is the first side, ``+`` the second."""
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
    return "not known" if value is None else f"{value:.3f} s"
