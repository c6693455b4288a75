"""The highest lease number that a gateway has seen, kept over its restarts: a store may be gone just then."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lumctl.files import write_whole

FILE = "gateway.fence"
MOST = 2**31 - 1_000
"""No lease has a higher number: a database holds it in 32 bits."""


class Highest:
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
