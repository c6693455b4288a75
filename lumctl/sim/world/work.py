"""How long changes of simulated devices take: before the answer, or after it (the fault ``slow-commit``); their log."""

import math
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from lumctl.devices.errors import DeviceBusyError
from lumctl.devices.types import Progress


class ChangeTimes:
    """How long a change of each device takes before it is answered, by device and in seconds; by default no time.

    Light that the change moves is dark meanwhile. ``pause`` waits for some seconds, or until the simulator ends.
    """

    def __init__(
        self, seconds: Mapping[str, float] | None = None, pause: Callable[[float], object] = lambda _: None
    ) -> None:
        self._seconds = dict(seconds or {})
        self._pause = pause
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def of(self, device: str) -> float:
        """How long a change of a device takes, in seconds."""
        return self._seconds.get(device, 0.0)

    @contextmanager
    def turn(self, device: str) -> Iterator[None]:
        """Let a device make one change at a time; another one waits. Do not call it while the world is locked."""
        if not self.of(device):
            yield
            return
        with self._turns[device]:
            yield

    def wait(self, device: str) -> None:
        """Wait while a device changes. Do not call it while the world is locked."""
        if (seconds := self.of(device)) > 0:
            self._pause(seconds)


@dataclass(frozen=True, slots=True)
class Work:
    """A change in progress: ``done`` of its parts are made; ``finish`` makes the rest at ``ends`` (epoch seconds)."""

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
            DeviceBusyError: the device still works on an earlier change.
        """
        if device in self._held:
            raise DeviceBusyError(f"{device} is still working on an earlier change")

    def begin(self, device: str, work: Work) -> None:
        """Start a device's change in progress."""
        self._held[device] = work

    def drop(self, device: str) -> None:
        """Drop a device's change in progress, if there is one; the rest of it is not made."""
        self._held.pop(device, None)

    def forget(self) -> None:
        """Drop the changes in progress of all devices."""
        self._held.clear()

    def progress(self, device: str) -> Progress | None:
        """The progress of a device's change; ``None`` if there is none."""
        work = self._held.get(device)
        return Progress(work.done, work.total, "commit in progress") if work else None

    def next_end(self) -> float:
        """The time when the next change in progress ends; ``inf`` if there is none."""
        return min((work.ends for work in self._held.values()), default=math.inf)

    def finish(self, due: float) -> None:
        """Finish every change whose end is due."""
        for device in [device for device, work in self._held.items() if work.ends <= due]:
            self._held.pop(device).finish()

    def finish_of(self, device: str) -> None:
        """Finish a device's change at once, if there is one."""
        if device in self._held:
            self._held.pop(device).finish()


_MOST = 20_000


@dataclass(frozen=True, slots=True)
class WriteInProgress:
    """One write that reached a device, whether or not it succeeded; ``at`` in seconds since the epoch."""

    number: int
    at: float
    device: str
    what: str


class WriteLog:
    """The newest writes to all devices of a world. The caller holds the world's lock."""

    def __init__(self) -> None:
        self._writes: deque[WriteInProgress] = deque(maxlen=_MOST)
        self._count = 0

    def add(self, device: str, what: str, at: float) -> None:
        """Record a write to a device."""
        self._count += 1
        self._writes.append(WriteInProgress(self._count, at, device, what))

    def after(self, number: int) -> list[WriteInProgress]:
        """The writes with a higher number."""
        return [write for write in self._writes if write.number > number]
