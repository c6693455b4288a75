"""The dashboard's text of who is late in a job: whom the others waited for in its newest steps, and what to do."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from rich.text import Text

from lumctl.printable import counted
from lumctl.quantity_text import seconds_text
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STALE_STYLE, Marks, age
from lumctl.tui.widgets.gauges import ASCII_STEPS, BLOCKS, share_of

MOST_STEPS = 64
"""The newest steps that are drawn."""
_MOST_RANKS = 4
"""Ranks that are drawn, those that were last most often."""
_LABEL, _SAID = 24, 28
"""The columns before and after a line of marks."""


@dataclass(frozen=True, slots=True)
class JobWaits:
    """Of each of the newest steps, the oldest first: which rank entered its collectives last, and how long all waited.

    ``accelerators`` has that of each rank. ``at`` is the time of the newest step (seconds since the epoch). ``advice``
    says who is late and what to do, in one line. ``trouble`` is why nothing is known, if that could not be read.
    """

    steps: tuple[tuple[int, float], ...] = ()
    accelerators: Mapping[int, str] | None = None
    at: float | None = None
    advice: str = ""
    trouble: str = ""


def waits_text(waits: JobWaits | None, marks: Marks, now: float, width: int) -> Text:
    """A line of marks for each rank that others waited for, and the advice; empty if nothing is recorded."""
    text = Text()
    if waits is None or not (waits.steps or waits.trouble):
        return text
    text.append("late ranks\n", style=HEADING_STYLE)
    if waits.trouble:
        return text.append(f"  {waits.trouble}\n", style=STALE_STYLE)
    shown = waits.steps[-max(min(MOST_STEPS, width - _LABEL - _SAID), 1) :]
    longest_s = max(waited for _, waited in shown)
    levels = ASCII_STEPS if marks.ascii_only else BLOCKS
    text.append(f"  whom the others waited for in the newest {counted(len(shown), 'steps')}", style=QUIET_STYLE)
    text.append(f", the last {age(waits.at, now)} ago; {levels[-1]} is {seconds_text(longest_s)}\n", style=QUIET_STYLE)
    times_last = Counter(rank for rank, _ in shown)
    for rank, times in times_last.most_common(_MOST_RANKS):
        name = (waits.accelerators or {}).get(rank, "")
        text.append(f"  {f'rank {rank} {name}':<{_LABEL - 3}} ")
        for last, waited in shown:
            level = round(share_of(waited, 0.0, longest_s) * (len(levels) - 1))
            text.append(levels[level] if last == rank else " ")
        typical_s = median(waited for last, waited in shown if last == rank)
        text.append(f" last in {times}, {seconds_text(typical_s)}\n", style=QUIET_STYLE)
    if (others := len(times_last) - _MOST_RANKS) > 0:
        text.append(f"  {counted(others, 'more ranks')}, each less often\n", style=QUIET_STYLE)
    return text.append(f"  {waits.advice}\n")
