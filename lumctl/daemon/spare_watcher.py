"""Watches the spares: tells when few are left, and of the queue of jobs that wait for them, what can be had."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from lumctl.daemon.autopilot.pilot import Notify
from lumctl.daemon.notifications.message import AutopilotOccasion
from lumctl.errors import RefusedError
from lumctl.health.observation import Observation
from lumctl.spares.fitness import spares_by_pool
from lumctl.spares.forecast import ForecastReader, PoolForecast
from lumctl.store import NEEDLESS, Store, StoreError
from lumctl.swap.demand_queue import QueueEntry, ill_accelerators, queue_entries

WHO = "lumctl watch"
LOW_FOR_S = 60.0
"""How long few spares must be left before that is told: a host that misses one observation hides its spares."""


class SpareWatcher:
    """The spares and the queues of all racks, as of the last observation."""

    def __init__(
        self,
        store: Callable[[str], Store],
        say: Callable[[str], None],
        tell: Notify,
        obstacle: Callable[[Observation, Sequence[str]], str] = lambda _look, _failed: "",
    ) -> None:
        """``obstacle`` is why no swap of some accelerators can be applied now; empty if one can."""
        self._store, self._say, self._tell, self._obstacle = store, say, tell, obstacle
        self._stores: dict[str, Store] = {}
        self._announced: dict[tuple[str, str], tuple[str, ...]] = {}
        self._faults: dict[str, str | None] = {}
        self._forecasts = ForecastReader()
        self._low_since: dict[tuple[str, str], float] = {}
        self._told_low: set[tuple[str, str]] = set()
        self.waiting: Mapping[str, tuple[QueueEntry, ...]] = {}
        """What waits in each rack. The mapping is replaced, never changed."""
        self.forecasts: Mapping[tuple[str, str], PoolForecast] = {}
        """How often accelerators of a rack and class fail. The mapping is replaced, never changed."""

    def see(self, look: Observation) -> None:
        """Look at the spares and queues of an observation's racks.

        Raises:
            StoreError: a store cannot be read or written.
        """
        failed: list[StoreError] = []
        found, foreseen = dict(self.waiting), dict[tuple[str, str], PoolForecast]()
        for rack in look.inventory.racks:
            try:
                if rack not in self._stores:
                    self._stores[rack] = self._store(rack)
                foreseen |= self._forecasts.read(look.inventory, rack, self._stores[rack], look.at)
                found[rack] = tuple(self._wait_in(rack, look))
            except StoreError as error:
                failed.append(error)
                if (store := self._stores.pop(rack, None)) is not None:  # opened again at the next observation
                    store.close()
        self.waiting = {rack: found[rack] for rack in look.inventory.racks if rack in found}
        there = {(rack, entry.demand.id) for rack, entries in self.waiting.items() for entry in entries}
        self._announced = {key: given for key, given in self._announced.items() if key in there}
        self.forecasts = foreseen
        self._warn(look)
        if failed:
            raise failed[0]

    def close(self) -> None:
        """Close the stores."""
        for store in self._stores.values():
            store.close()

    def _warn(self, look: Observation) -> None:
        """Tell once of each pool that at most one spare has been left for a while; one of one is not few."""
        pools = spares_by_pool(look)
        low = [key for key, pool in pools.items() if pool.is_low()]
        self._low_since = {key: self._low_since.get(key, look.at) for key in low}
        self._told_low &= set(low)
        for key, since in self._low_since.items():
            if key in self._told_low or look.at - since < LOW_FOR_S:
                continue
            self._told_low.add(key)
            (rack, name), pool = key, pools[key]
            forecast = self.forecasts.get(key)
            how_long = f"; {forecast.words(len(pool.free), look.at)}" if forecast is not None and pool.free else ""
            text = f"{rack}: {pool.words(name)}{how_long}: lumctl spare list --rack {rack}"
            self._say(f"spares: {text}")
            self._tell(
                AutopilotOccasion.SPARES_LOW,
                text,
                {"rack": rack, "class": name, "free": len(pool.free), "spares": len(pool.spares)},
            )

    def _wait_in(self, rack: str, look: Observation) -> list[QueueEntry]:
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
                # Asked only about news, because it makes a plan. Spares that no swap can use now are no news.
                if entry.given and self._obstacle(look, ill_accelerators(look, demand)):
                    continue
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
