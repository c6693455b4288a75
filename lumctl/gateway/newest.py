"""The number of a rack's newest lease, from its store, or the news that it cannot be read."""

import threading
import time
from collections.abc import Callable

from lumctl.errors import LumctlError

SLOW_S = 1.0
LEFT_ALONE_S = 15.0
"""A store that failed slowly is not asked again for so long: it must not keep each step of an undo from its device."""


class Newest:
    """Reads the number. The store has its own time limits."""

    def __init__(
        self, read: Callable[[], int], say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._trouble = ""
        self._not_before = clock()

    def __call__(self) -> int | None:
        """The number; ``None`` if the store cannot be read now, which is told once."""
        began = self._clock()
        if began < self._not_before:
            return None
        trouble, number = "", None
        try:
            number = self._read()
        except LumctlError as error:
            trouble = error.message
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being read, a write must have an answer
            trouble = f"{type(error).__name__}: {error}"
        if trouble and (ended := self._clock()) - began > SLOW_S:
            self._not_before = ended + LEFT_ALONE_S
        with self._lock:
            if bool(trouble) != bool(self._trouble):
                self._say(f"{trouble}; the highest lease seen decides" if trouble else "the store can be read again")
            self._trouble = trouble
        return number
