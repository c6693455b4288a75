"""Repeated output until Ctrl-C: in place on a terminal, appended in a pipe."""

import math
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import typer

from lumctl.cli.pager import TerminalText

SHORTEST_S, LONGEST_S = 0.2, 86_400.0
"""The bounds of an interval: a shorter one would strain the rack, a longer one exceeds the limit of system timers."""


def a_pause(seconds: float) -> float:
    """Return the interval, but refuse ``nan``, which passes every check of bounds."""
    if math.isnan(seconds):
        raise typer.BadParameter(f"{seconds} is not a number of seconds")
    return seconds


def a_speed(times: float | None) -> float | None:
    """Return the speed, but refuse ``nan``, as :func:`a_pause` does."""
    if times is not None and math.isnan(times):
        raise typer.BadParameter(f"{times} is not a number")
    return times


def interval_option(what: str) -> Any:
    """``--interval``, with its bounds, for ``Annotated[float, ...]``; ``what`` is its line in the help."""
    return typer.Option("--interval", metavar="SECONDS", min=SHORTEST_S, max=LONGEST_S, callback=a_pause, help=what)


def repeat(show: Callable[[], None], interval_s: float) -> None:
    """Call ``show``, which prints to stdout, every ``interval_s`` seconds until Ctrl-C."""
    if sys.stdout.isatty():
        _repeat_in_place(show, interval_s)
    pause = threading.Event()
    while True:
        show()
        sys.stdout.flush()
        pause.wait(interval_s)


def _repeat_in_place(show: Callable[[], None], interval_s: float) -> None:
    from rich.live import Live
    from rich.text import Text

    pause = threading.Event()
    encoding = sys.stdout.encoding  # Checked now: Live replaces stdout by an object without this attribute.
    with Live(screen=True, auto_refresh=False) as live:
        while True:
            # Rich's Live shows one renderable, so the output is collected as if for a terminal and given to it as a
            # whole.
            printed = TerminalText(encoding)
            with redirect_stdout(printed):
                show()
            live.update(Text.from_ansi(printed.getvalue()), refresh=True)
            pause.wait(interval_s)
