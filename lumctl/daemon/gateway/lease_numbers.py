"""The lease numbers that a gateway compares a write with: the highest seen, and the newest in the store.

The highest is kept in a file over restarts, because the store may be unreachable when the gateway starts.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lumctl.errors import LumctlError
from lumctl.files import write_whole

FILE = "gateway.fence"
MOST = 2**31 - 1_000
"""No lease has a higher number: a database holds it in 32 bits."""
SLOW_S = 1.0
LEFT_ALONE_S = 15.0
"""A store that failed slowly is not asked again for so long: it must not keep each step of an undo from its device."""


class HighestLease:
    """A number in a file that only grows. Where the file cannot be written, it grows in memory, and that is told."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self.path = path
        self.number = 0
        self._say = say
        with suppress(FileNotFoundError):
            try:
                self.number = _plausible(int(path.read_bytes()[:32]))
            except (OSError, ValueError) as error:
                if isinstance(error, FileNotFoundError):
                    raise
                say(f"{path} cannot be read: {error}; until the store tells, older leases are not known")

    def raise_to(self, number: int) -> None:
        """See a number; a higher one than before is on disk when this returns."""
        if number <= self.number:
            return
        self.number = number
        try:
            # Private to its owner, whatever the umask: its content decides which leases are refused.
            write_whole(self.path, b"%d\n" % number)
        except OSError as error:
            self._say(f"{self.path} cannot be written: {error.strerror}; lease {number} is remembered until the end")


def _plausible(number: int) -> int:
    if not 0 <= number <= MOST:
        raise ValueError(f"no lease has the number {number}")
    return number


class NewestLease:
    """Reads the number, and raises it: ``raise_above`` gives the newest. The store has its own time limits."""

    def __init__(
        self,
        read: Callable[[], int],
        raise_above: Callable[[int], int],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._raise_above = raise_above
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._troubles: dict[str, str] = {}
        self._not_before = clock()

    def __call__(self) -> int | None:
        """The number; ``None`` if the store cannot be read now, which is told once."""
        return self._tried("read", self._read, "the highest lease seen decides")

    def shut_out(self, highest: int) -> int | None:
        """Have the store give no lease a number up to one; ``None`` if it cannot be written now, told once."""
        found = self._tried("written", lambda: self._raise_above(highest), f"no lease up to {highest} may write")
        if found is not None:
            self._say(
                f"lease {highest} came to the gateway, and the store does not know it: an engine that uses another "
                f"store, or an old copy of the store; no lease up to {found} may write any more, the next one may"
            )
        return found

    def _tried(self, how: str, ask: Callable[[], int], otherwise: str) -> int | None:
        began = self._clock()
        if began < self._not_before:
            return None
        trouble, number = "", None
        try:
            number = ask()
        except LumctlError as error:
            trouble = error.message
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being read, a write must have an answer
            trouble = f"{type(error).__name__}: {error}"
        if trouble and (ended := self._clock()) - began > SLOW_S:
            self._not_before = ended + LEFT_ALONE_S
        with self._lock:
            if bool(trouble) != bool(self._troubles.get(how)):
                self._say(f"{trouble}; {otherwise}" if trouble else f"the store can be {how} again")
            self._troubles[how] = trouble
        return number
