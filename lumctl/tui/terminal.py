"""The dashboard's terminal: drawing on it, noticing that it is gone, and lending it to a program such as ssh."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

NOT_THERE = 127
"""The exit status of a program that cannot be run, as a shell reports it."""


class TerminalDriver(LinuxDriver):
    """Textual's own driver, but drawing on stdout instead of stderr."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if sys.__stdout__ is not None:
            self._file = sys.__stdout__


def hung_up(descriptor: int) -> bool:
    """Whether the other end of a terminal has gone; not every process on that terminal gets a signal then."""
    poll = select.poll()
    poll.register(descriptor, select.POLLHUP)
    return any(events & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0))


def run_in_terminal(command: Sequence[str]) -> int:
    """Run it to its end; return its exit status. Call it in the main thread, with the terminal given back.

    Ctrl-C is for the program: it would otherwise end the dashboard too. Its error messages go to the terminal, wherever
    our own standard error goes.
    """
    # A handler, not SIG_IGN, which the program would inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(list(command), stderr=1, check=False).returncode  # noqa: S603 - a list, without a shell
    except OSError as error:
        say(f"{command[0]} cannot be run: {error.strerror or error}")
        return NOT_THERE
    finally:
        signal.signal(signal.SIGINT, before)


def say(line: str) -> None:
    """Print a line on the terminal."""
    os.write(1, f"{line}\n".encode())


def wait_for_enter() -> None:
    """Let the operator read the program's last output; do not wait if the terminal has gone."""
    say("press enter to return to lumctl top")
    while (read := _read()) and b"\n" not in read:
        pass


def _read() -> bytes:
    try:
        return os.read(0, 1024)
    except OSError:  # the terminal is gone
        return b""
