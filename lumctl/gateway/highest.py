"""The highest lease number that a gateway has seen, kept over its restarts: a store may be gone just then."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

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
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            # Private to its owner, whatever the umask: its content decides which leases are refused.
            new.unlink(missing_ok=True)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(b"%d\n" % number)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            self._say(f"{self.path} cannot be written: {error.strerror}; lease {number} is remembered until the end")


def _plausible(number: int) -> int:
    if not 0 <= number <= MOST:
        raise ValueError(f"no lease has the number {number}")
    return number
