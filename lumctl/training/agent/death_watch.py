"""Notices that a worker has begun to die, long before the kernel reports its end."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from lumctl.training import death_lock
from lumctl.training.agent.worker import Worker


class DeathWatches:
    """Notices when a worker begins to die, long before the kernel reports its end; one thread waits for each worker.

    The descriptor is readable once a worker has begun to die.
    """

    def __init__(self) -> None:
        self._found: SimpleQueue[Worker] = SimpleQueue()
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)  # noqa: FBT003 - the socket's own vocabulary

    def fileno(self) -> int:
        """The descriptor."""
        return self._ours.fileno()

    def watch(self, worker: Worker, path: Path) -> None:
        """Watch a worker that already holds the lock at ``path``."""
        threading.Thread(
            target=self._wait, args=(worker, path), name=f"death-watch-{worker.worker}", daemon=True
        ).start()

    def found(self) -> list[Worker]:
        """The workers that began to die since the last call."""
        found = []
        try:
            self._ours.recv(4096)
            while True:
                found.append(self._found.get_nowait())
        except (BlockingIOError, Empty):
            return found

    def close(self) -> None:
        """Stop watching. Threads that still wait end with their workers, or with this process."""
        self._ours.close()
        self._theirs.close()

    def _wait(self, worker: Worker, path: Path) -> None:
        if death_lock.breaks(path):
            self._found.put(worker)
            with suppress(OSError):  # the agent has ended
                self._theirs.send(b".")
