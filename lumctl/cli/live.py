"""Showing something again and again until interrupted: in place on a terminal, one after the other in a pipe."""

import io
import math
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import typer

SHORTEST_S, LONGEST_S = 0.2, 86_400.0
"""The bounds of an interval: shorter is no pause for a rack, longer is beyond what the system's clocks take."""


def a_pause(seconds: float) -> float:
    """The interval itself; refuses ``nan``, which passes every check of bounds."""
    if math.isnan(seconds):
        raise typer.BadParameter(f"{seconds} is no number of seconds")
    return seconds


def a_speed(times: float | None) -> float | None:
    """The speed itself, as :func:`a_pause`."""
    if times is not None and math.isnan(times):
        raise typer.BadParameter(f"{times} is no number")
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
            printed = _Terminal(encoding)
            with redirect_stdout(printed):
                show()
            live.update(Text.from_ansi(printed.getvalue()), refresh=True)
            pause.wait(interval_s)


class _Terminal(io.StringIO):
    """Collects what is meant for the terminal, so that a whole picture replaces the one before it."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True
