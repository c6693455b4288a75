"""The newest observation, and the data that goes into the stores: transitions, and readings folded into minutes.

A store that is full, locked or unreachable must not delay the loop. So a separate thread writes readings, and data that
a store refuses waits in memory, up to a limit.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

from lumctl.daemon.client import encode
from lumctl.daemon.process import ErrorLog
from lumctl.health.observation import Observation
from lumctl.health.quantities import measured
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.model import Inventory
from lumctl.store import Store, StoreError, open_store
from lumctl.store.packed_hours import MINUTE_S, Values, both

Folded = dict[int, dict[str, dict[str, Values]]]
"""Folded values by minute (counted since the epoch), then component, then name of the reading."""

_LOW, _SUM, _COUNT, _HIGH, _DARK = range(5)


class MinuteFolds:
    """Minimum, mean and maximum per minute of one rack's readings. A reading in several observations counts once."""

    def __init__(self) -> None:
        self._newest: dict[str, float] = {}
        self._minutes: dict[int, dict[str, dict[str, list[float]]]] = {}

    def add(self, component: str, at: float, values: Iterable[tuple[str, float]]) -> None:
        """Add a component's values, read at the time ``at`` (seconds since the epoch)."""
        if self._newest.get(component) == at:
            return
        self._newest[component] = at
        named = self._minutes.setdefault(int(at // MINUTE_S), {}).setdefault(component, {})
        for name, value in values:
            if math.isnan(value):
                continue
            one = named.get(name)
            if one is None:
                one = named[name] = [value, 0.0, 0, value, value]
            elif value < one[_LOW]:
                one[_LOW] = value
            elif value > one[_HIGH]:
                one[_HIGH] = value
            if not math.isinf(value):  # the power of no light is minus infinity, which would spoil a mean of dBm
                one[_SUM] += value
                one[_COUNT] += 1

    def take(self, before: float = math.inf) -> Folded:
        """Remove and return the minutes that have ended by a time."""
        over = [minute for minute in self._minutes if (minute + 1) * MINUTE_S <= before]
        return {
            minute: {
                component: {name: _values(one) for name, one in named.items()}
                for component, named in self._minutes.pop(minute).items()
            }
            for minute in over
        }


def merged_minutes(some: Folded, more: Folded) -> Folded:
    """Add minutes to others; ``some`` is changed and returned."""
    for minute, components in more.items():
        for component, named in components.items():
            known = some.setdefault(minute, {}).setdefault(component, {})
            for name, values in named.items():
                known[name] = both(known[name], values) if name in known else values
    return some


def _values(one: list[float]) -> Values:
    # A minute in which only minus infinity was read has no sum, and no other mean.
    mean = one[_SUM] / one[_COUNT] if one[_COUNT] else one[_DARK]
    return Values(float(one[_LOW]), mean, float(one[_HIGH]))


MOST_MINUTES = 15
"""The number of minutes stored for a store that refuses them; beyond that, the oldest are dropped."""
ENDS_WITHIN_S = 5.0
"""How long an ending daemon waits until the last minutes are written."""


class ReadingHistory:
    """Folds readings into minutes (``see``, which never waits) and writes them in another thread."""

    def __init__(self, open_store: Callable[[str], Store], errors: ErrorLog, *, most: int = MOST_MINUTES) -> None:
        self._open_store = open_store
        self._errors = errors
        self._most = most
        self._folding: dict[str, MinuteFolds] = {}
        self._minute: int | None = None
        self._lock = threading.Lock()
        self._waiting: dict[str, Folded] = {}
        self._stores: dict[str, Store] = {}
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
        """Fold the readings of an observation; pass finished minutes to the writing thread."""
        for read in measured(look):
            self._folding.setdefault(read.rack, MinuteFolds()).add(read.component, read.at, read.values())
        minute = int(look.at // MINUTE_S)
        if self._minute not in {None, minute}:
            self._hand_on(look.at)
        self._minute = minute

    def write(self) -> None:
        """Write the waiting minutes. If one store refuses, its minutes wait longer; other stores are written anyway."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        failed = False
        for rack, minutes in waiting.items():
            try:
                self._store(rack).readings.add(minutes)
            except Exception as error:  # noqa: BLE001 - on any error, the daemon continues and the minutes wait
                failed = True
                self._errors.record("readings", error)
                # A store that was opened while the disk was full stays read-only: open it again for the next attempt.
                self._close(rack)
                self._wait(rack, minutes)
        if waiting and not failed:
            self._errors.resolve("readings")

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
            whole = merged_minutes(minutes, self._waiting.get(rack, {}))
            self._waiting[rack] = {minute: whole[minute] for minute in sorted(whole)[-self._most :]}

    def _store(self, rack: str) -> Store:
        if rack not in self._stores:
            self._stores[rack] = self._open_store(rack)
        return self._stores[rack]

    def _close(self, rack: str) -> None:
        if (store := self._stores.pop(rack, None)) is not None:
            store.close()


MAX_WAITING = 10_000
PAUSE_S = 5.0
"""The pause between attempts to write into a store that refused: a locked store delays the loop each time."""

Write = Callable[[str, Sequence[Transition]], None]


class TransitionQueue:
    """Writes transitions into the store of their rack, in order. Used by one thread."""

    def __init__(
        self, write: Write, *, most: int = MAX_WAITING, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.write = write
        self.dropped = 0
        """The number of transitions dropped because too many waited; the oldest are dropped first."""
        self.failures = 0
        self._monotonic = monotonic
        self._waiting: deque[tuple[str, Transition]] = deque(maxlen=most)
        self._not_before = 0.0

    @property
    def waiting(self) -> int:
        """The number of transitions that are not yet written."""
        return len(self._waiting)

    def add(self, rack: str, change: Transition) -> None:
        """Queue a transition for the store of its rack."""
        # The deque drops its oldest itself; here it is only counted.
        self.dropped += len(self._waiting) == self._waiting.maxlen
        self._waiting.append((rack, change))

    def flush(self) -> bool:
        """Write queued transitions, one store at a time; return whether there were any and all were written.

        Raises:
            Exception: the error of a store; its transitions stay queued, and the next attempt waits :data:`PAUSE_S`.
        """
        if not self._waiting or self._monotonic() < self._not_before:
            return False
        refused: Exception | None = None
        for rack in dict.fromkeys(rack for rack, _ in self._waiting):
            changes = [change for where, change in self._waiting if where == rack]
            try:
                self.write(rack, changes)
            except Exception as error:  # noqa: BLE001 - on any error, the others are written and nothing is lost
                refused = error
                self.failures += 1
                continue
            self._waiting = deque(((r, c) for r, c in self._waiting if r != rack), maxlen=self._waiting.maxlen)
        if refused is not None:
            self._not_before = self._monotonic() + PAUSE_S
            raise refused
        return True


class RackStores:
    """The stores of all racks, open as long as the daemon runs; the context that reads the rack may be reopened."""

    def __init__(self, inventory: Inventory, target: str) -> None:
        """Open the store of each rack.

        Raises:
            UsageError, RefusedError: a store cannot be opened.
        """
        self._inventory, self._target = inventory, target
        self._stores: dict[str, Store] = {}
        try:
            for rack in inventory.racks:
                self._stores[rack] = open_store(inventory, rack, target)
        except BaseException:
            self.close()
            raise

    def files(self, rack: str) -> Path:
        """The folder for files that belong to the store of a rack."""
        return self._stores[rack].files

    def last_states(self) -> dict[tuple[str, str], State]:
        """The last recorded state of each component, by its id and kind."""
        return {key: state for store in self._stores.values() for key, state in store.health.last_states().items()}

    def write(self, rack: str, changes: Sequence[Transition]) -> None:
        """Add to the history of a rack. A rack added to the inventory later is ignored: the context writes its history.

        Raises:
            StoreError: the store has no room.
        """
        if rack not in self._stores:
            return
        try:
            self._stores[rack].health.add_transitions(changes)
        except StoreError:
            # A store that was opened while the disk was full stays read-only: open it again for the next attempt.
            self._stores[rack].close()
            self._stores[rack] = open_store(self._inventory, rack, self._target)
            raise

    def close(self) -> None:
        """Close the databases."""
        for store in self._stores.values():
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LatestObservation:
    """Holds the newest observation and its age by the monotonic clock. Replacing one reference needs no lock."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._held: tuple[Observation, float] | None = None
        self._encoded: tuple[Observation, bytes] | None = None
        self._encoding = threading.Lock()

    def put(self, look: Observation) -> None:
        """Store an observation that was just made."""
        self._held = (look, self._monotonic())

    @property
    def look(self) -> Observation | None:
        """The newest observation; ``None`` before the first."""
        held = self._held
        return held[0] if held else None

    def age_s(self) -> float | None:
        """The age of the newest observation in seconds; ``None`` before the first."""
        held = self._held
        return self._monotonic() - held[1] if held else None

    def encoded(self, look: Observation) -> bytes:
        """An observation as bytes; it is encoded only once for all clients."""
        with self._encoding:
            if self._encoded is None or self._encoded[0] is not look:
                self._encoded = (look, encode(look))
            return self._encoded[1]
