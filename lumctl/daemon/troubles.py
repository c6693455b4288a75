"""What goes wrong in the daemon: told once for each kind, counted each time, and told again when it is over."""

import os
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from lumctl.errors import LumctlError


class Troubles:
    """Kinds of trouble by where they arose. May be used from any thread."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._open: Counter[tuple[str, str]] = Counter()
        self._counts: Counter[tuple[str, str]] = Counter()

    def arose(self, where: str, error: Exception) -> None:
        """Count an error; the first of its kind since all was well is told."""
        kind = type(error).__name__
        with self._lock:
            self._counts[where, kind] += 1
            self._open[where, kind] += 1
            first = self._open[where, kind] == 1
        if first:
            self._say(f"{where}: {_one_line(error)}")

    def passed(self, where: str) -> None:
        """What was in trouble here is well again."""
        with self._lock:
            over = {key: count for key, count in self._open.items() if key[0] == where}
            for key in over:
                del self._open[key]
        if over:
            self._say(f"{where}: well again after {sum(over.values())} failures")

    def counts(self) -> dict[tuple[str, str], int]:
        """How often each kind of error arose, by place and kind."""
        with self._lock:
            return dict(self._counts)


def _one_line(error: Exception) -> str:
    if os.environ.get("LUMCTL_TRACEBACK"):
        return "".join(traceback.format_exception(error))
    if isinstance(error, LumctlError):
        return f"{error.message} (hint: {error.hint})" if error.hint else error.message
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"unexpected {type(error).__name__}: {error}{place}"
