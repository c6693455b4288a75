"""Catches output of plug-ins to file descriptors 1 and 2; lumctl's own output uses private descriptors.

A vendor's library may write to the descriptors directly, not through ``sys.stdout`` and ``sys.stderr``. Once code of
another package is loaded, the descriptors are a pipe. A thread copies the pipe's output to standard error, escaped,
line by line, with a limit on the number of lines. None of it goes to standard output, and while a screen is drawn it
is dropped. Child processes that inherit the descriptors write to the same pipe; they get ``SIGPIPE`` if they continue
after lumctl has ended. Each of lumctl's own child processes has a separate standard error.

A line of a library may appear after a later line of lumctl. The interpreter's output when it crashes is lost.
"""

import atexit
import faulthandler
import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lumctl.printable import one_line

MOST_LINES, WITHIN_S = 100, 60.0
"""At most ``MOST_LINES`` lines are passed on in ``WITHIN_S`` seconds."""
MOST_CHARACTERS = 500
_MOST_BYTES = 4096
"""Bytes without a line end that count as a line."""
_QUIET_S = 0.2
"""Seconds without further output after which an incomplete line counts as a line."""
_ENDS_WITHIN_S = 1.0
_TOO_MUCH = f"lumctl: a plug-in printed more than {MOST_LINES} lines in {WITHIN_S:g} s; the rest is not shown"

_own_stderr: int | None = None
_stray: "_StrayOutput | None" = None
_lock = threading.Lock()


def separate_streams() -> None:
    """Move ``sys.stdout`` and ``sys.stderr`` to private descriptors; other output to descriptor 1 goes to 2.

    Raises:
        OSError, AttributeError: the program was started without one of the two streams.
    """
    global _own_stderr  # noqa: PLW0603 - a process has one standard error
    # ``dup`` makes descriptors that child processes do not inherit.
    err, out = os.dup(2), os.dup(1)
    os.dup2(2, 1)
    # Both names: the dashboard and the progress line write to ``sys.__stderr__``. Buffering is as Python chooses it.
    sys.stdout = sys.__stdout__ = _opened(out, sys.stdout, 1 if sys.stdout.isatty() else -1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _opened(err, sys.stderr, 1)  # type: ignore[misc]
    _own_stderr = err
    os.register_at_fork(after_in_child=lambda: _leave_to_parent(out, err))


def catch_stray_output() -> None:
    """From now on, pass on output to descriptors 1 and 2, escaped. Call :func:`separate_streams` first."""
    global _stray  # noqa: PLW0603 - a process has one of each descriptor
    # Checked twice: every contained call comes here, and only the first one needs the lock.
    if _stray is not None or _own_stderr is None:
        return
    with _lock:
        if _stray is None:
            _stray = _StrayOutput(_own_stderr, getattr(sys.stderr, "encoding", None) or "ascii")


def is_caught() -> bool:
    """Whether stray output is caught, which is so once code of another package is loaded."""
    return _stray is not None


def end_stray_output() -> None:
    """Pass on the output so far; later output is dropped."""
    if _stray is not None:
        _stray.end()


def _leave_to_parent(*own: int) -> None:
    """Detach a child that a plug-in forks: it must not hold the streams open or flush the parent's buffered output."""
    if is_caught():
        void = os.open(os.devnull, os.O_WRONLY)
        for descriptor in own:
            # ``dup2`` makes inheritable descriptors by default: programs that the child starts would get them.
            os.dup2(void, descriptor, inheritable=False)
        os.close(void)


_screens = 0


@contextmanager
def stray_output_dropped() -> Iterator[None]:
    """Drop stray output within the block, because a screen is drawn."""
    global _screens  # noqa: PLW0603 - a process has one terminal
    _screens += 1
    try:
        yield
    finally:
        _screens -= 1


def _opened(descriptor: int, like: Any, buffering: int) -> Any:
    """A stream that lasts as long as the process."""
    return open(descriptor, "w", encoding=like.encoding, errors=like.errors, buffering=buffering)


class _StrayOutput:
    """The pipe that replaces both descriptors, and the thread that reads it."""

    def __init__(self, own_stderr: int, encoding: str) -> None:
        self._own_stderr, self._encoding = own_stderr, encoding
        self._pid = os.getpid()
        self._window_s, self._lines = 0.0, 0
        self._pipe, written = os.pipe()
        # The thread also reads when poll has reported nothing but a timeout or the end; that read must not wait.
        os.set_blocking(self._pipe, False)
        # Closing ``_end`` wakes the thread. The end of the output itself would not: a child may hold that pipe open.
        self._ending, self._end = os.pipe()
        for standard in (1, 2):
            os.dup2(written, standard)
        os.close(written)
        if faulthandler.is_enabled():
            # A crash report in the pipe would be lost: the thread that reads the pipe dies with the process.
            faulthandler.enable(file=own_stderr)
        self._thread = threading.Thread(target=self._read, name="stray-output", daemon=True)
        self._thread.start()
        atexit.register(self.end)  # handlers that the plug-in registers later run before this one

    def end(self) -> None:
        """Read the output so far and stop; do not wait for a child that holds the pipe open."""
        # A forked child has no such thread, and the pipe belongs to its parent.
        if self._end < 0 or os.getpid() != self._pid:
            return
        end, self._end = self._end, -1
        # Nothing reads the pipe after the end, so a writer would wait forever once it is full.
        void = os.open(os.devnull, os.O_WRONLY)
        for standard in (1, 2):
            os.dup2(void, standard)
        os.close(void)
        os.close(end)
        self._thread.join(_ENDS_WITHIN_S)

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        poll.register(self._ending, 0)
        begun = b""
        while True:
            ready = dict(poll.poll(_QUIET_S * 1000 if begun else None))
            piece = self._piece()
            *lines, begun = (begun + piece).split(b"\n")
            if not piece or len(begun) > _MOST_BYTES:
                lines, begun = [*lines, begun], b""
            with suppress(OSError):  # nothing reads standard error any more
                self._pass_on(lines)
            # Only once the pipe is empty: output from before the end is still passed on.
            if not piece and self._ending in ready:
                return

    def _piece(self) -> bytes:
        try:
            return os.read(self._pipe, _MOST_BYTES)
        except BlockingIOError:
            return b""

    def _pass_on(self, lines: list[bytes]) -> None:
        for line in lines:
            if _screens or not line.strip():
                continue
            now = time.monotonic()
            if now - self._window_s > WITHIN_S:
                self._window_s, self._lines = now, 0
            self._lines += 1
            if self._lines <= MOST_LINES:
                self._write(one_line(line.decode(errors="backslashreplace"), MOST_CHARACTERS))
            elif self._lines == MOST_LINES + 1:
                self._write(_TOO_MUCH)

    def _write(self, text: str) -> None:
        left = f"{text}\n".encode(self._encoding, "backslashreplace")
        while left:
            left = left[os.write(self._own_stderr, left) :]
