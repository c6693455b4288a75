"""Watches the queue of jobs that wait for spares: ends what is needless, and announces spares that can be had."""

from collections.abc import Callable, Mapping

from lumctl.daemon.autopilot.pilot import Notify
from lumctl.daemon.notifications.message import AutopilotOccasion
from lumctl.health.observation import Observation
from lumctl.store import NEEDLESS, Store
from lumctl.swap.spare_sharing import QueueEntry, queue_entries

WHO = "lumctl watch"


class QueueWatcher:
    """The queues of all racks, as of the last observation."""

    def __init__(self, store: Callable[[str], Store], say: Callable[[str], None], tell: Notify) -> None:
        self._store, self._say, self._tell = store, say, tell
        self._stores: dict[str, Store] = {}
        self._announced: dict[tuple[str, str], tuple[str, ...]] = {}
        self._fault: str | None = None
        self.waiting: Mapping[str, tuple[QueueEntry, ...]] = {}
        """What waits in each rack. The mapping is replaced, never changed."""

    def see(self, look: Observation) -> None:
        """Look at the queues of an observation's racks.

        Raises:
            StoreError: a store cannot be read or written.
        """
        self.waiting = {rack: tuple(self._wait_in(rack, look)) for rack in look.inventory.racks}
        there = {(rack, entry.demand.id) for rack, entries in self.waiting.items() for entry in entries}
        self._announced = {key: given for key, given in self._announced.items() if key in there}

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
        if decision.fault != self._fault:
            self._fault = decision.fault
            if decision.fault is not None:
                self._say(f"queue: best-fit decides instead: {decision.fault}")
        for entry in entries:
            demand = entry.demand
            if entry.needless is not None:
                store.demands.end(demand.id, NEEDLESS, why=entry.needless, who=WHO, at=look.at)
                self._say(f"queue: {demand.id} of {demand.job} ends: {entry.needless}")
            elif entry.given != self._announced.get((rack, demand.id), ()):
                self._announced[rack, demand.id] = entry.given
                if entry.given:
                    self._announce(rack, entry, look.target)
        return [entry for entry in entries if entry.needless is None]

    def _announce(self, rack: str, entry: QueueEntry, target: str) -> None:
        demand = entry.demand
        aimed = entry.command if target == "rack" else f"{entry.command} --target {target}"
        can = f"{', '.join(entry.given)} can replace {', '.join(demand.accelerators)} of {demand.job}"
        text = f"{rack}: {can}, which {demand.id} waits for: {aimed}"
        self._say(f"queue: {text}")
        self._tell(
            AutopilotOccasion.SPARE,
            text,
            {"rack": rack, "demand": demand.id, "job": demand.job, "spares": list(entry.given)},
        )
