"""Changes that a simulated device continues with after its answer (the fault ``slow-commit``)."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from lumctl.devices.errors import DeviceBusyError
from lumctl.devices.types import Progress


@dataclass(frozen=True, slots=True)
class Work:
    """A change under way: so many of its parts are made, and ``finish`` makes the rest at ``ends`` (epoch seconds)."""

    done: int
    total: int
    ends: float
    finish: Callable[[], object]


class Works:
    """The change in progress of each device, one at a time. The caller holds the world's lock."""

    def __init__(self) -> None:
        self._held: dict[str, Work] = {}

    def require_none(self, device: str) -> None:
        """Check that a device is free to take a change.

        Raises:
            DeviceBusyError: it is still at work on an earlier one.
        """
        if device in self._held:
            raise DeviceBusyError(f"{device} is still at work on an earlier change")

    def begin(self, device: str, work: Work) -> None:
        """Let a device work."""
        self._held[device] = work

    def drop(self, device: str) -> None:
        """Let a device forget its change in progress, if there is one."""
        self._held.pop(device, None)

    def forget(self) -> None:
        """Let every device forget its change in progress."""
        self._held.clear()

    def progress(self, device: str) -> Progress | None:
        """How far a device has come; ``None`` where it is at work on nothing."""
        work = self._held.get(device)
        return Progress(work.done, work.total, "commit in progress") if work else None

    def next_end(self) -> float:
        """When the next work ends; ``inf`` if there is none."""
        return min((work.ends for work in self._held.values()), default=math.inf)

    def finish(self, due: float) -> None:
        """End every work that is due."""
        for device in [device for device, work in self._held.items() if work.ends <= due]:
            self._held.pop(device).finish()

    def finish_of(self, device: str) -> None:
        """End a device's work at once, if there is one."""
        if device in self._held:
            self._held.pop(device).finish()


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
        """A setting of a device was written."""
        self._count += 1
        self._writes.append(WriteInProgress(self._count, at, device, what))

    def after(self, number: int) -> list[WriteInProgress]:
        """The writes with a higher number."""
        return [write for write in self._writes if write.number > number]
