"""Notices when the simulator that a job runs on ends."""

import json
import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lumctl.devices.endpoints import RUNTIME_FILE

GONE = "its simulator has ended, and with it the light between the ranks"


LOOK_EVERY_MS = 250
"""How often the socket is checked: an orderly end takes seconds, and begins by removing it."""


class SimulatorWatch:
    """Calls ``gone`` once, from a thread of its own, when a simulator ends; ``lanes`` is its socket for connections."""

    def __init__(self, lanes: Path, gone: Callable[[], None]) -> None:
        self._lanes, self._gone = lanes, gone
        self._stop, self._stopped = os.pipe()
        self._thread: threading.Thread | None = None
        with suppress(OSError, ValueError, KeyError, TypeError):  # it has just ended: whatever is asked of it says so
            watched = os.pidfd_open(int(json.loads(lanes.with_name(RUNTIME_FILE).read_text())["pid"]))
            self._thread = threading.Thread(target=self._wait, args=(watched,), name="lumctl-simulator", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Watch it no longer."""
        os.close(self._stopped)
        if self._thread is not None:
            self._thread.join()
        os.close(self._stop)

    def _wait(self, watched: int) -> None:
        try:
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            poll.register(self._stop, select.POLLIN | select.POLLHUP)
            while not (found := dict(poll.poll(LOOK_EVERY_MS))) and self._lanes.exists():
                pass
        finally:
            os.close(watched)
        if self._stop not in found:
            self._gone()
