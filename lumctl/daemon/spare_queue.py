"""Watches the queue of jobs that wait for spares: ends what is needless, and announces spares that can be had."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from lumctl.daemon.autopilot.pilot import Notify
from lumctl.daemon.notifications.message import AutopilotOccasion
from lumctl.errors import RefusedError
from lumctl.health.observation import Observation
from lumctl.store import NEEDLESS, Store, StoreError
from lumctl.swap.demand_queue import QueueEntry, queue_entries

WHO = "lumctl watch"


class QueueWatcher:
    """The queues of all racks, as of the last observation."""

    def __init__(self, store: Callable[[str], Store], say: Callable[[str], None], tell: Notify) -> None:
        self._store, self._say, self._tell = store, say, tell
        self._stores: dict[str, Store] = {}
        self._announced: dict[tuple[str, str], tuple[str, ...]] = {}
        self._faults: dict[str, str | None] = {}
        self.waiting: Mapping[str, tuple[QueueEntry, ...]] = {}
        """What waits in each rack. The mapping is replaced, never changed."""

    def see(self, look: Observation) -> None:
        """Look at the queues of an observation's racks.

        Raises:
            StoreError: a store cannot be read or written.
        """
        failed: list[StoreError] = []
        found = dict(self.waiting)
        for rack in look.inventory.racks:
            try:
                found[rack] = tuple(self._wait_in(rack, look))
            except StoreError as error:
                failed.append(error)
                if (store := self._stores.pop(rack, None)) is not None:  # opened again at the next observation
                    store.close()
        self.waiting = {rack: found[rack] for rack in look.inventory.racks if rack in found}
        there = {(rack, entry.demand.id) for rack, entries in self.waiting.items() for entry in entries}
        self._announced = {key: given for key, given in self._announced.items() if key in there}
        if failed:
            raise failed[0]

    def close(self) -> None:
        """Close the stores."""
        for store in self._stores.values():
            store.close()

    def _wait_in(self, rack: str, look: Observation) -> list[QueueEntry]:
        if rack not in self._stores:
            self._stores[rack] = self._store(rack)
        store = self._stores[rack]
        if not (waiting := store.demands.waiting()):
            return []
        entries, decision = queue_entries(waiting, look, rack)
        if decision.fault != self._faults.get(rack):
            self._faults[rack] = decision.fault
            if decision.fault is not None:
                self._say(f"queue: best-fit decides instead: {decision.fault}")
        for entry in entries:
            demand = entry.demand
            if entry.needless is not None:
                with suppress(RefusedError):  # somebody served or cancelled it meanwhile
                    store.demands.end(demand.id, NEEDLESS, why=entry.needless, who=WHO, at=look.at)
                self._say(f"queue: {demand.id} of {demand.job} ends: {entry.needless}")
            elif entry.given != self._announced.get((rack, demand.id), ()):
                self._announced[rack, demand.id] = entry.given
                if entry.given:
                    self._announce(rack, entry)
        return [entry for entry in entries if entry.needless is None]

    def _announce(self, rack: str, entry: QueueEntry) -> None:
        demand = entry.demand
        can = f"{', '.join(entry.given)} can replace {', '.join(demand.accelerators)} of {demand.job}"
        text = f"{rack}: {can}, which {demand.id} waits for: {entry.command}"
        self._say(f"queue: {text}")
        self._tell(
            AutopilotOccasion.SPARE,
            text,
            {"rack": rack, "demand": demand.id, "job": demand.job, "spares": list(entry.given)},
        )
