"""What the simulated devices were told, in the order in which it came: the truth that tests hold a change against."""

from collections import deque
from dataclasses import dataclass

_MOST = 20_000


@dataclass(frozen=True, slots=True)
class WriteInProgress:
    """One write that reached a device, whatever came of it; ``at`` in seconds since the epoch."""

    number: int
    at: float
    device: str
    what: str


class WriteLog:
    """The newest writes to all devices of a world. It is kept under the world's own lock."""

    def __init__(self) -> None:
        self._writes: deque[WriteInProgress] = deque(maxlen=_MOST)
        self._count = 0

    def add(self, device: str, what: str, at: float) -> None:
        """A device was told something."""
        self._count += 1
        self._writes.append(WriteInProgress(self._count, at, device, what))

    def after(self, number: int) -> list[WriteInProgress]:
        """The writes with a higher number."""
        return [write for write in self._writes if write.number > number]
