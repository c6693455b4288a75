"""What devices answer, asked again and again without ever waiting long for one that does not."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from functools import partial
from typing import Generic, TypeVar

from lumctl.workers import Workers

Said = TypeVar("Said")


class DeviceAnswers(Generic[Said]):
    """Asks devices, each by at most one question at a time, and knows the newest answer of each.

    ``ask`` gives what a device says, be it that it did not answer.
    """

    def __init__(self, devices: Iterable[str], ask: Callable[[str], Said]) -> None:
        self._devices = tuple(devices)
        self._ask = ask
        self._workers = Workers("device")
        self._asked: dict[str, Future[Said]] = {}
        self._due: list[Future[Said]] = []
        self._known: dict[str, Said] = {}
        self._begun = 0.0

    def begin(self) -> None:
        """Ask every device that owes no answer."""
        self._begun = time.monotonic()
        self._take()
        self._due = [self._begin(device) for device in self._devices if device not in self._asked]

    def _begin(self, device: str) -> Future[Said]:
        asked = self._asked[device] = self._workers.submit(partial(self._ask, device))
        return asked

    def gathered(self, patience_s: float | None) -> dict[str, Said]:
        """The newest answers: of each device, or (with ``patience_s``) of those that gave one in time.

        Nobody is patient with a device whose answer was due before. One that never answered yet is not told of.
        """
        if patience_s is None:
            wait(self._asked.values())
        else:
            wait(self._due, timeout=max(self._begun + patience_s - time.monotonic(), 0.0))
        self._take()
        return dict(self._known)

    def _take(self) -> None:
        """Take the answers that have come."""
        for device, asked in list(self._asked.items()):
            if asked.done():
                del self._asked[device]
                self._known[device] = asked.result()

    def close(self) -> None:
        """Ask nothing more; an answer that is still due ends with the driver's own time limit."""
        self._workers.close()
