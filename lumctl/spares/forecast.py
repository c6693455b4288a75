"""When the last free spare of a pool is taken, if accelerators go on failing as they did and none is repaired."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lumctl.errors import UsageError
from lumctl.inventory.model import Accelerator, Inventory
from lumctl.printable import counted
from lumctl.spares.pools import members_by_pool
from lumctl.spares.rates import FailureHistory, failure_history
from lumctl.store import Store
from lumctl.time_text import age_text, ago_text, iso_text

READ_EVERY_S = 600.0
STALE_AFTER_S = 3600.0
"""A history that ended longer ago, in seconds, is said to have ended."""
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class PoolForecast:
    """How often the accelerators of a pool failed, by themselves or with their host.

    ``rate``, ``low`` and ``high`` are failures per second of all of them together, with the ends of the 95 % interval.
    The history is from ``since`` to ``until`` (seconds since the epoch).
    """

    failures: int
    since: float
    until: float
    rate: float
    low: float
    high: float

    @property
    def failures_per_day(self) -> float:
        """The failures of all of them together on a day."""
        return self.rate * _DAY_S

    def document(self, free: int) -> dict[str, Any]:
        """The forecast as data. Without a failure only the lower end of the days is known."""
        return {
            "since": iso_text(self.since),
            "until": iso_text(self.until),
            "failures": self.failures,
            "failures_per_day": self.failures_per_day,
            "days": free / self.failures_per_day if self.rate else None,
            "days_low": free / self.high / _DAY_S,
            "days_high": free / self.low / _DAY_S if self.low else None,
        }

    def words(self, free: int, now: float) -> str:
        """The forecast in a sentence; it says if nothing was recorded lately, so that the history ended."""
        seen = f"{counted(self.failures, 'failures')} in {age_text(self.until - self.since)}"
        seen += f", recorded until {ago_text(self.until, now)}" if now - self.until > STALE_AFTER_S else ""
        if not free:
            return f"no spare is free ({seen})"
        which = "the only free spare" if free == 1 else f"the last of {free} free spares"
        earliest = age_text(free / self.high)
        if not self.rate:
            return f"{which} is taken in {earliest} at the earliest ({seen}; 95 %)"
        latest = age_text(free / self.low) if self.low else "any time"
        mean = age_text(free / self.rate)
        return f"{which} is taken in about {mean} if none is repaired ({seen}; 95 %: {earliest} to {latest})"


class ForecastReader:
    """The forecasts of the pools of some racks; a history is read again after ten minutes at the soonest."""

    def __init__(self) -> None:
        self._read_at: dict[str, float] = {}
        self._found: dict[str, dict[tuple[str, str], PoolForecast]] = {}

    def read(self, inventory: Inventory, rack: str, store: Store, now: float) -> dict[tuple[str, str], PoolForecast]:
        """The forecast of each class of a rack, by rack and class; empty without a day of history.

        Raises:
            StoreError: the store cannot be read.
        """
        if now - self._read_at.get(rack, -READ_EVERY_S) >= READ_EVERY_S:
            self._found[rack] = rack_forecasts(inventory, rack, store)
            self._read_at[rack] = now
        return self._found.get(rack, {})


def rack_forecasts(inventory: Inventory, rack: str, store: Store) -> dict[tuple[str, str], PoolForecast]:
    """The forecast of each class of a rack, by rack and class; empty if its store has less than a day of history.

    Raises:
        StoreError: the store cannot be read.
    """
    try:
        history = failure_history(store, rack)
        pools = members_by_pool(inventory, None)
    except UsageError:  # too little history, or no accelerator in service
        return {}
    return {key: pool_forecast(members, history) for key, members in pools.items() if key[0] == rack}


def pool_forecast(members: Sequence[Accelerator], history: FailureHistory) -> PoolForecast:
    """The forecast for the accelerators of one class in one rack. A failed host takes all of its accelerators."""
    names = [each.id for each in members]
    own = history.estimate("accelerator", names)
    hosts = history.estimate("host", sorted({each.host for each in members}))
    rate, low, high = (
        len(names) * (of_each + of_host)
        for of_each, of_host in ((own.rate, hosts.rate), (own.low, hosts.low), (own.high, hosts.high))
    )
    return PoolForecast(own.failures + hosts.failures, history.since, history.until, rate, low, high)
