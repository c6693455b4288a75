"""Readings over time, on their way into the stores: folded beside each look, written in a thread of their own.

A store that is full, locked or gone holds up no look: its minutes wait in memory, as far as that goes.
"""

import threading
from collections.abc import Callable
from typing import Protocol, Self

from lumctl.daemon.minutes import Folded, Folding, together
from lumctl.daemon.troubles import Troubles
from lumctl.site.measured import measured
from lumctl.site.observation import Observation
from lumctl.store.packing import MINUTE_S

MOST_MINUTES = 15
"""How many minutes wait for a store that takes none; then the oldest go."""
ENDS_WITHIN_S = 5.0
"""How long the end of the daemon waits for the last minutes to be written."""


class Keeper(Protocol):
    """The part of a :class:`lumctl.store.Store` that is used here."""

    def add_readings(self, minutes: Folded, /) -> None:
        """Add minutes to what is kept."""

    def close(self) -> None:
        """Give back the database."""


class Readings:
    """``see`` is for the thread that looks and never waits; everything else is done in another one."""

    def __init__(self, open_store: Callable[[str], Keeper], troubles: Troubles, *, most: int = MOST_MINUTES) -> None:
        self._open_store = open_store
        self._troubles = troubles
        self._most = most
        self._folding: dict[str, Folding] = {}
        self._minute: int | None = None
        self._lock = threading.Lock()
        self._waiting: dict[str, Folded] = {}
        self._stores: dict[str, Keeper] = {}
        self._work = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="lumctl-readings", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._hand_on(float("inf"))
        self._ended = True
        self._work.set()
        self._thread.join(ENDS_WITHIN_S)

    def see(self, look: Observation) -> None:
        """Fold a look; what belongs to minutes that are over is handed on."""
        for read in measured(look):
            self._folding.setdefault(read.rack, Folding()).add(read.component, read.at, read.values())
        minute = int(look.at // MINUTE_S)
        if self._minute not in {None, minute}:
            self._hand_on(look.at)
        self._minute = minute

    def write(self) -> None:
        """Write what waits. What a store does not take waits on, and the other stores get theirs."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        failed = False
        for rack, minutes in waiting.items():
            try:
                self._store(rack).add_readings(minutes)
            except Exception as error:  # noqa: BLE001 - whatever it is, the daemon goes on and the minutes wait
                failed = True
                self._troubles.arose("readings", error)
                # One that was opened while the disk was full stays closed to writing: the next attempt needs another.
                self._close(rack)
                self._wait(rack, minutes)
        if waiting and not failed:
            self._troubles.passed("readings")

    def _run(self) -> None:
        while not self._ended:
            self._work.wait()
            self._work.clear()
            self.write()
        for rack in tuple(self._stores):
            self._close(rack)

    def _hand_on(self, before: float) -> None:
        for rack, folding in self._folding.items():
            if minutes := folding.take(before):
                self._wait(rack, minutes)
        self._work.set()

    def _wait(self, rack: str, minutes: Folded) -> None:
        with self._lock:
            whole = together(minutes, self._waiting.get(rack, {}))
            self._waiting[rack] = {minute: whole[minute] for minute in sorted(whole)[-self._most :]}

    def _store(self, rack: str) -> Keeper:
        if rack not in self._stores:
            self._stores[rack] = self._open_store(rack)
        return self._stores[rack]

    def _close(self, rack: str) -> None:
        if (store := self._stores.pop(rack, None)) is not None:
            store.close()
