"""Writes what a job does with its light into the journal, in one thread, so that no decision waits for the disk."""

import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from lumctl.store import Store, StoreError

Entry = tuple[str, Mapping[str, Any], float]
"""Kind, data and time (seconds since the epoch) of an entry."""


class PhaseJournal:
    """Adds entries to the journal of a rack. ``say`` gets the first error of those that follow each other."""

    def __init__(
        self, store: Store, who: str, say: Callable[[str], None], now: Callable[[], float] = time.time
    ) -> None:
        self._store, self._who, self._say, self._now = store, who, say, now
        self._entries: SimpleQueue[Entry | None] = SimpleQueue()
        self._failed = False
        self._thread: threading.Thread | None = None

    def write(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add an entry later. Only one thread may call this."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="lumctl-phase-journal", daemon=True)
            self._thread.start()
        self._entries.put((kind, data, self._now()))

    def close(self) -> None:
        """Add what waits, and end the thread."""
        self._entries.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while (entry := self._entries.get()) is not None:
            kind, data, at = entry
            try:
                self._store.journal.remark(kind, data, at=at, who=self._who)
                self._failed = False
            except StoreError as error:
                if not self._failed:
                    self._say(f"the changes of light are not in the journal: {error.message}")
                self._failed = True
