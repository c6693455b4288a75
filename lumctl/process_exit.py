"""Limits the time that the process takes to exit after a plug-in was loaded.

A plug-in may leave behind threads that are not daemons, exit handlers, ``multiprocessing`` processes, and objects that
hang when the interpreter frees them. Each could keep a command running after it has printed its answer. They have one
second to end; then the process exits with the command's exit code.
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
"""Seconds that threads, handlers and objects of a plug-in have to end."""

_end_now = os._exit
"""The original function: :mod:`lumctl.containment` replaces the public one."""
_limited: int | None = None
"""PID of the process whose exit is limited; its forked children have another one."""
_code: int = ExitCode.UNEXPECTED


class FinishingThread(threading.Thread):
    """A thread of lumctl that carries out an operator's command: the process waits for it without a limit."""


def register_last_handler() -> None:
    """Register lumctl's exit handler. Call this before any other is registered: handlers run in reverse order."""
    atexit.register(_exit_if_limited)


def limit_exit() -> None:
    """Limit the exit of this process from now on. Call this before code of another package is loaded."""
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
    # The interpreter now waits for threads and runs exit handlers of the plug-in; this thread ends that after a second.
    threading.Thread(target=_exit_late, name="lumctl-exit", daemon=True).start()


def _finish() -> None:
    """Wait for lumctl's own threads and flush the streams, because the rest of the exit may be interrupted."""
    # First, while Ctrl-C still works: such a thread may take as long as an apply takes.
    for thread in threading.enumerate():
        if isinstance(thread, FinishingThread):
            thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process ends by itself; Ctrl-C would only print a traceback here
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nothing reads it any more, or it is closed
            stream.flush()


def _exit_late() -> None:
    time.sleep(EXITS_WITHIN_S)
    _exit_if_limited()


def _exit_if_limited() -> None:
    """Exit without the interpreter's own finalization, which frees objects of plug-ins."""
    if _limited == os.getpid():
        end_stray_output()
        _end_now(_code)
