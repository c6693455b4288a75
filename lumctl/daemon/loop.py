"""The daemon's loop: observe the rack at each beat and pass the observation on. An error in one beat never stops it."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from lumctl.daemon.autopilot.pilot import Pilot
from lumctl.daemon.history import LatestObservation, ReadingHistory, TransitionQueue
from lumctl.daemon.metrics.exporter import SelfMetrics
from lumctl.daemon.notifications.ledger import NotificationFile, NotificationLedger
from lumctl.daemon.notifications.receivers import Receivers
from lumctl.daemon.process import ErrorLog, notify_systemd
from lumctl.errors import LumctlError
from lumctl.health.observation import Observation, rack_of
from lumctl.health.states import HealthReport, State
from lumctl.health.transitions import Transition, transitions
from lumctl.inventory.folded_names import fold
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory

_CAUSES_FIRST = ("host", "device", "accelerator", "link", "circuit")


def transition_lines(changes: Iterable[Transition]) -> Iterator[str]:
    """One line for each change, or for all components of a kind that changed in the same way."""
    alike: dict[tuple[str, str], list[str]] = {}
    for change in sorted(changes, key=lambda change: _CAUSES_FIRST.index(change.kind)):
        alike.setdefault((change.kind, _change_text(change)), []).append(change.component)
    for (kind, what), components in alike.items():
        counted = kind if len(components) == 1 else f"{len(components)} {kind}s"
        yield f"{counted} {', '.join(fold(components))} {what}"


def _change_text(change: Transition) -> str:
    before = change.before.value if change.before else "new"
    rules = f" ({', '.join(change.rules)})" if change.rules else ""
    evidence = f": {' '.join(change.evidence.split())}" if change.evidence else ""
    return f"{before} -> {change.after.value}{evidence}{rules}"


REMEMBER_S = 10.0
"""The longest time between two writes while findings stay equal: the memory is large, and disks wear out."""
REFUSED_PAUSE_S = 5.0
"""Before a store that refused is tried again."""


class MemorySchedule:
    """When health's memory is written: at once when findings change, otherwise rarely."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: frozenset[tuple[str, ...]] | None = None
        self._by = self._not_before = monotonic()

    def is_due(self, newest: HealthReport | None) -> bool:
        """Whether the next observation is to be written; ``newest`` is the last report."""
        now = self._monotonic()
        news = newest is not None and _found_in(newest) != self._found
        return now >= self._not_before and (news or now >= self._by)

    def wrote(self, report: HealthReport) -> None:
        """Note that the observation of this report was written."""
        self._found = _found_in(report)
        self._by = self._monotonic() + REMEMBER_S

    def refused(self) -> None:
        """Note that the store refused it."""
        self._not_before = self._monotonic() + REFUSED_PAUSE_S


def _found_in(report: HealthReport) -> frozenset[tuple[str, ...]]:
    """What identifies each finding, without evidence that changes from one observation to the next."""
    return frozenset((f.component, f.rule, f.case, f.about, f.state) for f in report.findings())


SET_S = 5.0
"""A difference in seconds between two beats that only setting the clock explains; drift and NTP stay far below."""


class WatchedClock:
    """The wall clock ``now`` (seconds since the epoch) and the ``monotonic`` clock."""

    def __init__(self, now: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.monotonic = monotonic
        self._ahead = now() - monotonic()

    def set_by(self) -> float | None:
        """By how many seconds the wall clock was set since the last call; ``None`` if it was not."""
        ahead = self.now() - self.monotonic()
        by, self._ahead = ahead - self._ahead, ahead
        return by if abs(by) >= SET_S else None


class Cadence:
    """Beats at ``start + n * interval_s`` of the monotonic clock; missed ones are counted and left out."""

    def __init__(self, interval_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._last = monotonic()

    def to_next(self) -> tuple[float, int]:
        """Continue to the next beat in the future: seconds until then, and how many beats were missed."""
        behind = self._monotonic() - self._last
        beats = max(math.ceil(behind / self._interval_s), 1)
        self._last += beats * self._interval_s
        return max(self._last - self._monotonic(), 0.0), beats - 1


PAUSE_S = 5.0
"""Before a rack that does not answer is opened again."""
ALIVE_S = 10.0
"""How often systemd is notified, however long the interval is."""

Known = Mapping[tuple[str, str], State]
"""The states of components by id and kind, as an earlier daemon left them."""


class DaemonOrder(Enum):
    """What a signal asks of a daemon."""

    STOP = "stop"
    RELOAD = "reload"


class NotKeptError(LumctlError):
    """Health's memory could not be written."""


class RackReader(Protocol):
    """What reads the rack: a :class:`lumctl.context.Context`."""

    def observe(self, *, tick: bool = False, remember: bool = False) -> Observation:
        """Read the rack once."""

    def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True)
class Sinks:
    """Where an observation goes."""

    newest: LatestObservation
    history: TransitionQueue
    notes: NotificationFile
    ledger: NotificationLedger
    outbox: Receivers | None
    self_metrics: SelfMetrics
    errors: ErrorLog
    pilot: Pilot | None = None
    readings: ReadingHistory | None = None


class Daemon:
    """Observes a rack until it is told to stop. All of it runs in the thread that calls ``run``."""

    def __init__(
        self,
        inventory: Inventory,
        open_rack: Callable[[Inventory], RackReader],
        sinks: Sinks,
        say: Callable[[str], None],
        *,
        interval_s: float,
        known: Known,
        load: Callable[[Path], Inventory] = load_inventory,
        clock: WatchedClock | None = None,
    ) -> None:
        self.inventory = inventory
        self.orders: SimpleQueue[DaemonOrder] = SimpleQueue()
        """A ``SimpleQueue``, because no other queue may be used in a signal handler."""
        self._open_rack = open_rack
        self._sinks = sinks
        self._say = say
        self._interval_s = interval_s
        self._load = load
        self._clock = clock or WatchedClock()
        self._monotonic = monotonic = self._clock.monotonic
        self._rack: RackReader | None = None
        self._known = known
        self._before: HealthReport | None = None
        self._remembering = MemorySchedule(monotonic)
        self._reopen_at = monotonic()

    def run(self) -> None:
        """Observe at each beat until ``DaemonOrder.STOP`` comes."""
        notify_systemd("READY=1")
        cadence = Cadence(self._interval_s, self._monotonic)
        try:
            while True:
                with self._sinks.self_metrics.tick_duration.time():
                    self.beat()
                notify_systemd("WATCHDOG=1")
                wait_s, missed = cadence.to_next()
                self._sinks.self_metrics.missed(missed)
                if not self._pause(self._monotonic() + wait_s):
                    return
        finally:
            self._close()
            self._keep()

    def beat(self) -> None:
        """Observe once and pass the observation on."""
        # First what a store refused before: it is older than this observation.
        wrote = self._safely("history", self._sinks.history.flush)
        self._mind_the_clock()
        try:
            look = self._look()
        except Exception as error:  # noqa: BLE001 - no error of an observation ends the daemon
            self._sinks.errors.record("look", error)
            if not isinstance(error, LumctlError):  # unexpected: start again with new connections
                self._reopen()
        else:
            self._sinks.errors.resolve("look")
            # Until all have answered or timed out once, an observation is incomplete and shows no change.
            if not look.awaited:
                self._put(look)
            if wrote and look.not_kept is not None:  # it was opened while the disk was full and stays read-only
                self._reopen()
        self._keep()

    def _put(self, look: Observation) -> None:
        """Pass an observation to clients, verdicts and history."""
        self._sinks.newest.put(look)
        self._safely("verdict", lambda: self._hand_on(look))
        if (readings := self._sinks.readings) is not None:
            self._safely("folding", lambda: readings.see(look))

    def _keep(self) -> None:
        """Write what the next daemon must know."""
        self._safely("history", self._sinks.history.flush)
        self._safely("notes", self._sinks.notes.save)

    def _look(self) -> Observation:
        if self._rack is None:
            self._rack = self._open_rack(self.inventory)
        remember = self._remembering.is_due(self._before)
        look = self._rack.observe(tick=True, remember=remember)
        if look.not_kept is not None:
            self._sinks.errors.record("memory", NotKeptError(look.not_kept))
            self._remembering.refused()
        elif remember and not look.awaited:
            self._sinks.errors.resolve("memory")
            self._remembering.wrote(look.report)
        self._mind_the_simulator(look)
        return look

    def _mind_the_clock(self) -> None:
        """After the clock was set, readings look old or in the future: reopen the rack, read everything again."""
        set_by = self._clock.set_by()
        if set_by is not None and self._rack is not None:
            self._say(f"clock: set by {set_by:+.0f} s; everything is read again")
            self._close()

    def _mind_the_simulator(self, look: Observation) -> None:
        """A restarted simulator answers at other addresses: reopen it when nothing answers."""
        alive = any(host.reachable for host in look.snapshot.hosts.values())
        if look.target == "sim" and not alive:
            self._reopen()

    def _reopen(self) -> None:
        if self._monotonic() >= self._reopen_at:
            self._reopen_at = self._monotonic() + PAUSE_S
            self._close()

    def _hand_on(self, look: Observation) -> None:
        sinks, report = self._sinks, look.report
        changes = transitions(self._before or _as_known(self._known, report), report)
        self._before = report
        for line in transition_lines(changes):
            self._say(line)
        for change in changes:
            sinks.self_metrics.changed(change)
            # A store takes each change once: those that the observation itself has written are ignored.
            sinks.history.add(rack_of(look.inventory, change.component, look.circuits) or "", change)
        if sinks.pilot is not None:
            sinks.pilot.see(look)
        if sinks.outbox is not None:
            for notification in sinks.ledger.review(look):
                sinks.outbox.put(notification)

    def _safely(self, place: str, work: Callable[[], bool | None]) -> bool:
        """Do something, log its error; whether it was done (work that returns ``False`` had nothing to do)."""
        try:
            done = work() is not False
        except Exception as error:  # noqa: BLE001 - no error of one part ends the daemon
            self._sinks.errors.record(place, error)
            return False
        if done:
            self._sinks.errors.resolve(place)
        return done

    def _pause(self, until: float) -> bool:
        """Wait for the next beat and follow orders meanwhile; ``False`` after the order to stop."""
        while True:
            left_s = max(until - self._monotonic(), 0.0)
            try:
                order = self.orders.get(timeout=min(left_s, ALIVE_S))
            except Empty:
                if left_s <= ALIVE_S:
                    return True
                notify_systemd("WATCHDOG=1")
                continue
            if order is DaemonOrder.STOP:
                return False
            self._reload()

    def _reload(self) -> None:
        """Read the inventory again; an invalid one changes nothing."""
        try:
            fresh = self._load(self.inventory.path)
            if fresh.digest == self.inventory.digest:
                self._say("inventory: read again, unchanged")
                return
            reader = self._open_rack(fresh)
        except LumctlError as error:
            self._say(f"inventory: the new one cannot be used, the old one stays in force: {error.message}")
            return
        self._close()
        self._rack, self.inventory = reader, fresh
        self._say(f"inventory: {fresh.path} read again and in force")

    def _close(self) -> None:
        if self._rack is not None:
            self._safely("end", self._rack.close)
            self._rack = None


def _as_known(known: Known, report: HealthReport) -> HealthReport:
    """The same report with the states that an earlier daemon left; components without one are left out."""
    groups: dict[str, Any] = {
        group: {
            name: replace(health, state=known[name, kind])
            for name, health in components.items()
            if (name, kind) in known
        }
        for group, components in report.groups().items()
        for kind in (group.removesuffix("s"),)
    }
    return replace(report, **groups)
