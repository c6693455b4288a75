"""What the dashboard shows of the racks' stores, read again where something has been written since."""

import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from lumctl.errors import LumctlError

if TYPE_CHECKING:
    from lumctl.health.transitions import Transition
    from lumctl.inventory.model import Inventory
    from lumctl.store import Head, Run, Store
    from lumctl.tui.views.records import Line, Records, Working

MOST_LINES = 500
"""How many lines of the log are shown."""
RENEWED_S = 10.0
"""What changes by time alone is read this often though nothing was written: an ask lapses, a limit frees a swap."""
ASK_WITHIN_S = 0.5
"""How long a job's coordinator may take to tell how the job stands."""


class Recorder:
    """Reads the stores of all racks of an inventory, and asks the coordinators of jobs on this machine."""

    def __init__(
        self,
        inventory: "Inventory",
        target: str,
        *,
        watched: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.time,
        opened: "Callable[[str], Store] | None" = None,
    ) -> None:
        from lumctl.store import open_store

        self._inventory = inventory
        self._target = target
        self._opened = opened or (lambda rack: open_store(inventory, rack, target))
        self._watched = watched
        self._now = now
        self._stores: dict[str, Store] = {}
        self._marks: dict[str, int | None] = {}
        self._heads: dict[str, Head] = {}
        self._changed: dict[str, tuple[Transition, ...]] = {}
        self._read: dict[str, _OfRack] = {}
        self._is_watched: bool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    def __call__(self) -> "Records":
        """Read what is new."""
        from lumctl.store.database import shown
        from lumctl.tui.views.records import Records

        trouble, watched = None, cache(self._watched)
        for rack in self._inventory.racks:
            try:
                self._renew(rack, watched)
            except LumctlError as error:
                self._marks.pop(rack, None)
                trouble = error.message
        read = [self._read[rack] for rack in self._inventory.racks if rack in self._read]
        runs = sorted((run for each in read for run in each.runs), key=lambda run: -run.started_at)
        log = sorted((line for each in read for line in each.log), key=lambda line: -line.at)
        return Records(
            runs=tuple(runs),
            autopilots=tuple(each.autopilot for each in read),
            working=tuple(self._working()),
            log=tuple(log[:MOST_LINES]),
            trouble=trouble,
            stores={rack: shown(store.place) for rack, store in self._stores.items()},
            watched=self._is_watched,
        )

    def _renew(self, rack: str, watched: Callable[[], bool]) -> None:
        from lumctl.cli.top.log import log_of
        from lumctl.daemon.autopilot.journal import rack_status

        store = self._stores.get(rack)
        if store is None:
            store = self._stores[rack] = self._opened(rack)
        known, now, mark = self._read.get(rack), self._now(), store.mark()
        is_old = known is None or now - known.told_at >= RENEWED_S
        if mark is not None and mark == self._marks.get(rack) and not is_old:
            return
        head, changes = store.journal.head(), self._changes(rack, store)
        self._marks[rack] = mark  # as it was before anything was read: what came meanwhile is read next time
        news = self._heads.get(rack) != head or self._changed.get(rack) != changes
        if not news and not is_old:
            return
        self._is_watched = watched()
        autopilot = rack_status(self._inventory, rack, store, now=now, watched=self._is_watched)
        if not news and known is not None:
            known.autopilot, known.told_at = autopilot, now
            return
        runs = store.runs.all()
        self._read[rack] = _OfRack(runs, autopilot, log_of(rack, store.journal.latest(MOST_LINES), runs, changes), now)
        self._heads[rack], self._changed[rack] = head, changes

    def _changes(self, rack: str, store: "Store") -> "tuple[Transition, ...]":
        """The newest changes of state; after the first time only what is not older than the last one is read."""
        known = self._changed.get(rack, ())
        newest = store.health.transitions(since=known[-1].at if known else None, limit=MOST_LINES)
        return (*known, *(change for change in newest if change not in known[-len(newest) :]))[-MOST_LINES:]

    def _working(self) -> "list[Working]":
        from lumctl.training.job_control import ask
        from lumctl.training.job_folder import coordinator_socket
        from lumctl.tui.views.records import Working

        found = []
        for name, job in self._inventory.jobs.items():
            if job.run is None:
                continue
            place = coordinator_socket(self._inventory.path, self._target, name)
            try:
                told = ask(place, "status", timeout_s=ASK_WITHIN_S)
            except LumctlError:
                told = None
            found.append(Working(name, told))
        return found


class _OfRack:
    def __init__(
        self, runs: "tuple[Run, ...]", autopilot: Mapping[str, Any], log: "list[Line]", told_at: float
    ) -> None:
        self.runs, self.autopilot, self.log, self.told_at = runs, autopilot, log, told_at
