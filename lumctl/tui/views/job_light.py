"""The dashboard's text of a job's light between its phases: a strip of the newest steps, and what was chosen."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from lumctl.quantity_text import seconds_text
from lumctl.training.phase_record import light_words
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, Marks
from lumctl.tui.widgets.gauges import ASCII_STEPS, BLOCKS, share_of

_ROWS: tuple[tuple[str, Callable[[Mapping[str, Any]], float]], ...] = (
    ("computing", lambda step: max(step.get("step_s", 0.0) - step["wait_s"], 0.0)),
    ("waiting", lambda step: step["wait_s"]),
    ("changing", lambda step: step.get("change_s", 0.0)),
)
_LABEL = 12
"""The columns before a line of marks."""
_LONGEST = 9
"""The columns after it, for the longest time."""


def light_text(light: Mapping[str, Any] | None, marks: Marks, width: int) -> Text:
    """A line of marks each for computing, waits for light, and its changes; then words. Empty without phases.

    ``light`` is the field of that name in the status document of the job.
    """
    text = Text()
    if not light:
        return text
    text.append("light between phases\n", style=HEADING_STYLE)
    if shown := light["steps"][-max(width - _LABEL - _LONGEST, 1) :]:
        levels = ASCII_STEPS if marks.ascii_only else BLOCKS
        text.append(f"  of each training step; {levels[-1]} is the longest\n", style=QUIET_STYLE)
        for label, seconds in _ROWS:
            times = [seconds(step) for step in shown]
            levelled = (round(share_of(each, 0.0, max(times)) * (len(levels) - 1)) for each in times)
            strip = "".join(levels[level] for level in levelled)
            text.append(f"  {label:<{_LABEL - 3}} {strip} {seconds_text(max(times))}\n")
    for line in light_words(light):
        text.append(f"  {line}\n")
    return text
