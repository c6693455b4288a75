"""The end of the process, within a time limit once code of another package was loaded.

A plug-in may leave threads that are no daemons, exit handlers, processes of ``multiprocessing``, and objects that hang
when the interpreter frees them. Each would hold up a command that has printed its answer already. They have a second;
then the process ends with the command's exit code.
"""

import atexit
import os
import signal
import sys
import threading
import time
from contextlib import suppress

from lumctl.descriptors import end_stray_output
from lumctl.errors import ExitCode

EXITS_WITHIN_S = 1.0
"""How long what a plug-in left behind may take to end."""

_end_now = os._exit
"""The real one: :mod:`lumctl.containment` replaces it."""
_limited: int | None = None
"""The process whose end is limited; not the children that it forks."""
_code: int = ExitCode.UNEXPECTED


class FinishingThread(threading.Thread):
    """A thread of lumctl itself, which carries out an order: the process waits for it, however long it takes."""


def register_last_handler() -> None:
    """Register the exit handler that is to be called last: before any other is registered."""
    atexit.register(_exit_if_limited)


def limit_exit() -> None:
    """From now on nothing holds up the end of this process: code of another package is about to be loaded."""
    global _limited  # noqa: PLW0603 - a process ends once
    _limited = os.getpid()


def begin_exit(code: int) -> None:
    """Call this right before the process ends with this exit code."""
    global _code  # noqa: PLW0603 - as above
    if _limited != os.getpid():
        return
    _code = code
    try:
        _finish()
    except KeyboardInterrupt:
        _code = ExitCode.INTERRUPTED
    threading.Thread(target=_exit_late, name="lumctl-exit", daemon=True).start()


def _finish() -> None:
    """Let lumctl's own threads come to their ends, and flush its streams: what comes after may be cut off."""
    for thread in threading.enumerate():
        if isinstance(thread, FinishingThread):
            thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends by itself; here Ctrl-C would only print a traceback
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nothing reads it any more, or it is closed
            stream.flush()


def _exit_late() -> None:
    time.sleep(EXITS_WITHIN_S)
    _exit_if_limited()


def _exit_if_limited() -> None:
    """End without the rest of the interpreter's own end, which frees what a plug-in left."""
    if _limited == os.getpid():
        end_stray_output()
        _end_now(_code)
