"""How the dashboard ends: after a signal, with a plan in progress, and with which exit code."""

import gc
import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation
from lumctl.descriptors import stray_output_dropped
from lumctl.errors import ExitCode
from lumctl.tui.look.marks import duration

if TYPE_CHECKING:
    from lumctl.tui.app import Dashboard
    from lumctl.tui.text_mode.session import TextSession


RECENT_S = 60.0
"""For how long after an apply the advice that came with its result is still that for the present state."""


def run_to_its_end(cx: Invocation, dashboard: "Dashboard | TextSession") -> int:
    """Show the dashboard until the user leaves; return the exit code."""
    with stopped_by_signals(dashboard), stray_output_dropped():
        # What lives by now lives as long as the screen: no search for cycles needs to look at it.
        gc.freeze()
        dashboard.run()
        return end(cx, dashboard)


@contextmanager
def stopped_by_signals(dashboard: "Dashboard | TextSession") -> Iterator[None]:
    """Within the block, a request to stop only closes the screen: an apply in progress is finished."""

    def stop(*_: object) -> None:
        if not os.isatty(sys.__stdout__.fileno() if sys.__stdout__ else 1):
            _forget_the_terminal()
        dashboard.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _forget_the_terminal() -> None:
    """Discard output if the terminal has gone: a write error must not keep the screen from closing."""
    void = os.open(os.devnull, os.O_RDWR)
    own = {stream.fileno() for stream in (sys.__stdout__, sys.__stderr__) if stream is not None}
    for descriptor in {0, 1, 2} | own:
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):  # a file or a pipe is still there to be written
            os.dup2(void, descriptor)
    os.close(void)


def end(cx: Invocation, dashboard: "Dashboard | TextSession") -> int:
    """Print the result of the last apply, which the screen may not have shown, and return the exit code."""
    if dashboard.applying.under_way:
        cx.out.narrate("a plan is being applied and continues to its end; waiting for it")
    applied = dashboard.applying.outcome()
    if applied is not None:
        if applied.error is not None:
            raise applied.error
        ago = dashboard.applying.ended_s_ago
        if ago < RECENT_S:
            for line in (applied.outcome, *applied.lines):
                cx.out.narrate(line)
        else:  # the screen has shown what was to be done next; by now it may be done, or wrong
            cx.out.narrate(f"{duration(ago)} ago: {applied.outcome}")
    return ExitCode.INTERRUPTED if dashboard.interrupted else dashboard.return_code or ExitCode.DONE
