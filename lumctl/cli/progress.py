"""A line on a terminal's stderr that shows what a command is doing, if it takes longer than a second."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TextIO

from lumctl.printable import one_line

_AFTER_S, _EVERY_S = 1.0, 0.5
_CLEAR = "\r\x1b[K"
_shown: "list[ProgressLine]" = []
"""The progress lines that are shown now; other output hides them while it prints."""


class ProgressLine:
    """What a command is doing, and for how long; every :meth:`draw` updates it, but not within the first second.

    ``clock`` returns seconds; ``stream`` is a terminal. :func:`progress` manages one such line.
    """

    def __init__(self, what: str, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._drawn = False
        # Re-entrant: what is printed while the line is hidden may hide it again.
        self._lock = threading.RLock()

    def tell(self, what: str) -> None:
        """Set the text for the next :meth:`draw`."""
        self._what = what

    def draw(self) -> None:
        """Draw the line in its place."""
        seconds = self._clock() - self._began
        if seconds < _AFTER_S:
            return
        width = shutil.get_terminal_size().columns - 1
        with self._lock:
            self._write(_CLEAR + one_line(f"{self._what} ... {seconds:.0f} s", width))
            self._drawn = True

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line within the block, while something else is printed."""
        with self._lock:
            if self._drawn:
                self._write(_CLEAR)
                self._drawn = False
            yield

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone; the work continues
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what a command is doing while the block runs; the yielded function changes the text."""
    # An outer line stays alone: two lines would overwrite each other.
    if quiet or _shown or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    # It is drawn in a thread, and is printable: sys.stderr escapes what other threads write, for it may be a plug-in's.
    line, ended = ProgressLine(what, sys.__stderr__ or sys.stderr), threading.Event()

    def draw_on() -> None:
        while not ended.wait(_EVERY_S):
            line.draw()

    drawing = threading.Thread(target=draw_on, name="progress", daemon=True)
    _shown.append(line)
    drawing.start()
    try:
        yield line.tell
    finally:
        # The thread must have ended before the line is cleared: it could draw it once more.
        ended.set()
        drawing.join()
        _shown.remove(line)
        with line.hidden():
            pass


@contextmanager
def beside_progress() -> Iterator[None]:
    """Hide the progress line within the block, so that other output can be printed."""
    with ExitStack() as stack:
        for line in tuple(_shown):  # another thread may remove a line meanwhile
            stack.enter_context(line.hidden())
        yield
