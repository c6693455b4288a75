"""Readings over time for the dashboard, read from the racks' stores when a component is opened."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from lumctl.errors import LumctlError

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory
    from lumctl.store import Store
    from lumctl.tui.views.history import Series


class Historian:
    """Reads what the daemon keeps. Its stores are its own, so that any thread may ask."""

    def __init__(self, inventory: "Inventory", target: str, now: Callable[[], float] = time.time) -> None:
        self._inventory = inventory
        self._target = target
        self._now = now
        self._lock = threading.Lock()
        self._stores: dict[str, Store] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for store in self._stores.values():
                store.close()
            self._stores.clear()

    def __call__(self, component: str, seconds: float) -> "tuple[Series, ...]":
        """The readings of a component for the last seconds; empty if no store has any.

        Raises:
            LumctlError: the store cannot be read; the next call opens it again.
        """
        from lumctl.health.observation import rack_of
        from lumctl.health.quantities import UNITS
        from lumctl.tui.views.history import Series

        rack = rack_of(self._inventory, component)
        if rack is None:
            return ()
        now = self._now()
        try:
            found = self._store(rack).readings.of(component, since=now - seconds, until=now)
        except LumctlError:
            with self._lock:
                if (store := self._stores.pop(rack, None)) is not None:
                    store.close()
            raise
        return tuple(Series(name, UNITS[name], found[name]) for name in UNITS if name in found)

    def _store(self, rack: str) -> "Store":
        from lumctl.store import open_store

        with self._lock:
            if rack not in self._stores:
                self._stores[rack] = open_store(self._inventory, rack, self._target)
            return self._stores[rack]
