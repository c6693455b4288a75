"""The dashboard's text of a job's light between its phases: a strip of the newest steps, and what was chosen."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from lumctl.quantity_text import seconds_text
from lumctl.training.phase_record import light_words
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, Marks
from lumctl.tui.widgets.gauges import ASCII_STEPS, BLOCKS, share_of

_ROWS = (("waiting", "wait_s"), ("hidden", "hidden_s"))
_LABEL = 12
"""The columns before a line of marks."""


def light_text(light: Mapping[str, Any] | None, marks: Marks, width: int) -> Text:
    """A line of marks for the waits for light and one for what was hidden, and both in words; empty without phases.

    ``light`` is the field of that name in the status document of the job.
    """
    text = Text()
    if not light:
        return text
    text.append("light between phases\n", style=HEADING_STYLE)
    if shown := light["steps"][-max(width - _LABEL, 1) :]:
        longest_s = max(step[name] for step in shown for _, name in _ROWS)
        levels = ASCII_STEPS if marks.ascii_only else BLOCKS
        text.append(f"  of each training step; {levels[-1]} is {seconds_text(longest_s)}\n", style=QUIET_STYLE)
        for label, name in _ROWS:
            levelled = (round(share_of(step[name], 0.0, longest_s) * (len(levels) - 1)) for step in shown)
            text.append(f"  {label:<{_LABEL - 3}} {''.join(levels[level] for level in levelled)}\n")
    for line in light_words(light):
        text.append(f"  {line}\n")
    return text
